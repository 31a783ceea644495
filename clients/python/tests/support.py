"""Shared parts of the tests: an approver, and servers that return wrong responses."""

import http.server
import json
import os
import threading
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

from assent import Assent

AGENT = "support-bot"
ALLOWED = {"amount": 50, "currency": "USD"}
PENDING = {"amount": 500, "currency": "USD"}


def admin() -> Assent:
    return Assent(api_key=os.environ["ASSENT_TEST_ADMIN"])


def vote(action_id: str, approve: bool = True, reason: Optional[str] = None) -> None:
    admin().vote(action_id, approve, reason)


def until(condition: Callable[[], Any], seconds: float = 20.0) -> Any:
    """Waits until the condition is true, and returns its value."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError("it did not come to that")
        time.sleep(0.02)


class Liar:
    """A server that gives the same response to every request, and counts requests."""

    def __init__(self, answer: Callable[[http.server.BaseHTTPRequestHandler], None]) -> None:
        liar = self
        self.paths: list = []
        self.bodies: list = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def handle_one(self) -> None:
                length = int(self.headers.get("content-length") or 0)
                liar.bodies.append(self.rfile.read(length))
                liar.paths.append(f"{self.command} {self.path}")
                answer(self)

            do_GET = do_POST = handle_one

            def log_message(self, *_: Any) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def seen(self) -> List[Tuple[str, Any]]:
        """Returns the requests so far: paths, and bodies parsed as JSON."""
        return [(path, json.loads(body) if body else None) for path, body in zip(self.paths, self.bodies)]

    def __enter__(self) -> "Liar":
        return self

    def __exit__(self, *_: Any) -> None:
        self._server.shutdown()
        self._server.server_close()


def reply(
    status: int, body: Any, headers: Optional[Dict[str, str]] = None
) -> Callable[[http.server.BaseHTTPRequestHandler], None]:
    def answer(handler: http.server.BaseHTTPRequestHandler) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        handler.send_response(status)
        sent = {"Content-Type": "application/json", "Content-Length": str(len(data)), **(headers or {})}
        for name, value in sent.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(data)

    return answer
