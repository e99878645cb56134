"""Runs of laws of routers: flows over one link, and a parking lot."""

from __future__ import annotations

import numpy as np

from waterfill.runs import backends

LOT_RATES_BPS = (50e6, 40e6, 60e6)
LOT_PATHS = ((0, 1, 2), (0,), (1,), (2,), (2,))
"""Links of the flows of the parking lot."""


def run(
    protocol,
    rtts_s,
    duration_s,
    *,
    on="sim",
    rate_bps=20e6,
    buffer="100 MB",
    starts_s=None,
    **params,
):
    """Run flows of these RTTs over one link, with 200 samples."""
    link = {
        "name": "l", "from": "a", "to": "b", "rate": f"{rate_bps} bit/s", "buffer": buffer,
        "delay": f"{1e9 * min(rtts_s) / 2:.0f} ns",
    }  # fmt: skip
    flows = [
        {"name": f"f{i}", "path": ["l"], "rtt": f"{1e9 * rtt_s:.0f} ns", "start": f"{start_s} s"}
        for i, (rtt_s, start_s) in enumerate(
            zip(rtts_s, starts_s or [0] * len(rtts_s), strict=True)
        )
    ]
    document = {
        "name": "law", "protocol": protocol, "duration": f"{duration_s:.6f} s",
        "sample": f"{duration_s / 200:.6f} s", "link": [link], "flow": flows,
        "params": {protocol: params},
    }  # fmt: skip
    return backends.run(document, on=on)


def column(result, name, start_s):
    """Return a column of the first link after a time."""
    rows = result.links.to_pydict()
    time_s, link = np.array(rows["time_s"]), np.array(rows["link"])
    return np.array(rows[name], dtype=float)[(link == link[0]) & (time_s > start_s)]


def parking_lot(protocol, on, duration="60 s", **params):
    """Run five flows over three links, one of them over all. Return the rates of the flows and
    their max-min shares.
    """
    links = [
        {"name": f"l{i}", "from": f"n{i}", "to": f"n{i + 1}", "rate": f"{rate} bit/s",
         "delay": "10 ms", "buffer": "20 MB"}
        for i, rate in enumerate(LOT_RATES_BPS)
    ]  # fmt: skip
    flows = [
        {"name": f"f{i}", "path": [f"l{link}" for link in path]} for i, path in enumerate(LOT_PATHS)
    ]
    document = {
        "name": "lot", "protocol": protocol, "duration": duration, "link": links, "flow": flows,
        "params": {protocol: params},
    }  # fmt: skip
    found = backends.run(document, on=on).summary["flows"]
    return [flow["rate_bps"] for flow in found], [flow["max_min_bps"] for flow in found]
