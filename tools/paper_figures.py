"""Generate the page "paper figure, our figure, verdict" from the papers' claims.toml."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tools.reference import VALIDATION, filled, table
from waterfill.papers.claims import loading
from waterfill.papers.claims.experiment import Experiment
from waterfill.papers.claims.schema import VERDICTS

_MADE = "<!-- Made from papers/*/*/claims.toml by tools/paper_figures.py (make docs). -->"

# Every figure and table of the papers that shows data, and what it shows. Topologies, formats and
# pseudocode are left out.
SHOWN: Mapping[str, Mapping[str, str]] = {
    "maxnet-2007": {
        "Fig. 7": "rates in the two-hop experiment",
        "Fig. 8": "queues in the two-hop experiment",
        "Fig. 9": "rates of MaxNet and of a CBR flow",
        "Fig. 10": "spiral, tail and line for Fig. 10's case",
        "Fig. 11": "tail and spiral with Nyquist curves for several RTTs",
        "Fig. 12": "RCP's rates with 1, 9 and 49 flows",
    },
    "tcp-maxnet-2006": {
        "Fig. 7": "rates with and without averaging of prices",
        "Fig. 8": "window, ξ and RTT when the base RTT drops",
        "Fig. 10": "one flow at 1 Gbit/s",
        "Fig. 11": "a second flow joins and leaves",
        "Fig. 12": "three flows of unequal RTTs",
        "Fig. 13": "MaxNet next to UDP",
        "Fig. 14": "throughput of six TCPs with random loss",
    },
    "ixcp-2007": {
        "Fig. 2": "utilization and the short flow's share, XCP and iXCP",
        "Fig. 3": "queues and drops of the same runs",
        "Fig. 5": "utilization and rates over five hops",
        "Fig. 7": "rates and utilization with flows that come and go",
    },
    "aecp-2010": {
        "Fig. 1": "sigmoid curve against AIMD",
        "Fig. 6": "rates of four flows of unequal RTTs",
        "Fig. 7": "rates of ten flows, alone",
        "Fig. 8": "rates of ten flows with crossing traffic",
        "Fig. 10": "rates of four flows over three links",
        "Table 1": "utilization, loss and queue",
    },
    "xcp-tcp-2008": {
        "Fig. 2": "XCP among TCP flows, unprotected",
        "Fig. 3": "ten XCP and three TCP flows, protected",
        "Fig. 4": "the same with half of the packets inspected",
    },
}


def figures_page(experiments: Iterable[Experiment]) -> str:
    """Return the page that lists every figure of the papers with its drawing and its verdicts."""
    known = list(experiments)
    out = [
        _MADE,
        "# The papers' figures",
        "Every figure and table of the five papers that shows data, what `waterfill reproduce` "
        "draws for it, and the verdicts on record of the claims that name it. The figures "
        "themselves were lost when the papers became text: claims hold what the text says of them.",
        "A figure that no claim names has the claims of the experiment that draws it. "
        "[Claims](claims.md) has each claim, [readings](readings.md) what was tried.",
    ]
    head = ("paper's figure", "shows", "our figure", *VERDICTS)
    for paper, shown in SHOWN.items():
        own = [experiment for experiment in known if experiment.paper == paper]
        rows = [_row(figure, what, own) for figure, what in shown.items()]
        out += [f"## {paper}", table(head, rows)]
    return "\n\n".join(filled(part) for part in out) + "\n"


def _row(figure: str, what: str, experiments: Sequence[Experiment]) -> list[str]:
    """Return a figure's row: its drawings, linked to their experiments, and numbers of verdicts."""
    named = re.compile(re.escape(figure) + r"(?!\d)")
    ours = re.compile(re.escape(figure.lower().replace(". ", "ure-").replace(" ", "-")) + r"(?!\d)")
    drawing = {
        experiment.path: [f.name for f in experiment.figures if ours.match(f.name)]
        for experiment in experiments
    }
    claims = [c for e in experiments for c in e.claims if named.search(c.source)]
    claims = claims or [c for e in experiments if drawing[e.path] for c in e.claims]
    counts = Counter(claim.expect for claim in claims)
    drawn = "; ".join(
        f"[{path.partition('/')[2]}](../../papers/{path}/README.md): "
        + ", ".join(f"`{name}`" for name in names)
        for path, names in drawing.items()
        if names
    )
    none = "its cells are claims" if figure.startswith("Table") else "not drawn"
    return [figure, what, drawn or none, *(str(counts[verdict]) for verdict in VERDICTS)]


def pages() -> dict[Path, str]:
    """Return the generated page, by its path relative to the root."""
    return {VALIDATION / "figures.md": figures_page(loading.experiments())}
