"""Measures of claims: small named functions that return one value in SI units.

`claims.toml` names a measure and its arguments; `registry.MEASURES` lists them all, each with its
dimension. A flow's rate is what its receiver gets, headers included, and zero where it has no
sample. Every measure returns

- None if the run has no sample of the quantity: the claim cannot be checked,
- infinity if the event it waits for never happens,

and raises KeyError for a flow or link that the run does not have. The first argument is the run, or
all runs by name; computed measures have none. All others are keywords: `_s` in seconds, `_bps` in
bit/s.

`flows`, `links`, `signals` (any sampled column) and `equilibrium` measure a run, `theory` and
`convergence` compute from the equations, `several` compares runs. `single` lists the measures of
one run or none.
"""
