"""Published distributions of flow sizes in data centres, as points (bytes, cumulative fraction).

The points are read off the figures of the papers, at the places at which the literature reads them.
Sizes between two points are uniform.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Workload:
    """One published distribution of flow sizes and its source."""

    source: str
    points: Points


WORKLOADS: Mapping[str, Workload] = {
    "web-search": Workload(
        "a web-search cluster: Alizadeh et al., DCTCP, SIGCOMM 2010, fig. 4 (pFabric, fig. 4a)",
        (
            (1, 0), (10e3, 0.15), (20e3, 0.2), (30e3, 0.3), (50e3, 0.4), (80e3, 0.53), (200e3, 0.6),
            (1e6, 0.7), (2e6, 0.8), (5e6, 0.9), (10e6, 0.97), (30e6, 1),
        ),
    ),
    "data-mining": Workload(
        "a data-mining cluster: Greenberg et al., VL2, SIGCOMM 2009, fig. 2 (pFabric, fig. 4b)",
        (
            (100, 0), (180, 0.1), (216, 0.2), (560, 0.3), (900, 0.4), (1100, 0.5), (1870, 0.6),
            (3160, 0.7), (10e3, 0.8), (400e3, 0.9), (3.16e6, 0.95), (100e6, 0.98), (1e9, 1),
        ),
    ),
    "hadoop": Workload(
        "Facebook's Hadoop cluster: Roy et al., SIGCOMM 2015, fig. 6; as in HPCC, SIGCOMM 2019",
        (
            (1, 0), (100, 0.01), (200, 0.02), (300, 0.05), (350, 0.15), (400, 0.2), (500, 0.3),
            (600, 0.4), (700, 0.5), (1e3, 0.6), (2e3, 0.67), (7e3, 0.7), (30e3, 0.72), (50e3, 0.82),
            (80e3, 0.87), (120e3, 0.9), (300e3, 0.95), (1e6, 0.975), (2e6, 0.99), (10e6, 1),
        ),
    ),
    "rpc": Workload(
        "all RPCs of a Google data centre, 2008: Montazeri et al., Homa, SIGCOMM 2018, fig. 1 (W3)",
        (
            (3, 0.0649), (32, 0.0973), (64, 0.1553), (128, 0.3516), (256, 0.4979), (512, 0.7849),
            (1024, 0.8632), (2048, 0.9089), (4096, 0.935), (8192, 0.9643), (16384, 0.9847),
            (32768, 0.9904), (65536, 0.9933), (131072, 0.9971), (262144, 0.99845),
            (524288, 0.9995), (1.0288e6, 0.99975), (2.07e6, 0.99989), (5.11e6, 0.99996),
            (15.2e6, 1),
        ),
    ),
}  # fmt: skip
