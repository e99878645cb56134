"""`waterfill.maxmin`: the exact max-min rates of a scenario, without a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from waterfill.network import protocols, shares
from waterfill.runs import backends, law_files
from waterfill.runs.laws import PythonLaw, check, infos, summaries

if TYPE_CHECKING:
    import pyarrow as pa

_COLUMNS = ("from_s", "to_s", "flow", "rate_bps", "bottleneck")


def maxmin(
    scenario: backends.Source,
    *,
    protocol: str | None = None,
    laws: Mapping[str, PythonLaw] | None = None,
    set: Mapping[str, Any] | None = None,
) -> pa.Table:
    """Return the exact max-min rates of all flows over time, without a run.

    The pyarrow Table has a row for each interval with constant rates and each flow active in it:
    `from_s`, `to_s`, `flow`, `rate_bps` and `bottleneck`, a link's name or "demand". Its metadata
    `notes` names keys of the scenario that the rates do not use. Arguments as in `waterfill.run`.
    Raises InputError as `waterfill maxmin` does.

    >>> import waterfill
    >>> one = waterfill.Scenario("one", duration="2 s", protocol="maxnet")
    >>> one = one.link("l", "a", "b", "10 Mbit/s", "5 ms").flow("f", "a", "b", count=2)
    >>> waterfill.maxmin(one).to_pylist()[0]
    {'from_s': 0.0, 'to_s': 2.0, 'flow': 'f[0]', 'rate_bps': 4500000.0, 'bottleneck': 'l'}
    """
    import pyarrow as pa

    loaded = backends.scenario_of(scenario, set, protocol)
    builtin = protocols.load()
    check(laws or {}, builtin)
    own = law_files.with_installed(laws or {}, loaded.protocols())
    targets = {name: law.target for name, law in own.items()}
    found = shares.document(loaded, builtin | infos(summaries(own)), own=targets)
    rows = [
        (one["from_s"], one["to_s"], flow["name"], flow["rate_bps"], flow["bottleneck"])
        for one in found["intervals"]
        for flow in one["flows"]
    ]
    types = (pa.float64(), pa.float64(), pa.string(), pa.float64(), pa.string())
    columns = zip(*rows, strict=True) if rows else ([] for _ in _COLUMNS)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
    return pa.table(arrays, names=_COLUMNS, metadata={"notes": "\n".join(found["notes"])})
