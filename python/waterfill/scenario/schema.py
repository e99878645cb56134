"""The JSON Schema of a scenario file."""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from waterfill.scenario.document import Scenario
from waterfill.scenario.units import TIME, VOLUME, Buffer


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a scenario file, for editors (docs/scenario.schema.json)."""
    schema = Scenario.model_json_schema(by_alias=True, schema_generator=_TomlSchema)
    return {"$schema": _TomlSchema.schema_dialect, **schema, "title": "Waterfill scenario"}


class _TomlSchema(GenerateJsonSchema):
    """TOML has no null; defaults are written with their units."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> dict[str, Any]:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> dict[str, Any]:
        inner = self.generate_inner(schema["schema"])
        default = schema.get("default")
        if isinstance(default, Buffer):
            default = default.format()
        elif inner.get("type") == "string" and isinstance(default, float):
            unit = next(u for u in (TIME, VOLUME) if u.ecma_pattern == inner["pattern"])
            default = unit.format(default)
        return inner if default is None else {**inner, "default": default}

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False
