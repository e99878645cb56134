"""The command `waterfill studio`."""

from __future__ import annotations

import os
from typing import Annotated

from typer import Option

from waterfill.cli.arguments import INTERRUPTED
from waterfill.cli.console import print_text


def studio(
    port: Annotated[
        int | None,
        Option(metavar="N", min=1, max=65535, help="Port. Default: 2718, or a free one."),
    ] = None,
    browser: Annotated[
        bool, Option("--browser/--no-browser", help="Open the page in a browser.")
    ] = True,
) -> None:
    """Open the studio in a browser.

    It has sliders, guided tours and an animated view. The page is served to this host only, at the
    printed address, until Ctrl-C.
    """
    from waterfill.studio import serve

    try:
        serve.serve(port, browser, print_text)
    except KeyboardInterrupt:
        # marimo runs each page in a thread that would keep the interpreter from ending.
        os._exit(INTERRUPTED)
