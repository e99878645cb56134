"""Fuzzing of the inputs of the Python side: `make fuzz TARGET=python OPTIONS=scenario`.

Each target takes bytes, makes a document from them, and reads it as a command would. The outcome is
a result or one sentence; a traceback, a hang, or memory without bounds is a finding.

Reading order: `choices` (decisions from bytes), `mutate` (valid documents, changed), `outcome`
(what may happen), `texts`, `folders` and `models` (the targets), `__main__` (runs them).
"""
