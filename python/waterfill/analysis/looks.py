"""Styles of figures: sizes of text and lines for the screen, a paper or a slide, and the palette.

The first seven colours are Okabe and Ito's without yellow, which white paper hides: distinguishable
with any colour vision. Darker shades of them follow. Dashes differ too, for black-and-white prints.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from waterfill.errors import InputError, nearest, shown

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
# A second line named after a colour, or an eighth line, is darker; black's shade is lighter.
_SHADES = ("#4B2E9E", "#8B3A0E", "#0B5D3B", "#9B1F6F", "#7D6B00", "#1C8CA8", "#6E6E6E")
_DASHES = ("-", "--", "-.", ":")
GREY, SHARE = "#8A8A8A", "#BBBBBB"


@dataclass(frozen=True)
class Look:
    """One style: sizes of text (pt) and lines, the width of a figure (inches), what is drawn.

    `width` is None where a figure has its own width. A figure without `words` has neither a title
    nor a caption, which belong into a paper's text. `spread` stacks few charts in two columns.
    """

    font_pt: float = 10.0
    line: float = 1.4
    width: float | None = None
    height: float | None = None
    words: bool = True
    spread: bool = False
    dpi: int = 150
    formats: tuple[str, ...] = ("png", "svg")

    @property
    def em(self) -> float:
        """Size of text in inches."""
        return self.font_pt / 72

    def rc(self) -> dict[str, Any]:
        """Return matplotlib's settings for this style."""
        thin = 0.5 * self.line
        return {
            "font.size": self.font_pt, "axes.linewidth": thin, "grid.linewidth": thin,
            "lines.linewidth": self.line, "xtick.major.width": thin, "ytick.major.width": thin,
            "legend.fontsize": self.font_pt, "axes.labelsize": self.font_pt,
            "xtick.labelsize": self.font_pt, "ytick.labelsize": self.font_pt,
            "axes.titlesize": self.font_pt,
        }  # fmt: skip


_PDF = ("pdf", "png", "svg")
SCREEN = Look()
LOOKS = {
    "screen": SCREEN,
    "paper": Look(8.0, 1.0, width=3.33, words=False, dpi=300, formats=_PDF),
    "paper-wide": Look(8.0, 1.0, width=7.0, words=False, spread=True, dpi=300, formats=_PDF),
    "slide": Look(16.0, 2.4, width=13.33, height=7.5, spread=True, formats=_PDF),
}


def look(name: str) -> Look:
    """Return a style by name. Raises InputError for an unknown one."""
    if name not in LOOKS:
        given = f"unknown style {shown(name)}{nearest(name, LOOKS)}"
        raise InputError("command line", "style", given, f"type one of {', '.join(LOOKS)}")
    return LOOKS[name]


def style(place: int) -> dict[str, Any]:
    """Return the colour and dashes of a palette index: 14 colours, and 28 different looks."""
    turn, colour = divmod(place, len(COLOURS))
    shades = (COLOURS, _SHADES)[turn % 2]
    return {"color": shades[colour], "linestyle": _DASHES[(colour + turn) % len(_DASHES)]}


def named_styles(names: Sequence[str]) -> list[dict[str, Any]]:
    """Return the colour and dashes of each line. A line named after a colour has that colour."""
    from waterfill.analysis import charts  # which loads numpy; the commands only need the styles

    return [style(place) for place in charts.colours_of(names)]


def printable(text: str) -> str:
    """Return a text for a figure, without characters that XML does not allow."""
    return "".join(
        "\ufffd"
        if c < " " or "\x7f" <= c <= "\x9f" or "\ud800" <= c <= "\udfff" or c in "\ufffe\uffff"
        else c
        for c in text
    )
