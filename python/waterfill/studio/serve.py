"""Server of the studio on the loopback interface: marimo's application, protected by a token.

The page may load nothing from elsewhere (its Content-Security-Policy), and answers only to names of
this host, so that no other site's page can reach it by a name that it controls.
"""

from __future__ import annotations

import secrets
import socket
import threading
import webbrowser
from collections.abc import Callable
from importlib import resources
from importlib.util import find_spec
from typing import Any

from waterfill.errors import InputError

HOST = "127.0.0.1"
DEFAULT_PORT = 2718
MISSING = "needs marimo: pip install waterfill[studio]"
_POLICY = (
    "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; "
    "connect-src 'self' ws://127.0.0.1:* ws://localhost:* data: blob:; object-src 'none'"
)


def bind(port: int | None) -> socket.socket:
    """Return a socket on the given port, or by default on port 2718 or any free port.

    Raises InputError when the port cannot be had.
    """
    wanted = [DEFAULT_PORT, 0] if port is None else [port]
    for number in wanted:
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((HOST, number))
            return listening
        except OSError as error:
            listening.close()
            reason = (error.strerror or str(error)).lower()
    raise InputError("command line", "port", f"{wanted[-1]} cannot be used: {reason}")


def serve(port: int | None, browser: bool, announce: Callable[[str], None]) -> None:
    """Serve the studio until interrupted. Call `announce` with the URL, token included, once the
    server is ready.

    Raises KeyboardInterrupt at Ctrl-C, InputError without marimo or without the port.
    """
    if find_spec("marimo") is None:
        raise InputError("studio", "", MISSING)
    import uvicorn

    listening = bind(port)
    token = secrets.token_urlsafe(16)
    number = listening.getsockname()[1]
    url = f"http://{HOST}:{number}/?access_token={token}"

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            announce(url)
            if browser:
                # A browser in a terminal would block the server.
                threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()

    config = uvicorn.Config(
        application(token), log_level="warning", timeout_graceful_shutdown=1, ws="auto"
    )
    with listening:
        Server(config).run(sockets=[listening])


def application(token: str) -> Any:
    """Return the ASGI application that serves the studio to visitors with the token."""
    import marimo
    from starlette.middleware.trustedhost import TrustedHostMiddleware

    notebook = resources.files("waterfill.studio") / "app.py"
    served = marimo.create_asgi_app(quiet=True, token=token).with_app(path="/", root=str(notebook))
    hosts = [HOST, "localhost"]
    return TrustedHostMiddleware(_guarded(served.build()), allowed_hosts=hosts)


def _guarded(app: Any) -> Any:
    """Wrap an ASGI application so that each response carries the Content-Security-Policy."""

    async def wrapped(scope: Any, receive: Any, send: Any) -> None:
        async def answer(message: Any) -> None:
            if message["type"] == "http.response.start":
                policy = (b"content-security-policy", _POLICY.encode())
                message = {**message, "headers": [*message.get("headers", []), policy]}
            await send(message)

        await app(scope, receive, answer)

    return wrapped
