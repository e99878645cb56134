"""Command that prints the JSON Schema of a scenario, docs/scenario.schema.json."""

from __future__ import annotations

import json

from waterfill.scenario.schema import json_schema

print(json.dumps(json_schema(), indent=2, ensure_ascii=False))
