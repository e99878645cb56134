"""Claims about the effect of few price bits, with verdicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from validation.price_bits import cases, theory
from validation.price_bits.cases import PriceCase, PriceRow
from waterfill.theory import aecp, maxnet, xcp


class Claim(NamedTuple):
    """A claim in words, with its criterion, the finding and the verdict."""

    text: str
    limit: str
    found: str
    holds: bool


Rows = Mapping[PriceCase, PriceRow]


def _of(
    rows: Rows, *, laws: Sequence[str], codes: Sequence[str], network: str = ""
) -> list[PriceRow]:
    return [
        row
        for case, row in rows.items()
        if case.law in laws and case.code.name in codes and network in ("", case.network)
    ]


def _own(rows: Rows, row: PriceRow) -> PriceRow:
    return rows[row.case._replace(code=cases.OWN)]


def _worst(found: Sequence[PriceRow], value: Callable[[PriceRow], float]) -> tuple[float, str]:
    row = max(found, key=value)
    at = row.case
    return value(row), f"{at.law}, {at.code.name} bits, {at.rtt_ms} ms, {at.network}"


def _limit(
    rows: Rows,
    text: str,
    found: Sequence[PriceRow],
    value: Callable[[PriceRow], float],
    limit: float,
) -> Claim:
    worst, where = _worst(found, value)
    return Claim(text, f"≤ {limit:.3g}", f"{worst:.2g} ({where})", worst <= limit)


def _maxnet(law: str) -> maxnet.Params:
    values = cases.defaults(law)
    return maxnet.Params(
        alpha=values["alpha"],
        eta=values["eta"],
        t_s=values["t"],
        x_max_bps=values["x_max"],
        average="exponential" if values["average"] else "off",
        dt_p_s=values.get("dt_p", values.get("dt", 0.0)),
    )


def maxnet_cycle(
    law: str, tau_s: float, bits: int = 7, decades: float = theory.DECADES
) -> theory.Cycle:
    """Return the predicted limit cycle of a MaxNet law with its default parameters."""
    return theory.maxnet_cycle(_maxnet(law), tau_s, theory.band(bits, decades))


def predicted(row: PriceRow) -> float:
    """Return the load deviation that the limit cycle of a relay predicts for a MaxNet run."""
    code = row.case.code
    return maxnet_cycle(row.case.law, row.case.rtt_ms / 1e3, code.bits, code.decades).load_deviation


def gain_margin(law: str, tau_s: float) -> float:
    """Return the gain margin of a law's control loop at one RTT. RCP's loop is taken without a
    queue.

    With one, RCP's defaults (β > √2·α²) are beyond the loop's linear stability with any code.
    """
    if law.startswith("maxnet"):
        params = _maxnet(law)
        return maxnet.loop_margins(maxnet.implemented(params), params.alpha, tau_s).gain_margin
    values = cases.defaults(law)
    if law == "rcp":
        return xcp.loop_margins(xcp.Gains.of(values).alpha, 0.0, tau_s).gain_margin
    return aecp.loop_margins(aecp.Params.of(values).gains, tau_s).gain_margin


def bound(row: PriceRow) -> float:
    """Return the bound on the additional load deviation that a code causes under RCP or AECP."""
    return theory.rate_deviation_max(theory.band(row.case.code.bits, row.case.code.decades))


def claims(rows: Rows) -> list[Claim]:
    """Judge all claims on the given measurements."""
    all_laws = tuple(dict.fromkeys(case.law for case in rows))

    def off(row: PriceRow) -> float:
        return row.off(_own(rows, row))

    judged = [
        _limit(
            rows, "20 bits (CSIG's wide tag) change no share",
            _of(rows, laws=all_laws, codes=("20",)), off, 0.02,
        ),
        _limit(
            rows, "20 bits add nothing to the load's deviation",
            _of(rows, laws=all_laws, codes=("20",)),
            lambda row: row.deviation - _own(rows, row).deviation, 0.002,
        ),
        _limit(
            rows, "on one link flows of equal RTT stay equal, with any code",
            _of(rows, laws=all_laws, codes=[c.name for c in cases.CODES], network="one link"),
            lambda row: row.unfair, 0.02,
        ),
    ]  # fmt: skip
    for code in ("7", "5"):
        if "maxnet" in all_laws:
            found = _of(rows, laws=("maxnet",), codes=(code,), network="one link")
            ratios = {row.case.rtt_ms: row.deviation / predicted(row) for row in found}
            text = ", ".join(
                f"{row.case.rtt_ms} ms: {row.deviation:.3f} of {predicted(row):.3f}"
                for row in found
            )
            judged += [
                Claim(
                    f"maxnet, {code} bits: the load deviates by the relay's limit cycle at most",
                    "≤ predicted",
                    text,
                    max(ratios.values()) <= 1,
                ),
                Claim(
                    f"maxnet, {code} bits: from 80 ms on it is that limit cycle",
                    "0.8 to 1.2 of predicted",
                    ", ".join(f"{rtt} ms: {ratio:.2f}" for rtt, ratio in ratios.items()),
                    all(0.8 <= ratio <= 1.2 for rtt, ratio in ratios.items() if rtt >= 80),
                ),
            ]
        slow = tuple(law for law in ("rcp", "aecp") if law in all_laws)
        if slow:
            found = _of(rows, laws=slow, codes=(code,))
            judged.append(
                _limit(
                    rows, f"{' and '.join(slow)}, {code} bits: the load deviates by half a band",
                    found, lambda row: row.deviation / bound(row), 1.5,
                )
            )  # fmt: skip
    left = {
        (law, rtt_ms): theory.gain_margin_left(gain_margin(law, rtt_ms / 1e3))
        for law in all_laws
        for rtt_ms in cases.RTTS_MS
    }
    (law, rtt_ms), least = min(left.items(), key=lambda item: item[1])
    judged.append(
        Claim(
            "codes of any width leave a gain margin across bands",
            "> 1",
            f"{least:.2f} ({law}, {rtt_ms} ms)",
            least > 1,
        )
    )
    for law in all_laws:
        for code, limit in (("7", 0.05), ("5", 0.1)):
            judged.append(
                _limit(
                    rows, f"{law}: {code} bits move shares little",
                    _of(rows, laws=(law,), codes=(code,)), off, limit,
                )
            )  # fmt: skip
    plain = _of(rows, laws=all_laws, codes=("7", "5"))
    pairs = [
        (row, rows[row.case._replace(code=c)])
        for row in plain
        for c in cases.CODES
        if c.name == f"{row.case.code.name}, carried"
    ]
    better = sum(carried.deviation < row.deviation for row, carried in pairs)
    judged.append(
        Claim(
            "carrying the remainder to the next signal lowers the load's deviation",
            "9 of 10 cases", f"{better} of {len(pairs)}", better >= 0.9 * len(pairs),
        )
    )  # fmt: skip
    narrow = [
        (row, rows[row.case._replace(code=cases.CODES[4])])
        for row in _of(rows, laws=all_laws, codes=("5",))
    ]
    better = sum(few.deviation < row.deviation for row, few in narrow)
    judged.append(
        Claim(
            "5 bits over two decades cost less than over 6.4",
            "all cases", f"{better} of {len(narrow)}", better == len(narrow),
        )
    )  # fmt: skip
    return judged
