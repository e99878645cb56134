"""The papers' experiments: claims, the measures they use, verdicts and the report.

Reading order: `chance`, `claims`, `reproduce`, `claim_text`, `report`; the measures are in
`waterfill.analysis.metrics`, `signals`, `sweeps` and `measures_*`.
"""
