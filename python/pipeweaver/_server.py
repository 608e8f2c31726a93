"""A server of `pipeweaver serve`, asked over HTTP by the standard library alone.

Processes  a connection belongs to the thread and process that opened it, so a forked child begins with none.
Retries    a request is sent again until its time is over: each is the same as once. (A session is known by its name and
           contents, a step by its session and number.)
"""

from __future__ import annotations

import http.client
import json
import os
import selectors
import ssl
import threading
import time
import urllib.parse
import zlib
from collections.abc import Callable, Container
from concurrent.futures import CancelledError
from typing import Union

from ._options import Path, as_path
from .errors import FileError, InputError, LimitError, PipeweaverError

between_tries = 0.05
to_answer = 0.005  # of a deadline, for the answer's way
_between_questions = 0.05

Body = Union[str, Callable[[], str], None]  # a function's: made anew for each time that it is sent
Meanwhile = Union[Callable[[], None], None]  # called some twenty times a second


class _Connections(threading.local):
    """Of this thread, in this process."""

    process: int = 0
    open: dict[tuple[str, str | None], http.client.HTTPConnection]  # by URL and by who vouches for it


_connections = _Connections()


def _forget_connections() -> None:
    # The parent's sockets are left to it: nothing is sent on them here.
    global _connections
    _connections = _Connections()


os.register_at_fork(after_in_child=_forget_connections)


class NotThere(InputError):
    """The server knows no such thing."""


class Taken(InputError):
    """It is known with other contents."""


class Server:
    """Where it is, and what it asks for."""

    def __init__(self, url: str, token: str | None = None, authority: Path | None = None) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/"):
            raise InputError(f"url: is {url!r}, must be the address of a server, like http://127.0.0.1:8080")
        self.url = url
        self._host, self._port, self._secure = parts.hostname, parts.port, parts.scheme == "https"
        self._token = token
        self._authority = None if authority is None else as_path(authority)

    def ask(
        self,
        method: str,
        path: str,
        body: Body = None,
        *,
        within: float,
        late: float = 0.0,
        meanwhile: Meanwhile = None,
    ) -> bytes:
        """The body of its answer. Tries again while it cannot be reached, or says that it takes nothing now. Raises
        what the answer says, FileError where there is none in `within` seconds; who was reached may answer so many
        seconds later."""
        status, answer = self._ask(method, path, body, range(200, 300), within, meanwhile, late)
        return b"" if status == 202 and method == "GET" else answer

    def status(self, path: str, known: tuple[int, ...], *, within: float) -> int:
        """The status of the answer to GET, if it is one of these; else as ask()."""
        return self._ask("GET", path, None, known, within, None)[0]

    def tell(self, path: str) -> None:
        """GET on a connection of its own, while another request waits for its answer. Whether it came matters not."""
        connection = self._new_connection(1.0)
        try:
            self._send(connection, "GET", path, None)
            connection.getresponse().read()
        except (OSError, http.client.HTTPException):
            pass
        finally:
            connection.close()

    def _ask(
        self,
        method: str,
        path: str,
        body: Body,
        good: Container[int],
        within: float,
        meanwhile: Meanwhile,
        late: float = 0.0,
    ) -> tuple[int, bytes]:
        end = time.monotonic() + within
        while True:
            left = end - time.monotonic()
            try:
                status, answer, later = self._try(method, path, body, max(0.05, left) + late, meanwhile)
            except (OSError, http.client.HTTPException, zlib.error, EOFError) as error:
                self._drop()
                status, answer, later = 0, str(error).encode(), 0.0
            except BaseException:
                self._drop()  # it has an answer to come that nobody reads
                raise
            if status in (0, 429, 503) and time.monotonic() + between_tries < end:
                # A server that begins anew (503) is asked again soon: a deadline may be nearer than what it says.
                pause = max(later, between_tries) if status == 429 else between_tries
                time.sleep(min(pause, max(0.0, end - time.monotonic() - between_tries)))
                continue
            if status in good:
                return status, answer
            raise _error(f"{self.url}{path}", status, answer)

    def _try(
        self, method: str, path: str, body: Body, within: float, meanwhile: Meanwhile
    ) -> tuple[int, bytes, float]:
        connection = self._connection(within)
        if meanwhile is not None and connection.sock is None:
            # What TLS itself has to say at first comes with this answer; then what comes is the answer waited for.
            self._send(connection, "GET", "/healthz", None)
            connection.getresponse().read()
        self._send(connection, method, path, body() if callable(body) else body)
        if meanwhile is not None:
            _wait_for_answer(connection, within, meanwhile)
        response = connection.getresponse()
        answer = response.read()
        if response.headers.get("Content-Encoding") == "gzip":
            import gzip

            answer = gzip.decompress(answer)
        return response.status, answer, float(response.headers.get("Retry-After", "0"))

    def _send(self, connection: http.client.HTTPConnection, method: str, path: str, body: str | None) -> None:
        headers = {"Accept-Encoding": "gzip"} if body is None else {"Content-Type": "application/json"}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        connection.request(method, path, body, headers)

    def _new_connection(self, within: float) -> http.client.HTTPConnection:
        if self._secure:
            trusted = ssl.create_default_context(cafile=self._authority)
            return http.client.HTTPSConnection(self._host, self._port, timeout=within, context=trusted)
        return http.client.HTTPConnection(self._host, self._port, timeout=within)

    def _connection(self, within: float) -> http.client.HTTPConnection:
        if _connections.process != os.getpid():
            _connections.process = os.getpid()
            _connections.open = {}
        known = _connections.open.get((self.url, self._authority))
        if known is None:
            known = self._new_connection(within)
            _connections.open[self.url, self._authority] = known
        known.timeout = within
        if known.sock is not None:
            known.sock.settimeout(within)
        return known

    def _drop(self) -> None:
        if _connections.process == os.getpid():
            connection = _connections.open.pop((self.url, self._authority), None)
            if connection is not None:
                connection.close()


def _wait_for_answer(connection: http.client.HTTPConnection, within: float, meanwhile: Callable[[], None]) -> None:
    end = time.monotonic() + within
    with selectors.DefaultSelector() as selector:
        selector.register(connection.sock, selectors.EVENT_READ)
        while not selector.select(_between_questions):
            if time.monotonic() > end:
                raise TimeoutError("timed out")
            meanwhile()


def _error(where: str, status: int, answer: bytes) -> BaseException:
    try:
        message = json.loads(answer)["error"]["message"]
    except (ValueError, KeyError, TypeError):
        message = answer.decode(errors="replace").strip()
    if status == 410:
        return CancelledError(message)
    kinds: dict[int, type[PipeweaverError]] = {404: NotThere, 409: Taken, 422: LimitError, 429: FileError}
    kind = kinds.get(status, InputError if 400 <= status < 500 else FileError)
    return kind(f"{where}: {message}")
