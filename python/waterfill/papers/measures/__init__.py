"""What claims measure: small named functions from a run to one number in SI units.

`claims.toml` names a measure and its arguments; `registry.MEASURES` lists them all, each with the
dimension of its answer. A flow's rate is what its receiver gets, headers included, and zero where
it has no sample. Every measure answers

- None when the run has no sample of what it asks for: the claim cannot be checked,
- infinity when what it waits for never happens,

and raises KeyError for a flow or link that the run does not have. The first argument is the run,
or all runs by name; computed measures have none. All others are keywords, `_s` seconds, `_bps`
bit/s.

`flows`, `links`, `signals` (any sampled column) and `equilibrium` measure a run, `theory` and
`convergence` compute, `several` compares runs; `single` lists those of one run or none.
"""
