"""The network of a scenario: protocols, routes, base RTTs, buffers and max-min shares.

Reading order: `protocols` (what the core says of the laws), `resolve` (a scenario to what the core
runs), `maxmin` (fair shares over time), `shares` (those of a scenario).
"""
