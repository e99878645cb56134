"""Proofs by z3: wire codecs, the laws' fixed-point C, MaxNet's source, and MaxNet's equilibrium.

To read in this order:

- `c_source`: the C headers as clang's syntax tree, so that a changed header is what is proved;
- `machine`: executes functions of that tree over one of three kinds of numbers;
- `integers`: unbounded integers, where each operation that could wrap or lose bits must be proved
  not to;
- `bits`: bit-vectors and plain numbers, with C's wrapping semantics;
- `contracts`: what the shared functions of `fixed.h` and `float.h` require and ensure, and their
  proofs;
- `ranges`: the ranges of each law's structures, as its header states them;
- `kernels`: every law's functions over those ranges; `differential`: the same tree against compiled
  C;
- `codecs`, `source`, `equilibrium`: the other theorems;
- `study`: the list of theorems.
"""
