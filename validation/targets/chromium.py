"""Runs requests from files in a page of Chromium, with the worker of the site's widgets.

    python -m validation.targets.chromium MODULE.wasm FILE…

Prints a line for each file as crates/waterfill-wasm/examples/hashes.mjs does: the hash of the
result, or the sentence with which the request is refused.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from validation.study import ROOT
from validation.targets.builds import chromium
from validation.targets.packing import packed, script

_FOLDER = ROOT / "docs" / "assets" / "widget"
_SCRIPTS = ("network", "charts", "draw", "widget")
_LIMIT_MS = 600_000
_RUN = """async (request) => {
    const engine = (globalThis.engine ??= new waterfill.Engine());
    engine.limit_ms = 600_000;
    const refused = ({message}) => `refused: ${message}`;
    return engine.run(JSON.parse(request)).then(({run}) => run.digest, refused);
}"""


def main(module: Path, files: Sequence[Path]) -> None:
    """Run each file and print its line."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as name, sync_playwright() as driver:
        folder = Path(name)
        for one in _SCRIPTS:
            (folder / f"{one}.js").write_bytes((_FOLDER / f"{one}.js").read_bytes())
        (folder / "engine.js").write_text(script(packed(module.read_bytes())), encoding="utf-8")
        tags = "".join(f'<script src="{one}.js"></script>' for one in _SCRIPTS)
        (folder / "index.html").write_text(f"<!doctype html>{tags}", encoding="utf-8")
        browser = driver.chromium.launch(
            executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"], timeout=_LIMIT_MS
        )
        page = browser.new_page()
        page.set_default_timeout(_LIMIT_MS)
        page.goto((folder / "index.html").as_uri())
        for file in files:
            print(f"{file}\t{page.evaluate(_RUN, file.read_text(encoding='utf-8'))}", flush=True)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]])
