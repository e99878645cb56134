"""Harness of all studies: options, needs, stored runs, tables, figures and exit codes.

A study is a module with a `STUDY`, listed in `validation/__main__.py`. It says what it shows and
what it costs, and gives its cases, how one is run and measured, and how the measurements are
tabled, drawn and judged. The harness does the rest. There are three forms:

- `runs` and `measure(case, results)`: each case is one or more scenarios; whole runs are kept in
  the cache of `waterfill run` and measured again each time.
- `measure(case)` alone: each value is kept, under a hash of the case and of the code.
- `work(options)`: everything else; it returns a `Report`, and nothing is kept.

A study that is interrupted therefore goes on where it stopped. Exit codes: 0, done; 1, a
requirement is not met; 2, wrong input or a need that this host lacks; 130, interrupted.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from fnmatch import fnmatch
from functools import cache as once
from pathlib import Path
from typing import Any, Generic, NoReturn, TypeVar

from pydantic import TypeAdapter

import waterfill
from waterfill.errors import InputError, RunError, nearest
from waterfill.runs import cache
from waterfill.runs.files import make_directory, write_text
from waterfill.runs.pool import run_each
from waterfill.runs.result import Result, to_json
from waterfill.scenario.document import Scenario
from waterfill.testbed import checks, daemon, delayline

ROOT = Path(__file__).resolve().parents[1]
INTERRUPTED = 130
# Cases whose runs are in memory at the same time.
_BATCH = 8
# A host with more runnable threads than this gives no timings.
_MAX_LOAD = 1.0

Options = argparse.Namespace
C = TypeVar("C")
R = TypeVar("R")


# --- what a study needs -------------------------------------------------------------------------


@dataclass(frozen=True)
class Need:
    """A requirement that a host may not meet. `lacks` describes what is missing, such as "root, got
    user 1000".
    """

    name: str
    lacks: Callable[[], str | None]


def tool(program: str, install: str) -> Need:
    """Return the need for a program. `install` describes how to install it."""
    return Need(program, lambda: None if shutil.which(program) else f"{program}: {install}")


def _root() -> str | None:
    return None if os.geteuid() == 0 else f"root, got user {os.geteuid()}"


def _idle() -> str | None:
    load = os.getloadavg()[0]
    return None if load <= _MAX_LOAD else f"an idle host, got a load of {load:.1f}"


def _daemon() -> str | None:
    return None if daemon.binary() else "the daemon waterfilld: make build"


ROOT_USER = Need("root", _root)
IDLE = Need("idle host", _idle)
DAEMON = Need("waterfilld", _daemon)
CLANG = tool("clang", "apt-get install clang")


def on_linux(*, http: bool = False, iperf: bool = True, held: bool = True) -> Need:
    """Return the need for root and a kernel that can run scenarios with real traffic."""
    return Need("root", lambda: checks.missing(http=http, iperf=iperf, held=held))


# --- options ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Option:
    """A command-line option of a study, which has the type of its default. If the default is a
    tuple, the option takes a list such as `A,B`.

    A name without dashes is a list of words behind the study's name.
    """

    name: str
    default: Any
    help: str
    choices: Sequence[str] | Callable[[], Sequence[str]] = ()
    low: float | None = None
    type: Callable[[str], Any] | None = None

    @property
    def key(self) -> str:
        """Name of the option among the parsed options."""
        return self.name.lstrip("-").replace("-", "_")

    def add(self, parser: argparse.ArgumentParser) -> None:
        """Add the option to a parser."""
        if self.default is False:
            parser.add_argument(self.name, action="store_true", help=self.help)
        elif not self.name.startswith("-"):
            word = self.name.rstrip("s").upper()
            parser.add_argument(self.name, nargs="*", default=self.default, metavar=word,
                                help=self.help)  # fmt: skip
        else:
            word = "A,B" if isinstance(self.default, tuple) else "X"
            parser.add_argument(self.name, default=self.default, type=self._read, metavar=word,
                                help=self.help)  # fmt: skip

    def _read(self, text: str) -> Any:
        """Convert an option's text to a value. Raises ArgumentTypeError if that is impossible."""
        many = isinstance(self.default, tuple) and self.type is None
        sample = next(iter(self.default), "") if many else self.default
        read = self.type or (str if sample is None else type(sample))
        try:
            return tuple(read(word) for word in text.split(",")) if many else read(text)
        except ValueError:
            kind = (
                "a whole number"
                if read is int
                else "a number"
                if read is float
                else "another value"
            )
            raise argparse.ArgumentTypeError(f"must be {kind}, got {text!r}") from None

    def check(self, value: Any) -> None:
        """Raise InputError if a value is not allowed."""
        known = self.choices() if callable(self.choices) else self.choices
        for one in value if isinstance(value, (tuple, list)) else [value]:
            if known and one is not None and one not in known:
                raise InputError("command line", self.name, f"unknown {one!r}{nearest(one, known)}")
            if self.low is not None and one is not None and one < self.low:
                raise InputError(
                    "command line", self.name, f"must be {self.low:g} or more, got {one}"
                )


class _Parser(argparse.ArgumentParser):
    """Argument parser that reports an error in one line, like the rest of Waterfill."""

    def error(self, message: str) -> NoReturn:
        print(f"{self.prog.rpartition(' ')[2]}: {message}", file=sys.stderr)
        raise SystemExit(2)


def only(example: str) -> Option:
    """Return the option `--only`, which selects cases by name."""
    return Option("--only", "*", f"only cases whose names match, such as '{example}'")


# --- a study ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StudyRun:
    """A scenario and the backend on which it runs."""

    scenario: Scenario
    on: str = "sim"


@dataclass(frozen=True)
class Report:
    """Outcome of a study: text, files, and the requirements that were not met.

    `files` are further texts and `figures` further drawings of the output directory, by name; a
    drawing is called with the path without suffix.
    """

    text: str
    document: Any = None
    failed: Sequence[str] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    figures: Mapping[str, Callable[[Path], object]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Study(Generic[C, R]):
    """A study in one of the three forms that the module's docstring describes.

    `minutes` is its cost on two CPUs. `quick` overrides defaults of options under `--quick`.
    `valid` rejects a kept run or value, which is then repeated. `line` is the line of progress for
    a case; `code` further text that kept values depend on.
    """

    shows: str
    minutes: float
    needs: Sequence[Need] = ()
    options: Sequence[Option] = ()
    quick: Mapping[str, Any] = field(default_factory=dict)
    work: Callable[[Options], Report] | None = None
    cases: Callable[[Options], Sequence[C]] | None = None
    runs: Callable[[C], Mapping[str, StudyRun]] | None = None
    measure: Callable[..., R] | None = None
    row: Any = Any
    valid: Callable[[Any], bool] | None = None
    code: Callable[[], str] = lambda: ""
    line: Callable[[C, R], str] | None = None
    table: Callable[[Mapping[C, R]], str] | None = None
    figure: Callable[[Mapping[C, R], Path], object] | None = None
    document: Callable[[Mapping[C, R]], Any] | None = None
    files: Callable[[Mapping[C, R]], Mapping[str, str]] = lambda found: {}
    failed: Callable[[Mapping[C, R]], Sequence[str]] | None = None

    @property
    def cost(self) -> str:
        """Duration of the study in words."""
        return f"{self.minutes:g} min" if self.minutes < 120 else f"{self.minutes / 60:.2g} h"

    @property
    def needed(self) -> str:
        """Requirements of the study, in words."""
        return ", ".join(dict.fromkeys(need.name for need in self.needs)) or "–"


def _report(study: Study[Any, Any], name: str, found: Mapping[Any, Any]) -> Report:
    """Return the report on measured cases."""
    assert study.table is not None
    if study.document is None:
        document: Any = [{"case": _title(c), "measured": r} for c, r in found.items()]
    else:
        document = study.document(found)
    draw = study.figure
    figures = {} if draw is None else {name: lambda stem: draw(found, stem)}
    failed = study.failed(found) if study.failed else ()
    return Report(study.table(found), document, failed, study.files(found), figures)


def _plain(value: Any) -> Any:
    """Return a value converted to dictionaries and lists, with properties included as fields."""
    if is_dataclass(value) or hasattr(value, "_asdict"):
        mine = [f.name for f in fields(value)] if is_dataclass(value) else value._fields
        shown = {name: _plain(getattr(value, name)) for name in mine}
        more = [name for name, one in vars(type(value)).items() if isinstance(one, property)]
        known = {name: getattr(value, name) for name in more}
        simple = (float, int, str, type(None))
        return shown | {n: one for n, one in known.items() if isinstance(one, simple)}
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, (list, tuple)) else value


# --- kept runs and values -----------------------------------------------------------------------


def failed_checks(result: Result) -> list[str]:
    """Return the names of the checks that a run failed."""
    return [check["name"] for check in result.summary.get("checks", ()) if not check["ok"]]


def passed_checks(result: Result) -> bool:
    """Return True if a run failed no check."""
    return not failed_checks(result)


class NotKept(Exception):
    """Error for a run or value that is not stored but must not be computed."""


@once
def linux_code() -> str:
    """Return a hash of the code and the kernel release on which a run on linux depends."""
    package = Path(waterfill.__file__).parent / "testbed"
    files = [*sorted(package.rglob("*.py")), daemon.binary(), delayline.binary()]
    total = hashlib.sha256(platform.release().encode())
    for path in files:
        if path is not None:
            total.update(Path(path).read_bytes())
    return total.hexdigest()


def _context(on: str) -> str:
    return linux_code() if on == "linux" else ""


def results(
    wanted: Mapping[str, StudyRun],
    valid: Callable[[Result], bool] | None = None,
    *,
    kept: bool = False,
) -> dict[str, Result]:
    """Return the results of all runs, without repeating valid stored runs.

    Raises KeyboardInterrupt after Ctrl-C, and with `kept` NotKept instead of running anything.
    """
    # Cases may share a run, as the one without a fault.
    same = {(run.on, run.scenario.to_toml()): name for name, run in wanted.items()}
    found: dict[str, Result] = {}
    missing = {}
    for name in same.values():
        run = wanted[name]
        result = cache.lookup(run.scenario, run.on, _context(run.on))
        if result is not None and (kept or valid is None or valid(result)):
            found[name] = result
        else:
            missing[name] = run
    if missing and kept:
        raise NotKept(min(missing))

    def keep(name: str, result: Result) -> None:
        if "interrupted_at_s" not in result.summary:
            run = missing[name]
            cache.store(run.scenario, run.on, result, _context(run.on))
            found[name] = result

    # What runs on linux must have the host to itself.
    for on_host in (False, True):
        mine = {name: run for name, run in missing.items() if (run.on == "linux") == on_host}
        scenarios = {name: run.scenario for name, run in mine.items()}
        if mine:
            run_each(scenarios, on={name: run.on for name, run in mine.items()}, done=keep)
    if len(found) < len(same):
        raise KeyboardInterrupt
    return {name: found[same[run.on, run.scenario.to_toml()]] for name, run in wanted.items()}


class Kept:
    """Store of a study's values, each in a file named by a hash of its key and of the code."""

    def __init__(self, name: str, module: str, more: str = "", row: Any = Any) -> None:
        code = hashlib.sha256(sources(module) + more.encode()).hexdigest()
        self._folder = cache.root() / cache.version() / "studies" / name
        self._code, self._row = code, TypeAdapter(row)

    def _path(self, key: object) -> Path:
        digest = hashlib.sha256(f"{self._code}\n{key!r}".encode()).hexdigest()
        return self._folder / f"{digest[:32]}.json"

    def get(self, key: object) -> Any:
        """Return the stored value of a key. Raises NotKept if there is none."""
        try:
            return self._row.validate_python(json.loads(self._path(key).read_bytes()))
        except (OSError, ValueError) as error:
            raise NotKept(str(key)) from error

    def put(self, key: object, value: Any) -> None:
        """Store a value, if the cache is writable."""
        path = self._path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, json.dumps(self._row.dump_python(value, mode="json")))
        except (OSError, InputError) as error:
            print(f"not kept: {error}", file=sys.stderr)


def sources(module: str) -> bytes:
    """Return a hash of a module's source and of all modules that it imports from this package."""
    total, known, todo = hashlib.sha256(), {__name__}, [module]
    while todo:
        name = todo.pop()
        if name in known:
            continue
        known.add(name)
        path = ROOT / Path(*name.split("."))
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if not path.exists():  # a name of a module, not a module
            continue
        text = path.read_bytes()
        total.update(name.encode() + b"\0" + text)
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("validation"):
                todo += sorted({str(node.module), *(f"{node.module}.{a.name}" for a in node.names)})
    return total.digest()


# --- running ------------------------------------------------------------------------------------


def _measured(study: Study[C, R], name: str, options: Options) -> tuple[dict[C, R], list[str]]:
    """Measure all cases, printing a line for each. Return the measurements and the failed runs."""
    assert study.cases is not None
    pattern = getattr(options, "only", "*")
    cases = [case for case in study.cases(options) if fnmatch(_title(case), pattern)]
    if not cases:
        raise InputError("command line", "", "no case is left by these options")
    found: dict[C, R] = {}
    failed: list[str] = []
    each = _by_value(study, name, cases) if study.runs is None else _by_runs(study, cases, options)
    for case, row in each:
        if isinstance(row, RunError):
            line = f"{_title(case)}: {row}"
            failed.append(line)
        else:
            found[case] = row
            line = study.line(case, row) if study.line else _title(case)
        number = len(found) + len(failed)
        print(f"{name} {number} of {len(cases)}: {line}", file=sys.stderr, flush=True)
    if not found and options.kept:
        raise InputError("command line", "--kept", "nothing is kept of this version of the code")
    return found, failed


def _title(case: object) -> str:
    words = case if isinstance(case, tuple) else (case,)
    return str(getattr(case, "name", " ".join(map(str, words))))


# A case with what was measured, or with the error that ended it.
Outcome = Iterator[tuple[Any, Any]]


def _by_runs(study: Study[Any, Any], cases: Iterable[Any], options: Options) -> Outcome:
    assert study.runs is not None
    assert study.measure is not None
    for batch in _batches(((case, study.runs(case)) for case in cases), options.kept):
        wanted = {f"{i} {n}": run for i, (_, runs) in enumerate(batch) for n, run in runs.items()}
        try:
            done = results(wanted, study.valid, kept=options.kept)
        except NotKept:
            continue
        except RunError as error:
            yield from ((case, error) for case, _ in batch)
            continue
        for i, (case, runs) in enumerate(batch):
            yield case, study.measure(case, {n: done[f"{i} {n}"] for n in runs})


def _batches(
    cases: Iterable[tuple[Any, Mapping[str, StudyRun]]], kept: bool
) -> Iterator[list[tuple[Any, Mapping[str, StudyRun]]]]:
    """Yield cases in groups that can run together. A case on linux, in real time, is a group of its
    own.

    Of kept runs each case is one, so that a case without a run leaves the others.
    """
    batch: list[tuple[Any, Mapping[str, StudyRun]]] = []
    for case, runs in cases:
        alone = kept or any(run.on == "linux" for run in runs.values())
        if batch and alone:
            yield batch
            batch = []
        batch.append((case, runs))
        if alone or len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _by_value(study: Study[Any, Any], name: str, cases: Iterable[Any]) -> Outcome:
    assert study.measure is not None
    store = Kept(name, study.measure.__module__, study.code(), study.row)
    for case in cases:
        try:
            row = store.get(case)
            if study.valid is not None and not study.valid(row):
                raise NotKept(str(case))
        except NotKept:
            try:
                row = study.measure(case)
            except RunError as error:
                yield case, error
                continue
            store.put(case, row)
        yield case, row


def _parsed(study: Study[Any, Any], name: str, arguments: Sequence[str]) -> Options:
    """Parse the options of a study. Raises InputError for a value that is not allowed."""
    parser = _Parser(prog=f"python -m validation {name}", description=study.shows)
    for option in study.options:
        option.add(parser)
    if study.quick:
        parser.add_argument("--quick", action="store_true", help="a short form, to try it")
    if study.runs is not None:
        parser.add_argument("--kept", action="store_true", help="run nothing, show what is kept")
    if any(need is IDLE for need in study.needs):
        parser.add_argument("--busy", action="store_true", help="run although the host is busy")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("-o", dest="output", type=Path, metavar="DIR", help="write the report here")
    options = parser.parse_args(arguments, Options(kept=False, busy=False, quick=False))
    if options.quick:
        for option in study.options:
            if option.key in study.quick and getattr(options, option.key) == option.default:
                setattr(options, option.key, study.quick[option.key])
    for option in study.options:
        value = getattr(options, option.key)
        option.check(value)
        if isinstance(value, list):
            setattr(options, option.key, tuple(value))
    return options


def _lacks(study: Study[Any, Any], options: Options) -> str | None:
    needs = () if options.kept else study.needs
    lacking = (need.lacks() for need in needs if not (options.busy and need is IDLE))
    return next((what for what in lacking if what), None)


def execute(study: Study[Any, Any], name: str, arguments: Sequence[str]) -> int:
    """Run a study and return the exit code."""
    try:
        options = _parsed(study, name, arguments)
        lacking = _lacks(study, options)
        if lacking is not None:
            print(f"{name}: needs {lacking}", file=sys.stderr)
            return 2
        folder = None if options.output is None else make_directory(options.output)
        broken: Sequence[str] = ()
        if study.work is not None:
            report = study.work(options)
        else:
            found, broken = _measured(study, name, options)
            report = _report(study, name, found)
        if folder is not None:
            _write(report, folder, name)
    except KeyboardInterrupt:
        print(f"{name}: interrupted; the same command goes on from here", file=sys.stderr)
        return INTERRUPTED
    except (InputError, RunError) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 2 if isinstance(error, InputError) else 1
    print(to_json(_plain(report.document)) if options.json else report.text.rstrip("\n"))
    failed = [*broken, *report.failed]
    for line in failed:
        print(f"{name}: {line}", file=sys.stderr)
    return 1 if failed else 0


def _write(report: Report, folder: Path, name: str) -> None:
    write_text(folder / f"{name}.md", report.text.rstrip("\n") + "\n")
    if report.document is not None:
        write_text(folder / f"{name}.json", to_json(_plain(report.document)) + "\n")
    for file, text in report.files.items():
        write_text(folder / file, text)
    for stem, draw in report.figures.items():
        draw(folder / stem)
