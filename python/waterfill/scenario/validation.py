"""Errors in a scenario: the message for a wrong key, and contradictions between keys."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, get_args, get_origin

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from waterfill.errors import nearest, shown
from waterfill.scenario.distributions import PartError
from waterfill.scenario.document import (
    ENTRIES,
    MAX_FLOWS,
    MAX_SAMPLES,
    SECTIONS,
    TABLES,
    Application,
    Flow,
    FlowFault,
    Link,
    LinkEvent,
    LinkFault,
    Scenario,
    Traffic,
    labels,
)
from waterfill.scenario.links import read_aggregation, read_shaper
from waterfill.scenario.sampling import chosen
from waterfill.scenario.switch import Switch
from waterfill.scenario.table import Table
from waterfill.scenario.traces import Trace
from waterfill.scenario.units import FREQUENCY, RATE, SPAN, STEP, TIME, VOLUME, Quantity

# Of a trace that repeats: four times the points of the longest one. Each becomes an object.
_MAX_CHANGES = 4_000_000

# Keys that the file had once, and the key to use instead.
_MOVED = {
    "arithmetic": "moved; write params.LAW.arithmetic, for example params.maxnet.arithmetic",
}


def key_errors(
    raw: dict[str, Any], error: ValidationError, table: str | None = None
) -> Iterator[tuple[str, str]]:
    """Yield (key, message) of each error, unknown keys first.

    `table` is the key of the table that was checked by itself, None for the whole scenario.
    """
    errors = error.errors(include_url=False)
    for found in sorted(errors, key=lambda e: e["type"] != "extra_forbidden"):
        if table is not None:
            found["loc"] = (table, *found["loc"])
        yield _key_error(raw, found)


def _key_error(raw: dict[str, Any], found: ErrorDetails) -> tuple[str, str]:
    location = list(found["loc"])
    section = location[0] if location else ""
    key = str(section)
    model: type[Table] = Scenario
    for depth, step in enumerate(location[1:], start=1):
        if depth == 1 and section in TABLES:
            model = TABLES[str(section)]
            key += f".{step}"
        elif depth == 1 and isinstance(step, int) and section in SECTIONS:
            model = SECTIONS[str(section)]
            key += f".{labels(raw[str(section)])[step]}"
        else:
            key += f"[{step}]" if isinstance(step, int) else f".{step}"
            if depth == 2:
                model = ENTRIES.get((str(section), str(step)), model)
    cause = found.get("ctx", {}).get("error")
    if isinstance(cause, PartError) and cause.part:
        key += f".{cause.part}"
    fields = {field.alias or name: field for name, field in model.model_fields.items()}
    return key, _message(found, key, fields, raw)


def _message(found: Any, key: str, fields: Mapping[str, Any], raw: Mapping[str, Any]) -> str:
    """Return the problem and the advice for one of pydantic's errors in the document `raw`."""
    kind, context, location = found["type"], found.get("ctx", {}), found["loc"]
    last = str(location[-1]) if location else ""
    got = f", got {shown(found['input'])}"
    if kind == "extra_forbidden":
        return _MOVED.get(key) or f"unknown key{_meant(raw, key) or nearest(last, fields)}"
    if kind == "missing":
        if last == "link":
            return _NO_LINK
        choices = get_args(fields[last].annotation)
        if choices and get_origin(fields[last].annotation) is Literal:
            return f"missing; write one of {', '.join(map(shown, choices))}"
        quantity = next((m for m in fields[last].metadata if isinstance(m, Quantity)), None)
        plain = "a list" if get_origin(fields[last].annotation) is list else "a text"
        return f"missing; write {quantity.expectation if quantity else plain}"
    if kind == "value_error":
        return str(context["error"])
    if kind == "literal_error":
        return f"must be {context['expected']}".replace("'", '"') + got
    if kind == "list_type" and last in SECTIONS:
        return f"must be tables, each written as [[{last}]]{got}"
    if kind == "string_too_short":
        return "must not be empty"
    if kind == "too_short" and last != "measure":
        least = context["min_length"]
        return f"must have at least {least} {'entry' if least == 1 else 'entries'}{got}"
    if kind in ("too_short", "too_long") or (kind == "list_type" and last == "measure"):
        return f"must be two times, the start and the end{got}"
    if kind == "dict_type" and location[:1] == ("params",) and len(location) == 2:
        own = raw.get("protocol")
        if last != own:
            protocol = own if isinstance(own, str) and own else "PROTOCOL"
            return f"parameters belong to a protocol{got}; write params.{protocol}.{last}"
    wanted = {
        "string_type": "a text",
        "bool_type": "true or false",
        "list_type": "a list",
        "dict_type": "a table",
        "model_type": "a table",
        "model_attributes_type": "a table",
    }
    return f"must be {wanted[kind]}{got}" if kind in wanted else f"{found['msg']}{got}"


def _meant(raw: Mapping[str, Any], key: str) -> str:
    """Return `, did you mean "link.NAME.KEY"?` if an unknown key of the file is one of an entry."""
    for section, model in SECTIONS.items():
        entries = raw.get(section)
        names = {field.alias or name for name, field in model.model_fields.items()}
        if key in names and isinstance(entries, list) and entries:
            return f', did you mean "{section}.{labels(entries)[0]}.{key}"?'
    return ""


_NO_LINK = "no link; add a [[link]]"


def contradictions(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """Yield (key, message) for contradictions between keys that are each valid."""
    if not scenario.link:
        yield "link", _NO_LINK
    if not scenario.flow and not scenario.traffic:
        yield "flow", "no flow and no traffic; add a [[flow]] or a [[traffic]]"
    yield from _names(scenario)
    for index, link in enumerate(scenario.link):
        if not _plain_link(scenario, link):
            yield from _link(scenario, scenario.key("link", index), link)
    for section, what in (("flow", "all flows"), ("traffic", "all traffic")):
        total = sum(entry.count or 1 for entry in getattr(scenario, section))
        if total > MAX_FLOWS:
            yield section, f"{what} must have counts of at most {MAX_FLOWS} together, got {total}"
    duration, protocol = scenario.duration, scenario.protocol
    for index, flow in enumerate(scenario.flow):
        last_start = (flow.count - 1) * flow.stagger + flow.start_jitter
        # Most flows of a long list pass here, before their key is made.
        if flow.stop is not None or flow.start + last_start >= duration:
            yield from _times(scenario, scenario.key("flow", index), flow, last_start)
        if flow.fault is not None:
            yield from _faults(scenario, scenario.key("flow", index), flow)
        if flow.route is not None:
            yield from _routes(scenario, scenario.key("flow", index), flow)
        if flow.demand_trace is not None:
            key = scenario.key("flow", index)
            yield from _repetitions(scenario, f"{key}.demand_trace", flow.demand_trace)
            if flow.demand is not None:
                got = RATE.format(flow.demand)
                yield f"{key}.demand", f"not allowed with demand_trace, got {got}; remove it"
        if flow.application is not None:
            yield from _application(scenario.key("flow", index), flow, flow.application)
        yield from _ack_frequency(scenario.key("flow", index), flow)
        if flow.protocol is None and protocol is None:
            key = scenario.key("flow", index)
            advice = 'write protocol = "maxnet" at the top or in the flow'
            yield "protocol", f"missing, and {key} names none; {advice}{_unknown_link(scenario)}"
    yield from _order(scenario)
    if (scenario.ecmp == "flowlet") != (scenario.flowlet_gap is not None):
        if scenario.flowlet_gap is None:
            yield "flowlet_gap", 'missing; write flowlet_gap = "20 us", next to ecmp = "flowlet"'
        elif "ecmp" not in scenario.set_keys:  # one of a sweep's values may use it
            yield "flowlet_gap", 'has no effect without ecmp = "flowlet"; remove it'
    if scenario.switch is not None:
        yield from _switch(scenario, scenario.switch)
    for key, traffic in zip(scenario.keys("traffic"), scenario.traffic, strict=True):
        yield from _times(scenario, key, traffic, 0.0)
        yield from _traffic(scenario, key, traffic)
        yield from _ack_frequency(key, traffic)
    start, end = scenario.measure_s
    if not 0 <= start < end <= scenario.duration:
        within = TIME.format(scenario.duration)
        got = f"{TIME.format(start)} to {TIME.format(end)}"
        yield "measure", f"must be a start and a later end within the run of {within}, got {got}"
    yield from _series(scenario)
    if scenario.duration / scenario.sample > MAX_SAMPLES:
        got = TIME.format(scenario.sample)
        yield "sample", f"the run has more than {MAX_SAMPLES} samples, got {got}; use a longer time"


def _series(scenario: Scenario) -> Iterator[tuple[str, str]]:
    series = scenario.series
    if series is None:
        return
    names = [link.name for link in scenario.link]
    both = [*names, *(f"{link.name}:rev" for link in scenario.link if link.duplex)]
    for index, pattern in enumerate(series.links or ()):
        if not chosen(both, [pattern]):
            why = f"no link has a name like {shown(pattern)}{nearest(pattern, names)}"
            yield f"series.links[{index}]", why
    if series.step is None:
        return
    if scenario.duration / series.step > MAX_SAMPLES:
        got = TIME.format(series.step)
        why = f"the run has more than {MAX_SAMPLES} samples, got {got}; use a longer time"
        yield "series.step", why
    is_set = "sample" in scenario.model_fields_set
    if is_set and not math.isclose(scenario.sample, scenario.sample_s):
        step, sample = TIME.format(series.step), TIME.format(scenario.sample)
        fits = TIME.format(scenario.sample_s)
        yield "series.step", f'must divide sample, {sample}, got {step}; write sample = "{fits}"'


def _unknown_link(scenario: Scenario) -> str:
    """Return a second problem to report: the first flow's path over a link that is missing."""
    known = {link.name.removesuffix(":rev") for link in scenario.link}
    for index, flow in enumerate(scenario.flow):
        for name in flow.path or ():
            if name.removesuffix(":rev") not in known:
                return f"; and {scenario.key('flow', index)}.path names no link, got {shown(name)}"
    return ""


# The keys of each kind of application: those that it needs, and those that it may have.
_APPLICATION_KEYS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "onoff": (("rate", "on", "off"), ()),
    "request-response": (("sizes",), ("think",)),
    "video": (("bit_rate", "segment", "buffer"), ("startup",)),
    "ticks": (("sizes", "interval"), ()),
}
_APPLICATION_VALUES: Mapping[str, str] = {
    "rate": "2 Mbit/s", "on": "500 ms", "off": "2 s", "sizes": "30 kB", "bit_rate": "5 Mbit/s",
    "segment": "4 s", "buffer": "30 s", "interval": "15 ms",
}  # fmt: skip


def _ack_frequency(key: str, entry: Flow | Traffic) -> Iterator[tuple[str, str]]:
    if entry.ack_frequency is not None and entry.delayed_ack is not None:
        yield f"{key}.delayed_ack", "not allowed next to ack_frequency, whose threshold replaces it"


def _application(key: str, flow: Flow, application: Application) -> Iterator[tuple[str, str]]:
    """Check the keys of a flow's application."""
    for name in ("size", "demand", "demand_trace"):
        if getattr(flow, name) is not None:
            yield f"{key}.{name}", "not allowed with an application, which writes the data"
    needed, allowed = _APPLICATION_KEYS[application.kind]
    for name in type(application).model_fields:
        given = getattr(application, name) is not None
        if name == "kind":
            continue
        if given and name not in (*needed, *allowed):
            yield f"{key}.application.{name}", f'not allowed with kind = "{application.kind}"'
        elif not given and name in needed:
            example = _APPLICATION_VALUES[name]
            yield f"{key}.application.{name}", f'missing; write a value such as "{example}"'
    segment, buffer = application.segment, application.buffer
    if segment is not None and buffer is not None:
        startup = application.startup or 1
        if startup * segment > buffer:
            got = f"{startup} of {SPAN.format(segment)}, got {SPAN.format(buffer)}"
            yield f"{key}.application.buffer", f"must have space for the segments at startup, {got}"


def _names(scenario: Scenario) -> Iterator[tuple[str, str]]:
    for section in SECTIONS:
        entries = getattr(scenario, section)
        names = [entry.name for entry in entries if entry.name is not None]
        if len(set(names)) == len(names):
            continue
        seen: set[str] = set()
        for entry in entries:
            if entry.name is not None and entry.name in seen:
                key = f"{section}.{entry.name}.name"
                yield key, f"must be unique, got {shown(entry.name)} twice"
            seen.add(entry.name)


def _routes(scenario: Scenario, key: str, flow: Flow) -> Iterator[tuple[str, str]]:
    """Check the times of a flow's route changes."""
    before_s = 0.0
    for index, route in enumerate(flow.route or ()):
        at = f"{key}.route[{index}].at"
        if route.at <= before_s:
            got = f"got {TIME.format(route.at)} after {TIME.format(before_s)}"
            yield at, f"changes must be in order of time, {got}"
        if route.at >= scenario.duration:
            yield at, _too_late(scenario, route.at)
        before_s = route.at


# Keys that hold for a connection and not for one of the flows that use it.
_OF_A_CONNECTION = (
    "from_", "to", "path", "return_path", "protocol", "count", "recovery", "window_validation",
    "weight", "rtt", "rtt_jitter", "access_rate", "pacing", "delayed_ack", "ecn", "claimed_rtt",
    "base_rtt_window",
)  # fmt: skip


def _switch(scenario: Scenario, switch: Switch) -> Iterator[tuple[str, str]]:
    """Check the keys of switches against each other."""
    for name in ("xoff", "headroom"):
        if not switch.pfc and getattr(switch, name) is not None:
            yield f"switch.{name}", "has no effect without pfc; write pfc = true or remove it"
    if switch.pfc and switch.xoff is not None:
        if switch.alpha is not None:
            yield "switch.alpha", f"has no effect next to xoff, got {switch.alpha:g}; remove one"
        if switch.xoff > switch.buffer:
            got, size = VOLUME.format(switch.xoff), VOLUME.format(switch.buffer)
            yield "switch.xoff", f"must be at most the buffer, {size}, got {got}"
    if switch.pfc and scenario.nic == "queue":
        yield (
            "nic",
            'must be "pull" with pfc, got "queue": paused hosts would mark their own packets',
        )


def _connection(flow: Flow, by_name: Mapping[str, Flow]) -> str | None:
    """Return why a flow cannot go on to use the connection that it names, or None."""
    name = flow.continues
    if name not in (flow.after or ()):
        return f"must be a flow of after, got {shown(name)}"
    if flow.after_count is not None:
        return f"not allowed with after_count, got {shown(name)}; remove one of the two"
    other = by_name.get(name or "")
    if other is None:  # reported under after
        return None
    for key in _OF_A_CONNECTION:
        if getattr(flow, key) != getattr(other, key):
            return f"must name a flow with the same {key.rstrip('_')}, got {shown(name)}"
    for key in ("initial_window", "handshake"):
        if getattr(flow, key) is not None:
            return f"opens no connection, so {key} has no effect; remove it"
    if flow.fault or other.fault:
        return f"not for flows with faults, got {shown(name)}"
    return 'not for quic, got recovery = "quic"' if flow.recovery == "quic" else None


def _order(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """Check the flows that start after others."""
    for index, flow in enumerate(scenario.flow):
        if flow.after_count is not None:
            key = f"{scenario.key('flow', index)}.after_count"
            if flow.after is None:
                yield key, f"not allowed without after, got {flow.after_count}"
            elif flow.after_count > len(flow.after):
                limit = f"must be at most {len(flow.after)}, the flows in after"
                yield key, f"{limit}, got {flow.after_count}"
    if all(flow.after is None and flow.continues is None for flow in scenario.flow):
        return
    by_name = {flow.name: flow for flow in scenario.flow}
    waits: dict[str, list[str]] = {}
    users: dict[str | None, str] = {}
    for index, flow in enumerate(scenario.flow):
        key = f"{scenario.key('flow', index)}.after"
        for name, count in Counter(flow.after or ()).items():
            other = by_name.get(name)
            if other is None:
                yield key, f"unknown flow {shown(name)}{nearest(name, by_name)}"
            elif other.size is None:
                yield key, f"must name flows with a size, which end, got {shown(name)}"
            if count > 1:
                yield key, f"must name each flow once, got {shown(name)} twice"
        waits[flow.name] = flow.after or []
        first = users.setdefault(flow.continues, flow.name)
        if flow.continues is not None and first != flow.name:
            yield (
                f"{key.removesuffix('after')}continues",
                f"{shown(first)} uses this connection at the same time",
            )
        if flow.continues is not None and (why := _connection(flow, by_name)):
            yield f"{key.removesuffix('after')}continues", why
        if flow.after is not None and flow.stop is not None:
            got = TIME.format(flow.stop)
            yield f"{key.removesuffix('after')}stop", f"not allowed with after, got {got}"
    from graphlib import CycleError, TopologicalSorter

    try:
        TopologicalSorter(waits).prepare()
    except CycleError as error:
        circle = error.args[1]
        index = next(i for i, flow in enumerate(scenario.flow) if flow.name == circle[-1])
        why = f"flows wait for each other, got {' after '.join(reversed(circle))}"
        yield f"{scenario.key('flow', index)}.after", why


def _bucket(
    scenario: Scenario, key: str, link: Link, given: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """Check a link's `shaper` or `policer` against the link's other keys."""
    values = read_shaper(given)
    slowest = min(link.rate, link.backward.rate)
    if values["rate"] >= slowest:
        got = RATE.format(values["rate"])
        yield f"{key}.rate", f"must be below the link's {RATE.format(slowest)}, got {got}"
    if values["depth"] < scenario.packet_size:
        packet, got = VOLUME.format(scenario.packet_size), VOLUME.format(values["depth"])
        yield f"{key}.depth", f"must be at least one packet, {packet}, got {got}"
    if given is link.policer:
        if link.shaper is not None:
            yield key, "not allowed on a link with a shaper"
        return
    separate = link.queue == "cohabit" and (link.queue_params or {}).get("controller") == "separate"
    if separate or link.queue not in ("droptail", "red", "cohabit"):
        yield key, f'needs a queue that serves in order of arrival, got "{link.queue}"'


def _plain_link(scenario: Scenario, link: Link) -> bool:
    """Return True if a quick check shows that `_link` has nothing to report."""
    return (
        link.from_ != link.to
        and 8 * scenario.packet_size / link.rate <= SPAN.at_most
        and link.shaper is None
        and link.policer is None
        and link.mark_at is None
        and link.mark_to is None
        and link.mark_max is None
        and link.loss_model is None
        and link.rate_reverse is None
        and link.delay_reverse is None
        and link.buffer_reverse is None
        and (link.duplex or not link.loss_reverse)
        and link.event is None
        and link.fault is None
        and link.ack_aggregation is None
        and link.ack_thinning is None
        and link.rate_trace is None
        and link.rate_trace_reverse is None
        and link.delay_trace is None
        and link.delay_trace_reverse is None
    )


def _ramp(key: str, link: Link) -> Iterator[tuple[str, str]]:
    """Check the levels between which the probability of a mark grows."""
    low, high = link.mark_at, link.mark_to
    if high is None:
        if link.mark_max is not None:
            yield f"{key}.mark_max", f"has no effect without mark_to, got {link.mark_max:g}"
    elif low is None:
        yield f"{key}.mark_to", f"needs mark_at, below it, got {shown(high.format())}"
    elif high.unit != low.unit or high.amount <= low.amount:
        got = f"{shown(low.format())} and {shown(high.format())}"
        yield f"{key}.mark_to", f"must be above mark_at, in the same unit, got {got}"


def _link(scenario: Scenario, key: str, link: Link) -> Iterator[tuple[str, str]]:
    if link.from_ == link.to:
        yield f"{key}.to", f"must differ from `from`, got {shown(link.to)}"
    if 8 * scenario.packet_size / link.rate > SPAN.at_most:
        yield f"{key}.rate", _too_slow(link.rate)
    yield from _reverse(scenario, key, link)
    if link.shaper is not None:
        yield from _bucket(scenario, f"{key}.shaper", link, link.shaper)
    if link.policer is not None:
        yield from _bucket(scenario, f"{key}.policer", link, link.policer)
    yield from _variation(scenario, key, link)
    yield from _faults(scenario, key, link)
    yield from _acknowledgements(scenario, key, link)
    if link.mark_at is not None and link.queue != "droptail":
        got = f"got {link.mark_at.format()}"
        yield f"{key}.mark_at", f'not allowed with queue = "{link.queue}", {got}'
    yield from _ramp(key, link)
    if link.loss_model is not None and link.loss > 0:
        yield f"{key}.loss_model", "not allowed together with loss; remove one of them"


def _acknowledgements(scenario: Scenario, key: str, link: Link) -> Iterator[tuple[str, str]]:
    """Check the keys with which a link holds or drops acknowledgements."""
    if link.ack_aggregation is None:
        if link.ack_thinning is not None:
            why = 'not allowed without ack_aggregation; add one such as "20 ms"'
            yield f"{key}.ack_thinning", why
        return
    held = read_aggregation(link.ack_aggregation)
    yield from _period(scenario, f"{key}.ack_aggregation", held["at"], held.get("until"))


def _period(
    scenario: Scenario, key: str, at_s: float, until_s: float | None
) -> Iterator[tuple[str, str]]:
    """Check the period in which something acts: from `at`, before the run ends, to `until`."""
    if at_s >= scenario.duration:
        yield f"{key}.at", _too_late(scenario, at_s)
    if until_s is not None and until_s <= at_s:
        after, got = TIME.format(at_s), TIME.format(until_s)
        yield f"{key}.until", f"must be after {after}, got {got}"


def _reverse(scenario: Scenario, key: str, link: Link) -> Iterator[tuple[str, str]]:
    """Yield errors in the keys of a link's reverse direction."""
    if not link.duplex:
        for name in ("rate", "delay", "buffer", "loss", "rate_trace", "delay_trace"):
            value = getattr(link, f"{name}_reverse")
            if value is not None and (value or name != "loss"):  # loss_reverse is 0 by default
                yield f"{key}.{name}_reverse", "not allowed with duplex = false"
    rate = link.rate_reverse
    if rate is not None and 8 * scenario.packet_size / rate > SPAN.at_most:
        yield f"{key}.rate_reverse", _too_slow(rate)


def _too_slow(rate: float) -> str:
    limit, got = TIME.format(SPAN.at_most), RATE.format(rate)
    return f"a packet would take more than {limit} to send, got {got}"


def _variation(scenario: Scenario, key: str, link: Link) -> Iterator[tuple[str, str]]:
    """Check a link's events and traces against each other, the run and the link's other keys."""
    yield from _delay_traces(key, link)
    traced = link.rate_trace is not None or link.rate_trace_reverse is not None
    bucket = "shaper" if link.shaper is not None else "policer"
    if getattr(link, bucket) is not None and (link.event or traced):
        name = "event" if link.event else "rate_trace"
        yield f"{key}.{name}", f"not allowed on a link with a {bucket}"
    for name, trace in (
        ("rate_trace", link.rate_trace),
        ("rate_trace_reverse", link.rate_trace_reverse),
        ("delay_trace", link.delay_trace),
        ("delay_trace_reverse", link.delay_trace_reverse),
    ):
        yield from _repetitions(scenario, f"{key}.{name}", trace)
    before_s = 0.0
    for index, event in enumerate(link.event or ()):
        at = f"{key}.event[{index}]"
        if all(getattr(event, name) is None for name in ("up", *_EVENT_KEYS)):
            yield at, "changes nothing; add a rate, a delay or up"
        yield from _reverse_event(at, link, event)
        if event.at <= before_s:
            got = f"got {TIME.format(event.at)} after {TIME.format(before_s)}"
            yield f"{at}.at", f"events must be in order of time, {got}"
        if event.at >= scenario.duration:
            yield f"{at}.at", _too_late(scenario, event.at)
        for name in ("rate", "rate_reverse"):
            rate = getattr(event, name)
            if rate is not None and traced:
                yield f"{at}.{name}", "not allowed on a link with a rate_trace"
            if rate is not None and 8 * scenario.packet_size / rate > SPAN.at_most:
                yield f"{at}.{name}", _too_slow(rate)
        before_s = event.at


def _repetitions(scenario: Scenario, key: str, trace: Trace | None) -> Iterator[tuple[str, str]]:
    """Check the number of changes of a trace that repeats."""
    if trace is not None and trace.repeat:
        changes = len(trace.points) * (scenario.duration / trace.length_s)
        if changes > _MAX_CHANGES:
            what = key.rpartition(".")[2].split("_")[0]
            limit = f"more than {_MAX_CHANGES} changes of the {what} in the run"
            length = TIME.format(trace.length_s)
            yield key, f"{limit}, got {changes:.3g}: it repeats every {length}"


_EVENT_KEYS = ("rate", "delay", "rate_reverse", "delay_reverse")


def _delay_traces(key: str, link: Link) -> Iterator[tuple[str, str]]:
    """Yield errors in the keys next to a link's delay traces."""
    if link.delay_trace is None and link.delay_trace_reverse is None:
        return
    if link.delay_trace is None:
        yield f"{key}.delay_trace_reverse", "not allowed without delay_trace; add one"
    for bucket in ("shaper", "policer"):
        if getattr(link, bucket) is not None:
            yield f"{key}.delay_trace", f"not allowed on a link with a {bucket}"
    for name in ("delay", "delay_reverse"):
        if value := getattr(link, name):
            why = f"not allowed with delay_trace, got {TIME.format(value)}; remove it"
            yield f"{key}.{name}", why
    for index, event in enumerate(link.event or ()):
        for name in ("delay", "delay_reverse"):
            if getattr(event, name) is not None:
                yield f"{key}.event[{index}].{name}", "not allowed on a link with a delay_trace"


def _reverse_event(at: str, link: Link, event: LinkEvent) -> Iterator[tuple[str, str]]:
    """Yield errors in an event's keys of the reverse direction."""
    for name in ("rate", "delay"):
        forward, backward = getattr(event, name), getattr(event, f"{name}_reverse")
        if backward is not None and not link.duplex:
            yield f"{at}.{name}_reverse", "not allowed with duplex = false"
        if getattr(link, f"{name}_reverse") is not None and backward is None is not forward:
            why = f"missing; the link has a {name}_reverse, so an event sets both"
            yield f"{at}.{name}_reverse", why


def _too_late(scenario: Scenario, at_s: float) -> str:
    end, got = TIME.format(scenario.duration), TIME.format(at_s)
    return f"must be before the end of the run at {end}, got {got}"


# The keys that each kind of fault may have, and the one that it needs.
_FAULT_KEYS: Mapping[str, tuple[tuple[str, ...], str | None]] = {
    "restart": ((), None),
    "clock": (("step",), "step"),
    "strip": (("until", "share"), None),
    "corrupt": (("until", "share"), None),
    "lie": (("until", "share", "value"), "value"),
    "hold": (("until", "every"), "every"),
    "ignore": (("until",), None),
}


def _faults(scenario: Scenario, key: str, entry: Link | Flow) -> Iterator[tuple[str, str]]:
    """Check the faults of a link or a flow: their times, and the keys that each kind has."""
    faults: Sequence[LinkFault | FlowFault] = entry.fault or ()
    for index, fault in enumerate(faults):
        at = f"{key}.fault[{index}]"
        allowed, needed = _FAULT_KEYS[fault.kind]
        for name in ("until", "share", "value", "every", "step"):
            given = getattr(fault, name, None)
            if given is not None and name not in allowed:
                yield f"{at}.{name}", f'not allowed with kind = "{fault.kind}"'
            elif given is None and name == needed and name in type(fault).model_fields:
                yield f"{at}.{name}", f"missing; write {_FAULT_VALUES[name]}"
        yield from _period(scenario, at, fault.at, fault.until)
        if fault.at == 0 and fault.kind in ("restart", "clock"):
            yield f"{at}.at", "must be above zero, got 0 s"
        if fault.step is not None and fault.step < -fault.at:
            limit, got = TIME.format(fault.at), STEP.format(fault.step)
            yield f"{at}.step", f"must not step back by more than {limit}, got {got}"
        if isinstance(entry, Link) and isinstance(fault, LinkFault):
            yield from _link_fault(at, entry, fault)


_FAULT_VALUES = {
    "step": f'a time such as "{STEP.example}"',
    "value": 'one of "zero", "max", "random"',
    "every": 'a time such as "20 ms"',
}


def _link_fault(at: str, link: Link, fault: LinkFault) -> Iterator[tuple[str, str]]:
    if fault.direction != "forward" and not link.duplex:
        yield f"{at}.direction", "must be forward with duplex = false"
    bucket = "shaper" if link.shaper is not None else "policer"
    if getattr(link, bucket) is not None and fault.kind in ("restart", "clock"):
        yield f"{at}.kind", f'"{fault.kind}" is not allowed on a link with a {bucket}'


class FormerKey(FutureWarning):
    """Warning that a key has a new name. The former name works for one release."""


def former(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """Yield (key, message) for every key that works for one more release."""
    for link_index, link in enumerate(scenario.link):
        for index, fault in enumerate(link.fault or ()):
            if fault.kind == "hold" and fault.every is not None:
                times = {"at": fault.at or None, "until": fault.until}
                given = {name: TIME.format(s) for name, s in times.items() if s is not None}
                every = f'"{TIME.format(fault.every)}"'
                table = "".join(f', {name} = "{time}"' for name, time in given.items())
                now = f"{{every = {every}{table}}}" if given else every
                why = f'"hold" works for one more release; write ack_aggregation = {now}'
                yield (
                    f"{scenario.key('link', link_index)}.fault[{index}].kind",
                    f"{why} on the link",
                )


class RateInBytes(UserWarning):
    """Warning that a rate is in bytes per second, which is often meant in bits."""


_IN_BYTES = re.compile(r"\s*[0-9.eE+-]+\s*[kMGTP]?B/s\s*")


def rates_in_bytes(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (key, message) for every rate of a document that is in bytes per second."""
    for section, value in document.items():
        entries = value if section in SECTIONS and isinstance(value, list) else None
        if entries is None:
            yield from _in_bytes(section, value)
            continue
        for index, entry in enumerate(entries):
            for key, message in _in_bytes("", entry):
                yield f"{section}.{labels(entries)[index]}{key}", message


def _in_bytes(path: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yield the rates in bytes below a path, without recursion: tables may be nested deeply."""
    open_ = [(path, value)]
    while open_:
        place, item = open_.pop()
        if isinstance(item, dict):
            # Without a step for each text, which would take twice as long for 100,000 flows.
            inside = ((k, v) for k, v in item.items() if not isinstance(v, str) or "B/s" in v)
            open_ += reversed([(f"{place}.{key}", one) for key, one in inside])
        elif isinstance(item, list):
            open_ += reversed([(f"{place}[{index}]", one) for index, one in enumerate(item)])
        elif isinstance(item, str) and _IN_BYTES.fullmatch(item):
            rate = RATE.format(RATE.parse(item))
            yield place, f"{item.strip()} is {rate}; B is a byte, bit a bit"


# The keys of [[traffic]] that only some kinds have.
_FLOW_KEYS = (
    *(
        "arrival_rate",
        "load",
        "at",
        "every",
        "pattern",
        "hosts",
        "fan_in",
        "sizes",
        "protocol",
        "rtt",
        "initial_window",
        "delayed_ack",
        "ecn",
        "ecn_feedback",
        "ecn_codepoint",
        "recovery",
        "ack_frequency",
        "handshake",
        "window_validation",
        "base_rtt_window",
    ),
    *("pacing", "pacing_quantum", "return_path"),
)
_PACKET_KEYS = ("rate", "count")
_PERIOD_KEYS = ("on", "off", "distribution", "shape")


def _traffic(scenario: Scenario, key: str, traffic: Traffic) -> Iterator[tuple[str, str]]:
    """Check that a [[traffic]] has the keys that its kind needs, and no others."""
    kind, flows = traffic.kind, traffic.starts_flows
    arrives = any(getattr(traffic, name) is not None for name in _ARRIVALS)
    if kind == "poisson" and (traffic.rate is None) != arrives:
        got = "neither" if traffic.rate is None else "both"
        wanted = "either a rate of packets or an arrival_rate of flows"
        yield f"{key}.rate", f"needs {wanted}, got {got}"
    allowed = {*(_FLOW_KEYS if flows else _PACKET_KEYS), *(_PERIOD_KEYS if kind == "onoff" else ())}
    for name in (*_PACKET_KEYS, *_PERIOD_KEYS, *_FLOW_KEYS):
        value = getattr(traffic, name)
        if name not in allowed and value is not None:
            what = f'kind = "{kind}"' + (" and a rate" if kind == "poisson" and not flows else "")
            yield f"{key}.{name}", f"not allowed with {what}"
    if flows:
        yield from _arrivals(scenario, key, traffic)
    needed: dict[str, Quantity] = {} if flows else {"rate": RATE}
    if kind == "onoff":
        needed |= {"on": SPAN, "off": SPAN}
    for name, quantity in needed.items():
        if getattr(traffic, name) is None:
            yield f"{key}.{name}", f"missing; write {quantity.expectation}"
    if (
        traffic.access_rate is not None
        and traffic.rate is not None
        and traffic.access_rate < traffic.rate
    ):
        got, rate = RATE.format(traffic.access_rate), RATE.format(traffic.rate)
        yield f"{key}.access_rate", f"must be at least the rate of {rate}, got {got}"
    if traffic.shape is not None and traffic.distribution != "pareto":
        yield f"{key}.shape", 'only allowed with distribution = "pareto"'
    if flows and traffic.protocol is None and scenario.protocol is None:
        yield "protocol", f"missing, and {key} names no protocol either; add a protocol to one"


_ARRIVALS = ("arrival_rate", "load", "at", "every")
_MAX_TIMES = 10**5
_ENDS = (("from_", "from"), ("path", "path"), ("return_path", "return_path"))


def _arrivals(scenario: Scenario, key: str, traffic: Traffic) -> Iterator[tuple[str, str]]:
    """Check the keys of a source of flows: its arrival rate and its hosts."""
    given = [name for name in _ARRIVALS if getattr(traffic, name) is not None]
    if not given:
        advice = f"write {FREQUENCY.expectation}, a load, or times of arrivals (at, every)"
        yield f"{key}.arrival_rate", f"missing; {advice}"
    for name in given[1:]:
        yield f"{key}.{name}", f"not allowed together with {given[0]}; remove one of them"
    yield from _arrival_times(scenario, key, traffic)
    pattern = traffic.pattern
    if pattern is None:
        for name in ("hosts", "fan_in"):
            if getattr(traffic, name) is not None:
                yield f"{key}.{name}", "only allowed with a pattern"
        return
    for field, name in _ENDS:
        if getattr(traffic, field) is not None:
            yield f"{key}.{name}", f'not allowed with pattern = "{pattern}"'
    if traffic.access_rate is not None:
        yield f"{key}.access_rate", "not allowed with a pattern, because its hosts have links"
    if pattern != "incast":
        for name in ("to", "fan_in"):
            if getattr(traffic, name) is not None:
                yield f"{key}.{name}", 'only allowed with pattern = "incast"'
    for name, count in Counter(traffic.hosts).items():
        if count > 1:
            yield f"{key}.hosts", f"must name each host once, got {shown(name)} twice"


def _arrival_times(scenario: Scenario, key: str, traffic: Traffic) -> Iterator[tuple[str, str]]:
    """Check the given times of a source's arrivals."""
    for before, at in itertools.pairwise(traffic.at or ()):
        if at < before:
            got = f"{TIME.format(at)} after {TIME.format(before)}"
            yield f"{key}.at", f"must be in order of time, got {got}"
            return
    if traffic.at is not None:
        end = _end(scenario, traffic)
        for name, at, wrong in (
            ("at", traffic.at[0], traffic.at[0] < traffic.start),
            ("at", traffic.at[-1], traffic.at[-1] >= end),
        ):
            if wrong:
                span = f"{TIME.format(traffic.start)} to {TIME.format(end)}"
                yield f"{key}.{name}", f"must be within {span}, got {TIME.format(at)}"
    if traffic.every is not None and (count := _arrival_count(scenario, traffic)) > _MAX_TIMES:
        yield f"{key}.every", f"gives {count:.3g} arrivals; the limit is {_MAX_TIMES:,}"


def _arrival_count(scenario: Scenario, traffic: Traffic) -> float:
    assert traffic.every is not None
    return (_end(scenario, traffic) - traffic.start) / traffic.every


def _end(scenario: Scenario, traffic: Traffic) -> float:
    stop = traffic.stop
    return scenario.duration if stop is None else min(stop, scenario.duration)


def _times(
    scenario: Scenario, key: str, entry: Flow | Traffic, last_start: float
) -> Iterator[tuple[str, str]]:
    stop = entry.stop
    end = scenario.duration if stop is None else min(stop, scenario.duration)
    start = entry.start
    if stop is not None and stop <= start:
        got = f"the start at {TIME.format(start)}, got {TIME.format(stop)}"
        yield f"{key}.stop", f"must be after {got}"
    if start >= scenario.duration:
        yield f"{key}.start", _too_late(scenario, start)
    elif start + last_start >= end:
        got = TIME.format(start + last_start)
        problem = f"every flow must start before {TIME.format(end)}"
        jitter = getattr(entry, "start_jitter", 0.0)
        name = "start_jitter" if jitter > last_start / 2 else "stagger"
        yield f"{key}.{name}", f"{problem}, got a last start at {got}"
