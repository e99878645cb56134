"""The papers' experiments: claims, the measures they use, verdicts and the report.

Reading order: `measures` (what a claim can measure), `figures` (what it can draw), `claims` (the
file, its verdicts), `reproduce` (runs them), `report` (one page of all).
"""
