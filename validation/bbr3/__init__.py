"""The 22 test cases of draft-ietf-ccwg-bbr's appendix A, on the packet simulator.

Reading order: `paths` (path, flow, and the states seen over time), `cases` (a function per test
case), `study` (cells, table, verdict).
"""
