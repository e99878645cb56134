"""Running a scenario and what comes of it.

Reading order: `result`, `progress`, `backend` (what every backend does), `engine` (sim and fluid),
`backends` (all by name, and `run`), `pool` (many runs at once), `cache` (kept runs).
"""
