"""Version of the documents and tables of results, and the names of their columns."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from waterfill.contract.summary import SCHEMA_VERSION, SCHEMA_VERSION_KEY
from waterfill.errors import InputError, shown

KEY = "schema_version"


class RenamedColumn(FutureWarning):
    """Warning that a column has a new name. The former name works for one release."""


Document: TypeAlias = Mapping[str, Any] | Sequence[Mapping[str, Any]]


def versioned(document: Document) -> Document:
    """Return a document with its schema version as the first key, or a list with that key in each
    entry.
    """
    if isinstance(document, Mapping):
        return {KEY: SCHEMA_VERSION, **document}
    return [{KEY: SCHEMA_VERSION, **entry} for entry in document]


def check(document: object, file: str) -> None:
    """Raise InputError if a newer version of Waterfill wrote this document."""
    found = document.get(KEY, SCHEMA_VERSION) if isinstance(document, Mapping) else SCHEMA_VERSION
    if isinstance(found, bool) or not isinstance(found, int):
        raise InputError(file, KEY, f"must be a whole number, got {shown(found)}")
    if found > SCHEMA_VERSION:
        problem = f"a newer Waterfill wrote it: must be at most {SCHEMA_VERSION}, got {found}"
        raise InputError(file, KEY, problem, "upgrade Waterfill")


def check_metadata(metadata: Mapping[bytes, bytes] | None, file: str) -> None:
    """Raise InputError if a newer version of Waterfill wrote the Parquet file with this metadata.

    Raises ValueError if the version is not a number.
    """
    found = (metadata or {}).get(SCHEMA_VERSION_KEY.encode())
    if found is not None:
        check({KEY: int(found)}, file)


def current(columns: Iterable[str]) -> list[str]:
    """Return columns by their present names; warn about former names such as maxnet.price."""
    found = {name: name.replace(".", "_") for name in columns}
    renamed = [f"'{name}' is now '{new}'" for name, new in found.items() if name != new]
    if renamed:
        warnings.warn(", ".join(renamed), RenamedColumn, stacklevel=2)
    return list(found.values())
