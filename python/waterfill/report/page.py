"""Pages as single HTML files, built from jinja2 templates with autoescape.

A page's script and style are in it; plotly's script is compressed, and the browser inflates it. A
content security policy allows these two scripts by their hashes and nothing else, so that a name in
a result can never run as one.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections.abc import Iterable
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from markupsafe import Markup

from waterfill._core import version
from waterfill.report import charts as data
from waterfill.report.topology import LEVELS
from waterfill.runs.result import Document, to_json

if TYPE_CHECKING:
    import jinja2

    from waterfill.analysis.charts import Chart

# A page quotes up to this much of a scenario and of its configuration.
_MAX_QUOTED = 300_000


def render(template: str, content: Document) -> str:
    """Return a page as HTML, built from a template and its `content`."""
    charts: list[Chart] = content["charts"]
    page_script = _static("page.js")
    policy = (
        f"default-src 'none'; script-src {_allowed(page_script)} {_allowed(_plotly())}; "
        "style-src 'unsafe-inline'; img-src data: blob:"
    )
    return (
        _environment()
        .get_template(template)
        .render(
            **content,
            version=version(),
            policy=policy,
            style=Markup(_static("page.css")),
            script=Markup(page_script),
            plotly=_packed() if charts else "",
            payload=payload(charts),
            max_legend=data.MAX_LEGEND,
            levels=LEVELS,
        )
    )


def payload(charts: Iterable[Chart]) -> Markup:
    """Return charts as JSON that is safe in a script element, without `<`, `>` or `&`."""
    document = {chart.key: data.payload(chart) for chart in charts}
    text = to_json(document, indent=None)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


@cache
def _environment() -> jinja2.Environment:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("waterfill.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["quoted"] = _quoted
    environment.filters["numbers"] = data.numbers
    return environment


def _quoted(text: str) -> str:
    """Return a text. If the text is too long for a page, cut it and add a note."""
    if len(text) <= _MAX_QUOTED:
        return text
    left = len(text) - _MAX_QUOTED
    return f"{text[:_MAX_QUOTED]}\n… and {left:,} more characters in the file"


@cache
def _static(name: str) -> str:
    file = resources.files("waterfill.report") / "static" / name
    return file.read_text(encoding="utf-8").strip()


@cache
def _plotly() -> str:
    from plotly.offline import get_plotlyjs

    script: str = get_plotlyjs()
    return script


@cache
def _packed() -> str:
    # Without a time: the same results give the same page.
    packed = gzip.compress(_plotly().encode("utf-8"), compresslevel=9, mtime=0)
    return base64.b64encode(packed).decode("ascii")


@cache
def _allowed(script: str) -> str:
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
