"""Numbers with units, as a scenario writes them: `"622 Mbit/s"`, `"14.5 ms"`, `"1 bdp"`.

Inside Waterfill every quantity is a float in SI: bit/s, seconds, bytes. Unit names occur in this
module only. A `Quantity` parses one kind of quantity, formats it so that parsing again gives the
same float, and describes it in the JSON Schema. In a model's annotation (`Annotated[float, RATE]`)
it validates a field.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal, DecimalException
from functools import cached_property
from numbers import Integral
from typing import Any, Literal

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, WithJsonSchema
from pydantic_core import CoreSchema, core_schema

from waterfill.errors import shown

_NUMBER = r"[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?"
_LARGE = {"": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15}
_MAX_PARSED = 4096
# Both micro signs: U+00B5 (keyboards) and U+03BC (the Greek letter).
_SMALL = {"": 0, "m": -3, "u": -6, "µ": -6, "μ": -6, "n": -9, "p": -12}


def _with_prefixes(units: Mapping[str, Decimal], prefixes: Mapping[str, int]) -> dict[str, Decimal]:
    return {
        prefix + unit: factor.scaleb(exponent)
        for unit, factor in units.items()
        for prefix, exponent in prefixes.items()
    }


# Without senseless prefixes: "1 mbit/s" is an error, not a millibit.
_BIT, _BYTE = Decimal(1), Decimal(8)
_RATE_UNITS = _with_prefixes({"bit/s": _BIT, "B/s": _BYTE}, _LARGE)
_TIME_UNITS = _with_prefixes({"s": Decimal(1)}, _SMALL)
_VOLUME_UNITS = _with_prefixes({"B": Decimal(1), "bit": Decimal("0.125")}, _LARGE)
_PACKET_UNITS = {"packets": Decimal(1), "packet": Decimal(1)}
_BDP_UNITS = {"bdp": Decimal(1)}


_OTHER_RATE = re.compile(
    r"([kKMmGgTt]?)(?:((?i:bits?)(?i:/s|/sec|ps|persec)?|b(?:/s|/sec|ps))"
    r"|(?:B|[Bb]ytes?)(?:/s|/sec|ps))"
)


def rate_unit(text: str) -> float | None:
    """Return the size (bit/s) of a unit of rates as other programs write it; None if unknown.

    A small b is a bit and a large B a byte (`Mbps`, `MB/s`), prefixes of either case are powers of
    1000, and a word for bits is a rate without `/s` as well (`kbit`, `MBITPERSEC`).
    """
    match = _OTHER_RATE.fullmatch(text)
    if match is None:
        return None
    prefix = {"K": "k", "m": "M", "g": "G", "t": "T"}.get(match[1], match[1])
    return 10.0 ** _LARGE[prefix] * (1 if match[2] else 8)


@dataclass(frozen=True)
class Quantity:
    """One kind of quantity: its name, an example for messages, and its units.

    `units` maps a unit's name to its size in the SI unit of the kind. Negative numbers, NaN and
    infinities are errors; zero is one unless `zero` is set. `whole` requires a whole number of SI
    units (bytes, packets); `at_most` is the largest value.
    """

    name: str
    example: str
    # Not in the hash that typing takes of annotations: a mapping has none.
    units: Mapping[str, Decimal] = field(hash=False)
    zero: bool = False
    whole: bool = False
    at_most: float = math.inf

    @property
    def expectation(self) -> str:
        """Description of a valid value for error messages: `a rate such as "622 Mbit/s"`."""
        return f'{self.name} such as "{self.example}"'

    def parse(self, value: object) -> float:
        """Parse a number with a unit; return the value in SI units.

        Raises ValueError when the value is not a text with a unit, or out of range.
        """
        if type(value) is not str:
            return self._any(value)
        # Long scenarios repeat values.
        number = self._parsed.get(value)
        if number is None:
            number = self._plain(value)
            if number is None:
                number = self._any(value)
            if len(self._parsed) < _MAX_PARSED:
                self._parsed[value] = number
        return number

    def _plain(self, text: str) -> float | None:
        """Return the value of a simple text such as "10 ms", or None for other texts. Four times as
        fast as `_any`.

        A quotient of two whole numbers that are floats is the float nearest to it, as in `_number`.
        """
        digits, _, unit = text.partition(" ")
        scale = self._scales.get(unit)
        if scale is None or len(digits) > 15 or not (digits.isdecimal() and digits.isascii()):
            return None
        number = float(int(digits) * scale[0]) / scale[1]
        valid = 0 < number <= self.at_most and (not self.whole or number.is_integer())
        return number if valid else None

    def _any(self, value: object) -> float:
        """Parse a text in any accepted form; raise ValueError for any other value."""
        number = self._number(value)
        if number is None:
            hint = self.hint(value)
            meant = f', did you mean "{hint}"?' if hint else ""
            raise ValueError(f"must be {self.expectation}, got {shown(value)}{meant}")
        if number < 0 or (number == 0 and not self.zero):
            bound = "not be negative" if self.zero else "be above zero"
            raise ValueError(f"must {bound}, got {shown(value)}")
        if number > self.at_most or math.isinf(number):
            limit = self.format(min(self.at_most, 1e300))
            raise ValueError(f"must be at most {limit}, got {shown(value)}")
        if self.whole and not number.is_integer():
            unit = "packets" if "packets" in self.units else min(self.units, key=len)
            raise ValueError(f"must be a whole number of {unit}, got {shown(value)}")
        return number

    def _number(self, value: object) -> float | None:
        match = self._compiled.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            return None
        try:
            # Decimal: in binary, 14.5 × 1e-3 is not the float nearest to 0.0145.
            number = Decimal(match["number"]) * self.units[match["unit"]]
        except DecimalException:
            return None
        rounded = float(number)
        # A number too small for a float must not become zero.
        return rounded if rounded != 0 or number == 0 else None

    def hint(self, value: object) -> str | None:
        """Return the text that was probably meant, such as "60 Mbit/s" for "60 Mbps"; None if
        unknown.
        """
        if not isinstance(value, str):
            return None
        match = re.fullmatch(rf"\s*({_NUMBER})\s*([a-zA-Zµμ/]*)\s*", value)
        if match is None:
            return None
        if match[4] in self.units:
            return None  # the number is wrong, not the unit
        # A small b in "Mb/s" is a bit; the other rules ignore case.
        written = re.sub(r"b/s$", "bit/s", re.sub(r"Bps$", "B/s", match[4]))
        written = re.sub(r"(?i)(bps|bits?/sec|b/sec)$", "bit/s", written)
        written = re.sub(r"(?i)(seconds?|secs?)$", "s", re.sub(r"(?i)bytes?$", "B", written))
        if "bit/s" in self.units:
            written = re.sub(r"(?i)bits?$", "bit/s", written)
        alike = [unit for unit in self.units if unit == written]
        alike += [unit for unit in self.units if unit.casefold() == written.casefold()]
        return f"{match[1]} {alike[0]}" if alike else None

    def matches(self, text: str) -> bool:
        """Return True if a text is a number with a unit of this quantity, in range or not."""
        return self._number(text) is not None

    def format(self, value: float) -> str:
        """Return a value as text that `parse` turns into the same float."""
        exact = Decimal(repr(float(value)))
        readable = [u for u, size in self.units.items() if 1 <= abs(exact / size) < 1000]
        # Units are in order of preference: bit/s before B/s, B before bit, u before µ.
        unit = readable[0] if readable else next(iter(self.units))
        number = (exact / self.units[unit]).normalize()
        plain = f"{number:f}" if -6 < number.adjusted() < 15 else f"{number:e}"
        return f"{plain} {unit}"

    @property
    def pattern(self) -> str:
        """Regular expression for a number with a unit of this quantity, without anchors."""
        names = "|".join(re.escape(unit) for unit in self.units)
        return rf"\s*(?P<number>{_NUMBER})\s*(?P<unit>{names})\s*"

    @cached_property
    def _scales(self) -> dict[str, tuple[int, float]]:
        """Size of each unit as a whole multiplier and a divisor. One of the two is 1."""
        ratios = {unit: size.as_integer_ratio() for unit, size in self.units.items()}
        return {unit: (a, float(b)) for unit, (a, b) in ratios.items() if 1 in (a, b)}

    @cached_property
    def _parsed(self) -> dict[str, float]:
        """Cache of parsed texts and their values."""
        return {}

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern)

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            self.parse,
            serialization=core_schema.plain_serializer_function_ser_schema(
                self.format, when_used="always"
            ),
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"type": "string", "pattern": self.ecma_pattern, "examples": [self.example]}

    @property
    def ecma_pattern(self) -> str:
        """The regular expression in JSON Schema's dialect, anchored and without named groups."""
        return f"^{re.sub(r'[?]P<[a-z]+>', '', self.pattern)}$"

    def described(self) -> WithJsonSchema:
        """Return the JSON Schema of a field that accepts this quantity or a plain whole number."""
        text = {"type": "string", "pattern": self.ecma_pattern, "examples": [self.example]}
        return WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, text]})

    def or_zero(self) -> Quantity:
        """Return a copy of this quantity that also accepts zero."""
        return replace(self, zero=True)


@dataclass(frozen=True)
class Signed(Quantity):
    """A quantity that may be negative, but not zero; `at_most` bounds its size."""

    def parse(self, value: object) -> float:
        """Parse a number with a unit and an optional sign; return the value in SI units."""
        number = self._number(value)
        if number == 0:
            raise ValueError(f"must not be zero, got {shown(value)}")
        if number is None or number > 0:
            return super().parse(value)
        if number < -(self.at_most or math.inf):
            limit = self.format(-(self.at_most or math.inf))
            raise ValueError(f"must be at least {limit}, got {shown(value)}")
        return -replace(self).parse(str(value).strip().removeprefix("-"))


UNLIMITED = "unlimited"
"""Word for a limit that is none."""


@dataclass(frozen=True)
class Limit(Quantity):
    """A quantity, or the word "unlimited", whose value is infinite."""

    def parse(self, value: object) -> float:
        """Parse a number with a unit, or the word; return the value in SI units."""
        return math.inf if value == UNLIMITED else super().parse(value)

    def format(self, value: float) -> str:
        """Return the word, or a number with a unit, that `parse` reads as this value."""
        return UNLIMITED if value == math.inf else super().format(value)

    @property
    def pattern(self) -> str:
        """Regular expression for the word, or a number with a unit, without anchors."""
        return rf"(?:{UNLIMITED}|{super().pattern})"


def percent(share: float, decimals: int = 0) -> str:
    """Return a share in percent, such as `24 %`."""
    return f"{100 * share:.{decimals}f} %"


# Times become integer picoseconds in 63 bits; eleven days leave headroom for sums of times.
MAX_TIME_S = 1e6
# Volumes and numbers of packets become integers of 64 bits.
MAX_COUNT = 1e19

RATE = Quantity("a rate", "622 Mbit/s", _RATE_UNITS)
TIME = Quantity("a time", "80 ms", _TIME_UNITS, zero=True, at_most=MAX_TIME_S)
SPAN = replace(TIME, zero=False)
WINDOW = Limit('"unlimited" or a time', "10 s", _TIME_UNITS, at_most=MAX_TIME_S)
VOLUME = Quantity("a volume", "10 MB", _VOLUME_UNITS, zero=True, at_most=MAX_COUNT)
FREQUENCY = Quantity("a number per second", "50 /s", {"/s": Decimal(1)})
PACKETS = Quantity(
    "a number of packets", "10 packets", _PACKET_UNITS, zero=True, whole=True, at_most=MAX_COUNT
)
STEP = Signed("a time", "-200 ms", _TIME_UNITS, at_most=3600.0)
_BDP = Quantity("a buffer", "1 bdp", _BDP_UNITS, zero=True)


@dataclass(frozen=True)
class Buffer:
    """A buffer size as written: in bytes, packets, or multiples of rate × largest base RTT."""

    amount: float
    unit: Literal["bytes", "packets", "bdp"]

    @classmethod
    def parse(cls, value: object) -> Buffer:
        """Parse `"1 bdp"`, `"500 packets"` or `"2 MB"`; raise ValueError if the value is not such a
        size or is out of range.
        """
        if isinstance(value, Buffer):
            return value
        for unit, quantity in _BUFFER_KINDS.items():
            if isinstance(value, str) and quantity.matches(value):
                return cls(quantity.parse(value), unit)
        hints = (quantity.hint(value) for quantity in _BUFFER_KINDS.values())
        hint = next((found for found in hints if found), None)
        meant = f', did you mean "{hint}"?' if hint else ""
        raise ValueError(
            f'must be a buffer such as "1 bdp", "500 packets" or "2 MB", got {shown(value)}{meant}'
        )

    def __str__(self) -> str:
        return self.format()

    def format(self) -> str:
        """Return the buffer size as text that `parse` reads back."""
        return _BUFFER_KINDS[self.unit].format(self.amount)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls.parse,
            serialization=core_schema.plain_serializer_function_ser_schema(
                cls.format, when_used="always"
            ),
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {
            "anyOf": [{"type": "string", "pattern": q.ecma_pattern} for q in _BUFFER_KINDS.values()]
        }


_BUFFER_KINDS: dict[Literal["bytes", "packets", "bdp"], Quantity] = {
    "bdp": _BDP,
    "packets": replace(PACKETS, name="a buffer"),
    "bytes": replace(VOLUME, name="a buffer"),
}


def number(
    value: object,
    *,
    above: float | None = None,
    minimum: float = -math.inf,
    maximum: float = math.inf,
) -> float:
    """Return a value as a finite number within bounds, such as a ratio or a weight.

    Raises ValueError for another type or a number out of bounds.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, Integral)):
        raise ValueError(f"must be a number, got {shown(value)}")
    try:
        result = float(value)
    except OverflowError:
        result = math.inf
    if not math.isfinite(result):
        raise ValueError(f"must be finite, got {shown(value)}")
    if not minimum <= result <= maximum or (above is not None and result <= above):
        raise ValueError(f"must be {_bounds(above, minimum, maximum)}, got {shown(value)}")
    return result


def _bounds(above: float | None, minimum: float, maximum: float) -> str:
    """Return the condition on a number, such as `in (0, 1]`."""
    if above is None and minimum == -math.inf:
        return f"at most {maximum:g}"
    if maximum == math.inf:
        return f"at least {minimum:g}" if above is None else f"above {above:g}"
    return f"in {f'[{minimum:g}' if above is None else f'({above:g}'}, {maximum:g}]"


# Longer numbers are beyond 64 bits, and Python refuses to read those of some thousand digits.
_MAX_DIGITS = 18


def digits(text: str) -> int | None:
    """Return the whole number in a text of up to 18 ASCII digits, or None for any other text."""
    if not (text.isascii() and text.isdecimal()):
        return None
    text = text.lstrip("0") or "0"
    return int(text) if len(text) <= _MAX_DIGITS else None


def whole(value: object, *, minimum: int = 0, maximum: int = 2**63 - 1) -> int:
    """Return a value as a whole number within bounds, such as a count or a seed.

    Raises ValueError for another type or a number out of bounds.
    """
    # Integral: NumPy's integers too.
    if isinstance(value, bool) or not isinstance(value, Integral):
        wanted = f"a whole number from {minimum} to {maximum}"
        raise ValueError(f"must be {wanted}, got {shown(value)}")
    plain = int(value)
    if not minimum <= plain <= maximum:
        raise ValueError(f"must be from {minimum} to {maximum}, got {shown(value)}")
    return plain


def packets(value: object) -> int:
    """Return a number of packets, given as an integer or as a text; raise ValueError otherwise."""
    if isinstance(value, str):
        return int(replace(PACKETS, zero=False, at_most=2**31 - 1).parse(value))
    return whole(value, minimum=1, maximum=2**31 - 1)
