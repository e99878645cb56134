"""A scenario: the one file that describes a run.

Reading order: `units` (quantities with units), `distributions` (sizes, lengths), `queue_params` and
`links` (queues, faults, rate traces), `document` (the models, their checks, TOML, JSON Schema).
`python -m waterfill.scenario` prints the JSON Schema.
"""
