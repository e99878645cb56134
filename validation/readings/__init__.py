"""Compare different readings of passages that the papers leave open.

A grid has axes, one per open question of a paper, and options per axis, one per reading. Each cell
is one option per axis; it runs the grid's experiments and judges all their claims. The table has
every cell. A reading is adopted for a whole paper, by the rule in docs/validation/verdicts.md.

One module per paper; each lists its grids in `GRIDS`.
"""
