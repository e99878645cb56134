"""Modules of WebAssembly as text in a script: without names, compressed, in base64."""

from __future__ import annotations

import base64
import gzip


def packed(module: bytes) -> str:
    """Return a module as text: without its custom sections, compressed by gzip, in base64."""
    return base64.b64encode(gzip.compress(without_names(module), 9, mtime=0)).decode()


def script(text: str) -> str:
    """Return the script by which a page loads a packed module."""
    return f'waterfill.engine = "{text}";\n'


def without_names(module: bytes) -> bytes:
    """Return a module of WebAssembly without its custom sections, which hold names for
    debuggers.
    """
    kept, place = bytearray(module[:8]), 8
    while place < len(module):
        start, size, shift = place, 0, 0
        place += 1
        while True:
            digit = module[place]
            place, size, shift = place + 1, size | (digit & 0x7F) << shift, shift + 7
            if digit < 0x80:
                break
        place += size
        if module[start] != 0:
            kept += module[start:place]
    return bytes(kept)
