"""Support for running a user's own law, written in Python."""

from __future__ import annotations

import runpy
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from waterfill.contract.network import FlowSpec, Network
from waterfill.contract.summary import CoreSummary, LawSummary
from waterfill.errors import InputError, shown
from waterfill.network.protocols import ProtocolInfo
from waterfill.runs import files
from waterfill.scenario.document import Scenario

# The core's name of a law that a program provides, the numbers in its header, and their bytes.
CORE_NAME = "own"
MAX_FIELDS = 4
HEADER_BYTES = 16
KEY = "laws"
_MAX_FILE_BYTES = 4 << 20


class RouterLaw(Protocol):
    """Interface of a router's law in Python. A run creates one instance per link direction."""

    def on_arrival(self, link: Any, passing: Any) -> None:
        """Count a packet as load, and update `passing.header`, which is None in packets of other
        protocols.
        """
        ...


class SourceLaw(Protocol):
    """Interface of a sender's law in Python. A run creates one instance per connection."""

    def stamp(self, sending: Any) -> Mapping[str, float] | None:
        """Return the header fields of a packet about to be sent. Omitted fields are zero."""
        ...

    def on_ack(self, ack: Any) -> None:
        """Process an acknowledgement. Its `echo` is the header that the receiver returned."""
        ...

    def limit(self) -> tuple[float | None, float | None]:
        """Return the window (bytes) and the pacing rate (bit/s). None means no limit."""
        ...


@dataclass(frozen=True)
class PythonLaw:
    """A user's own law, for `waterfill.run(…, laws={"name": law})` on sim only.

    `source` and `router` are classes with the calls of the traits in
    crates/waterfill-laws/src/protocol.rs, `receiver` too; without one the last header is echoed.
    `header` names up to four numbers of single precision that packets carry. `target` is the
    utilization, in (0, 1], of which max-min shares are computed. See docs/howto/
    write-a-law-in-python.md.

    >>> import waterfill
    >>> class Fixed:
    ...     def __init__(self, connection):
    ...         self.window_bytes = 5 * connection.packet_bytes
    ...     def stamp(self, sending):
    ...         return None
    ...     def on_ack(self, ack):
    ...         pass
    ...     def limit(self):
    ...         return self.window_bytes, None
    >>> one = waterfill.Scenario("one", duration="2 s", protocol="fixed")
    >>> one = one.link("l", "a", "b", "10 Mbit/s", "50 ms").flow("f", "a", "b")
    >>> result = one.run(laws={"fixed": waterfill.PythonLaw(source=Fixed)})
    >>> round(result.summary["flows"][0]["rate_bps"] / 1e6, 1)
    0.6
    """

    source: type[SourceLaw]
    router: type[RouterLaw] | None = None
    receiver: type[Any] | None = None
    header: tuple[str, ...] = ()
    target: float = 1.0
    paced: bool = True


def check(
    laws: Mapping[str, PythonLaw], known: Mapping[str, ProtocolInfo]
) -> tuple[str, PythonLaw]:
    """Return the name and law of a run; raise InputError if the law cannot be run."""
    if len(laws) != 1:
        raise InputError("run", KEY, f"must be one law for a run, got {len(laws)}")
    ((name, law),) = laws.items()
    key = f"{KEY}.{name}"
    if name in known:
        raise InputError("run", key, "is the name of a protocol", "choose another")
    if not isinstance(law, PythonLaw):
        raise InputError(
            "run", key, f"must be a waterfill.PythonLaw, got {shown(type(law).__name__)}"
        )
    if type(law.header) is not tuple or len(law.header) > MAX_FIELDS:
        wanted = f"must be a tuple of up to {MAX_FIELDS} names"
        raise InputError("run", f"{key}.header", f"{wanted}, got {shown(law.header)}")
    for part in ("source", "router", "receiver"):
        end = getattr(law, part)
        if not callable(end) and (end is not None or part == "source"):
            raise InputError("run", f"{key}.{part}", f"must be a class, got {shown(end)}")
    target: Any = law.target
    if isinstance(target, bool) or not isinstance(target, (int, float)) or not 0 < target <= 1:
        got = shown(law.target)
        raise InputError("run", f"{key}.target", f"must be above 0 and at most 1, got {got}")
    return name, law


def read(path: Path) -> dict[str, PythonLaw]:
    """Run a Python file and return its LAWS; raise InputError if the file fails or defines none."""
    try:
        # A pipe without a writer would wait for one, and a device may never end.
        files.open_regular(path, _MAX_FILE_BYTES).close()
    except OSError as error:
        problem = f"cannot read the Python file: {files.why(error)}"
        raise InputError(str(path), "", problem) from None
    try:
        found = runpy.run_path(str(path)).get("LAWS")
    except KeyboardInterrupt:
        raise
    except SyntaxError as error:
        at = str(path) if error.lineno is None else f"{path}:{error.lineno}"
        raise InputError(at, "", f"not valid Python: {error.msg}") from None
    except BaseException as error:
        # SystemExit too: it would end the command, perhaps with 0 and without an answer.
        raise raised(path.stem, error) or InputError(str(path), "", text_of(error)) from error
    if not isinstance(found, dict):
        raise InputError(str(path), "LAWS", 'must be a dictionary {"name": waterfill.PythonLaw(…)}')
    return found


def used(laws: Mapping[str, PythonLaw], scenario: Scenario) -> dict[str, PythonLaw]:
    """Return the laws that a flow or a link of the scenario uses."""
    names = scenario.protocols()
    return {name: law for name, law in laws.items() if name in names}


def info(name: str) -> ProtocolInfo:
    """Return the protocol description of a law in Python, in the registry's format."""
    return ProtocolInfo(name, "explicit", ("sim",), HEADER_BYTES, echo_bytes=HEADER_BYTES)


def infos(names: Iterable[str]) -> dict[str, ProtocolInfo]:
    """Return the protocol descriptions of laws in Python by name, in the registry's format."""
    return {name: info(name) for name in names}


def summary(name: str, law: PythonLaw) -> dict[str, LawSummary]:
    """Return the summary's entry about a law in Python, without which a stored run cannot be
    read.
    """
    return {name: LawSummary(header=list(law.header), target=law.target)}


def for_core(network: Network, name: str) -> Network:
    """Return the network with the core's name for the law in place of the law's own name."""

    def flow(spec: FlowSpec) -> FlowSpec:
        return spec._replace(protocol=CORE_NAME) if spec.protocol == name else spec

    traffic = [
        source
        if source.flows is None
        else replace(source, flows=replace(source.flows, flow=flow(source.flows.flow)))
        for source in network.traffic
    ]
    links = [
        link
        if link.routers is None
        else replace(link, routers=tuple(CORE_NAME if r == name else r for r in link.routers))
        for link in network.links
    ]
    params = {protocol: values for protocol, values in network.params.items() if protocol != name}
    return replace(
        network,
        params=params,
        links=tuple(links),
        flows=tuple(map(flow, network.flows)),
        traffic=tuple(traffic),
    )


def from_core(summary: CoreSummary, name: str) -> None:
    """Restore the law's own name in a summary of the core."""
    for flow in summary.flows:
        if flow["protocol"] == CORE_NAME:
            flow["protocol"] = name
    for source in summary.traffic:
        if source.protocol == CORE_NAME:
            source["protocol"] = name


def text_of(error: BaseException) -> str:
    """Return an exception's type and text, or only the type if the exception has no usable text."""
    kind = type(error).__name__
    try:
        text = str(error)
    except KeyboardInterrupt:
        raise
    except BaseException:  # a law's own exception may do anything here
        text = ""
    return f"{kind}: {text}" if text else kind


@contextmanager
def errors(name: str, scenario: Scenario, *, building: bool) -> Iterator[None]:
    """Convert exceptions of a law, and the core's errors about the law, to InputError.

    While the core builds a run, its own errors are the scenario's.
    """
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if type(error).__module__ == "pyo3_runtime":  # a panic of the core is no law's error
            raise
        # SystemExit too: a law's would end the command, perhaps with 0 and without an answer.
        found = raised(name, error)
        if found is None and building and isinstance(error, ValueError):
            raise scenario.core_error(error) from None
        raise found or InputError("run", f"{KEY}.{name}", text_of(error)) from error


def raised(name: str, error: BaseException) -> InputError | None:
    """Return an InputError for an error raised in a law's code, or None for any other error."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(__file__.removesuffix("laws.py"))
        and not frame.filename.startswith("<frozen ")
    ]
    if not frames:
        return None
    place = frames[-1]
    at = f"{place.filename}:{place.lineno}"
    return InputError(at, place.name, f"the law {name} raised {text_of(error)}")
