"""Runs of a scenario and their results.

Reading order: `result`, `progress`, `backend` (what every backend does), `engine` (sim and fluid),
`backends` (all by name, and `run`), `pool` (many runs at once), `cache` (kept runs).
"""
