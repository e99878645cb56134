"""Sweeps: many runs of one scenario over grids, random draws, protocols and seeds.

`axes` and `points` say what to run, `child` and `worker` run one point within limits, `cluster`
finds the workers, `engine` hands points out and records rows in a `dataset`, `table` and `figure`
show them. `api.sweep` is `waterfill.sweep`. Dask is imported only when a sweep starts.
"""
