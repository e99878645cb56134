"""The `waterfill` command and its subcommands.

The answer goes to standard output, as tables or with `--json` as one document; progress and errors
go to standard error. Exit codes: 0 done, 1 a verdict differs from the expected one, a check of a
run failed or the answer or a file could not be written, 2 wrong input (one line), 130 interrupted
(partial results are written; by SIGTERM 143), 141 the reader of standard output has gone.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from copy import copy
from io import TextIOWrapper
from typing import Annotated

import typer
from typer import Option
from typer.models import CommandInfo

from waterfill.cli import evaluate, formats, laws, papers, report, running, scenarios, studio, sweep
from waterfill.cli.arguments import examples
from waterfill.cli.console import print_text, settle, unwritable
from waterfill.cli.theory import app as theory_app
from waterfill.cli.usage import CommandGroup
from waterfill.errors import InputError, RunError

# Commands import what they need themselves, so that --help starts quickly.
app = typer.Typer(
    name="waterfill",
    cls=CommandGroup,
    help="Explicit congestion control, from the equation to the kernel.",
    epilog=examples(
        "waterfill new dumbbell -o S.toml    # a commented scenario to start from",
        "waterfill run S.toml                # rates, RTTs and queues",
        "waterfill compare S.toml -o out     # four explicit protocols side by side",
    ),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

# In the order of --help: what a newcomer types first comes first.
app.command(
    epilog=examples("waterfill new", "waterfill new dumbbell -o S.toml"),
)(scenarios.new)
app.command(
    "import",
    epilog=examples(
        "waterfill import",
        "waterfill import graphml Abilene.graphml -o S.toml",
        "waterfill import sndlib polska.txt --load 1.5 -o S.toml",
        "waterfill import hpcc topology.txt --flows flow.txt -o S.toml",
    ),
)(formats.import_)
app.command(
    epilog=examples(
        "waterfill generate",
        "waterfill generate fat-tree 4 --traffic permutation -o S.toml",
        "waterfill generate wan 30 --pairs 60 -o S.toml",
    ),
)(formats.generate)
app.command(
    epilog=examples("waterfill check S.toml", "waterfill check S.toml --toml > full.toml"),
)(scenarios.check)
app.command(
    epilog=examples(
        "waterfill run S.toml",
        "waterfill run S.toml --protocol xcp --set link.link1.rate='1 Gbit/s'",
        "waterfill run S.toml --on fluid -o out",
    ),
)(running.run)
app.command(
    epilog=examples(
        "waterfill compare S.toml -o out",
        "waterfill compare S.toml --protocols maxnet,cubic,bbr",
        "waterfill compare S.toml --seeds 5  # 95 % intervals, significance",
    ),
)(running.compare)
app.command(
    epilog=examples(
        "waterfill plot out",
        "waterfill plot out --kind rates --format pdf --size 7x3 -o figures",
    ),
)(running.plot)
app.command(
    epilog=examples(
        "waterfill sweep S.toml --protocols maxnet,xcp --grid link.l.delay=5..90ms:7",
        "waterfill sweep S.toml --latin 200 link.l.delay=1..90ms flow.f.count=1..64",
        "waterfill sweep S.toml --refine link.l.delay=1..90ms --verdict 'stable<0.5'",
    ),
)(sweep.sweep)
app.command(epilog=examples("waterfill studio", "waterfill studio --port 8080 --no-browser"))(
    studio.studio
)
app.command(epilog=examples("waterfill maxmin S.toml"))(scenarios.maxmin)
app.command(epilog=examples("waterfill protocols", "waterfill protocols maxnet rcp"))(
    laws.protocols
)
app.add_typer(theory_app)
app.command(epilog=examples("waterfill response --quick"))(laws.response)
app.command(
    epilog=examples(
        "waterfill evaluate cubic",
        "waterfill evaluate my-cubic --law examples/own_cubic.py --quick",
        "waterfill evaluate maxnet --routers half -o out",
        "waterfill evaluate --queue pie",
    ),
)(evaluate.evaluate)
app.command(
    epilog=examples(
        "waterfill reproduce --list --verdict differs",
        "waterfill reproduce maxnet-2007/cross-traffic",
        "waterfill reproduce --all -o out",
    ),
)(papers.reproduce)
app.command(
    hidden=True,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)(laws.verify)
app.command(
    epilog=examples(
        "waterfill report out    # of run, compare, sweep, evaluate, reproduce",
    ),
)(report.report)


def main() -> None:
    """Run the command given on the command line and exit."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # Where the encoding lacks →, write \u2192, which JSON readers understand.
            stream.reconfigure(errors="backslashreplace")
    settle()
    try:
        narrowed(sys.argv[1:])(
            prog_name="waterfill"
        )  # also as `python -m waterfill`, for help and completion
    except InputError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    except RunError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
    except MemoryError:
        text = "out of memory: the task does not fit the free memory or this process's limits"
        print(f"waterfill: {text}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        # The library that parses the command line writes help and completion itself.
        if error.filename is not None:
            print(f"{error.filename}: cannot be opened: {error.strerror}", file=sys.stderr)
            sys.exit(2)
        print(unwritable(error), file=sys.stderr)
        sys.exit(1)


def narrowed(words: Sequence[str]) -> typer.Typer:
    """Return an app with only the command that the first word names, or the whole app if none has
    that name.
    """
    asked = [command for command in app.registered_commands if [_name(command)] == words[:1]]
    if not asked:
        return app
    one = copy(app)
    one.registered_commands, one.registered_groups = asked, []
    return one


def _name(command: CommandInfo) -> str:
    return command.name or getattr(command.callback, "__name__", "").replace("_", "-")


def version(wanted: bool) -> None:
    """Print the version and exit if `--version` is given."""
    if wanted:
        from waterfill._core import version as core_version

        print_text(f"waterfill {core_version()}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, Option("--version", callback=version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Explicit congestion control, from the equation to the kernel."""
