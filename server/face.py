"""The HTTP face of the server's process: /healthz, /metrics and /v1/status.

Owns its listener and routes. Must not know Spark. Invariant: it only tells; nothing can be changed
by it, no secret is among what it tells, and on loopback it tells nobody from elsewhere.
"""

import json
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from server.errors import JobsError
from server.monitor import metrics

LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})


class Face:
    """Answers until it is closed."""

    def __init__(self, where: str, status: Callable[[], Mapping[str, Any]]) -> None:
        """`where` is host:port. Raises JobsError where that cannot be had."""
        host, colon, port = where.rpartition(":")
        if not colon or not port.isdigit() or int(port) > 65535:
            raise JobsError(f"server.http: found {where}, expected host:port")
        try:
            handler = _handler(status, loopback=host.strip("[]") in LOOPBACK)
            self._server = ThreadingHTTPServer((host.strip("[]"), int(port)), handler)
        except OSError as error:
            raise JobsError(f"server.http: {where}: {(error.strerror or '').lower()}") from None
        self._server.daemon_threads = True
        self.url = f"http://{host}:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Answer no more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10.0)


def _name(host: str) -> str:
    """The name in a Host header, without its port."""
    return host.rpartition("]")[0].lstrip("[") if host[:1] == "[" else host.partition(":")[0]


def _handler(
    status: Callable[[], Mapping[str, Any]], *, loopback: bool
) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 30.0

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if loopback and _name(self.headers.get("Host", "")) not in LOOPBACK:
                # A page in somebody's browser that gives this machine a name of its own.
                self._answer(403, "text/plain", "this is not its name\n")
            elif path == "/healthz":
                self._answer(200, "text/plain", "ok\n")
            elif path == "/metrics":
                self._answer(200, "text/plain; version=0.0.4", metrics(status()))
            elif path == "/v1/status":
                self._answer(200, "application/json", json.dumps(status()))
            else:
                document = {"ok": False, "errors": [{"message": "there is nothing here"}]}
                self._answer(404, "application/json", json.dumps(document))

        def _answer(self, code: int, media: str, text: str) -> None:
            data = text.encode()
            self.send_response(code)
            self.send_header("Content-Type", media)
            self.send_header("Content-Length", str(len(data)))
            self.send_header("X-Content-Type-Options", "nosniff")
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass  # who asks for metrics every few seconds is no news

    return Handler
