"""Sources of steps of the laws' fixed-point C: kernel logs, random calls and mutants."""
