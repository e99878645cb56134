"""Certificates: recompute every logged step of a law from the equations of the law's paper.

Reading order: `log` (the format), `rounding` (exact numbers with a bound of rounding), `replay`
(each step again, state by state), then a law's equations, such as `maxnet`, next to its paper;
`study` runs them. Nothing here calls a law: the equations are written a second time.
"""
