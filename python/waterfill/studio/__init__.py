"""The studio: scenarios, guided tours and an animated view in a browser (`waterfill studio`).

Reading order: `settings` (what is chosen, as a URL), `answer` (how it is run at once), `panels`
and `nyquist` (what is drawn), `tours`. All of it is plain Python; `app` is the marimo notebook that
puts it on a page, `serve` starts it, and only these two import marimo.
"""
