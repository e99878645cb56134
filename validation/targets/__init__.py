"""Comparison of results between targets: CPUs, C libraries and instruction sets."""
