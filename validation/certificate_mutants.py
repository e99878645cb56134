"""Whether certificates reject mutants of the kernel's MaxNet.

    make certificate-mutants [COUNT=200] [SEED=1] [STEPS="router.steps host.steps"]

A sample of single changes of `kernel/maxnet*.h` and `kernel/fixed.h` (an operator, a comparison, a
constant) is compiled for the host. Each mutant makes the recorded calls again, each from the
recorded state. Where an output or the state after differs, the checker gets the mutant's row and
must reject it. Results are kept in out/certificate-mutants.json: the same call goes on where it was
interrupted; remove the file to try with other logs.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import multiprocessing
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from waterfill import verify
from waterfill.verify import kernel, replay
from waterfill.verify.log import Step, Values
from waterfill.verify.maxnet_fixed import LAYOUTS

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "crates" / "waterfill-laws" / "kernel"
RECORDED = [ROOT / "tests" / "python" / "verify" / f"{role}.steps" for role in ("router", "host")]
OUT = ROOT / "out" / "certificate-mutants.json"
HEADERS = ("maxnet.h", "maxnet_law.h", "maxnet_host.h", "fixed.h")
# Functions that no logged step calls: of other laws, of setting a law up, of status.
OTHERS = (
    *("fixed_exp2_up", "fixed_one_less_exp", "fixed_exp_less_one", "fixed_log_one_plus"),
    *("fixed_power", "fixed_log2", "fixed_price_min", "maxnet_params_default", "maxnet_link_set"),
    *("maxnet_link_init", "maxnet_pacing", "maxnet_source_init", "maxnet_echo", "law_link_set"),
    *("law_interval", "law_syn_needs_lock", "law_link_read", "law_link_restore", "law_limit"),
    *("law_source_init", "law_request", "law_forward", "law_heard", "law_reduce", "law_evidence"),
    *("law_tightens", "law_source_read", "law_echo", "law_receiver_read"),
)
# What a token becomes. Constants become one more.
CHANGES = {
    "+": "-",
    "-": "+",
    "*": "+",
    "/": "*",
    "%": "/",
    "<": "<=",
    ">": ">=",
    "<=": "<",
    ">=": ">",
    "==": "!=",
    "!=": "==",
    "<<": ">>",
    ">>": "<<",
    "&&": "||",
    "||": "&&",
    "+=": "-=",
    "-=": "+=",
}
_TOKEN = re.compile(
    r"<<=|>>=|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||\+=|-=|[-+*/%<>]|\b\d+(?=u|ull|ll|\b)"
)
_SKIPPED = re.compile(r"/\*.*?\*/|//[^\n]*|\"[^\"]*\"|^\s*#[^\n]*", re.DOTALL | re.MULTILINE)
_TABLE = re.compile(r"fixed_exp2\[257\] = \{.*?\};", re.DOTALL)
_TIMEOUT_S = 60


@dataclass(frozen=True)
class Mutant:
    """A change of one token of a header."""

    file: str
    place: int
    line: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.before} to {self.after}"


def mutants() -> list[Mutant]:
    """Return every change in the bodies of the headers' functions, without the table."""
    found = []
    for name in HEADERS:
        text = (SOURCES / name).read_text()
        blank = _SKIPPED.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
        blank = _TABLE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), blank)
        for other in OTHERS:
            body = rf"\b{other}\([^;{{]*\)\s*\{{.*?\n\}}"
            blank = re.sub(body, lambda m: re.sub(r"[^\n]", " ", m[0]), blank, flags=re.DOTALL)
        depth = 0
        bodies = []
        for letter in blank:
            depth += (letter == "{") - (letter == "}")
            bodies.append(depth > 0)
        for match in _TOKEN.finditer(blank):
            token = match[0]
            after = str(int(token) + 1) if token.isdigit() else CHANGES.get(token)
            if after is not None and bodies[match.start()]:
                line = text.count("\n", 0, match.start()) + 1
                found.append(Mutant(name, match.start(), line, token, after))
    return found


def compiled(mutant: Mutant | None, folder: Path) -> Path | None:
    """Compile MaxNet's unit with a mutant; None if it does not compile."""
    copy = folder / "kernel"
    shutil.copytree(SOURCES, copy)
    if mutant is not None:
        path = copy / mutant.file
        text = path.read_text()
        end = mutant.place + len(mutant.before)
        path.write_text(text[: mutant.place] + mutant.after + text[end:])
    library = folder / "law.so"
    command = ["cc", "-std=c11", "-O0", "-w", "-shared", "-fPIC", "-o", str(library)]
    done = subprocess.run([*command, str(copy / "maxnet_law.c")], capture_output=True, check=False)
    return library if done.returncode == 0 else None


# ------------------------------------------------------------------ replaying recorded calls


class Law:
    """The functions of `struct waterfill_shim` that steps are made of."""

    # After twelve numbers of 32 bits, the functions in order.
    NAMES = (
        *("params_fields", "link_set", "interval", "tick", "idle", "mark", "syn_needs_lock"),
        *("link_read", "link_restore", "source_init", "request", "forward", "heard", "ack"),
        *("loss", "timeout", "limit", "reduce", "evidence", "tightens", "source_read", "receive"),
    )

    def __init__(self, library: Path) -> None:
        self.loaded = ctypes.CDLL(str(library))
        start = ctypes.addressof(ctypes.c_uint32.in_dll(self.loaded, "waterfill_law_maxnet")) + 48
        places = (ctypes.c_void_p * len(self.NAMES)).from_address(start)
        self.places = dict(zip(self.NAMES, places, strict=True))

    def call(self, name: str, result: Any, *arguments: Any) -> Any:
        """Call a function: buffers by their address, numbers as 64 bits unless they are ctypes'."""
        given = [a if not isinstance(a, int) else ctypes.c_uint64(a) for a in arguments]
        kinds = [ctypes.c_void_p if isinstance(a, ctypes.Array) else type(a) for a in given]
        place = self.places[name]
        assert place is not None
        function = ctypes.CFUNCTYPE(result, *kinds)(place)
        return function(*(ctypes.addressof(a) if isinstance(a, ctypes.Array) else a for a in given))


def packed(layout: kernel.Layout, values: dict[str, Any], size: int) -> Any:
    """Return a structure of C in a buffer of `size` bytes."""
    letters = "=" + "".join(letter for _, letter in layout)
    data = struct.pack(letters, *(values[name] for name, _ in layout))
    return ctypes.create_string_buffer(data.ljust(size, b"\0"), size)


def again(law: Law, step: Step) -> Step:
    """Make a recorded call from its recorded state; return the step as this law makes it."""
    inputs: dict[str, Any] = dict(step.inputs)
    before: dict[str, Any] = dict(step.before)
    value = ctypes.create_string_buffer(inputs["value"], 16)
    small = ctypes.c_uint32
    if step.part == "router":
        link, cpu = packed(LAYOUTS["link"], before, 112), ctypes.create_string_buffer(8)
        outputs: Values = {"value": bytes(16)}
        if step.call == "tick":
            sums = packed(LAYOUTS["sums"], inputs, 8)
            law.call("tick", None, link, sums, inputs["queue"])
        elif step.call == "idle":
            law.call("idle", None, link, inputs["intervals"], inputs["queue"])
        else:
            cpu = packed(LAYOUTS["cpu"], before, 8)
            packet = packed((("bytes", "Q"), ("segments", "I"), ("syn", "I")), inputs, 16)
            law.call("mark", small, link, cpu, packet, value)
            outputs = {"value": value.raw}
        after = kernel.fields(LAYOUTS["link"], link.raw)
        if step.call == "mark":
            after |= kernel.fields(LAYOUTS["cpu"], cpu.raw)
        return replace(step, after=after, outputs=outputs)
    params = packed(LAYOUTS["params"], inputs, 56)
    state = packed(LAYOUTS[step.part], before, 96)
    if step.call == "ack":
        names = [name for name in inputs if name.startswith("tcp.")]
        layout = [(name, "Q" if name == "tcp.now_us" else "I") for name in names]
        tcp = packed(layout, inputs, 64)
        law.call("ack", None, params, state, tcp, small(inputs["has_echo"]), value)
    else:
        numbers = inputs["now_us"], small(inputs["rtt_us"]), value, small(inputs["segments"])
        law.call("receive", None, params, state, *numbers)
    return replace(step, after=kernel.fields(LAYOUTS[step.part], state.raw))


def steps_of(files: Sequence[Path]) -> list[Step]:
    """Read the recorded steps."""
    return [step for file in files for step in kernel.read(file, verify.kernel_layouts())[1]]


def judge(library: Path, steps: Sequence[Step]) -> str:
    """Return `same`, `rejected`, or `accepted` with the row, for a law that makes the calls."""
    law, checks = Law(library), verify.kernel_laws()["maxnet"]
    for step in steps:
        made = again(law, step)
        if (made.after, made.outputs) != (step.after, step.outputs):
            check = getattr(checks, step.part)({})
            wrong = replay.compare(made, check(made))
            return "rejected" if wrong is not None else f"accepted: row {step.row}, {step.call}"
    return "same"


def _judge(library: Path, steps: Sequence[Step], answer: Connection) -> None:
    answer.send(judge(library, steps))


def tried(mutant: Mutant | None, steps: Sequence[Step]) -> str:
    """Compile a mutant and judge it in a process of its own, which it may crash or keep."""
    with tempfile.TemporaryDirectory(prefix="waterfill-mutant-") as name:
        library = compiled(mutant, Path(name))
        if library is None:
            return "not compiled"
        context = multiprocessing.get_context("fork")
        answer, asked = context.Pipe(duplex=False)
        child = context.Process(target=_judge, args=(library, steps, asked))
        child.start()
        asked.close()
        child.join(_TIMEOUT_S)
        if child.is_alive():
            child.kill()
            child.join()
            return "no end"
        return str(answer.recv()) if child.exitcode == 0 else "crashed"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 1 if a mutant that changes an output was accepted."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("files", type=Path, nargs="*", metavar="STEPS")
    given = parser.parse_args(arguments)
    steps = steps_of(given.files or RECORDED)
    if tried(None, steps) != "same":
        print("the unchanged law does not make the recorded steps again", file=sys.stderr)
        return 1
    everything = mutants()
    chosen = random.Random(given.seed).sample(everything, min(given.count, len(everything)))
    known: dict[str, str] = json.loads(OUT.read_text()) if OUT.exists() else {}
    OUT.parent.mkdir(exist_ok=True)
    results = {}
    for mutant in chosen:
        key = f"{mutant}, at {mutant.place}"
        if key not in known:
            known[key] = tried(mutant, steps)
            OUT.write_text(json.dumps(known, indent=1))
        results[key] = known[key]
    counts = Counter(result.partition(":")[0] for result in results.values())
    print(f"{len(chosen)} of {len(everything)} mutants, seed {given.seed}:")
    for result, number in counts.most_common():
        print(f"  {result}: {number}")
    for key, result in results.items():
        if result == "same" or result.startswith("accepted"):
            print(f"{key}: {result}")
    return int(counts["accepted"] > 0)


if __name__ == "__main__":
    sys.exit(main())
