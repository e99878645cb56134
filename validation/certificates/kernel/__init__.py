"""Steps of the laws' fixed-point C, from kernel logs, random calls and mutants."""
