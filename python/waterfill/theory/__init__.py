"""Analysis of the laws' equations: stability, margins, equilibria, convergence and encoding.

One file per topic. `loops` has what holds for every loop: frequency responses, margins, convex
hulls. The laws follow: `maxnet` and `certificate` (maxnet-2007 §VIII), `tuning` (§VIII.E), `aecp`
and `sampled` (aecp-2010 §4, and the loop with its sampling times), `xcp`, `rcp`, `vcp`,
`accel_brake` (abc-2020), `jetmax`, `encoding` (header fields). `allocation` and `equilibrium` are
about networks: max-min shares, and the fixed point of XCP, iXCP and P-XCP. `subject` reads what a
command analyses, `stability` and `documents` build what `--json` prints, `plots` the figures.

Frequencies are in rad/s, times in s, rates in bit/s; gains have no unit.
"""
