"""A scenario: the one file that says what to run, and everything that can be wrong with it.

The models below name every key, its unit and its default; docs/scenario.toml is the commented
reference and docs/scenario.schema.json (`python -m waterfill.scenario`) is made from them.
Fields are in SI units (bit/s, seconds, bytes). Whatever is wrong with the input is an
`InputError`. Routes, and whatever needs to know the protocols, are checked by
`waterfill.network.resolve`.
"""

from __future__ import annotations

import copy
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import tomli_w
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from waterfill.errors import InputError, nearest, shown
from waterfill.scenario import distributions, links
from waterfill.scenario.distributions import Distribution, PartError
from waterfill.scenario.units import (
    FREQUENCY,
    PACKETS,
    RATE,
    SPAN,
    TIME,
    VOLUME,
    Buffer,
    Quantity,
    number,
    whole,
)

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MOST_FLOWS = 10**7
MOST_SAMPLES = 10**7
_MOST_FILE_BYTES = 1 << 28
_COMMAND_LINE = "command line"

# Behaviour that the keys already name and a backend does not have yet: for each key, the values
# that do run. A key is struck off this table when its behaviour arrives.
NOT_YET: Mapping[str, Mapping[str, tuple[object, ...]]] = {
    "sim": {
        "arithmetic": ("real",),
    },
    "fluid": {
        "arithmetic": ("real",),
        "link.loss": (0.0,),
        "link.loss_reverse": (0.0,),
        "link.queue": ("droptail",),
        "link.queue_params": (),
        "link.mark_at": (),
        "link.loss_model": (),
        "link.reorder": (),
        "link.duplicate": (0.0,),
        "flow.ecn": (False,),
        "traffic.kind": ("cbr",),
        "traffic.arrival_rate": (),
        "traffic.sizes": (),
    },
    "linux": {
        "arithmetic": ("real",),
        "link.queue": ("droptail",),
        "link.queue_params": (),
        "link.mark_at": (),
        "traffic.kind": ("cbr",),
        "traffic.arrival_rate": (),
        "traffic.sizes": (),
    },
}


def _name(value: str) -> str:
    # A name is a step of a key's path (flow.long.count) and gains suffixes (long[0], link1:rev).
    if not value or value != value.strip() or any(c in '.[]:="' for c in value):
        raise ValueError(f'expected a name without . [ ] : = or ", got {shown(value)}')
    return value


def _packets(value: object) -> int:
    if isinstance(value, str):
        return int(replace(PACKETS, zero=False, at_most=2**31 - 1).parse(value))
    return whole(value, least=1, most=2**31 - 1)


def _arrivals(value: object) -> float:
    most = 1e9
    if isinstance(value, str):
        return replace(FREQUENCY, at_most=most).parse(value)
    return number(value, above=0, most=most)


def _sizes(value: object, info: ValidationInfo) -> Distribution:
    return distributions.parse(value, _SIZE, (info.context or {}).get("folder"))


def _queue_params(value: Any, info: ValidationInfo) -> Any:
    if "queue" in info.data:  # else it is wrong itself, and says so
        links.read_queue(info.data["queue"], value)
    return value


def _as_written(read: Callable[[object], object]) -> BeforeValidator:
    """Checks a table by reading it, and keeps it as it was written."""

    def check(value: Any) -> Any:
        read(value)
        return value

    return BeforeValidator(check)


_ARRIVALS_SCHEMA = WithJsonSchema(
    {
        "anyOf": [
            {"type": "number", "exclusiveMinimum": 0},
            {
                "type": "string",
                "pattern": FREQUENCY.ecma_pattern,
                "examples": [FREQUENCY.example],
            },
        ]
    }
)
Name = Annotated[str, AfterValidator(_name)]
Probability = Annotated[
    float, Field(ge=0, le=1), BeforeValidator(lambda v: number(v, least=0, most=1))
]
_SIZE = replace(VOLUME, example="30 kB", zero=False)
_PACKET_BYTES = replace(VOLUME, name="a size", example="1500 B", zero=False, whole=True)


class _Table(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True
    )


class Link(_Table):
    """One [[link]]: a first-in-first-out queue and a fixed delay between two nodes."""

    name: Name
    """Name, used in paths and results."""
    from_: str = Field(alias="from", min_length=1)
    """Node where it starts."""
    to: str = Field(min_length=1)
    """Node where it ends."""
    rate: Annotated[float, RATE]
    """Capacity (bit/s)."""
    delay: Annotated[float, TIME] = 0.0
    """Propagation delay, one way (s)."""
    buffer: Buffer = Buffer(1.0, "bdp")
    """Room for waiting bytes, packet in service excluded; 1 bdp = rate × largest base RTT."""
    duplex: bool = True
    """Makes an identical reverse direction, reported as NAME:rev."""
    loss: Probability = 0.0
    """Probability of independent random loss, forward direction."""
    loss_reverse: Probability = 0.0
    """The same for the reverse direction."""
    target: (
        Annotated[float, Field(gt=0, le=1), BeforeValidator(lambda v: number(v, above=0, most=1))]
        | None
    ) = None
    """Share of the capacity aimed at; default: the smallest target of the protocols on it."""
    routers: list[str] | None = None
    """Protocols whose router law runs here, both ways; default: all whose data cross it."""
    queue: Literal["droptail", "red", "codel", "fq_codel", "choke", "cohabit"] = "droptail"
    """Queue discipline."""
    queue_params: (
        Annotated[
            dict[str, Any], BeforeValidator(_queue_params), WithJsonSchema(links.queue_schema())
        ]
        | None
    ) = None
    """Parameters of the queue discipline."""
    mark_at: (
        Annotated[Buffer, BeforeValidator(links.level), WithJsonSchema(dict(links.LEVEL_SCHEMA))]
        | None
    ) = None
    """Queue length above which a drop-tail queue marks packets that may be marked."""
    loss_model: (
        Annotated[dict[str, Any], _as_written(links.read_loss), WithJsonSchema(links.loss_schema())]
        | None
    ) = None
    """Loss on the wire, in place of `loss`, forward direction."""
    reorder: (
        Annotated[Any, _as_written(links.read_late), WithJsonSchema(links.late_schema())] | None
    ) = None
    """Share of packets that arrive late, forward direction; default: none."""
    duplicate: Probability = 0.0
    """Share of packets that arrive twice, forward direction."""


class _Routed(_Table):
    from_: str | None = Field(alias="from", default=None, min_length=1)
    """Host that sends; may be left out when path is given."""
    to: str | None = Field(default=None, min_length=1)
    """Host that receives; may be left out when path is given."""
    path: list[str] | None = None
    """Links in order, each used either way, or NAME:rev; default: the shortest route."""
    start: Annotated[float, TIME] = 0.0
    """Time of the start (s)."""
    stop: Annotated[float, TIME] | None = None
    """Time of the end (s); default: the end of the run."""
    return_path: list[str] | None = None
    """Links of the acknowledgements; default: the path backwards, else the shortest route."""
    protocol: str | None = None
    """Protocol of the flows; default: the scenario's."""
    rtt: Annotated[float, replace(SPAN, example="80 ms")] | None = None
    """Base RTT (s) of the flows: pads the path's own at the source's access."""
    pacing: bool | None = None
    """Whether packets of flows are paced; default: as the law asks."""
    ecn: bool | None = None
    """Whether packets of flows may be marked instead of dropped."""


class Flow(_Routed):
    """One [[flow]]: one congestion-controlled flow, or `count` alike."""

    name: Name
    """Name of the flow, or of the group when count is above 1."""
    count: Annotated[
        int,
        Field(ge=1, le=MOST_FLOWS),
        BeforeValidator(lambda v: whole(v, least=1, most=MOST_FLOWS)),
    ] = 1
    """How many flows."""
    stagger: Annotated[float, TIME] = 0.0
    """Flow i starts at start + i × stagger (s)."""
    size: Annotated[float, replace(VOLUME, zero=False, whole=True)] | None = None
    """Payload to send (bytes); default: without end."""
    weight: Annotated[float, Field(gt=0), BeforeValidator(lambda v: number(v, above=0))] = 1.0
    """Share relative to other flows."""
    demand: Annotated[float, RATE] | None = None
    """Rate beyond which the flow has nothing to send (bit/s)."""
    initial_window: Annotated[int, BeforeValidator(_packets), PACKETS.described()] = 10
    """First window (packets); an explicit law has its own start."""
    delayed_ack: bool = False
    """Whether the receiver acknowledges every second packet."""


class Traffic(_Routed):
    """One [[traffic]]: packets that no congestion control governs, or flows that arrive."""

    name: Name | None = None
    """Name; default: its kind, with its place in the file when several have the same."""
    kind: Literal["cbr", "poisson", "onoff", "web"]
    """cbr: a packet every packet_size / rate; onoff: so in periods; poisson: packets at random
    times at a rate, or flows at an arrival_rate; web: flows."""
    rate: Annotated[float, RATE] | None = None
    """Offered rate of packets (bit/s); of onoff while it is on."""
    on: Annotated[float, replace(SPAN, example="500 ms")] | None = None
    """Mean length of the periods in which an onoff source sends (s)."""
    off: Annotated[float, replace(SPAN, example="500 ms")] | None = None
    """Mean length of the periods in which it does not (s)."""
    distribution: Literal["exponential", "pareto", "constant"] | None = None
    """Distribution of both; default: exponential."""
    shape: Annotated[float, Field(gt=1), BeforeValidator(lambda v: number(v, above=1))] | None = (
        None
    )
    """Tail index of Pareto periods; default: 1.5."""
    arrival_rate: Annotated[float, BeforeValidator(_arrivals), _ARRIVALS_SCHEMA] | None = None
    """Flows started a second."""
    sizes: (
        Annotated[
            Distribution,
            PlainValidator(_sizes),
            PlainSerializer(lambda d: d.written(_SIZE)),
            WithJsonSchema(distributions.json_schema(_SIZE)),
        ]
        | None
    ) = None
    """Payload of the flows (bytes); default: Pareto, shape 1.35, mean 30 packets."""
    initial_window: Annotated[int, BeforeValidator(_packets), PACKETS.described()] | None = None
    """First window of the flows (packets); default: 10."""
    delayed_ack: bool | None = None
    """Whether the flows' receivers acknowledge every second packet; default: false."""

    @property
    def begins_flows(self) -> bool:
        """Whether it is a source of flows, not of packets."""
        return self.kind == "web" or (self.kind == "poisson" and self.rate is None)


class Scenario(_Table):
    """A whole scenario, checked. Build one with `load`, `from_toml` or `from_dict`."""

    name: str = "scenario"
    """Title."""
    duration: Annotated[float, replace(SPAN, example="60 s")]
    """Simulated time (s)."""
    protocol: str | None = None
    """Protocol of every flow that names none."""
    packet_size: Annotated[float, replace(_PACKET_BYTES, at_most=65535.0)] = 1500.0
    """Full packet (bytes), with 40 B of TCP/IP headers and the protocol's own."""
    ack_size: Annotated[
        float, replace(_PACKET_BYTES, name="a size", example="40 B", at_most=65535.0)
    ] = 40.0
    """Acknowledgement (bytes)."""
    seed: Annotated[int, Field(ge=0, lt=2**63), BeforeValidator(whole)] = 1
    """Seed of every random stream."""
    measure: Annotated[list[Annotated[float, TIME]], Field(min_length=2, max_length=2)] | None = (
        None
    )
    """Window [from, to] of the summary; default: the last third."""
    sample: Annotated[float, replace(SPAN, example="100 ms")] = 0.1
    """Step of the time series (s)."""
    rto_min: Annotated[float, replace(SPAN, example="1 s")] = 1.0
    """Least retransmission timeout (s)."""
    arithmetic: Literal["real", "kernel"] = "real"
    """Whether laws run in real numbers or as their integer twin."""
    ip_version: Literal[4, 6] = 4
    """Internet Protocol of a run on linux; elsewhere packets have sizes only."""
    step: Annotated[float, replace(SPAN, example="1 ms")] | None = None
    """Step of the fluid backend (s); default: a twentieth of the shortest round trip."""
    check_step: bool = False
    """Whether the fluid backend runs again with half the step, until that changes little."""
    link: list[Link]
    """Links."""
    flow: list[Flow] = []
    """Flows; may be left out where there is traffic."""
    traffic: list[Traffic] = []
    """Other load."""
    params: dict[str, dict[str, Any]] = {}
    """Parameters of protocols: params.PROTOCOL.NAME."""

    _source: str = PrivateAttr(default="<scenario>")
    _set_keys: tuple[str, ...] = PrivateAttr(default=())
    _labels: dict[str, list[str]] = PrivateAttr(default_factory=dict)

    @property
    def source(self) -> str:
        """The file it came from, or what stands for it in messages."""
        return self._source

    @property
    def measure_s(self) -> tuple[float, float]:
        """The window of the summary (s): what `measure` says, else the last third."""
        if self.measure is None:
            return (2 * self.duration / 3, self.duration)
        return (self.measure[0], self.measure[1])

    def key(self, section: str, index: int) -> str:
        """The path of one entry's table as a user writes it: `flow.long`."""
        if section not in self._labels:
            self._labels[section] = _labels(getattr(self, section))
        return f"{section}.{self._labels[section][index]}"

    def traffic_name(self, index: int) -> str:
        """The name under which the index-th [[traffic]] is reported: its own, else its kind."""
        entry = self.traffic[index]
        label = self.key("traffic", index).partition(".")[2]
        return f"{entry.kind}[{index}]" if label == str(index) and not entry.name else label

    def error(self, key: str, message: str) -> InputError:
        """An InputError that names this scenario's file, or the command line if it set `key`."""
        return InputError(_file_of(key, self._source, self._set_keys), key, message)

    def core_error(self, error: ValueError) -> InputError:
        """The InputError for a refusal of the core, whose text is `KEY: what was expected`."""
        key, _, message = str(error).partition(": ")
        return (
            self.error(key, message) if message and " " not in key else self.error("", str(error))
        )

    def to_toml(self) -> str:
        """The scenario as run, as TOML: every key that has a value, overrides applied."""
        run = self.model_copy(update={"measure": list(self.measure_s)})
        document = run.model_dump(by_alias=True, exclude_none=True)
        for section in ("flow", "traffic", "params"):
            if not document[section]:
                del document[section]
        return tomli_w.dumps(document)


_SECTIONS: dict[str, type[_Table]] = {"link": Link, "flow": Flow, "traffic": Traffic}


def load(path: str | os.PathLike[str], sets: Iterable[str] = ()) -> Scenario:
    """The scenario of a TOML file, with `--set` overrides (`link.link1.rate="1 Gbit/s"`).

    Raises InputError when the file cannot be read, is not TOML, or says something wrong.
    """
    source = os.fspath(path)
    try:
        with open(source, "rb") as file:
            data = file.read(_MOST_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise InputError(
            source, "", f"expected a scenario file that can be read, got: {reason}"
        ) from None
    if len(data) > _MOST_FILE_BYTES:
        raise InputError(source, "", f"expected a file of at most {_MOST_FILE_BYTES} bytes")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            source, "", f"expected text in UTF-8, got another byte at offset {error.start}"
        ) from None
    return from_toml(text, source, sets)


def from_toml(text: str, source: str = "<toml>", sets: Iterable[str] = ()) -> Scenario:
    """The scenario of a TOML text; `source` stands for the file in messages."""
    try:
        document = tomllib.loads(text.replace("\r\n", "\n"))
    except (ValueError, RecursionError) as error:
        raise InputError(source, "", f"expected TOML, got: {error}") from None
    return from_dict(document, source, sets)


def from_dict(
    document: Mapping[str, Any], source: str = "<dict>", sets: Iterable[str] = ()
) -> Scenario:
    """The scenario of a dictionary that is shaped as the TOML file is. It is not changed."""
    raw = copy.deepcopy(dict(document))
    raw.setdefault("name", Path(source).stem if not source.startswith("<") else "scenario")
    set_keys = tuple([_override(raw, assignment) for assignment in sets])
    try:
        scenario = Scenario.model_validate(raw, context={"folder": Path(source).parent})
    except ValidationError as error:
        key, message = _first(raw, error)
        raise InputError(_file_of(key, source, set_keys), key, message) from None
    scenario._source = source
    scenario._set_keys = set_keys
    for key, message in _contradictions(scenario):
        raise scenario.error(key, message)
    return scenario


def unsupported(scenario: Scenario, backend: str) -> Iterator[tuple[str, str]]:
    """(key, message) for everything set whose behaviour the backend does not have yet."""
    for path, runs in NOT_YET.get(backend, {}).items():
        section, _, name = path.rpartition(".")
        tables: list[Any] = getattr(scenario, section) if section else [scenario]
        for index, table in enumerate(tables):
            value = getattr(table, name)
            if value is None or value in runs:
                continue
            key = f"{scenario.key(section, index)}.{name}" if section else name
            wanted = f", expected {' or '.join(map(shown, runs))}" if runs else ""
            yield (
                key,
                f"{shown(value)} is not supported yet by the {backend} backend{wanted}",
            )


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a scenario file, for editors (docs/scenario.schema.json)."""
    schema = Scenario.model_json_schema(by_alias=True, schema_generator=_TomlSchema)
    return {"$schema": _TomlSchema.schema_dialect, **schema, "title": "Waterfill scenario"}


class _TomlSchema(GenerateJsonSchema):
    """TOML has no null, and a default is written with its unit."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> dict[str, Any]:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> dict[str, Any]:
        inner = self.generate_inner(schema["schema"])
        default = schema.get("default")
        if isinstance(default, Buffer):
            default = default.format()
        elif inner.get("type") == "string" and isinstance(default, float):
            unit = next(u for u in (TIME, VOLUME) if u.ecma_pattern == inner["pattern"])
            default = unit.format(default)
        return inner if default is None else {**inner, "default": default}

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def _labels(entries: Iterable[Any]) -> list[str]:
    """What names each entry of a section in a key's path: its name, else its kind or number."""

    def get(entry: Any, key: str) -> str | None:
        value = entry.get(key) if isinstance(entry, dict) else getattr(entry, key, None)
        return value if isinstance(value, str) and value else None

    pairs = [(get(entry, "name"), get(entry, "kind")) for entry in entries]
    # A kind names an entry when no other has it, as a name or as an unnamed one's kind.
    uses = Counter(name or kind for name, kind in pairs)
    return [
        name or (kind if kind and uses[kind] == 1 else str(index))
        for index, (name, kind) in enumerate(pairs)
    ]


def _file_of(key: str, source: str, set_keys: Iterable[str]) -> str:
    # seed.x=3 makes seed a table, which is then refused under its own key.
    mine = any(
        f"{key}.".startswith((f"{s}.", f"{s}[")) or s.startswith(f"{key}.") for s in set_keys
    )
    return _COMMAND_LINE if mine else source


def _override(document: dict[str, Any], assignment: str) -> str:
    """Applies one `path=value` and returns the path."""
    path, equals, text = (part.strip() for part in assignment.partition("="))
    if not equals or not path or not all(path.split(".")):
        raise InputError(_COMMAND_LINE, path, "expected KEY=VALUE, the key as in flow.long.count")
    section, *rest = path.split(".")
    table: Any = document
    entries = document.get(section)
    if section in _SECTIONS and isinstance(entries, list):
        labels = _labels(entries)
        if len(rest) < 2:
            raise InputError(_COMMAND_LINE, path, f"expected {section}.NAME.KEY=VALUE")
        if rest[0] not in labels:
            message = f"no [[{section}]] of that name{nearest(rest[0], labels)}"
            raise InputError(_COMMAND_LINE, path, message)
        table = entries[labels.index(rest[0])]
        rest = rest[1:]
    else:
        rest = [section, *rest]
    for step in rest[:-1]:
        table = table.setdefault(step, {}) if isinstance(table, dict) else None
    if not isinstance(table, dict):
        raise InputError(_COMMAND_LINE, path, "expected a key of a table")
    table[rest[-1]] = _toml_value(text)
    return path


def _toml_value(text: str) -> Any:
    """A `--set` value: TOML where it is TOML (numbers, true, lists, "…"), else the bare text."""
    try:
        document = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    value = document["value"]
    # A bare 2007-01-01 is a title, not a date; "1\nseed = 2" is one value, not two keys.
    plain = isinstance(value, (str, bool, int, float, list, dict)) and len(document) == 1
    return value if plain else text


def _first(raw: dict[str, Any], error: ValidationError) -> tuple[str, str]:
    """(key, message) of the error to report: an unknown key explains a missing one."""
    errors = error.errors(include_url=False)
    found = min(errors, key=lambda e: e["type"] != "extra_forbidden")
    location = list(found["loc"])
    section = location[0] if location else ""
    key = str(section)
    model: type[_Table] = Scenario
    for depth, step in enumerate(location[1:], start=1):
        if depth == 1 and isinstance(step, int) and section in _SECTIONS:
            model = _SECTIONS[str(section)]
            key += f".{_labels(raw[str(section)])[step]}"
        else:
            key += f"[{step}]" if isinstance(step, int) else f".{step}"
    cause = found.get("ctx", {}).get("error")
    if isinstance(cause, PartError) and cause.part:
        key += f".{cause.part}"
    fields = {field.alias or name: field for name, field in model.model_fields.items()}
    return key, _message(found, str(location[-1]) if location else "", fields)


def _message(found: Any, last: str, fields: Mapping[str, Any]) -> str:
    kind, context = found["type"], found.get("ctx", {})
    got = f", got {shown(found['input'])}"
    if kind == "extra_forbidden":
        return f"unknown key{nearest(last, fields)}"
    if kind == "missing":
        if last == "link":
            return "expected at least one [[link]], got none"
        quantity = next((m for m in fields[last].metadata if isinstance(m, Quantity)), None)
        return f"expected {quantity.expectation if quantity else 'a text'}, got nothing"
    if kind == "value_error":
        return str(context["error"])
    if kind == "literal_error":
        return f"expected {context['expected']}".replace("'", '"') + got
    if kind == "list_type" and last in _SECTIONS:
        return f"expected tables, each written [[{last}]]{got}"
    if kind in ("too_short", "too_long"):
        return f"expected two times, the start and the end{got}"
    wanted = {
        "string_type": "a text",
        "string_too_short": "a text that is not empty",
        "bool_type": "true or false",
        "list_type": "a list",
        "dict_type": "a table",
        "model_type": "a table",
        "model_attributes_type": "a table",
    }
    return f"expected {wanted.get(kind, found['msg'])}{got}"


def _contradictions(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """(key, message) for whatever is wrong between keys that are each right."""
    if not scenario.link:
        yield "link", "expected at least one [[link]], got none"
    if not scenario.flow and not scenario.traffic:
        yield "flow", "expected at least one [[flow]] or [[traffic]], got none"
    for section in _SECTIONS:
        seen: set[str] = set()
        for entry in getattr(scenario, section):
            if entry.name is not None and entry.name in seen:
                yield (
                    f"{section}.{entry.name}.name",
                    f"expected a name of its own, got {shown(entry.name)} twice",
                )
            seen.add(entry.name)
    for index, link in enumerate(scenario.link):
        if link.from_ == link.to:
            key = f"{scenario.key('link', index)}.to"
            yield key, f"expected another node than from, got {shown(link.to)}"
        if 8 * scenario.packet_size / link.rate > SPAN.at_most:
            key = f"{scenario.key('link', index)}.rate"
            yield key, f"expected a rate that sends a packet in time, got {RATE.format(link.rate)}"
        key = scenario.key("link", index)
        if link.mark_at is not None and link.queue != "droptail":
            yield (
                f"{key}.mark_at",
                f'expected none with queue = "{link.queue}", got {link.mark_at.format()}',
            )
        if link.loss_model is not None and link.loss > 0:
            yield f"{key}.loss_model", "expected either this or loss, got both"
    total = sum(flow.count for flow in scenario.flow)
    if total > MOST_FLOWS:
        yield "flow", f"expected a count of at most {MOST_FLOWS} over all flows, got {total}"
    for index, flow in enumerate(scenario.flow):
        key = scenario.key("flow", index)
        yield from _times(scenario, key, flow, (flow.count - 1) * flow.stagger)
        if flow.protocol is None and scenario.protocol is None:
            yield "protocol", f"expected a protocol, as {key} has none of its own, got nothing"
    for index, traffic in enumerate(scenario.traffic):
        key = scenario.key("traffic", index)
        yield from _times(scenario, key, traffic, 0.0)
        yield from _of_its_kind(scenario, key, traffic)
    start, end = scenario.measure_s
    if not 0 <= start < end <= scenario.duration:
        within = TIME.format(scenario.duration)
        got = f"{TIME.format(start)} to {TIME.format(end)}"
        yield "measure", f"expected a start before an end within {within}, got {got}"
    if scenario.duration / scenario.sample > MOST_SAMPLES:
        got = TIME.format(scenario.sample)
        yield "sample", f"expected at most {MOST_SAMPLES} samples in the run, got {got}"


# The keys of [[traffic]] that are not for all kinds.
_OF_FLOWS = (
    *("arrival_rate", "sizes", "protocol", "rtt", "initial_window", "delayed_ack", "ecn"),
    *("pacing", "return_path"),
)
_OF_PERIODS = ("on", "off", "distribution", "shape")


def _of_its_kind(scenario: Scenario, key: str, traffic: Traffic) -> Iterator[tuple[str, str]]:
    """(key, message) for keys of a [[traffic]] that its kind needs or does not have."""
    kind, flows = traffic.kind, traffic.begins_flows
    if kind == "poisson" and (traffic.rate is None) == (traffic.arrival_rate is None):
        got = "neither" if traffic.rate is None else "both"
        wanted = "a rate of packets, or an arrival_rate of flows"
        yield f"{key}.rate", f"expected {wanted}, got {got}"
    allowed = {*(_OF_FLOWS if flows else ("rate",)), *(_OF_PERIODS if kind == "onoff" else ())}
    for name in ("rate", *_OF_PERIODS, *_OF_FLOWS):
        value = getattr(traffic, name)
        if name not in allowed and value is not None:
            what = f'kind = "{kind}"' + (" and a rate" if kind == "poisson" and not flows else "")
            yield f"{key}.{name}", f"expected none with {what}"
    needed: dict[str, Quantity] = {"arrival_rate": FREQUENCY} if flows else {"rate": RATE}
    if kind == "onoff":
        needed |= {"on": SPAN, "off": SPAN}
    for name, quantity in needed.items():
        if getattr(traffic, name) is None:
            yield f"{key}.{name}", f"expected {quantity.expectation}, got nothing"
    if traffic.shape is not None and traffic.distribution != "pareto":
        yield f"{key}.shape", 'expected none without distribution = "pareto"'
    if flows and traffic.protocol is None and scenario.protocol is None:
        yield "protocol", f"expected a protocol, as {key} has none of its own, got nothing"


def _times(
    scenario: Scenario, key: str, entry: Flow | Traffic, last_start: float
) -> Iterator[tuple[str, str]]:
    start, stop = TIME.format(entry.start), entry.stop
    if stop is not None and stop <= entry.start:
        yield f"{key}.stop", f"expected a stop after the start at {start}, got {TIME.format(stop)}"
    end = scenario.duration if stop is None else min(stop, scenario.duration)
    if entry.start >= scenario.duration:
        within = TIME.format(scenario.duration)
        yield f"{key}.start", f"expected a start before the run ends at {within}, got {start}"
    elif entry.start + last_start >= end:
        got = f"the last start at {TIME.format(entry.start + last_start)}"
        yield f"{key}.stagger", f"expected every start before {TIME.format(end)}, got {got}"
