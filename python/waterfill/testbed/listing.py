"""Protocols of all backends, as `waterfill protocols` and `waterfill.protocols()` list them."""

from __future__ import annotations

from waterfill.network.protocols import ProtocolInfo, load
from waterfill.runs import law_files, laws
from waterfill.testbed import kernel


def protocols() -> dict[str, ProtocolInfo]:
    """Return all protocols by name, each with its kind, backends, parameters and signals.

    Laws of installed packages are among them. `backends` has linux where a kernel can have the
    protocol; this host's may lack it.

    >>> import waterfill
    >>> waterfill.protocols()["maxnet"].param("mu").default
    0.9
    """
    return {**kernel.supported(load()), **laws.infos(laws.summaries(law_files.installed()))}
