"""The JSON Schema of a scenario file."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from itertools import chain
from typing import Any

from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from waterfill.scenario import collective, document, fabric, sampling, switch
from waterfill.scenario.document import Scenario
from waterfill.scenario.table import Table
from waterfill.scenario.units import TIME, VOLUME, Buffer

_MODULES = (document, fabric, switch, collective, sampling)
"""Modules with the models of a scenario's tables."""


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a scenario file, for editors (docs/scenario.schema.json)."""
    schema = Scenario.model_json_schema(by_alias=True, schema_generator=_TomlSchema)
    docs = dict(_field_docs())
    sections = (document.SECTIONS, document.TABLES, document.ENTRIES)
    tables: list[type[Table]] = [Scenario, *(model for one in sections for model in one.values())]
    models = {model.__name__: model for model in tables}
    for name, described in {"Scenario": schema, **schema["$defs"]}.items():
        properties = described["properties"]
        for field, info in models[name].model_fields.items():
            key = info.alias or field
            doc = {"description": _doc(models[name], field, docs)}
            properties[key] = dict(sorted((properties[key] | doc).items()))
    return {"$schema": _TomlSchema.schema_dialect, **schema, "title": "Waterfill scenario"}


def _doc(model: type[Table], field: str, docs: dict[tuple[str, str], str]) -> str:
    """Return a field's docstring, from the class that declares the field."""
    declared = ((base.__name__, field) for base in model.__mro__)
    return next(docs[key] for key in declared if key in docs)


def _field_docs() -> Iterator[tuple[tuple[str, str], str]]:
    """Yield ((class, field), docstring) for each field of the models."""
    nodes = (ast.parse(inspect.getsource(module)).body for module in _MODULES)
    for node in chain.from_iterable(nodes):
        if not isinstance(node, ast.ClassDef):
            continue
        for field, after in zip(node.body, node.body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                match after:
                    case ast.Expr(value=ast.Constant(value=str(text))):
                        yield (node.name, field.target.id), inspect.cleandoc(text)


class _TomlSchema(GenerateJsonSchema):
    """Generator of JSON Schema without null, which TOML lacks. Defaults have units."""

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
