"""The steps of all tours as HTML, made by one component."""

from __future__ import annotations

from html import escape

from waterfill.network import resolve
from waterfill.studio import chart, equations, filling, numbers, nyquist, panels, topology
from waterfill.studio.answer import Answer
from waterfill.studio.settings import known, to_query
from waterfill.studio.tours import Step, Tour


def render(tour: Tour, place: int, given: Answer) -> str:
    """Return one step of a tour as HTML, with the results of the step's run. `place` counts from
    0.
    """
    step = tour.steps[place]
    paragraphs = "".join(f"<p>{escape(text)}</p>" for text in step.text.split("\n"))
    look = f'<p class="wf-look"><b>Look at:</b> {escape(step.look)}</p>' if step.look else ""
    last = place + 1 == len(tour.steps)
    nearly = "This is the last step: Next completes the tour." if last else ""
    return (
        f'<article class="wf-step" aria-live="polite"><p class="wf-note">{escape(tour.title)} · '
        f"step {place + 1} of {len(tour.steps)} · {tour.minutes} minutes</p>"
        f"<h2>{escape(step.title)}</h2>{paragraphs}{look}{_question(step)}"
        f'<p class="wf-note">{escape(nearly)} <a class="wf-a" '
        f'href="?{escape(to_query(step.settings))}">Change this run with sliders</a></p>'
        f"{_stated(step, given)}</article>"
        f'<p class="wf-note">{escape(given.note)}</p>{_charts(step, given)}'
    )


def complete(tour: Tour) -> str:
    """Return the HTML that follows the last step of a tour."""
    links = "".join(
        f'<li><a class="wf-a" href="?{escape(to_query(step.settings))}">'
        f"{escape(step.title)}</a></li>"
        for step in tour.steps
    )
    return (
        f'<article class="wf-step" role="status" id="wf-complete"><h2>Tour complete</h2>'
        f"<p>{escape(tour.title)}: all {len(tour.steps)} steps. Their runs, to be changed:</p>"
        f"<ul>{links}</ul><p>Choose another tour above, or Back to see the last step again.</p>"
        "</article>"
    )


def _question(step: Step) -> str:
    if not step.question:
        return ""
    return (
        f'<details class="wf-question"><summary>{escape(step.question)}</summary>'
        f"<p>{escape(step.answer)}</p></details>"
    )


def _stated(step: Step, given: Answer) -> str:
    """Return a table of the numbers in a step's text next to the numbers measured in its run, or an
    empty text without numbers.
    """
    if not step.numbers:
        return ""
    rows = []
    for number in step.numbers.values():
        value = numbers.measured(number, given)
        what = f"{number.of.replace('-', ' ')} {number.which}".strip()
        rows.append((escape(what), escape(number.text()), f"{value:.4g}"))
    table = panels.html_table(("measure", "in the text", "in this run"), rows, "Numbers above")
    return f"<details><summary>Numbers of this step, as just measured</summary>{table}</details>"


def _charts(step: Step, given: Answer) -> str:
    result = given.result
    parts = []
    for what in step.show:
        if what == "network":
            parts.append(topology.draw(step.settings.load()))
        elif what == "filling":
            network = resolve.to_core(step.settings.load(), known())
            parts.append(filling.draw(network, step.level))
        elif what in ("rates", "queues", "signal"):
            place = ("rates", "queues", "signal").index(what)
            parts += [chart.render(one) for one in panels.all_charts(result)[place : place + 1]]
        elif what == "nyquist":
            _, curves, rtt_s = nyquist.of_result(result)
            sentences = "".join(
                f'<p class="wf-note">{escape(text)}</p>' for text in nyquist.sentences(curves)
            )
            parts.append(chart.render(nyquist.chart(curves, rtt_s)) + sentences)
        elif what == "equation":
            protocol = result.network.flows[0].protocol
            parts.append(
                f"<h3>{escape(protocol)} at {given.ran_s:.3g} s</h3>"
                + equations.at(result, protocol, given.ran_s, step.link)
            )
        else:
            parts.append(panels.table(result))
    cards = "".join(f'<div class="wf-card">{part}</div>' for part in parts)
    return f'<div class="wf-grid2">{cards}</div>'
