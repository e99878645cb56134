"""Steps of the laws' fixed-point C to check: logs of the kernel, drawn calls and mutants."""
