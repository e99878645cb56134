"""Networks and traffic that others describe, and networks by rule, as scenario files.

Reading order: `layout` (links, flows, routes), `writing` (the scenario's text), `traffic` (who
sends to whom), `rules` (fat-tree, leaf-spine, …), a reader per format (`graph`, `sndlib`, `hpcc`,
`htsim`, `table`), and `build`, which joins them for the command line.
"""
