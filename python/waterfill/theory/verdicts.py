"""The answer of each `waterfill theory` command as one sentence.

Each function takes the command's document, which has the numbers that the sentence states.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from waterfill.scenario.units import RATE, TIME

Document: TypeAlias = Mapping[str, Any]

_NAMES = {
    "maxnet": "MaxNet", "maxnet2006": "MaxNet of 2006", "ixcp": "iXCP", "pxcp": "P-XCP",
    "jetmax": "JetMax", "alpha_rcp": "α-fair RCP",
}  # fmt: skip
# The smallest ratio that three digits write as 1.
_EQUAL = 0.9995


def digits(number: float, count: int = 3) -> str:
    """Return a number with `count` significant digits, without an exponent from 1e-4 to 1e6."""
    return f"{float(f'{number:.{count}g}'):.6g}" if math.isfinite(number) else "unlimited"


def time(seconds: float) -> str:
    """Return a time with three significant digits and the unit that suits it, such as `80 ms`."""
    return TIME.format(float(f"{seconds:.3g}"))


def name(protocol: str) -> str:
    """Return a protocol's name as its paper writes it."""
    return _NAMES.get(protocol, protocol.upper())


# --- stability ----------------------------------------------------------------------------------


def stability(document: Document) -> str:
    """Return the verdict of `theory stability` on a law or on a scenario's network."""
    makers: Mapping[str, Callable[[Document], str]] = {
        "maxnet": _maxnet,
        "aecp": _aecp,
        "xcp": _xcp,
        "rcp": _rcp,
        "alpha_rcp": _alpha_rcp,
        "vcp": _vcp,
        "abc": _abc,
        "jetmax": _jetmax,
        "mkc": _mkc,
    }
    return f"{name(document['protocol'])} is {makers[document['protocol']](document)}"


def tuning(document: Document) -> str:
    """Return the verdict of `theory stability maxnet --tune`."""
    found, proof = document["params"], document["certificate"]
    values = f"α = {digits(found['alpha'])}, T = {time(found['t'])}, η = {digits(found['eta'])}"
    if "dt_p" in found:
        values += f", dt_p = {time(found['dt_p'])}"
    return f"With {values}, MaxNet is stable for every RTT up to {time(proof['max_rtt_s'])}."


def _maxnet(document: Document) -> str:
    alpha = document["alpha"]
    if "eq13" in document:
        where = f"for every RTT up to {time(document['max_rtt_s'])}"
        alpha_max = min(_proved(document[loop]) for loop in ("eq13", "implemented"))
    else:
        where = f"for the RTTs of {document['scenario']}, {_span(document['rtts_s'])}"
        alpha_max = min(document["alpha_max"], document["implemented"]["alpha_max"])
    if document["stable"]:
        return f"stable {where}: α = {digits(alpha)} < α_max = {digits(alpha_max)}."
    # Near the bound the grid's error decides against a proof.
    return f"not shown to be stable {where}: α = {digits(alpha)}, α_max = {digits(alpha_max)}."


def _proved(proof: Any) -> float:
    """Return the maximum α that one of a certificate's two proofs shows stable."""
    lemma: float = proof["alpha_max_lemma1"]
    return max(lemma, proof["alpha_max"]) if proof["by_algorithm_3"] else lemma


def _span(rtts_s: Sequence[float]) -> str:
    low, high = rtts_s[0], rtts_s[-1]
    return time(low) if len(rtts_s) == 1 else f"{time(low)} to {time(high)}"


def _aecp(document: Document) -> str:
    bare, limits = document["delay_margin_s"], document["sampled_delay_margin_s"]
    margins = f"{time(bare)} by eq. 38, {time(limits['clamped'])} as implemented"
    rtt = time(document["max_rtt_s"])
    state = "stable for every RTT up to" if document["stable"] else "not stable at an RTT of"
    return f"{state} {rtt}: its delay margin is {margins}."


def _xcp(document: Document) -> str:
    if "links" in document:
        return _links(document, "standing_queue")
    low, high, alpha = document["alpha_min"], document["alpha_max"], digits(document["alpha"])
    beta = f"β = {digits(document['beta'])}"
    if low is None:
        return f"not stable: no α is, because {beta} is too large."
    bounds = f"{digits(low)} and {digits(high)}, its bounds at {beta}"
    if document["stable"]:
        return f"stable at every RTT that all flows share: α = {alpha} is between {bounds}."
    return f"not stable: α = {alpha} is not between {bounds}."


def _rcp(document: Document) -> str:
    if "links" in document:
        empty, standing = (_links(document, f"{one}_queue")[:-1] for one in ("empty", "standing"))
        return f"{empty} with an empty queue, and {standing} with a standing queue."
    alpha, bound = digits(document["alpha"]), digits(document["alpha_max"])
    state, sign = ("stable", "<") if document["stable_empty_queue"] else ("not stable", "≥")
    standing = "stable" if document["stable_standing_queue"] else "not stable"
    beta = digits(document["beta"])
    return (
        f"{state} with an empty queue, where α = {alpha} {sign} α_max = {bound}, and {standing} "
        f"with a standing queue, at α = {alpha} and β = {beta}."
    )


def _links(document: Document, queue: str) -> str:
    """Return the verdict on the loops of all bottlenecks for one state of the queue."""
    wrong = [link["name"] for link in document["links"] if not link[queue]["stable"]]
    if not wrong:
        return f"stable at every bottleneck of {document['scenario']}."
    few = ", ".join(wrong if len(wrong) <= 3 else [*wrong[:3], f"{len(wrong) - 3} more"])
    return f"not stable at {few} of {document['scenario']}."


def _vcp(document: Document) -> str:
    kappa, limit, linear = document["kappa"], document["kappa_global"], document["alpha_max"]
    if document["stable"]:
        return f"stable for any disturbance: κ = {digits(kappa)} ≤ {digits(limit)}."
    if kappa < linear:
        return f"stable for small disturbances only: κ = {digits(kappa)} > {digits(limit)}."
    return f"not stable: κ = {digits(kappa)} ≥ {digits(linear)}."


def _abc(document: Document) -> str:
    state = "stable for every RTT up to" if document["stable"] else "not shown to be stable at"
    limit, delta = time(document["rtt_limit_s"]), time(document["delta_s"])
    return f"{state} {time(document['max_rtt_s'])}: with δ = {delta} the RTT must be below {limit}."


def _jetmax(document: Document) -> str:
    tau = digits(document["tau"])
    if document["stable"]:
        return f"stable for any delay: τ = {tau} < {digits(document['alpha_max'])}."
    return f"not stable: τ = {tau} ≥ {digits(document['alpha_max'])}."


def _alpha_rcp(document: Document) -> str:
    gain, limit = digits(document["gain"]), digits(document["alpha_max"])
    queue = f" with queue_gain = {digits(document['queue_gain'])}"
    term = queue if document["queue_gain"] else ""
    if document["stable"]:
        where = "at any RTTs and paths, for small disturbances"
        return f"stable {where}{term}: gain = {gain} < {limit}."
    return f"not stable at one RTT on one link{term}: gain = {gain} ≥ {limit}."


def _mkc(document: Document) -> str:
    beta = digits(document["beta"])
    if document["stable"]:
        return f"stable at any delays, for small disturbances: β = {beta} < 2."
    return f"not stable: β = {beta} ≥ 2."


# --- margin and equilibrium -----------------------------------------------------------------------


def margin(document: Document) -> str:
    """Return the verdict of `theory margin` at its RTT."""
    rtt_s, real = document["rtt_s"], document.get("implemented")
    if rtt_s is None:
        at = f" up to an RTT of {time(document['delay_margin_s'])}" if document["stable"] else ""
    else:
        at = f" at an RTT of {time(rtt_s)}"
    stable = document["stable"] and (real is None or real["stable"])
    state = "stable" if stable else "not stable"
    phase = f"phase margin {digits(document['phase_margin_deg'])}°"
    if real is not None:
        phase += f", {digits(real['phase_margin_deg'])}° as implemented"
    law = name(document["protocol"])
    if (empty := document.get("empty_queue")) is None:
        return f"{law} is {state}{at}: {phase}."
    other = "stable" if empty["stable"] else "not stable"
    angle = digits(empty["phase_margin_deg"])
    return (
        f"{law} is {other}{at} with an empty queue (phase margin {angle}°), and {state} with a "
        f"standing queue ({phase})."
    )


def equilibrium(protocol: str, flows: Sequence[Document]) -> str:
    """Return the verdict of `theory equilibrium`: whether the rates are the max-min shares."""
    ratios = [(flow["ratio"], flow["name"]) for flow in flows if flow["ratio"]]
    worst, flow = min(ratios, default=(1.0, ""))
    law = name(protocol)
    if worst >= _EQUAL:
        return f"{law} gives every flow its max-min share."
    return f"{law} is not max-min fair here: {flow} gets {digits(100 * worst)} % of its share."


# --- convergence and encoding ---------------------------------------------------------------------


def convergence(document: Document) -> str:
    """Return the verdict of `theory convergence`: how soon a law reaches its equilibrium."""
    makers: Mapping[str, Callable[[Document], str]] = {
        "maxnet": _maxnet_times,
        "aecp": _aecp_times,
        "jetmax": _jetmax_times,
        "vcp": _vcp_times,
    }
    return makers[document["protocol"]](document)


def _maxnet_times(document: Document) -> str:
    found, at = document["implemented"], f"at an RTT of {time(document['rtt_s'])}"
    if math.isinf(found["settled_s"]):
        return f"MaxNet does not settle after a step {at}."
    first, settled = time(found["two_thirds_s"]), time(found["settled_s"])
    return f"MaxNet reaches 2/3 of a step in {first} and stays within 2 % after {settled} {at}."


def _aecp_times(document: Document) -> str:
    full, fair = document["efficiency"][-1], document["fairness"][-1]
    link = f"a link of {document['capacity_packets_s']:,.0f} packets/s"
    return (
        f"AECP fills {digits(100 * full['theta'])} % of {link} in {time(full['time_s'])}, and its "
        f"flows are {digits(fair['epsilon'])}-fair after {time(fair['solved_s'])}."
    )


def _jetmax_times(document: Document) -> str:
    steps, at = document["steps"], f"at an RTT of {time(document['rtt_s'])}"
    intervals = "1 control interval" if steps == 1 else f"{digits(steps)} control intervals"
    return f"JetMax is within 1 % after {intervals}, at most {time(document['longest_s'])} {at}."


def _vcp_times(document: Document) -> str:
    tenfold = time(document["increase_s"]["10"])
    return f"VCP's multiplicative increase makes a window 10 times as large in {tenfold}."


def encoding(document: Document) -> str:
    """Return the verdict of `theory encoding`: whether the field holds the rates that it states."""
    if document["protocol"] == "aecp":
        low, high = digits(document["factor_min"]), f"{document['factor_max']:.3g}"
        rounding = digits(100 * document["rounding"])
        return f"AECP's field states {low} to {high} packets/s, rounded by at most {rounding} %."
    needed, bits = document["bits_needed"], document["bits"]
    low, high = (RATE.format(rate) for rate in needed["range_bps"])
    parts = ("integer", "fraction")
    both = " + ".join(str(needed[part]) for part in parts)
    own = " + ".join(str(bits[part]) for part in parts)
    fits = all(needed[part] <= bits[part] for part in parts)
    state = "has room for" if fits else "is too small for"
    return (
        f"MaxNet's price field {state} {low} to {high} in steps of {needed['precision']:.0e}: they "
        f"need {both} bits, and it has {own}."
    )
