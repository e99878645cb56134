"""Metrics of time series, comparisons of runs, response functions and plots."""
