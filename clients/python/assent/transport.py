"""HTTP requests with a deadline. Does not follow redirects, because the key is for one service."""

from __future__ import annotations

import http.client
import json
import math
import socket
import ssl
import time
from decimal import Decimal
from typing import Any, Dict, Iterable, Iterator, List, Mapping, NoReturn, Optional, Tuple, Type, cast
from urllib.parse import urlsplit

from .errors import AssentError, NotJson, RequestRefused, ServiceUnavailable, Unauthorized

MAX_ANSWER = 16 * 1024 * 1024
MAX_SAFE_INTEGER = 2**53 - 1
#: Timeout of a connection attempt, in seconds.
CONNECT_TIMEOUT = 5.0
#: Seconds for which to retry an address that refuses connections: long enough for a restart with socket activation.
UNREACHABLE_TIMEOUT = 2.0
ABOUT_THE_KEY = {"INSUFFICIENT_SCOPE", "AGENT_MISMATCH", "AGENT_UNBOUND"}


def to_json(value: Any, keep_decimals: bool = False) -> Any:
    """
    Converts a value to JSON types: tuples to lists, `Decimal` to numbers. Raises NotJson if JSON cannot represent the value
    exactly. With `keep_decimals`, returns a copy that keeps every `Decimal`.
    """
    if value is None or isinstance(value, (bool, str)):
        if isinstance(value, str) and any("\ud800" <= char <= "\udfff" for char in value):
            raise NotJson("a string contains half of a surrogate pair")
        return value
    if isinstance(value, int):
        if abs(value) > MAX_SAFE_INTEGER:
            raise NotJson(f"{value} is larger than JSON represents exactly; send it as a string")
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise NotJson(f"JSON has no {value}")
        return value
    if isinstance(value, Decimal):
        number = _number(value)
        return value if keep_decimals else number
    if isinstance(value, (list, tuple)):
        return [to_json(item, keep_decimals) for item in cast(Iterable[Any], value)]
    if isinstance(value, Mapping):
        members = cast(Mapping[Any, Any], value)
        for key in members:
            if not isinstance(key, str):
                raise NotJson(f"the name {key!r} is not a string")
        return {to_json(key): to_json(item, keep_decimals) for key, item in members.items()}
    raise NotJson(f"JSON has no {type(value).__name__}")


def _number(value: Decimal) -> Any:
    """Returns the JSON number with exactly this value. Raises NotJson if there is none, instead of rounding an amount of money."""
    if not value.is_finite():
        raise NotJson(f"JSON has no {value}")
    if value == value.to_integral_value():
        # Check the exponent first: int() of 1E+999999999 would fill the memory.
        if value.adjusted() > 16:
            raise NotJson(f"{value} is larger than JSON represents exactly; send it as a string")
        return to_json(int(value))
    number = float(value)
    if Decimal(repr(number)) != value:
        raise NotJson(f"{value} has more digits than a JSON number can represent; send it as a string")
    return number


def read_object(text: str) -> Dict[str, Any]:
    """Parses a JSON object. Raises ValueError for other values and for duplicate names, which parsers read differently."""
    try:
        value = json.loads(text, object_pairs_hook=_once)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("it is not an object")
    return cast(Dict[str, Any], value)


def _once(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a name is duplicated")
    return members


class Transport:
    """Sends requests to the service. Thread-safe, because each call opens its own connection. Do not share it between processes."""

    def __init__(self, url: str, key: str, timeout: float, context: Optional[ssl.SSLContext]) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"ASSENT_URL must be an http(s) address; got {url!r}")
        if parts.username is not None or parts.query or parts.fragment:
            raise ValueError("ASSENT_URL must not contain a user, a query or a fragment")
        if not key or any(char.isspace() for char in key):
            raise ValueError("the API key is missing or contains spaces: pass api_key, or set ASSENT_API_KEY to an agent's key")
        self._parts = parts
        self._url = url
        self._key = key
        self._timeout = timeout
        self._context = context or (ssl.create_default_context() if parts.scheme == "https" else None)

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Optional[Mapping[str, str]] = None,
        wait: float = 0,
        repeat: bool = False,
    ) -> Tuple[int, Mapping[str, str], Any]:
        """Returns the status, headers and JSON of a success. Raises AssentError. `repeat`: the call is idempotent and can be retried."""
        begin = time.monotonic()
        end = begin + self._timeout + wait
        backoff = 0.1
        while True:
            try:
                return self._once(method, path, body, headers or {}, end)
            except ServiceUnavailable as error:
                is_unreachable = error.code == "UNREACHABLE"
                pause = error.retry_after if error.retry_after is not None else backoff if is_unreachable else 1.0
                last = min(end, begin + UNREACHABLE_TIMEOUT) if is_unreachable else end
                if not repeat or time.monotonic() + pause >= last:
                    raise
                backoff *= 2
                time.sleep(pause)

    def _once(
        self, method: str, path: str, body: Any, headers: Mapping[str, str], end: float
    ) -> Tuple[int, Mapping[str, str], Any]:
        connection = self._connect(end)
        try:
            self._limit(connection, end)
            status, answered = self._send(connection, method, path, body, headers)
            data = b""
            while True:
                self._limit(connection, end)
                chunk = answered.read(65_536)
                data += chunk
                if len(data) > MAX_ANSWER:
                    _unreadable(status, f"it is longer than {MAX_ANSWER} bytes")
                if not chunk:
                    break
        except (OSError, http.client.HTTPException) as error:
            raise self._no_answer(error) from error
        finally:
            connection.close()
        fields = {name.lower(): value for name, value in answered.getheaders()}
        content = _parse(data) if "json" in fields.get("content-type", "") else None
        if 200 <= status < 300:
            if not isinstance(content, (dict, list)):
                _unreadable(status, "it is not JSON")
            return status, fields, cast(Any, content)
        raise _error(status, as_object(content), fields.get("retry-after"))

    def stream(self, path: str, headers: Mapping[str, str], patience: float) -> Iterator[bytes]:
        """Yields the lines of a stream until it ends. Raises AssentError if nothing arrives for `patience` seconds."""
        end = time.monotonic() + self._timeout
        connection = self._connect(end)
        try:
            self._limit(connection, end)
            status, answered = self._send(connection, "GET", path, None, {"Accept": "text/event-stream", **headers})
            if status != 200:
                data = _parse(answered.read(65_536))
                raise _error(status, as_object(data), answered.getheader("retry-after"))
            if "text/event-stream" not in (answered.getheader("content-type") or ""):
                _unreadable(status, "it is not an event stream")
            if connection.sock is not None:
                connection.sock.settimeout(patience)
            while True:
                line = answered.readline(MAX_ANSWER)
                if not line:
                    return
                if len(line) >= MAX_ANSWER:
                    _unreadable(status, f"a line is longer than {MAX_ANSWER} bytes")
                yield line.rstrip(b"\r\n")
        except (OSError, http.client.HTTPException) as error:
            raise self._no_answer(error) from error
        finally:
            connection.close()

    def _connect(self, end: float) -> http.client.HTTPConnection:
        connection = self._open(end)
        try:
            connection.connect()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise ServiceUnavailable(
                f"{self._url} cannot be reached; is the service running there? ({error})", code="UNREACHABLE"
            ) from error
        return connection

    def _no_answer(self, error: BaseException) -> AssentError:
        if isinstance(error, (socket.timeout, TimeoutError)):
            return ServiceUnavailable(f"{self._url} did not respond in time: {error}", code="TIMEOUT")
        return ServiceUnavailable(f"{self._url} did not respond: {error}", code="UNREACHABLE")

    def _open(self, end: float) -> http.client.HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        timeout = max(0.05, min(CONNECT_TIMEOUT, end - time.monotonic()))
        if self._parts.scheme == "https":
            return http.client.HTTPSConnection(host, port, timeout=timeout, context=self._context)
        return http.client.HTTPConnection(host, port, timeout=timeout)

    def _send(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        body: Any,
        headers: Mapping[str, str],
    ) -> Tuple[int, http.client.HTTPResponse]:
        sent: Dict[str, str] = {"Authorization": f"Bearer {self._key}", "Accept": "application/json", **headers}
        data = None
        if body is not None:
            data = json.dumps(to_json(body), ensure_ascii=False, allow_nan=False).encode()
            sent["Content-Type"] = "application/json"
        connection.request(method, self._parts.path.rstrip("/") + path, body=data, headers=sent)
        answered = connection.getresponse()
        return answered.status, answered

    @staticmethod
    def _limit(connection: http.client.HTTPConnection, end: float) -> None:
        left = end - time.monotonic()
        if left <= 0:
            raise socket.timeout("the response took too long")
        if connection.sock is not None:
            connection.sock.settimeout(left)


def as_object(value: Any) -> Dict[str, Any]:
    """Returns a JSON object; an empty one for any other value."""
    return cast(Dict[str, Any], value) if isinstance(value, dict) else {}


def _parse(data: bytes) -> Any:
    try:
        return json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError):
        return None


def _unreadable(status: int, why: str) -> NoReturn:
    raise ServiceUnavailable(
        f"the response ({status}) is not a valid response of the service: {why}", status=status, code="UNREADABLE_ANSWER"
    )


def _error(status: int, problem: Mapping[str, Any], retry_after: Optional[str]) -> AssentError:
    code = problem.get("code") if isinstance(problem.get("code"), str) else "UNKNOWN"
    detail = problem.get("detail")
    message = detail if isinstance(detail, str) else f"the service responded with {status}"
    after = float(retry_after) if retry_after is not None and retry_after.isdigit() else None
    kind: Type[AssentError] = RequestRefused
    if status == 429 or status >= 500 or status < 400:
        kind = ServiceUnavailable
    elif status == 401 or (status == 403 and code in ABOUT_THE_KEY):
        kind = Unauthorized
    return kind(message, status=status, code=str(code), retry_after=after, problem=problem)
