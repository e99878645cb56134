"""Python's dataclasses and the core's structs have the same fields, variant by variant."""

from __future__ import annotations

import copy
import json
import re
from dataclasses import fields, replace
from typing import Any, get_args

import pytest

import synthetic
from waterfill import _core
from waterfill.contract import droptail, elements
from waterfill.contract import network as spec
from waterfill.contract.network import Network

PIE: dict[str, Any] = {
    "target_s": 0.015,
    "update_s": 0.015,
    "alpha_hz": 0.125,
    "beta_hz": 1.25,
    "max_burst_s": 0.15,
    "ecn": True,
    "mark_below": 0.1,
}
DUALPI2: dict[str, Any] = {
    "target_s": 0.015,
    "rtt_max_s": 0.1,
    "coupling": 2.0,
    "ramp_start_s": 0.0008,
    "ramp_range_s": 0.0004,
    "ramp_packets": 1,
    "classic_share": 0.1,
}
QUEUES = [
    droptail.Droptail(mark_at=droptail.Bytes(3e3)),
    elements.Red(
        kind="red",
        min_threshold=droptail.Packets(5),
        max_threshold=droptail.Packets(15),
        max_p=0.1,
        weight=0.002,
        gentle=True,
        ecn=True,
    ),
    elements.Codel(target_s=0.005, interval_s=0.1, ecn=True),
    elements.FqCodel(
        codel=elements.CodelSpec(target_s=0.005, interval_s=0.1, ecn=True),
        quantum_bytes=1514,
        flows=8,
    ),
    *(
        elements.Cohabit(
            controller=controller,
            estimator=estimator,
            inspect=1.0,
            interval_s=0.08,
            interval_of_law=True,
            count_drops="module",
            explicit_weight=1.0,
            ecn=False,
        )
        for controller, estimator in (
            (elements.Off(), elements.Exact(period_s=2.0)),
            *(
                (
                    elements.Paper(
                        initial=0.001, decrease=0.99, increase=1.01, threshold=0.97, update=update
                    ),
                    elements.Sred(size=10, replace=0.25, delta=0.025, shared=False, trials="class"),
                )
                for update in (
                    elements.EachInterval(),
                    elements.EachPacket(packets="tcp"),
                    elements.EachPeriod(period_s=0.001),
                )
            ),
            (
                elements.Improved(aim=0.9, integral=0.5, proportional=1.0, depth_s=0.3),
                elements.Nred(levels=4, bins=64, period_s=2.0, hash="pair"),
            ),
            (elements.Separate(), elements.Exact(period_s=2.0)),
        )
    ),
    elements.Pie(**PIE),
    elements.DualPi2(**DUALPI2),
    elements.FqPie(pie=elements.PieSpec(**PIE), quantum_bytes=1514, flows=8),
]
QUEUES.append(replace(QUEUES[1], kind="choke"))
QUEUES.append(replace(QUEUES[0], ramp=droptail.Ramp(droptail.Bytes(6e3), 0.5)))
LOSSES = [
    elements.Independent(p=0.01),
    elements.GilbertElliott(p=0.01, r=0.5, loss_good=0.0, loss_bad=1.0),
    elements.Periodic(every=1000),
]
SIZES = [
    elements.Constant(mean=2e4),
    elements.Exponential(mean=2e4),
    elements.Pareto(mean=2e4, shape=1.3, max=1e6),
    elements.Empirical(points=((1e3, 0.25), (9e3, 1.0))),
]
FAULTS = tuple(
    elements.FaultSpec(from_s=0.5, until_s=0.9, share=0.1, effect=effect)
    for effect in (
        elements.Strip(),
        elements.Corrupt(),
        elements.Lie(value="random"),
        elements.Hold(every_s=0.02),
        elements.Acks(every_s=0.02, thinning=8),
    )
)
HOST_FAULTS = tuple(
    elements.HostFaultSpec(from_s=0.5, until_s=0.9, effect=effect)
    for effect in (elements.ReceiverLie(), elements.Ignore(), elements.ClockStep(step_s=-0.1))
)


def everything() -> Network:
    """A network with every class of the contract."""
    base = synthetic.link_spec("l")
    links = [replace(base, name=f"q{i}", queue=queue) for i, queue in enumerate(QUEUES)]
    links += [replace(base, name=f"m{i}", loss_model=loss) for i, loss in enumerate(LOSSES)]
    late = elements.ReorderSpec(share=0.1, delay_s=0.01)
    bucket = elements.ShaperSpec(line_bps=1e9, depth_bytes=1e4, timer_s=0.001)
    links[1] = replace(links[1], shaper=bucket)
    links[3] = replace(links[3], policer=bucket)
    change = spec.LinkChange(
        at_s=0.5, rate_bps=5e7, delay_s=0.01, up=True, restart=True, clock_step_s=-0.1
    )
    links[2] = replace(links[2], changes=(change,), faults=FAULTS)
    links[0] = replace(links[0], reorder=late, routers=("maxnet",), target=0.9)
    links[0] = replace(links[0], buffer=spec.BufferSpec("packets", 50))
    links += [replace(base, name="in"), replace(base, name="out")]
    pfc = spec.PfcSpec(
        xoff_bytes=10**5,
        inputs=(spec.InputSpec(link=len(links) - 2, back=len(links) - 1, headroom_bytes=10**4),),
    )
    flow = synthetic.flow_spec("f", 1, 1.0)._replace(
        forward=tuple(range(len(links))), reverse=(0,), size_bytes=10**6, demand_bps=1e6,
        pacing=True, ecn=False, access_bps=1e9, faults=HOST_FAULTS,
    )  # fmt: skip
    web = [
        spec.TrafficSpec(
            name=f"web{i}",
            kind="web",
            path=(0,),
            rate_bps=None,
            access_bps=None,
            start_s=0.0,
            stop_s=1.0,
            packet_bytes=1500,
            periods=None,
            flows=spec.ArrivalSpec(arrivals_per_s=2.0, sizes_bytes=sizes, flow=flow),
        )
        for i, sizes in enumerate(SIZES)
    ]
    route = spec.RouteSpec(forward=(0,), reverse=(0,), pad_s=0.0, base_rtt_s=0.01)
    pattern = replace(web[0].flows, flow=flow._replace(access_bps=None), routes=((route,) * 2,))
    web.append(replace(web[0], name="pattern", flows=replace(pattern, fan_in=2)))
    periods = spec.PeriodSpec(
        on_s=elements.Constant(mean=0.1), off_s=elements.Exponential(mean=0.1)
    )
    on_off = replace(web[0], name="onoff", kind="onoff", rate_bps=1e6, periods=periods, flows=None)
    on_off = replace(on_off, access_bps=2e6)
    varying = flow._replace(
        name="g",
        demands=(spec.DemandSpec(0.0, 1e6), spec.DemandSpec(0.5, 0.0)),
        recovery="quic",
        ack_frequency=spec.AckFrequencySpec(threshold=9, max_delay_s=0.05, reordering=3),
        routes=(spec.RouteChangeSpec(0.5, (1,), (0,)),),
    )
    plain = flow._replace(access_bps=None, size_bytes=None)
    applications = [
        elements.OnOff(rate_bps=1e6, on_s=periods.on_s, off_s=periods.off_s),
        elements.RequestResponse(sizes_bytes=SIZES[0], think_s=None),
        elements.Video(bit_rate_bps=1e6, segment_s=0.1, buffer_s=1.0, startup_segments=1),
        elements.Ticks(sizes_bytes=SIZES[0], interval_s=0.1),
    ]
    writing = [
        plain._replace(name=application.kind, application=application)
        for application in applications
    ]
    return replace(
        synthetic.network([], [flow, varying, *writing]),
        links=tuple(links),
        traffic=(*web, on_off),
        params={"maxnet": {"mu": 0.9, "arithmetic": "kernel", "average": True}},
        switching=spec.SwitchingSpec(
            choice="flowlet", gap_s=1e-3, nodes=tuple((i, i + 1) for i in range(len(links)))
        ),
        series=spec.SeriesSpec(links=(0, 2), per_sample=4),
        switches=(
            spec.SwitchSpec(
                name="s", buffer_bytes=10**6, alpha=0.5, outputs=(len(links) - 1,), pfc=pfc
            ),
        ),
    )


def field_names(value: Any) -> list[str]:
    """The fields of a dataclass or a named tuple, or of an object of one; none of others."""
    return list(getattr(value, "__dataclass_fields__", getattr(value, "_fields", ())))


def parts(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[tuple[Any, ...], Any]]:
    """Return every class of the contract in a value, with its path of field names and indexes."""
    if type(value) is tuple:
        return [part for i, item in enumerate(value) for part in parts(item, (*path, i))]
    names = field_names(value)
    below = [part for name in names for part in parts(getattr(value, name), (*path, name))]
    if not names:
        return []
    return [(path, value), *below]


PARTS = parts(everything())
TAGS = {"kind", "distribution"}


def refusal(path: tuple[Any, ...], change: dict[str, Any]) -> str:
    """The core's answer to the whole network with one part changed."""
    document = copy.deepcopy(json.loads(json.dumps(everything().to_dict())))
    place = document
    for step in path:
        place = place[step]
    place.update(change)
    with pytest.raises(ValueError, match="expected") as refused:
        _core.Simulation(document)
    return str(refused.value)


def named(message: str) -> set[str]:
    """The names that serde lists after `expected`."""
    return set(re.findall('[`"]([^`"]*)[`"]', message.partition("expected")[2]))


def test_the_core_takes_every_class_as_it_takes_plain_data():
    def figures(network: Any) -> Any:
        simulation = _core.Simulation(network)
        simulation.advance(1.0)
        summary = simulation.summary()
        del summary["engine"]["wall_s"]
        return summary

    network = everything()
    assert figures(network) == figures(json.loads(json.dumps(network.to_dict())))


def test_every_class_is_tried():
    classes = {
        thing
        for module in (spec, droptail, elements)
        for thing in vars(module).values()
        if isinstance(thing, type) and thing.__module__ == module.__name__
    }
    assert {type(value) for _, value in PARTS} == classes


def own_fields(value: Any) -> set[str]:
    """Names of a dataclass's fields without the tag, which serde does not list."""
    # A source of traffic has a field that is called so.
    tags = set() if isinstance(value, spec.TrafficSpec) else TAGS
    return set(field_names(value)) - tags


@pytest.mark.parametrize(("path", "value"), [part for part in PARTS if own_fields(part[1])])
def test_both_sides_have_the_same_fields(path, value):
    own = own_fields(value)
    message = refusal(path, {"unknown": 1})
    if isinstance(value, get_args(droptail.Level)):
        own = {name for kind in get_args(droptail.Level) for name in field_names(kind)}
        message = refusal(path[:-1], {path[-1]: {"unknown": 1}})
    assert named(message) == own, message


@pytest.mark.parametrize(
    ("path", "union"),
    [
        (("links", 0, "queue"), elements.QueueSpec),
        (
            ("links", 4, "queue", "controller"),
            elements.Controller,
        ),
        (("links", 4, "queue", "estimator"), elements.Estimator),
        (("links", len(QUEUES), "loss_model"), elements.LossSpec),
        (("traffic", 0, "flows", "sizes_bytes"), elements.DistributionSpec),
        (("traffic", 0), spec.TrafficSpec),
    ],
)
def test_both_sides_have_the_same_variants(path, union):
    tags = set()
    for kind in get_args(union) or (union,):
        tag = next(field for field in fields(kind) if field.name in TAGS)
        tags |= set(re.findall("\"([^\"]*)\"|'([^']*)'", str(tag.type)))
    message = refusal(path, {tag.name: "unknown"})
    assert named(message) == {"".join(pair) for pair in tags}, message


def test_stored_networks_read_back_the_same():
    network = everything()
    assert Network.from_dict(json.loads(json.dumps(network.to_dict()))) == network


def test_a_stored_network_of_another_shape_is_refused():
    document = everything().to_dict()
    del document["flows"][0]["weight"]
    with pytest.raises(ValueError, match="weight"):
        Network.from_dict(document)
