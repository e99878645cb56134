"""What few bits of price cost: `make price-bits`.

    python -m validation.price_bits [LAW …] [-o DIR]

Routers write a signal that stands for a rate. CSIG's compact tag has 5 bits for it, SCONE 7, CSIG's
wide tag 20, and MaxNet's option 23 and a flag. `code_bits` of a law gives its signal so many bits,
in bands of one width in the logarithm of the rate. `theory` predicts what that does to a loop,
`cases` measures it in the simulator, `claims` compares both, `report` writes a table and a figure.

Runs are kept in the cache (`waterfill.runs.cache`), so that a second run resumes.
"""
