"""Programs that hold Waterfill against theory, kernels and itself. Not shipped.

Each is run from the root of the checkout: `python -m validation.NAME`. `cohabit` (explicit
protocols beside TCPs), `seeds` (verdicts under other seeds), `fluid_vs_sim`, `equilibria` (fixed
points beside the simulator), `stability_vs_fluid` (linear verdicts beside fluid runs), `testbed`
(on Linux, as root).
"""
