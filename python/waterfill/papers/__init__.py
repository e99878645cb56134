"""Experiments of papers: their claims, measures, verdicts and report.

Reading order: `measures` (what a claim can measure), `figures` (what an experiment can draw),
`claims` (the file, and its verdicts), `reproduce` (runs everything), `output` (what is written),
`report` (one page with all results).
"""
