"""The commands `waterfill theory stability|margin|equilibrium|convergence|encoding`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from waterfill.cli import completion
from waterfill.cli.arguments import Json, Protocol, ScenarioFile, examples, place
from waterfill.cli.console import Unwritten, print_json, print_text, show
from waterfill.errors import InputError, shown

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from matplotlib.figure import Figure

    from waterfill.theory.subject import Subject

    Figures: TypeAlias = dict[str, Figure]

# Commands import what they need themselves, so that --help starts quickly.
app = typer.Typer(
    name="theory",
    help="Compute stability, margins, equilibria, convergence, encodings.",
    epilog=examples("waterfill theory stability maxnet --max-rtt 1000s"),
    no_args_is_help=True,
    rich_markup_mode=None,
)

What = Annotated[
    str,
    Argument(
        metavar="P|S.toml",
        help="Protocol, or scenario file whose network to analyse.",
        autocompletion=completion.explicit,
    ),
]
ExplicitLaw = Annotated[
    str, Argument(metavar="P", help="Protocol.", autocompletion=completion.explicit)
]
Sets = Annotated[
    list[str] | None,
    Option("--set", metavar="KEY=VALUE", help="Override a key, as in params.maxnet.alpha=0.5."),
]
Output = Annotated[
    Path | None,
    Option(
        "-o",
        "--output",
        metavar="DIR",
        help="Output directory for theory.json and figures.",
        parser=place,
    ),
]
Rtt = Annotated[str | None, Option(metavar="TIME", help='RTT, such as "80 ms".')]


@app.command(
    epilog=examples(
        "waterfill theory stability maxnet --max-rtt 1000s",
        "waterfill theory stability maxnet --tune --max-rtt 250ms",
    )
)
def stability(
    what: What,
    max_rtt: Annotated[
        str | None,
        Option(
            metavar="TIME",
            help="Maximum RTT at which the law must be stable (default: 1 s). A scenario has its "
            "own RTTs.",
        ),
    ] = None,
    tune: Annotated[
        bool, Option("--tune", help="MaxNet only: find parameters stable up to --max-rtt.")
    ] = False,
    verify_rtt: Annotated[
        str | None,
        Option(
            metavar="TIME",
            help="With --tune: maximum RTT to verify (default: 1000 s for a --max-rtt of 80 ms or "
            "more, else 100 times --max-rtt).",
        ),
    ] = None,
    eta: Annotated[
        float | None, Option(help="With --tune: zero η of the compensator (default: 0.1).")
    ] = None,
    phase_margin: Annotated[
        float | None,
        Option(metavar="DEGREES", help="With --tune: required phase margin (default: 45)."),
    ] = None,
    certificate: Annotated[
        bool, Option("--certificate", help="MaxNet only: also print the proof's conditions.")
    ] = False,
    protocol: Protocol = None,
    sets: Sets = None,
    json: Json = False,
    output: Output = None,
) -> None:
    """Check if a law is stable up to an RTT, or on a network."""
    from waterfill.cli import theory_tables
    from waterfill.theory import stability as laws
    from waterfill.theory import subject, tuning

    tau_s = _time_s("max-rtt", max_rtt or "1 s")
    about = subject.parse(what, sets or [], laws.PROTOCOLS, protocol)
    _refuse_unread(about, "theory stability")
    if about.network is not None and max_rtt is not None:
        why = f"no effect, because {what} has its own RTTs, got {shown(max_rtt)}"
        raise InputError("command line", "max-rtt", why, "remove it")
    _refuse_without_effect(about, json, certificate, tune, verify_rtt, eta, phase_margin)
    if not tune:
        document = laws.document(about, tau_s)
        figures = partial(_stability_figures, about, tau_s)
    else:
        verify_s = tuning.verified_s(tau_s)
        if verify_rtt is not None:
            verify_s = _time_s("verify-rtt", verify_rtt)
        eta = 0.1 if eta is None else eta
        phase_margin = 45.0 if phase_margin is None else phase_margin
        if not 0 < eta <= 10:
            problem = f"must be a number above 0 and at most 10, got {eta:g}"
            raise InputError("command line", "eta", problem)
        if not 1 <= phase_margin <= 80:
            problem = f"must be an angle from 1 to 80 degrees, got {phase_margin:g}"
            raise InputError("command line", "phase-margin", problem)
        document = laws.tuning_document(about, tau_s, verify_s, eta, phase_margin)
        figures = partial(_tuned_figures, document, tau_s, verify_s)
    parts = theory_tables.rows(document, certificate=certificate)
    _answer(document, parts, json, output, figures)


@app.command(
    epilog=examples(
        "waterfill theory margin aecp", "waterfill theory margin aecp --set params.aecp.alpha=4"
    )
)
def margin(
    what: ExplicitLaw, rtt: Rtt = None, sets: Sets = None, json: Json = False, output: Output = None
) -> None:
    """Compute a law's crossover, phase margin and delay margin."""
    from waterfill.cli import theory_tables
    from waterfill.theory import documents, subject

    about = subject.parse(what, sets or [], documents.MARGIN)
    _by_itself(about, what)
    document = documents.margin(about, None if rtt is None else _time_s("rtt", rtt))
    figures = partial(_margin_figures, about, document)
    _answer(document, theory_tables.rows(document), json, output, figures)


@app.command(epilog=examples("waterfill theory equilibrium S.toml --protocol xcp"))
def equilibrium(
    scenario: ScenarioFile,
    protocol: Protocol = None,
    sets: Sets = None,
    json: Json = False,
    output: Output = None,
) -> None:
    """Compute the equilibrium rates of all flows of a network.

    XCP's are not max-min.
    """
    from waterfill.cli import theory_tables
    from waterfill.network import protocols
    from waterfill.theory import documents, plots, subject

    able = [name for name, info in protocols.load().items() if info.kind == "explicit"]
    about = subject.parse(str(scenario), sets or [], able, protocol)
    _refuse_unread(about, "theory equilibrium")
    if about.network is None:
        raise InputError("command line", str(scenario), "must be a scenario file, got a protocol")
    document = documents.equilibrium_of(about)

    def figures() -> Figures:
        return {"equilibrium": plots.equilibrium(document)}

    _answer(document, theory_tables.equilibrium(document), json, output, figures)


@app.command(epilog=examples("waterfill theory convergence aecp"))
def convergence(
    what: ExplicitLaw, rtt: Rtt = None, sets: Sets = None, json: Json = False, output: Output = None
) -> None:
    """Compute how fast a law fills links and becomes fair."""
    from waterfill.cli import theory_tables
    from waterfill.theory import documents, subject

    about = subject.parse(what, sets or [], documents.CONVERGENCE)
    _by_itself(about, what)
    tau_s = _time_s("rtt", rtt or "80 ms")
    document = documents.convergence(about, tau_s)
    figures = partial(_time_figures, about, document, tau_s)
    _answer(document, theory_tables.rows(document), json, output, figures)


@app.command(epilog=examples("waterfill theory encoding maxnet"))
def encoding(
    what: ExplicitLaw, sets: Sets = None, json: Json = False, output: Output = None
) -> None:
    """Compute the range and precision of a law's header field."""
    from waterfill.cli import theory_tables
    from waterfill.theory import documents, subject

    about = subject.parse(what, sets or [], documents.ENCODING)
    _by_itself(about, what)
    document = documents.encoding_of(about)
    figures = partial(_encoding_figures, about)
    _answer(document, theory_tables.rows(document), json, output, figures)


def _refuse_without_effect(
    about: Subject, json: bool, certificate: bool, tune: bool, *of_tune: str | float | None
) -> None:
    """Raise InputError for an option of `theory stability` that has no effect.

    `of_tune` are the values of --verify-rtt, --eta and --phase-margin.
    """
    if not tune:
        for option, given in zip(("verify-rtt", "eta", "phase-margin"), of_tune, strict=True):
            if given is not None:
                why = f"no effect without --tune, got {given}"
                raise InputError("command line", option, why, "add --tune, or remove it")
    alone = about.protocol == "maxnet" and about.network is None
    what = about.protocol if about.scenario is None else about.scenario.source
    if tune and not alone:
        raise InputError("command line", "tune", f"works only for maxnet, got {what}")
    if certificate and (json or not alone):
        why = "no effect with --json, which has it" if json else f"only maxnet has one, got {what}"
        raise InputError("command line", "certificate", why, "remove it")


def _refuse_unread(about: Subject, command: str) -> None:
    """Raise InputError for a key of the command line that the analysis of a network ignores."""
    from waterfill.runs import backends
    from waterfill.scenario import given

    if about.scenario is not None:
        given.refuse_unread(about.scenario, command, ("seed", "duration"))
        backends.refuse_idle([(about.scenario, backend) for backend in backends.BACKENDS])


def _by_itself(about: Subject, what: str) -> None:
    if about.network is not None:
        raise InputError("command line", what, "must be a protocol, got a scenario file")


def _time_s(option: str, text: str) -> float:
    from waterfill.theory import subject

    return subject.time_s(option, text)


def _maxnet_loops(values: dict[str, Any]) -> dict[str, Any]:
    from waterfill.theory import maxnet

    params = maxnet.Params.of(values)
    return {"eq. 13": maxnet.eq13(params), "as implemented": maxnet.implemented(params)}


def _stability_figures(about: Subject, tau_s: float) -> Figures:
    from waterfill.theory import aecp, plots

    values: dict[str, Any] = about.params
    if about.protocol == "maxnet":
        loops = _maxnet_loops(values)
        lead = plots.lead_or_lag(loops["as implemented"], values["alpha"])
        return {"construction": plots.construction(loops, tau_s), "lead-or-lag": lead}
    if about.protocol == "aecp":
        params = aecp.Params.of(values)
        return {"margin": plots.aecp_margin(params.gains, params.t_2_s)}
    if about.protocol == "vcp":
        return {"margin": plots.vcp_margin(values["xi"])}
    if about.protocol == "abc":
        return {"margin": plots.abc_margin(values["delta"])}
    if about.protocol == "jetmax":
        return {"steps": plots.jetmax_steps(values["tau"])}
    if about.protocol == "mkc":
        return {"steps": plots.mkc_steps(values["gamma"], values["alpha"], values["beta"])}
    return {"region": plots.region(values["alpha"], values["beta"], about.protocol)}


def _tuned_figures(document: dict[str, Any], tau_s: float, verify_s: float) -> Figures:
    from waterfill.theory import plots
    from waterfill.theory.maxnet import Gains

    proof = document["certificate"]
    eta = document["params"]["eta"]
    real = Gains(tau_s, eta, proof["average"], proof["dt_p_s"])
    loops = {"eq. 13": Gains(tau_s, eta), "as implemented": real}
    lead = plots.lead_or_lag(real, document["params"]["alpha"])
    return {"construction": plots.construction(loops, verify_s), "lead-or-lag": lead}


def _margin_figures(about: Subject, document: dict[str, Any]) -> Figures:
    from waterfill.theory import plots

    if about.protocol != "maxnet":
        return _stability_figures(about, 1.0)
    values: dict[str, Any] = about.params
    loops = _maxnet_loops(values)
    return {"steps": plots.maxnet_steps(loops, values["alpha"], document["rtt_s"])}


def _time_figures(about: Subject, document: dict[str, Any], tau_s: float) -> Figures:
    from waterfill.theory import aecp, plots

    values: dict[str, Any] = about.params
    if about.protocol == "maxnet":
        return {"steps": plots.maxnet_steps(_maxnet_loops(values), values["alpha"], tau_s)}
    if about.protocol == "aecp":
        link = aecp.Link(
            document["capacity_packets_s"], 1.0, document["x_0"], document["r_0"], values["q_0"]
        )
        return {"efficiency": plots.aecp_efficiency(aecp.Params.of(values).gains, link)}
    if about.protocol == "jetmax":
        return {"steps": plots.jetmax_steps(values["tau"])}
    return {}


def _encoding_figures(about: Subject) -> Figures:
    from waterfill.theory import plots

    if about.protocol != "maxnet":
        return {}
    values: dict[str, Any] = about.params
    return {"encoding": plots.encoding_steps(values["alpha"], values["eta"], values["t"])}


def _answer(
    document: dict[str, Any],
    parts: list[Any],
    json: bool,
    output: Path | None,
    figures: Callable[[], Figures],
) -> None:
    """Print a document or its tables. With a directory, also write theory.json and the figures."""
    unwritten = Unwritten()
    if output is not None:
        from waterfill.analysis import draw
        from waterfill.contract.versions import versioned
        from waterfill.runs.files import make_directory, write_text
        from waterfill.runs.result import to_json
        from waterfill.theory import subject

        make_directory(output)
        with unwritten.collected():
            write_text(output / "theory.json", to_json(versioned(document)) + "\n")
            for name, figure in subject.computed(figures)().items():
                draw.save(figure, output / name)
    if json:
        print_json(document)
    else:
        show(*parts)
        if output is not None and not unwritten.errors:
            print_text(f"written to {output}")
    if unwritten.report():
        raise typer.Exit(1)
