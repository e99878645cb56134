# /// script
# [tool.marimo.display]
# theme = "system"
# ///
"""The studio's page: a marimo notebook of widgets. Plain modules compute their content."""

import marimo

app = marimo.App(width="full", app_title="Waterfill studio", css_file="studio.css")

with app.setup:
    import marimo as mo

    from waterfill.studio import drawn, page
    from waterfill.studio.controls import Choice
    from waterfill.studio.session import ACTIONS, Session


@app.cell(hide_code=True)
def head():
    session, wrong = Session.begin(mo.query_params().to_dict())
    # A change of `values` needs new results, of `shape` new sliders, of `rows` a new form.
    # Widgets of a cell may ask for their own cell again: other sliders for another link.
    values, set_values = mo.state(0)
    shape, set_shape = mo.state(0, allow_self_loops=True)
    rows, set_rows = mo.state(0, allow_self_loops=True)

    def changed(reshape=False, redraw=False):
        set_values(lambda n: n + 1)
        if reshape:
            set_shape(lambda n: n + 1)
        if redraw:
            set_rows(lambda n: n + 1)

    def button(label):
        return mo.ui.button(label=label, value=0, on_click=lambda n: n + 1)

    def texts(widgets):
        return {key: one.text for key, one in widgets.items()}

    mo.Html(page.head(wrong))
    return button, changed, rows, session, shape, texts, values


@app.cell(hide_code=True)
def chooser(changed, session, texts):
    selects = mo.ui.dictionary(
        {
            one.key: mo.ui.dropdown(list(one.words), value=one.start, label=one.label)
            for one in session.selects()
        },
        on_change=lambda chosen: changed(reshape=session.select(chosen), redraw=True),
    )
    mo.Html(page.chooser(texts(selects)))
    return


@app.cell(hide_code=True)
def buttons(button, changed, session, texts):
    actions = mo.ui.dictionary(
        {name: button(label) for name, label in ACTIONS.items()},
        on_change=lambda clicks: changed(reshape=session.act(clicks)),
    )
    turns = mo.ui.dictionary(
        {"back": button("Back"), "next": button("Next")},
        on_change=lambda clicks: changed(session.turn(clicks)),
    )
    files = [
        mo.download(lambda: page.toml_file(session), filename="scenario.toml", label="TOML"),
        mo.download(lambda: page.svg_file(session), filename="charts.svg", label="SVG"),
        mo.download(lambda: page.animation_file(session), filename="replay.html", label="Replay"),
    ]
    moment = mo.ui.slider(
        0, 100, value=100, label="Equation at (% of the run)", show_value=True, full_width=True,
        on_change=lambda percent: changed(session.look_at(percent)),
    )  # fmt: skip
    mo.Html(
        page.buttons(
            [*texts(actions).values(), *(file.text for file in files)],
            list(texts(turns).values()),
            moment.text,
        )
    )
    return


@app.cell(hide_code=True)
def drawing(button, changed, rows, session, texts):
    rows()
    fields = mo.ui.dictionary(
        {
            key: mo.ui.text(value=text, full_width=True, label=label)
            for key, (label, text) in session.fields().items()
        },
        on_change=lambda shown: changed(reshape=session.draw(shown)),
    )
    resize = mo.ui.dictionary(
        {key: button(label) for key, label in drawn.CHANGES.items()},
        on_change=lambda clicks: changed(reshape=session.resize(clicks), redraw=True),
    )
    mo.Html(page.drawing(texts(fields), list(texts(resize).values())))
    return


@app.cell(hide_code=True)
def sliders(changed, session, shape, texts):
    shape()
    wanted = session.controls()

    def widget(one):
        if isinstance(one, Choice):
            return mo.ui.dropdown(list(one.words), value=one.start, label=one.label)
        return mo.ui.slider(
            steps=[step.shown for step in one.steps],
            value=one.steps[one.start].shown,
            label=one.label,
            show_value=True,
            full_width=True,
        )

    controls = mo.ui.dictionary(
        {one.key: widget(one) for one in wanted},
        on_change=lambda shown: changed(reshape=session.move(shown, wanted)),
    )
    mo.Html(page.sliders(session, texts(controls)))
    return


@app.cell(hide_code=True)
def share(session, values):
    values()
    mo.Html(page.share(session))
    return


@app.cell(hide_code=True)
def results(session, values):
    values()
    mo.Html(page.results(session))
    return


if __name__ == "__main__":
    app.run()
