"""Sources of laws in Python: files with `LAWS`, entry points of installed packages, and pickles.

A package registers laws in its metadata, as `mycopa = "mypackage.laws:COPA"` in the group
`waterfill.laws`. They are then protocols like built-in ones, without `--law`. A pickle takes
laws to the processes of a sweep's workers.
"""

from __future__ import annotations

import base64
import hashlib
import re
import runpy
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from waterfill.errors import InputError
from waterfill.runs import files
from waterfill.runs.laws import PythonLaw, check, raised, summary, text_of

GROUP = "waterfill.laws"
_MAX_FILE_BYTES = 4 << 20


def read(path: Path) -> dict[str, PythonLaw]:
    """Run a Python file and return its LAWS; raise InputError if the file fails or defines none."""
    try:
        # A pipe without a writer would wait for one, and a device may never end.
        files.open_regular(path, _MAX_FILE_BYTES).close()
    except OSError as error:
        problem = f"cannot read the Python file: {files.why(error)}"
        raise InputError(str(path), "", problem) from None
    try:
        found = runpy.run_path(str(path)).get("LAWS")
    except KeyboardInterrupt:
        raise
    except SyntaxError as error:
        at = str(path) if error.lineno is None else f"{path}:{error.lineno}"
        raise InputError(at, "", f"not valid Python: {error.msg}") from None
    except BaseException as error:
        # SystemExit too: it would end the command, perhaps with 0 and without an answer.
        raise raised(path.stem, error) or InputError(str(path), "", text_of(error)) from error
    if not isinstance(found, dict) or not found:
        raise InputError(str(path), "LAWS", 'must be a dictionary {"name": waterfill.PythonLaw(…)}')
    from waterfill.network import protocols

    check(found, protocols.load(), str(path))
    return found


def installed(names: Iterable[str] | None = None) -> dict[str, PythonLaw]:
    """Return the laws of installed packages with these names, or all of them.

    Raises InputError for a law that cannot be loaded or used, or that two packages register.
    """
    from importlib.metadata import entry_points

    wanted = None if names is None else set(names)
    found: dict[str, PythonLaw] = {}
    for point in entry_points(group=GROUP):
        if wanted is not None and point.name not in wanted:
            continue
        at = f"entry point {point.name} = {point.value}"
        if point.name in found:
            raise InputError(at, "", "two installed packages register this law", "remove one")
        try:
            found[point.name] = point.load()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise InputError(at, "", f"cannot be loaded: {text_of(error)}") from error
        from waterfill.network import protocols

        check({point.name: found[point.name]}, protocols.load(), at)
    return found


def mentioned(text: str) -> dict[str, PythonLaw]:
    """Return the laws of installed packages whose names occur as words in a text."""
    from importlib.metadata import entry_points

    names = {point.name for point in entry_points(group=GROUP)}
    words = set(re.findall(r"[\w-]+", text)) if names else set()
    return installed(names & words) if names & words else {}


def with_installed(given: Mapping[str, PythonLaw], names: Iterable[str]) -> dict[str, PythonLaw]:
    """Return the given laws, and those of installed packages for names that nothing else has."""
    from waterfill.network import protocols

    unknown = [name for name in names if name not in given and name not in protocols.load()]
    return {**(installed(unknown) if unknown else {}), **given}


# --- transport ---------------------------------------------------------------------------------


def pack(laws: Mapping[str, PythonLaw]) -> str:
    """Return laws as text that `unpack` reads in another process, on another host too.

    The code of the laws' own modules is part of the text; modules that these import are not.
    Raises InputError for a law that cannot be pickled.
    """
    import cloudpickle

    own = [sys.modules[name] for name in _modules(laws) if name in sys.modules]
    for module in own:
        cloudpickle.register_pickle_by_value(module)
    try:
        return base64.b64encode(cloudpickle.dumps(dict(laws))).decode()
    except Exception as error:  # whatever an attribute of a law's class raises
        problem = f"cannot be sent to the workers: {text_of(error)}"
        raise InputError("sweep", f"laws.{' or '.join(laws)}", problem) from error
    finally:
        for module in own:
            cloudpickle.unregister_pickle_by_value(module)


def unpack(text: str) -> dict[str, PythonLaw]:
    """Return the laws that `pack` turned into text."""
    import cloudpickle

    found: dict[str, PythonLaw] = cloudpickle.loads(base64.b64decode(text))
    return found


def identity(laws: Mapping[str, PythonLaw]) -> str:
    """Return a hash of the laws' code and settings, the same in every session."""
    digest = hashlib.sha256()
    for name, law in sorted(laws.items()):
        parts = [repr((name, dict(summary(law)), law.ecn, law.reduction))]
        parts += [text for end in _ends(law) for text in _code(end, set())]
        digest.update("\n".join(parts).encode())
    for path in sorted(_source_files(laws)):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:32]


def _ends(law: PythonLaw) -> list[Any]:
    return [end for end in (law.source, law.router, law.receiver) if end is not None]


def _classes(laws: Mapping[str, PythonLaw]) -> Iterator[Any]:
    """Yield the classes of laws, with those that they inherit from."""
    for law in laws.values():
        for end in _ends(law):
            yield from (one for one in getattr(end, "__mro__", (end,)) if one is not object)


def _modules(laws: Mapping[str, PythonLaw]) -> set[str]:
    """Return the names of the laws' modules, except those of installed packages."""
    names = {str(getattr(one, "__module__", "")) for one in _classes(laws)}
    return {
        name
        for name in names - {"__main__"}
        if not {"site-packages", "dist-packages"}
        & {*Path(getattr(sys.modules.get(name), "__file__", None) or "").parts}
    }


def _source_files(laws: Mapping[str, PythonLaw]) -> set[Path]:
    codes = [
        function.__code__
        for one in _classes(laws)
        for function in (one, *vars(one).values())
        if isinstance(function, FunctionType)
    ]
    return {path for code in codes if (path := Path(code.co_filename)).is_file()}


def _code(value: Any, seen: set[int]) -> Iterator[str]:
    """Yield texts that change with a class, function or constant, but not between sessions."""
    if id(value) in seen:
        return
    if isinstance(value, type):
        seen.add(id(value))
        for one in value.__mro__[:-1]:
            yield one.__qualname__
            for name, attribute in vars(one).items():
                if not name.startswith("__") or callable(attribute):
                    yield name
                    yield from _code(attribute, seen)
    elif isinstance(value, FunctionType):
        yield repr(value.__defaults__) if value.__defaults__ else ""
        yield from _code(value.__code__, seen)
    elif isinstance(value, CodeType):
        yield f"{value.co_code.hex()} {value.co_names}"
        for constant in value.co_consts:
            yield from _code(constant, seen)
    elif isinstance(value, (bool, int, float, str, bytes, type(None))):
        yield repr(value)
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _code(item, seen)
    else:
        yield type(value).__name__
