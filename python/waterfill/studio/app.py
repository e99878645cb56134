# /// script
# [tool.marimo.display]
# theme = "system"
# ///
"""The studio's page: a marimo notebook of widgets; what they show comes from plain modules."""

import marimo

app = marimo.App(width="full", app_title="Waterfill studio", css_file="studio.css")

with app.setup:
    import marimo as mo

    from waterfill.studio import page


@app.cell(hide_code=True)
def head():
    session, begun_with = page.begin(mo.query_params().to_dict())
    # `values`: a number changed. `shape`: other widgets are needed, too.
    values, set_values = mo.state(0)
    shape, set_shape = mo.state(0)

    def changed(reshape=False):
        set_values(lambda n: n + 1)
        if reshape:
            set_shape(lambda n: n + 1)

    mo.Html(page.head(begun_with))
    return changed, session, shape, values


@app.cell(hide_code=True)
def chooser(changed, session, shape):
    shape()

    def choose(chosen):
        session.select(chosen)
        changed(reshape=True)

    selects = mo.ui.dictionary(
        {
            one.key: mo.ui.dropdown(list(one.words), value=one.start, label=one.label)
            for one in session.selects()
        },
        on_change=choose,
    )
    mo.vstack(list(selects.values()))
    return


@app.cell(hide_code=True)
def sliders(changed, session, shape):
    shape()

    wanted = session.controls()

    def move(shown):
        changed(reshape=session.move(shown, wanted))

    def widget(one):
        if isinstance(one, page.Choice):
            return mo.ui.dropdown(list(one.words), value=one.start, label=one.label)
        return mo.ui.slider(
            steps=[step.shown for step in one.steps],
            value=one.steps[one.start].shown,
            label=one.label,
            show_value=True,
            full_width=True,
        )

    controls = mo.ui.dictionary({one.key: widget(one) for one in wanted}, on_change=move)
    mo.Html(page.sliders(session, {key: one.text for key, one in controls.items()}))
    return


@app.cell(hide_code=True)
def buttons(changed, session, shape):
    shape()
    actions = mo.ui.dictionary(
        {
            name: mo.ui.button(label=label, value=0, on_click=lambda n: n + 1)
            for name, label in session.actions().items()
        },
        on_change=lambda counts: (session.act(counts), changed(reshape=True)),
    )
    files = [
        mo.download(lambda: page.toml_file(session), filename="scenario.toml", label="TOML"),
        mo.download(lambda: page.svg_file(session), filename="charts.svg", label="SVG"),
    ]
    mo.hstack([*actions.values(), *files], justify="start", wrap=True)
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
