"""Programs that compare Waterfill with theory, with kernels and with itself. Not shipped.

Run each from the root of the checkout: `python -m validation.NAME`. `cohabit` runs explicit
protocols beside TCPs, `threads` compares runs on several threads with one, `kills` ends commands by
signals and checks what they leave, `seeds` repeats the papers' verdicts with other seeds,
`fluid_vs_sim` compares the fluid model with the simulator, `equilibria` fixed points with the
simulator, `ns2_peers` RCP, VCP and XCP with their authors' code, `stability_vs_fluid` linear
analysis with fluid runs, `readings` judges the papers' claims under other readings, `fct` measures
completion times of flows in data centres, `fct.ns3` gives the same flows to ns-3. `link_events`
shows how laws follow a link that changes, `abc_traces` ABC and others on cellular traces,
`topologies` compares laws with max-min on real networks, `mutants` changes laws and runs their
tests, `coverage` counts the lines that tests run, `proofs` proves codecs, fixed-point C and
MaxNet's equilibrium by z3. `testbed`, `trace_link` and `soak` are for Linux, as root.
"""
