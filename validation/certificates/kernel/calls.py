"""Python interface to the laws' fixed-point C, compiled for the host, which can repeat logged
calls.
"""

from __future__ import annotations

import ctypes
import shutil
import struct
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from validation.certificates.fixed import log
from validation.certificates.fixed.laws import LAYOUTS
from validation.certificates.log import Step, Values

ROOT = Path(__file__).resolve().parents[3]
SOURCES = ROOT / "crates" / "waterfill-laws" / "kernel"


def compiled(name: str, folder: Path, change: Callable[[Path], None] | None = None) -> Path | None:
    """Compile a law's C unit into a library and return its path, or None if it does not compile.
    `change` may edit the sources first.
    """
    copy = folder / "kernel"
    shutil.copytree(SOURCES, copy)
    if change is not None:
        change(copy)
    library = folder / f"{name}.so"
    command = ["cc", "-std=c11", "-O0", "-w", "-shared", "-fPIC", "-o", str(library)]
    unit = copy / f"{name}.c"
    done = subprocess.run([*command, str(unit)], capture_output=True, check=False)
    return library if done.returncode == 0 else None


class CompiledLaw:
    """A law compiled for the host: the functions of its `struct waterfill_shim` and the sizes of
    its structures.
    """

    # Numbers of 32 bits, then the functions, in order.
    _NUMBERS = (
        *("number", "forward_bytes", "echo_bytes", "paced", "rests_with_queue", "params"),
        *("link", "sums", "cpu", "source", "receiver", "replay"),
    )
    _FUNCTIONS = (
        *("params_fields", "link_set", "interval", "tick", "idle", "mark", "syn_needs_lock"),
        *("link_read", "link_restore", "source_init", "request", "forward", "heard", "ack"),
        *("loss", "timeout", "limit", "reduce", "evidence", "tightens", "source_read", "receive"),
    )

    def __init__(self, name: str, library: Path) -> None:
        self.layouts = LAYOUTS[name]
        self.loaded = ctypes.CDLL(str(library))
        shim = f"waterfill_law_{name}"
        start = ctypes.addressof(ctypes.c_uint32.in_dll(self.loaded, shim))
        numbers = (ctypes.c_uint32 * len(self._NUMBERS)).from_address(start)
        self.numbers = dict(zip(self._NUMBERS, numbers, strict=True))
        after = start + ctypes.sizeof(numbers)
        places = (ctypes.c_void_p * len(self._FUNCTIONS)).from_address(after)
        self.places = dict(zip(self._FUNCTIONS, places, strict=True))

    def call(self, name: str, result: Any, *arguments: Any) -> Any:
        """Call a function by name. Buffers are passed by address, and plain integers as 64-bit
        numbers.
        """
        given = [a if not isinstance(a, int) else ctypes.c_uint64(a) for a in arguments]
        kinds = [ctypes.c_void_p if isinstance(a, ctypes.Array) else type(a) for a in given]
        place = self.places[name]
        assert place is not None
        function = ctypes.CFUNCTYPE(result, *kinds)(place)
        return function(*(ctypes.addressof(a) if isinstance(a, ctypes.Array) else a for a in given))

    def structure(self, name: str, values: dict[str, Any]) -> Any:
        """Return a C structure of the law in a buffer."""
        return packed(self.layouts[name], values, 8 * self.numbers[name])


def packed(layout: log.Layout, values: dict[str, Any], size: int) -> Any:
    """Return a C structure in a buffer of `size` bytes."""
    letters = "=" + "".join(letter for _, letter in layout)
    data = struct.pack(letters, *(values[name] for name, _ in layout))
    assert len(data) <= size
    return ctypes.create_string_buffer(data.ljust(size, b"\0"), size)


def again(law: CompiledLaw, step: Step) -> Step:
    """Repeat a logged call from its logged state, and return the step that the compiled law
    produces.
    """
    inputs: dict[str, Any] = dict(step.inputs)
    before: dict[str, Any] = dict(step.before)
    value = ctypes.create_string_buffer(inputs["value"], 16)
    small = ctypes.c_uint32
    if step.part == "router":
        link = law.structure("link", before)
        outputs: Values = {"value": bytes(16)}
        after: Values = {}
        if step.call == "tick":
            law.call("tick", None, link, law.structure("sums", inputs), inputs["queue"])
        elif step.call == "idle":
            law.call("idle", None, link, inputs["intervals"], inputs["queue"])
        else:
            cpu = law.structure("cpu", before)
            packet = packed((("bytes", "Q"), ("segments", "I"), ("syn", "I")), inputs, 16)
            law.call("mark", small, link, cpu, packet, value)
            outputs = {"value": value.raw}
            after = log.fields(law.layouts["cpu"], cpu.raw)
        after = log.fields(law.layouts["link"], link.raw) | after
        return replace(step, after=after, outputs=outputs)
    params = law.structure("params", inputs)
    state = law.structure(step.part, before)
    if step.call == "ack":
        names = [name for name in inputs if name.startswith("tcp.")]
        layout = [(name, "Q" if name == "tcp.now_us" else "I") for name in names]
        tcp = packed(layout, inputs, 64)
        law.call("ack", None, params, state, tcp, small(inputs["has_echo"]), value)
    else:
        numbers = inputs["now_us"], small(inputs["rtt_us"]), value, small(inputs["segments"])
        law.call("receive", None, params, state, *numbers)
    return replace(step, after=log.fields(law.layouts[step.part], state.raw))
