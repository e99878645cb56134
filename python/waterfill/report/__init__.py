"""The page of a directory that Waterfill wrote: a run, a comparison, a sweep, a reproduction.

Reading order: `detect` (what a directory holds), `run`, `comparison`, `sweep` and `reproduction`
(what their pages say), `binning`, `charts`, `topology` and `tables` (how), `page` (HTML by jinja2).
"""
