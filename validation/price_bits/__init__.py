"""Measure the effect of a coarse price encoding on load, queue and fairness.

Routers write a signal that stands for a rate. CSIG's compact tag has 5 bits for it, SCONE 7, CSIG's
wide tag 20, and MaxNet's option 23 and a flag. `code_bits` of a law gives its signal so many bits,
in bands of one width in the logarithm of the rate. `theory` predicts what that does to a loop,
`cases` measures it in the simulator, `claims` compares both, `report` makes tables and a figure,
`kernel` repeats some of it with the daemon.
"""
