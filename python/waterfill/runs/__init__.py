"""Running a scenario and what comes of it.

Reading order: `progress`, `result`, `backends` (`run` on sim, fluid or linux), `cache` (kept runs).
"""
