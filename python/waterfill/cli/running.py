"""The commands `run` and `compare`, which run a scenario, and `plot`, which draws their results."""

from __future__ import annotations

import itertools
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from waterfill.cli import completion
from waterfill.cli.arguments import (
    INTERRUPTED,
    Backend,
    Json,
    Output,
    OwnLaw,
    Protocol,
    ScenarioFile,
    Seed,
    Sets,
    Style,
    laws_of,
    laws_used,
    overrides,
    place,
    quantity,
)
from waterfill.cli.console import Unwritten, print_json, print_text, show
from waterfill.errors import InputError, one_line, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from waterfill.analysis.compare import Comparison
    from waterfill.analysis.documents import ComparisonDocument, Figures
    from waterfill.contract.summary import Summary
    from waterfill.runs.capture import Capture
    from waterfill.runs.directory import Stage
    from waterfill.runs.endpoints import Endpoints
    from waterfill.runs.laws import PythonLaw
    from waterfill.runs.qlog import Qlog
    from waterfill.runs.result import Document, Result
    from waterfill.runs.steps import StepLog
    from waterfill.scenario.document import Scenario

CaptureLinks = Annotated[
    list[str] | None,
    Option(
        "--pcap-link",
        metavar="LINK",
        help="Capture only this link, in both directions; repeatable.",
    ),
]
Bins = Annotated[
    str | None,
    Option(
        "--bins",
        metavar="BINS",
        help="Size bins of the completion times: decades, deciles (ten bins of as many flows "
        'each), sizes (one for each), or limits such as "10 kB,1 MB". Default: decades.',
    ),
]
CaptureLimit = Annotated[
    str | None, Option(metavar="SIZE", help="Maximum size of the capture. Default: 256 MB.")
]
CaptureSnaplen = Annotated[
    int | None,
    Option(
        metavar="BYTES",
        help="Bytes to keep of each packet. Default: 80, which include all headers.",
    ),
]
Count = Annotated[
    int,
    Option("--seeds", metavar="N", help="Run with N seeds and print 95 % confidence intervals."),
]
WithQlog = Annotated[
    bool,
    Option("--qlog", help="Write DIR/FLOW.sqlog of each flow for qvis (sim, with -o)."),
]
QlogFlows = Annotated[
    list[str] | None,
    Option("--qlog-flow", metavar="FLOW", help="Log only this flow or group; repeatable."),
]
Endpoint = Annotated[
    list[str] | None,
    Option(
        "--endpoint",
        metavar="FLOW=LIB.so[:KEY=VALUE,…]",
        help="Run a library's transport endpoints as this flow (sim): code that you trust.",
    ),
]
Threads = Annotated[
    int | None,
    Option(
        "--threads",
        metavar="N",
        help="Maximum number of threads (sim); results are the same. Default: the fastest.",
    ),
]
LogSteps = Annotated[
    int | None,
    Option(
        "--log-steps",
        metavar="ROWS",
        help="Log the first ROWS steps of the laws to DIR/steps.parquet (not on linux).",
    ),
]
LogLaw = Annotated[
    str | None,
    Option(
        "--log-law",
        metavar="LAW",
        help="Log only the steps of this law.",
        autocompletion=completion.protocols,
    ),
]
Protocols = Annotated[
    str | None,
    Option(
        "--protocols",
        metavar="A,B,C",
        help="Protocols to compare, or explicit or all. Default: maxnet,xcp,rcp,abc.",
        autocompletion=completion.protocols,
    ),
]
Backends = Annotated[
    str,
    Option(
        metavar="BACKENDS",
        help="One or several backends, such as sim,linux.",
        autocompletion=completion.backends,
    ),
]


_LIMIT, _SNAPLEN = "256 MB", 80


def run(
    scenario: ScenarioFile,
    on: Backend = "sim",
    protocol: Protocol = None,
    sets: Sets = None,
    seed: Seed = None,
    json: Json = False,
    output: Output = None,
    pcap: Annotated[
        bool, Option("--pcap", help="Write DIR/packets.pcapng for Wireshark (sim, with -o).")
    ] = False,
    pcap_links: CaptureLinks = None,
    pcap_limit: CaptureLimit = None,
    pcap_snaplen: CaptureSnaplen = None,
    qlog: WithQlog = False,
    qlog_flow: QlogFlows = None,
    endpoint: Endpoint = None,
    threads: Threads = None,
    log_steps: LogSteps = None,
    log_law: LogLaw = None,
    law: OwnLaw = None,
    style: Style = "screen",
    bins: Bins = None,
) -> None:
    """Run a scenario; print the rates of flows and queues of links."""
    from waterfill.runs import backends
    from waterfill.runs.progress import Bar
    from waterfill.scenario.loading import load

    backends.check(on)
    _check_style(style, output)
    limits = _bins(bins)
    loaded = load(scenario, overrides(protocol, sets, seed))
    # Of a file with several laws, the run has those that its flows name.
    every = laws_of(law)
    own = laws_used(every, [loaded], law, "--protocol")
    backends.refuse_idle([(loaded, on)], every)
    for option, value in (("pcap-limit", pcap_limit), ("pcap-snaplen", pcap_snaplen)):
        if value is not None and not (pcap or pcap_links):
            raise InputError("command line", option, "no effect without --pcap", "add --pcap")
    unwritten = Unwritten()
    with ExitStack() as stack:
        # Before the run, so that a typo or another run there fails at once.
        stage = None if output is None else stack.enter_context(_stage(output))
        capture, caption = None, ""
        if pcap or pcap_links:
            capture = _capture(stage, pcap_links or [], pcap_limit, pcap_snaplen)
        steps = _steps(stage, log_steps, log_law)
        logs = _qlog(stage, qlog, qlog_flow or [])
        try:
            with Bar(one_line(loaded.name)) as bar:
                result = backends.run(
                    loaded, on=on, progress=bar, capture=capture, threads=threads, laws=own,
                    steps=steps, qlog=logs, endpoints=_endpoints(endpoint or []),
                )  # fmt: skip
        except KeyboardInterrupt:  # before the run had anything
            raise typer.Exit(INTERRUPTED) from None
        if capture is not None and capture.failed is not None:
            capture.file.unlink(missing_ok=True)
        if stage is not None:
            caption = _write(result, stage, unwritten, style)
    if json:
        print_json(_document(result, limits))
    else:
        _show_run(result, limits)
        if on == "sim":
            hint_of_chance([loaded], own, "waterfill compare {} --seeds 5")
        if output is not None and not unwritten.errors:
            print_text(f"written to {output}")
            _print_caption(caption, style)
    failed = unwritten.report()
    if output is not None:
        failed |= _report(capture, steps, output, pcap_limit) | _report_qlog(logs, output)
    if "interrupted_at_s" in result.summary:
        raise typer.Exit(INTERRUPTED)
    if _failed(result.summary) or failed:
        raise typer.Exit(1)


def _endpoints(options: list[str]) -> Endpoints | None:
    """Return the endpoints of options FLOW=LIBRARY; without options the module is not loaded."""
    if not options:
        return None
    from waterfill.runs import endpoints

    return endpoints.parse(options)


def _document(result: Result, bins: str | list[float]) -> Document:
    """Return the summary, with completion times and slowdowns where flows have a size."""
    document: Document = dict(result.summary)
    if result.network.has_transfers:
        from waterfill.analysis.collectives import collectives
        from waterfill.analysis.transfers import by_size, edges, incast_summaries, overall

        table = result.transfers
        document["transfers"] = overall(table, result.slowdown_contents)
        rows = by_size(table, edges(table, bins))  # the last of several is for all sizes
        document["transfers_by_size"] = rows[:-1] or rows
        if incasts := incast_summaries(table, result.network):
            document["incasts"] = incasts
        if held := collectives(result):
            document["collectives"] = held
    return document


def _show_run(result: Result, bins: str | list[float]) -> None:
    from waterfill.analysis.tables import without_shares
    from waterfill.cli import tables

    messages: set[str] = set()
    if result.document.get("collective"):
        from waterfill.analysis.collectives import message_names

        messages = message_names(result)
    show(*tables.run(result.summary, messages, without_shares(result.network)))
    if result.network.has_transfers:
        from waterfill.analysis.collectives import collectives
        from waterfill.analysis.transfers import by_size, edges, incast_summaries

        table = result.transfers
        show(*tables.transfers(by_size(table, edges(table, bins)), result.slowdown_contents))
        show(*tables.incasts(incast_summaries(table, result.network)))
        show(*tables.collectives(collectives(result)))


def _bins(text: str | None) -> str | list[float]:
    """Return the size bins of an option: the name of a rule, or limits (bytes)."""
    from waterfill.scenario.units import VOLUME

    named = ("decades", "deciles", "sizes")
    if text is None or text in named:
        return text or "decades"
    try:
        limits = [VOLUME.parse(part.strip()) for part in text.split(",")]
    except ValueError:
        wanted = f'{", ".join(named)}, or limits such as "10 kB,1 MB"'
        raise InputError("command line", "bins", f"must be {wanted}, got {shown(text)}") from None
    if any(below >= above for below, above in itertools.pairwise(limits)):
        raise InputError("command line", "bins", f"limits must rise, got {shown(text)}")
    return limits


def _stage(output: Path) -> Stage:
    from waterfill.runs.directory import Stage

    return Stage(output)


def _check_style(style: str, output: Path | None) -> None:
    """Raise InputError for an unknown style of figures, and for one if no figure is written."""
    if style == "screen":
        return
    from waterfill.analysis import looks

    looks.look(style)
    if output is None:
        raise InputError(
            "command line", "style", f"no effect without -o, got {style}", "add -o DIR"
        )


def _print_caption(caption: str, style: str) -> None:
    """Print the caption of a figure that is drawn without words, for the text around it."""
    from waterfill.analysis import looks

    if caption and not looks.look(style).words:
        print_text(f"caption: {caption}")


def _write(result: Result, stage: Stage, unwritten: Unwritten, style: str) -> str:
    """Write a run's files and figures; return the first figure's caption.

    A figure that cannot be written is left out.
    """
    from waterfill.analysis import draw, looks, plots

    look = looks.look(style)
    caption = ""
    with unwritten.collected():
        result.write_into(stage.folder)
        with unwritten.collected():
            drawn = "interrupted_at_s" not in result.summary  # who interrupts does not wait
            if drawn:
                figure = draw.styled(plots.overview(result), look)
                draw.save(figure, stage.folder / "figure")
                caption = "" if look.words else figure.sheet.note
            if drawn and result.network.has_transfers:
                name = result.summary.scenario
                sizes = draw.styled(plots.slowdowns({name: result.transfers}), look)
                draw.save(sizes, stage.folder / "transfers")
            if drawn and plots.has_many_links(result):
                every = draw.styled(plots.plot(result, "links"), look)
                draw.save(every, stage.folder / "links")
        stage.publish()
    return caption


def _report(
    capture: Capture | None, steps: StepLog | None, output: Path, limit: str | None
) -> bool:
    """Print gaps in a run's capture or step log on standard error; return True if either failed."""
    said = {}
    if capture is not None and capture.failed is not None:
        said[capture.file] = capture.failed
    elif capture is not None and capture.recorded and capture.recorded.full_at_s is not None:
        at = f"{capture.recorded.full_at_s:.6g} s"
        said[capture.file] = (
            f"reached its limit of {limit or _LIMIT} at {at}; later packets are missing"
        )
    if steps is not None and steps.failed is not None:
        said[steps.file] = steps.failed
    elif steps is not None and not steps.written:
        said[steps.file] = "no step: no flow ran a law whose steps are logged"
    elif steps is not None and steps.dropped:
        said[steps.file] = f"{steps.written} steps; {steps.dropped} later ones are missing"
    for file, text in said.items():
        print(f"{output / file.name}: {text}", file=sys.stderr)
    return any(record is not None and record.failed is not None for record in (capture, steps))


def _report_qlog(logs: Qlog | None, output: Path) -> bool:
    """Print gaps in a run's qlog files on standard error; return True if they failed."""
    if logs is None:
        return False
    if logs.failed is not None:
        print(f"{output}: {logs.failed}", file=sys.stderr)
    elif logs.logged is not None and logs.logged.full_at_s is not None:
        limit, at = f"{logs.limit_bytes / 1e6:.6g} MB", f"{logs.logged.full_at_s:.6g} s"
        why = f"reached their limit of {limit} at {at}; later events are missing"
        print(f"{output}: the qlog files {why}; log fewer with --qlog-flow", file=sys.stderr)
    return logs.failed is not None


def compare(
    scenario: ScenarioFile,
    names: Protocols = None,
    on: Backends = "sim",
    sets: Sets = None,
    seed: Seed = None,
    count: Count = 1,
    json: Json = False,
    output: Output = None,
    law: OwnLaw = None,
    style: Style = "screen",
) -> None:
    """Run a scenario under several protocols and print one table."""
    from waterfill.analysis import compare, looks, seeds
    from waterfill.runs import backends, pool
    from waterfill.runs.progress import Bars

    _check_style(style, output)
    places = list(dict.fromkeys(backend.strip() for backend in on.split(",")))
    for backend in places:
        backends.check(backend)
    given = overrides(None, sets, seed)
    if any(one.partition("=")[0].strip() == "protocol" for one in given):
        why = "no effect: compare runs each of --protocols"
        raise InputError("command line", "protocol", why, "remove it")
    own = laws_of(law)
    chosen = compare.on_each(names, places, own)
    loaded = {one: compare.load_each(scenario, given, chosen, one, own) for one in places}
    scenarios, where = _labelled(loaded, jitter=count > 1)
    backends.refuse_idle([(scenarios[label], where[label]) for label in scenarios], own)
    laws_used(own, list(scenarios.values()), law, "--protocols")
    first, *further = seeds.seeds(next(iter(scenarios.values())).seed, count)
    if output is not None and len(scenarios) > _MANY_RUNS:
        print(f"compare: {len(scenarios)} runs, then a figure of each; {_FASTER}", file=sys.stderr)
    unwritten = Unwritten()
    with ExitStack() as stack:
        # Before the runs, as in `run`.
        stage = None if output is None else stack.enter_context(_stage(output))
        with Bars(scenarios) as bars:
            of_run = _laws_of(own, scenarios)
            results = pool.run_each(scenarios, on=where, progress=bars.show, laws=of_run)
        if not results:
            raise typer.Exit(INTERRUPTED)
        comparison = compare.of(results)
        document = comparison.document()
        complete = len(results) == len(scenarios)
        complete &= not any("interrupted_at_s" in r.summary for r in results.values())
        if further and complete:
            with unwritten.collected():
                folder = None if stage is None else stage.folder
            others = _further_seeds(comparison, scenarios, where, further, folder, unwritten, own)
            document |= compare.over_seeds(comparison, first, others)
            complete = len(document.seeds or ()) == count
        if len(places) > 1:
            document.differences = compare.differences(document.runs)
        if stage is not None:
            with unwritten.collected():
                # Who interrupts does not wait for figures, which `plot` and `report` can draw.
                unwritten.errors += comparison.write_into(
                    stage.folder, document, complete, looks.look(style)
                )
                stage.publish()
    if json:
        print_json(document)
    else:
        _show_comparison(document)
        if not further:
            simulated = [one for label, one in scenarios.items() if where[label] == "sim"]
            hint_of_chance(simulated, own, "waterfill compare {} --seeds 5")
        if output is not None and not unwritten.errors:
            print_text(f"written to {output}")
            if style != "screen":
                _print_caption(comparison.figure().sheet.note, style)
    failed = unwritten.report()
    if not complete:
        raise typer.Exit(INTERRUPTED)
    if _failed(*(result.summary for result in results.values())) or failed:
        raise typer.Exit(1)


# With more runs, most of a comparison's time goes into figures.
_MANY_RUNS = 12
_FASTER = "a figure takes one to two seconds of CPU time, and without -o none is drawn"


def _labelled(
    loaded: Mapping[str, Mapping[str, Scenario]], *, jitter: bool
) -> tuple[dict[str, Scenario], dict[str, str]]:
    """Return the scenario and the backend of each run of a comparison, by label."""
    from waterfill.network import chance

    names = list(next(iter(loaded.values())))
    scenarios, where = {}, {}
    for name, on in itertools.product(names, loaded):
        label, one = f"{name}@{on}" if len(loaded) > 1 else name, loaded[on][name]
        scenarios[label], where[label] = chance.jittered(one) if jitter else one, on
    return scenarios, where


def hint_of_chance(
    scenarios: Iterable[Scenario], own: Mapping[str, PythonLaw], advice: str
) -> None:
    """Print a hint on standard error if one run decides between TCP flows by their phase.

    `advice` is what to type instead, with {} for the scenario's file.
    """
    from waterfill.network import chance, protocols

    known = dict(protocols.load())
    if own:
        from waterfill.runs import laws

        known |= laws.infos(laws.summaries(own))
    for one in scenarios:
        if chance.decided_by_phase(one, known):
            print(
                f"hint: nothing in {one_line(one.name)} is random, so the phase of packets decides "
                f"between its flows; intervals: {advice.format(one.source)}",
                file=sys.stderr,
            )
            return


def _show_comparison(document: ComparisonDocument) -> None:
    from waterfill.cli import tables

    found = document.of_seeds()
    show(*tables.compare(document.runs, 1 if found is None else len(found.seeds)))
    if found is not None:
        show(*tables.over_seeds(found))
    show(*tables.differences(document.differences or ()))


def _further_seeds(
    comparison: Comparison,
    scenarios: Mapping[str, Scenario],
    where: Mapping[str, str],
    further: Sequence[int],
    folder: Path | None,
    unwritten: Unwritten,
    own: Mapping[str, PythonLaw],
) -> dict[int, dict[str, Figures]]:
    """Run all scenarios with further seeds; return the figures of each completed run, by seed.

    With a folder each run is written to FOLDER/<protocol>/seed-<seed>.
    """
    from waterfill.analysis import compare, shares
    from waterfill.runs import pool
    from waterfill.runs.progress import Bars

    runs = {(name, seed): f"{name}, seed {seed}" for seed in further for name in scenarios}
    of_label = {label: key for key, label in runs.items()}
    seeded = {
        label: scenarios[name].model_copy(update={"seed": seed})
        for label, (name, seed) in of_label.items()
    }
    found: dict[int, dict[str, Figures]] = {seed: {} for seed in further}
    with Bars([]) as bars:

        def keep(label: str, result: Result) -> None:
            name, seed = of_label[label]
            if "interrupted_at_s" in result.summary:
                return
            allocated = shares.allocation(result)
            found[seed][name] = compare.figures(result, allocated, comparison.bottleneck)
            if folder is not None:
                with unwritten.collected():
                    result.write_into(folder / name / f"seed-{seed}")

        on = {label: where[name] for label, (name, _) in of_label.items()}
        of_run = _laws_of(own, seeded)
        pool.run_each(seeded, on=on, progress=bars.show, done=keep, laws=of_run)
    return found


def plot(
    directory: Annotated[
        Path,
        Argument(metavar="DIR", help="Directory written by run -o or compare -o.", parser=place),
    ],
    kind: Annotated[
        str,
        Option(
            metavar="KIND",
            help="Figure to draw of a run: overview, rates, queues or links; of a comparison: "
            "overview or links.",
        ),
    ] = "overview",
    formats: Annotated[
        list[str] | None,
        Option(
            "--format",
            metavar="F",
            help="File format: png, svg or pdf; repeatable. Default: those of the style.",
        ),
    ] = None,
    size: Annotated[
        str | None, Option(metavar="WxH", help="Width and height in inches, such as 7x3.")
    ] = None,
    style: Style = "screen",
    output: Output = None,
) -> None:
    """Draw the figure of earlier runs again, without simulating."""
    from waterfill.analysis import compare, draw, looks, plots
    from waterfill.runs.files import make_directory
    from waterfill.runs.stored import load_run

    look = looks.look(style)
    if (directory / "sweep.json").exists():
        advice = f"waterfill report {directory}, or repeat the sweep with --style {style}"
        raise InputError(str(directory), "", "a sweep, whose figure `sweep` draws", advice)
    if compare.is_comparison(directory):
        if kind not in ("overview", "links"):
            message = f'not possible for a comparison, got "{kind}"'
            raise InputError("command line", "kind", message, "leave it out")
        loaded = compare.load_comparison(directory)
        stem = "links" if kind == "links" else "compare"
        figure = plots.links(loaded.results) if kind == "links" else loaded.figure()
    else:
        figure = plots.plot(load_run(directory), kind)
        stem = "figure" if kind == "overview" else kind
    drawn = draw.styled(figure, look, size)
    folder = make_directory(output or directory)
    for path in draw.save(drawn, folder / stem, formats or ()):
        print_text(f"written to {path}")
    _print_caption(drawn.sheet.note, style)


def _laws_of(
    own: Mapping[str, PythonLaw], scenarios: Mapping[str, Scenario]
) -> dict[str, dict[str, PythonLaw]]:
    """Return the Python laws that each scenario uses. Scenarios that use none are omitted."""
    if not own:
        return {}
    from waterfill.runs import laws

    found = {name: laws.used(own, scenario) for name, scenario in scenarios.items()}
    return {name: of_run for name, of_run in found.items() if of_run}


def _capture(
    stage: Stage | None, links: list[str], limit: str | None, snaplen: int | None
) -> Capture:
    """Return the packet capture that the options describe; raise InputError for the first invalid
    option.
    """
    from waterfill.runs.capture import FILE_NAME, MAX_SNAPLEN, MIN_SNAPLEN, Capture
    from waterfill.scenario.units import VOLUME

    if stage is None:
        raise InputError("command line", "pcap", "needs -o DIR, where packets.pcapng is written")
    snaplen = _SNAPLEN if snaplen is None else snaplen
    if not MIN_SNAPLEN <= snaplen <= MAX_SNAPLEN:
        why = f"must be {MIN_SNAPLEN} to {MAX_SNAPLEN} bytes, got {snaplen}"
        raise InputError("command line", "pcap-snaplen", why)
    limit_bytes = int(quantity("pcap-limit", VOLUME, limit or _LIMIT))
    return Capture(stage.folder / FILE_NAME, snaplen, limit_bytes, links)


def _qlog(stage: Stage | None, wanted: bool, flows: list[str]) -> Qlog | None:
    """Return the qlog files that the options describe, or None without them; raise InputError
    without a directory.
    """
    if not wanted and not flows:
        return None
    from waterfill.runs.qlog import Qlog

    if stage is None:
        raise InputError("command line", "qlog", "needs -o DIR, where FLOW.sqlog is written")
    return Qlog(stage.folder, flows)


def _steps(stage: Stage | None, rows: int | None, law: str | None) -> StepLog | None:
    """Return the step log that the options describe, or None without `--log-steps`; raise
    InputError if an option is invalid.
    """
    if rows is None:
        if law is not None:
            why = "needs --log-steps ROWS, of which it selects one law's"
            raise InputError("command line", "log-law", why)
        return None
    from waterfill.runs.steps import FILE_NAME, MAX_ROWS, StepLog

    if stage is None:
        why = f"needs -o DIR, where {FILE_NAME} is written"
        raise InputError("command line", "log-steps", why)
    if not 1 <= rows <= MAX_ROWS:
        raise InputError("command line", "log-steps", f"must be 1 to {MAX_ROWS} rows, got {rows}")
    return StepLog(stage.folder / FILE_NAME, rows, law)


def _failed(*summaries: Summary) -> bool:
    """Print the failed checks of these runs on standard error; return True if there are any."""
    failed = False
    for summary in summaries:
        for check in summary.checks or ():
            if not check.ok:
                failed = True
                title = one_line(summary.scenario)
                expected = f"expected {check.wanted}"
                print(f"{title}: check failed: {check.name}: {expected}", file=sys.stderr)
    return failed
