"""Records: JSON objects with typed attributes, declared once.

A document of the package (a run's summary, the testbed's answer, a sweep's plan) is a tree of
records. A record is a dictionary, so that it prints, pickles and goes to `json` as it is; each key
that its class declares is also an attribute. Declare one class for each kind of object:

    class Spread(Record):
        mean: float
        max: float

    class LinkSummary(Record):
        name: str
        queue_bytes: Spread
        lost: int = 0

Build it by keywords: `Spread(mean=1.0, max=2.0)`. The order of the keywords is the order in JSON,
and mypy reports a key that is missing, unknown or of another type. Read attributes:
`link.queue_bytes.max`. A key with a default may be absent: it is only in the JSON if it was given,
and the attribute then has the default. The key of the attribute `values_` is `values`, for names
that dictionaries or Python use. `LinkSummary.read(json.loads(text))` gives objects read from
JSON, and those inside them, their classes; `shapes.wrong` checks them first where they come from
outside. Use a NamedTuple or a frozen dataclass for values that are not JSON.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping
from functools import cache
from operator import itemgetter
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

if TYPE_CHECKING:
    from typing_extensions import Self, dataclass_transform
else:

    def dataclass_transform(**_):
        """Return a decorator that leaves the class unchanged, because only type checkers use
        `dataclass_transform`.
        """
        return lambda cls: cls


_Reader: TypeAlias = Callable[[Any], Any]


@dataclass_transform(kw_only_default=True)
class Record(dict[str, Any]):
    """A JSON object whose declared keys are also attributes."""

    __required_keys__: ClassVar[frozenset[str]] = frozenset()
    __optional_keys__: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls) -> None:
        """Turn each declared key into a property, which returns the default for an absent key."""
        required, optional = set(cls.__required_keys__), set(cls.__optional_keys__)
        for name in inspect.get_annotations(cls):
            key = name.rstrip("_")
            if key != name:
                cls.__init__ = _init_by_name  # type: ignore[assignment]
            if name in cls.__dict__:
                optional.add(key)
                setattr(cls, name, _optional(key, cls.__dict__[name]))
            else:
                required.add(key)
                setattr(cls, name, property(itemgetter(key), _setter(key)))
        cls.__required_keys__, cls.__optional_keys__ = frozenset(required), frozenset(optional)

    @classmethod
    def read(cls, value: Mapping[str, Any]) -> Self:
        """Return a record with these entries, in which nested objects have their declared classes.

        Entries that do not fit the declarations stay as they are: `shapes.wrong` finds them.
        """
        found = cls.__new__(cls)
        found.update(value)
        for name, reader in _readers(cls):
            if name in found:
                found[name] = reader(found[name])
        return found


def _init_by_name(record: Record, **values: Any) -> None:
    """Build a record from keywords, whose names may end in an underscore."""
    record.update((name.rstrip("_"), value) for name, value in values.items())


def _setter(name: str) -> Callable[[Any, Any], None]:
    return lambda record, value: record.__setitem__(name, value)


def _optional(name: str, default: object) -> property:
    return property(lambda record: record.get(name, default), _setter(name))


@cache
def hints(record: type[Record]) -> dict[str, Any]:
    """Return the types of a record's keys."""
    found = get_type_hints(record)
    keys = {n: hint for n, hint in found.items() if get_origin(hint) is not ClassVar}
    return {name.rstrip("_"): hint for name, hint in keys.items()}


@cache
def _readers(record: type[Record]) -> list[tuple[str, _Reader]]:
    """Return each key whose values hold records, with the function that reads those values."""
    found = ((name, _reader(hint)) for name, hint in hints(record).items())
    return [(name, reader) for name, reader in found if reader is not None]


def _reader(hint: Any) -> _Reader | None:
    """Return the function that reads values of a type, or None if such values hold no record."""
    if isinstance(hint, type) and issubclass(hint, Record):
        return lambda value: hint.read(value) if isinstance(value, dict) else value
    origin, inside = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return next((reader for reader in map(_reader, inside) if reader is not None), None)
    each = _reader(inside[-1]) if inside and isinstance(origin, type) else None
    if each is None:
        return None
    if issubclass(origin, Mapping):
        return lambda value: (
            {key: each(item) for key, item in value.items()} if isinstance(value, dict) else value
        )
    return lambda value: [each(item) for item in value] if isinstance(value, list) else value
