"""Report page for a directory of results: a run, a comparison, a sweep or a reproduction.

Reading order: `detect` (what a directory holds), `run`, `comparison`, `sweep` and `reproduction`
(what their pages say), `binning`, `charts`, `topology` and `tables` (how), `page` (HTML by jinja2).
"""
