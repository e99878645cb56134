"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable


def markdown(head: str, rows: Iterable[Iterable[object]]) -> str:
    """Return a Markdown table. `head` lists the titles, as in `law|rate:`, where a colon marks a
    column of numbers.
    """
    titles = head.split("|")
    rule = "|".join("--:" if title.endswith(":") else "---" for title in titles)
    cells = [[title.removesuffix(":") for title in titles], *rows]
    first, *others = (f"| {' | '.join(map(str, row))} |" for row in cells)
    return "\n".join([first, f"|{rule}|", *others])
