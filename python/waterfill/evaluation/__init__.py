"""Evaluation of a congestion-control law by a suite of criteria, such as those of RFC 9743.

A suite is a folder with a suite.toml, one CRITERION.toml for each criterion, and scenarios. The
laws' runs, their cache and the verdicts on limits are those of `waterfill.papers`: a limit is a
claim, which is *reproduced* if the law meets the limit.

Reading order: `schema` (the files' keys), `suites` (reads and checks them), `plan` (suite × law ×
rivals → scenarios), `engine` (runs them with as many seeds as the precision needs), `verdict` (from
cells to criteria), `boundary` (where a verdict changes), `output` (files), `api`.
"""
