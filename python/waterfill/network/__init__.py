"""The network of a scenario: protocols, routes, base RTTs, buffers and max-min shares.

Reading order: `protocols` (the registry's descriptions), `resolve` (a scenario to what the core
runs), `maxmin` (fair shares over time), `shares` (those of a scenario).
"""
