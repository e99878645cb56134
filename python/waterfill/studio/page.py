"""The studio's page as HTML, built from a session's choices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from waterfill.analysis.charts import Chart
from waterfill.errors import InputError
from waterfill.studio import (
    animation,
    chart,
    equations,
    nyquist,
    panels,
    topology,
    tour_page,
)
from waterfill.studio.answer import Answer
from waterfill.studio.session import Session


def head(wrong: str) -> str:
    """Return the page's title, followed by the error in the page's query if there is one."""
    box = f'<div class="wf-error" role="alert">{escape(wrong)}</div>' if wrong else ""
    return (
        '<div class="wf-head"><h1>Waterfill studio</h1><p class="wf-note">Explicit congestion '
        f"control at the touch of a slider.</p></div>{box}"
    )


def chooser(widgets: Mapping[str, str]) -> str:
    """Return the selection lists in two groups: for tours, and for the visitor's own run."""
    parts = []
    for key, widget in widgets.items():
        kind = {"show": "", "tour": "wf-for-tours"}.get(key, "wf-for-runs")
        parts.append(f'<div class="{kind}">{widget}</div>')
    return f'<div class="wf-controls">{"".join(parts)}</div>'


def buttons(runs: Sequence[str], turns: Sequence[str], moment: str) -> str:
    """Return the buttons of a run, the slider for its moment, and the buttons of a tour."""
    return (
        f'<div class="wf-buttons wf-for-runs">{"".join(runs)}</div>'
        f'<div class="wf-for-charts">{moment}</div>'
        f'<div class="wf-buttons wf-for-tours">{"".join(turns)}</div>'
    )


def sliders(session: Session, widgets: Mapping[str, str]) -> str:
    """Return the controls as HTML, or an empty text without controls. Parameters outside the
    equation are folded.
    """
    if not widgets:
        return ""
    protocol = next((k.split(".")[1] for k in widgets if k.startswith("params.")), "")
    main = {f"params.{protocol}.{name}" for name in equations.main_params(protocol)}
    first = [w for k, w in widgets.items() if not k.startswith("params.")]
    law = [w for k, w in widgets.items() if k in main]
    rest = [w for k, w in widgets.items() if k.startswith("params.") and k not in main]
    parts = [f'<div class="wf-controls">{"".join(first)}</div>']
    if law:
        parts.append(f'<h2>{escape(protocol)}</h2><div class="wf-controls">{"".join(law)}</div>')
    if rest:
        parts.append(
            f"<details><summary>{'More' if law else 'Its'} parameters of {escape(protocol)}"
            f'</summary><div class="wf-controls">{"".join(rest)}</div></details>'
        )
    return f'<div class="wf-for-runs">{"".join(parts)}</div>'


def error(problem: InputError) -> str:
    """Return an error in the settings as an HTML box."""
    return f'<div class="wf-error" role="alert">{escape(str(problem))}</div>'


def results(session: Session) -> str:
    """Return the content of the chosen page: a tour's step, the replay, or charts and tables."""
    try:
        if session.show == "tours":
            html = _tour(session)
        elif session.show == "animation":
            html = _animation(session.answer())
        elif session.pinned is None:
            html = _single(session, session.answer())
        else:
            html = _pair(session.answer(session.pinned), session.answer())
    except InputError as problem:
        html = error(problem)
    return (
        f'<div id="wf-results" data-show="{session.show}" '
        f'data-query="{escape(session.query())}">{html}</div>'
    )


def _tour(session: Session) -> str:
    tour = session.current_tour()
    if session.step >= len(tour.steps):
        return tour_page.complete(tour)
    settings = tour.steps[session.step].settings
    return tour_page.render(tour, session.step, session.answer(settings, whole=True))


def _animation(given: Answer) -> str:
    why = animation.fits(given)
    if why:
        return f'<p class="wf-note">{escape(why)}</p>'
    document = escape(animation.document(given))
    return (
        f'<p class="wf-note">{escape(given.note)}</p><iframe class="wf-frame" '
        f'title="Packets, queues and prices of this run" srcdoc="{document}"></iframe>'
    )


def charts_of(given: Answer) -> list[Chart]:
    """Return all charts of a run. The Nyquist chart is last, if the protocol has a loop."""
    found = panels.all_charts(given.result)
    _, curves, rtt_s = nyquist.of_result(given.result)
    return [*found, nyquist.chart(curves, rtt_s)] if curves else found


def margins(given: Answer) -> str:
    """Return sentences on the margins of the run's loops, or an empty text without a loop."""
    _, curves, _ = nyquist.of_result(given.result)
    sentences = nyquist.sentences(curves)
    return "".join(f'<p class="wf-note">{escape(text)}</p>' for text in sentences)


def _single(session: Session, given: Answer) -> str:
    charts = charts_of(given)
    parts = [card(chart.render(one)) for one in charts]
    loop = margins(given)
    if loop:
        parts[-1] = card(chart.render(charts[-1]) + loop)
    parts.insert(1, card(equation(session, given)))
    parts += [card(network(given)), card(panels.table(given.result))]
    return f'<p class="wf-note">{escape(given.note)}</p>' + grid(parts)


def equation(session: Session, given: Answer) -> str:
    """Return the equation of the run's first protocol at the session's moment."""
    time_s = session.moment * given.ran_s
    protocol = given.result.network.flows[0].protocol
    return f"<h3>{escape(protocol)} at {time_s:.3g} s</h3>" + equations.at(
        given.result, protocol, time_s
    )


def _pair(beside: Answer, now: Answer) -> str:
    """Return two runs in two columns on common axes: A is the pinned run, B the current one."""
    a, b = charts_of(beside), charts_of(now)
    parts = [
        f'<div class="wf-card"><h3>A, pinned: {escape(title(beside))}</h3>'
        f'<p class="wf-note">{escape(beside.note)}</p></div>',
        f'<div class="wf-card"><h3>B, now: {escape(title(now))}</h3>'
        f'<p class="wf-note">{escape(now.note)}</p></div>',
    ]
    for i in range(max(len(a), len(b))):
        pair = (a[i : i + 1], b[i : i + 1])
        if pair[0] and pair[1]:
            left, right = chart.on_common_axes(pair[0][0], pair[1][0])
            pair = [left], [right]
        parts += [card("".join(chart.render(one) for one in side)) for side in pair]
    parts += [card(margins(one) + panels.table(one.result)) for one in (beside, now)]
    return grid(parts)


def title(given: Answer) -> str:
    """Return a short description of a run: scenario, protocol and changed keys."""
    settings = given.settings
    used = dict.fromkeys(flow.protocol for flow in given.result.summary.flows)
    changes = [f"{key} = {value}" for key, value in settings.sets]
    return ", ".join([settings.scenario, "+".join(used), *changes])


def network(given: Answer) -> str:
    """Return the drawing of the network, with link loads averaged over the measured window."""
    loads = {link.name: link.utilization or 0.0 for link in given.result.summary.links}
    return topology.draw(given.settings.load(), loads)


def card(html: str) -> str:
    """Return HTML in a box of the page's grid."""
    return f'<div class="wf-card">{html}</div>'


def grid(parts: list[str]) -> str:
    """Return boxes in two columns, or in one column on a narrow page."""
    return f'<div class="wf-grid2">{"".join(parts)}</div>'


def svg_file(session: Session) -> bytes:
    """Return the current run's charts as one SVG file."""
    given = session.answer()
    return chart.file(charts_of(given), title(given)).encode()


def toml_file(session: Session) -> bytes:
    """Return the current scenario with all changes as a TOML file."""
    return session.settings.load().to_toml().encode()


def share(session: Session) -> str:
    """Return the link that restores the page, and the command that repeats its run."""
    query = session.query()
    command = escape(session.settings.command())
    return (
        f'<p class="wf-note">Link to this state: <a class="wf-a" id="wf-state" '
        f'href="?{escape(query)}">?{escape(query)}</a></p>'
        f'<p class="wf-note wf-for-runs">The same in a terminal, once it is saved as S.toml: '
        f'<code class="wf-code">{command}</code></p>'
    )


def animation_file(session: Session) -> bytes:
    """Return the replay of the current run as an HTML file."""
    return animation.document(session.answer()).encode()


def drawing(widgets: Mapping[str, str], resize: Sequence[str]) -> str:
    """Return the form of the drawn network, a box of fields for each link and flow, or an empty
    text without a drawing.
    """
    if not widgets:
        return ""
    rows: dict[str, list[str]] = {}
    for key, widget in widgets.items():
        kind, number, _ = key.split(".")
        rows.setdefault(f"{kind.capitalize()} {int(number) + 1}", []).append(widget)
    parts = [
        f'<fieldset class="wf-row"><legend>{escape(name)}</legend>{"".join(fields)}</fieldset>'
        for name, fields in rows.items()
    ]
    parts.append(f'<div class="wf-buttons">{"".join(resize)}</div>')
    return f'<div class="wf-for-runs">{"".join(parts)}</div>'
