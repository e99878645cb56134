"""Scenario files from networks and traffic in other formats, and from networks built by rule.

Reading order: `layout` (links, flows, routes), `writing` (the scenario's text), `traffic` (who
sends to whom), `rules` (fat-tree, leaf-spine, …), a reader per format (`graph`, `sndlib`, `hpcc`,
`htsim`, `clos`, `repetita`, `rocketfuel`, `table`), and `build`, which joins them for the command
line.
"""
