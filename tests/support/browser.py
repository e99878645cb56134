"""Pages in a headless Chromium, for tests of reports, studio and site.

The fixture `chromium` (tests/conftest.py) gives the browser or skips the test. A page opened by
`shown` is off the network but for this host, and remembers what went wrong in it.
"""

from __future__ import annotations

import io
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

WIDE, NARROW = 1280, 390
SIZES = [WIDE, NARROW]
SCHEMES = ["light", "dark"]
CONTRAST = ["color-contrast"]

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_SWITCHES = [
    "--no-sandbox",  # tests run as root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--force-color-profile=srgb",
    "--font-render-hinting=none",
]
# Only these requests pass through Python: a page of the studio makes hundreds of others.
_ELSEWHERE = re.compile(r"^(?:https?|wss?)://(?!(?:127\.0\.0\.1|localhost|\[::1\])(?:[:/]|$))")
# A host with other work may take this long to draw a page.
_PATIENCE_MS = 180_000
_SEVERE = ("serious", "critical")
# Of DejaVu Sans, which Debian's Chromium takes where nothing else is installed.
_GOLDEN_TEXT_WIDTH_PX = 414.2
_TEXT_WIDTH = """() => {
    const context = document.createElement("canvas").getContext("2d");
    context.font = "100px system-ui";
    return context.measureText("Waterfill").width;
}"""


def installed() -> str | None:
    """Return the path of an installed Chromium, else None."""
    return next((path for name in _NAMES if (path := shutil.which(name))), None)


@contextmanager
def launched(home: Path) -> Iterator[Any]:
    """Start Chromium without a window, with `home` as its HOME; yield playwright's browser.

    While it runs, asyncio.run() fails in this thread: close it before other tests start.
    """
    from playwright.sync_api import sync_playwright

    environment = {"HOME": str(home), "LANG": "C.UTF-8", "PATH": "/usr/bin:/bin"}
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=installed(),
            headless=True,
            args=_SWITCHES,
            env=environment,
            timeout=_PATIENCE_MS,
        )
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Shown:
    """A page and its errors: errors and warnings of its console, refused requests."""

    page: Any
    problems: list[str] = field(default_factory=list)

    def violations(self, *leave_out: str, rules: Sequence[str] = ()) -> list[str]:
        """Return axe's serious and critical violations, a line each; `leave_out` are selectors.

        With `rules` only these are checked, as CONTRAST where nothing but the colours changed.
        """
        from axe_core_python.sync_playwright import Axe

        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(Axe().axe_script)
        # All that passes would take most of the time to bring over.
        options: dict[str, Any] = {"resultTypes": ["violations"], "preload": False}
        if rules:
            options["runOnly"] = {"type": "rule", "values": list(rules)}
        context = {"include": [["html"]], "exclude": [[selector] for selector in leave_out]}
        script = "([context, options]) => axe.run(context, options).then((all) => all.violations)"
        return [
            f"{one['id']} ({one['impact']}): {one['help']}: {one['nodes'][0]['html'][:200]}"
            for one in self.page.evaluate(script, [context, options])
            if one["impact"] in _SEVERE
        ]

    def resize(self, width: int, scheme: str) -> None:
        """Give the window another width and colour scheme."""
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.emulate_media(color_scheme=scheme)

    def overflow_px(self) -> int:
        """Return by how many pixels the page is wider than its window."""
        script = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        return int(self.page.evaluate(script))


@contextmanager
def shown(
    browser: Any, url: str | Path, *, width: int = WIDE, height: int = 900, scheme: str = "light"
) -> Iterator[Shown]:
    """Open a URL or a file in a window of its own; yield it when it has loaded."""
    # One pixel a point and no animation: screenshots repeat.
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme=scheme,
        device_scale_factor=1,
        reduced_motion="reduce",
    )
    try:
        context.set_default_timeout(_PATIENCE_MS)
        page = context.new_page()
        found = Shown(page)
        page.on("console", lambda message: _keep(found, message))
        page.on("pageerror", lambda error: found.problems.append(f"uncaught: {error}"))
        page.route(_ELSEWHERE, lambda route: _refuse(found, route))
        page.goto(url.resolve().as_uri() if isinstance(url, Path) else url)
        yield found
    finally:
        context.close()


def _keep(found: Shown, message: Any) -> None:
    if message.type in ("error", "warning"):
        found.problems.append(f"{message.type}: {message.text}")


def _refuse(found: Shown, route: Any) -> None:
    """Refuse a request that leaves this host, and remember it."""
    found.problems.append(f"request: {route.request.url}")
    route.abort()


def assert_looks_like(shown: Shown, golden: Path, folder: Path, part: str | None = None) -> None:
    """Compare a screenshot with a golden image, if this host has the fonts of those.

    Args:
        shown: An open window.
        golden: The image to compare with.
        folder: Where the screenshot is kept.
        part: Selector of the element to compare; the window without one.

    """
    if abs(shown.page.evaluate(_TEXT_WIDTH) - _GOLDEN_TEXT_WIDTH_PX) > 1:
        pytest.skip("this host's fonts are not those of the golden images")
    png = shown.page.locator(part).screenshot() if part else shown.page.screenshot()
    new = folder / golden.name
    new.write_bytes(png)
    share = difference(png, golden) if golden.exists() else 1.0
    assert share < 0.02, f"{share:.1%} of the pixels differ from {golden}: {new}"


def difference(png: bytes, golden: Path) -> float:
    """Return the share of pixels that differ visibly from a golden image; 1 for another size.

    A pixel differs when a channel does by more than 48 of 255 once both images are blurred over
    9 × 9 pixels, so that other fonts' edges do not count.
    """
    ours, theirs = (_blurred(pixels(data)) for data in (png, golden.read_bytes()))
    if ours.shape != theirs.shape:
        return 1.0
    return float((np.abs(ours - theirs).max(axis=2) > 48).mean())


def pixels(png: bytes) -> np.ndarray:
    """Return a screenshot's pixels as an array of rows, columns and colours from 0 to 255."""
    from matplotlib import image

    return 255 * np.asarray(image.imread(io.BytesIO(png), format="png"))[:, :, :3]


def _blurred(pixels: np.ndarray) -> np.ndarray:
    from scipy.ndimage import uniform_filter

    return np.asarray(uniform_filter(pixels, size=(9, 9, 1)))
