"""A literal table of protocols, and paths, for the tests of scenario and network."""

from pathlib import Path

from waterfill.network.protocols import ParamInfo, ProtocolInfo

ROOT = Path(__file__).resolve().parents[2]

PROTOCOLS = {
    info.name: info
    for info in (
        ProtocolInfo(
            name="maxnet",
            kind="explicit",
            backends=("sim", "fluid"),
            header_bytes=8,
            params=(
                ParamInfo("x_max", "rate", 1e15),
                ParamInfo("t", "time", 0.4),
                ParamInfo("alpha", "ratio", 0.66),
                ParamInfo("average", "flag", True),
                ParamInfo("order", "choice", "xi-first", ("xi-first", "rate-first")),
                ParamInfo("memory", "count", 3),
                ParamInfo("reserve", "packets", 10),
                ParamInfo("quantum", "volume", 1500),
            ),
        ),
        ProtocolInfo("aecp", "explicit", ("sim",), 3),
        ProtocolInfo("cubic", "end-to-end", ("linux",), 0),
    )
}
TARGETS = {"maxnet": 0.9, "aecp": 0.95, "cubic": 1.0}
