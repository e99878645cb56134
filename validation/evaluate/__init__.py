"""What the evaluation suites find: laws whose verdicts are known, and laws with a planted fault."""
