"""Plans of a server (`pipeweaver serve`), by the standard library alone: `Planner(url=...)` gives these.

Processes  a connection belongs to the thread and process that opened it, so a forked child begins with none; what was
           submitted in one process may be collected in any other.
Retries    a request is sent again until its time is over: opening a session or submitting a step twice with equal
           contents is the same as once. A server that was killed and began anew has what it acknowledged.
Fallback   with `fallback` a planner can make the plan by policy itself, the same in every process, where the server has
           given none in time. Which of the two a step is run by all its ranks must agree on: Executor.load() does.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import ssl
import threading
import time
import urllib.parse
from collections.abc import Container, Mapping
from concurrent.futures import CancelledError
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from . import _core
from ._options import Batch, Config, Path, as_batch, as_options, as_path
from ._plan import Plan
from .errors import FileError, InputError, LimitError, PipeweaverError
from .problem import Problem, Solution

_between_tries = 0.05
_to_answer = 0.005  # of a deadline, for the answer's way
_to_open = 120.0
_usual_budget = 3.0
_to_submit = 0.25  # where there is a fallback: how long a server is tried that does not answer
_spare = 2.0  # times what a plan by policy took, which other processes may make at the same time
# Options of a plan that a session has not: they say where the batch is, or what is done with the plan.
_not_asked = ("out", "threads")
_may_be_files = ("model", "cluster", "recipe", "partition")


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


class Server:
    """Where it is, and what it asks for."""

    def __init__(self, url: str, token: str | None = None, authority: Path | None = None) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/"):
            raise InputError(f"url: is {url!r}, allowed is the address of a server, like http://127.0.0.1:8080")
        self.url = url
        self._host, self._port, self._secure = parts.hostname, parts.port, parts.scheme == "https"
        self._token = token
        self._authority = None if authority is None else as_path(authority)

    def ask(self, method: str, path: str, body: str | None = None, *, within: float) -> bytes:
        """The body of its answer. Tries again while it cannot be reached, or says that it takes nothing now. Raises
        what the answer says, FileError where there is none in `within` seconds."""
        status, answer = self._ask(method, path, body, range(200, 300), within)
        return b"" if status == 202 and method == "GET" else answer

    def _ask(
        self, method: str, path: str, body: str | None, good: Container[int], within: float
    ) -> tuple[int, bytes]:
        end = time.monotonic() + within
        while True:
            left = end - time.monotonic()
            try:
                status, answer, later = self._try(method, path, body, max(0.05, left))
            except (OSError, http.client.HTTPException) as error:
                self._drop()
                status, answer, later = 0, str(error).encode(), 0.0
            if status in (0, 429, 503) and time.monotonic() + _between_tries < end:
                # A server that begins anew (503) is asked again soon: a deadline may be nearer than what it says.
                pause = max(later, _between_tries) if status == 429 else _between_tries
                time.sleep(min(pause, max(0.0, end - time.monotonic() - _between_tries)))
                continue
            if status in good:
                return status, answer
            raise _error(f"{self.url}{path}", status, answer)

    def status(self, path: str, known: tuple[int, ...], *, within: float) -> int:
        """The status of the answer to GET, if it is one of these; else as ask()."""
        return self._ask("GET", path, None, known, within)[0]

    def _try(self, method: str, path: str, body: str | None, within: float) -> tuple[int, bytes, float]:
        connection = self._connection(within)
        headers = {"Accept-Encoding": "gzip"} if body is None else {"Content-Type": "application/json"}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        answer = response.read()
        if response.headers.get("Content-Encoding") == "gzip":
            import gzip

            answer = gzip.decompress(answer)
        return response.status, answer, float(response.headers.get("Retry-After", "0"))

    def _connection(self, within: float) -> http.client.HTTPConnection:
        if _connections.process != os.getpid():
            _connections.process = os.getpid()
            _connections.open = {}
        known = _connections.open.get((self.url, self._authority))
        if known is None:
            if self._secure:
                trusted = ssl.create_default_context(cafile=self._authority)
                known = http.client.HTTPSConnection(self._host, self._port, timeout=within, context=trusted)
            else:
                known = http.client.HTTPConnection(self._host, self._port, timeout=within)
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


class _NotThere(InputError):
    """The server knows no such thing."""


def _error(where: str, status: int, answer: bytes) -> BaseException:
    try:
        message = json.loads(answer)["error"]["message"]
    except (ValueError, KeyError, TypeError):
        message = answer.decode(errors="replace").strip()
    if status == 410:
        return CancelledError(message)
    kinds: dict[int, type[PipeweaverError]] = {404: _NotThere, 422: LimitError, 429: FileError}
    kind = kinds.get(status, InputError if 400 <= status < 500 else FileError)
    return kind(f"{where}: {message}")


class RemoteReplica:
    """One data-parallel copy of the pipeline, with its own schedule."""

    def __init__(self, server: Server, path: str, number: int) -> None:
        self._server = server
        self._path = f"{path}/replicas/{number}"
        self.number = number

    def _get(self, part: str) -> bytes:
        return self._server.ask("GET", f"{self._path}/{part}", within=_to_open)

    @cached_property
    def problem(self) -> Problem:
        return Problem(_core.Problem.parse("problem", self._get("problem").decode()))

    @cached_property
    def solution(self) -> Solution:
        return Solution(_core.replay(self.problem._core, "solution", self._get("solution").decode()))

    @cached_property
    def actions(self) -> dict[str, Any]:
        """What each rank does, in order (`pipeweaver-actions/1`)."""
        return _object(self._get("actions"))

    def rank_actions(self, rank: int) -> dict[str, Any]:
        """What this rank does (`pipeweaver-rank-actions/1`): nothing else is sent."""
        return _object(self._get(f"ranks/{rank}"))


def _object(text: bytes) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(text)
    return value


class RemotePlan:
    """A plan that a server has: each part is fetched when it is asked for."""

    def __init__(self, server: Server, path: str, answer: Mapping[str, Any]) -> None:
        self._server = server
        self._path = path
        self.step: int = answer["step"]
        self.found: dict[str, Any] = dict(answer["found"])
        numbers = sorted({int(part.split("/")[1]) for part in answer["parts"] if part.startswith("replicas/")})
        self.replicas = [RemoteReplica(server, path, number) for number in numbers]
        self._parts = list(answer["parts"])

    def _get(self, part: str) -> bytes:
        return self._server.ask("GET", f"{self._path}/{part}", within=_to_open)

    @cached_property
    def summary(self) -> dict[str, Any]:
        """plan.json (`pipeweaver-plan/1`)."""
        return _object(self._get("plan"))

    @cached_property
    def assignment(self) -> dict[str, Any]:
        """assignment.json (`pipeweaver-assignment/1`)."""
        return _object(self._get("assignment"))

    @cached_property
    def deferred(self) -> list[dict[str, Any]]:
        """Samples that are left for a later step."""
        if "deferred" not in self._parts:
            return []
        return [_object(line) for line in self._get("deferred").splitlines()]

    @cached_property
    def record(self) -> dict[str, Any]:
        """What the same plan comes from again: `pipeweaver plan --served`."""
        return _object(self._get("record"))

    @property
    def makespan_ns(self) -> int:
        """Of the slowest replica."""
        return int(self.found["makespan_ns"])

    @property
    def lower_bound_ns(self) -> int:
        return int(self.found["lower_bound_ns"])

    @property
    def step_ns(self) -> int:
        return int(self.found["step_ns"])

    @property
    def gap(self) -> float:
        return float(self.found["gap"])


@dataclass(frozen=True)
class RankWork:
    """What a rank needs of a step: its list (`pipeweaver-rank-actions/1`) and assignment.json."""

    step: int
    actions: dict[str, Any]
    assignment: dict[str, Any]


class _Fallback:
    """Plans of a session by policy, in this process."""

    def __init__(self, name: str, kept: bytes) -> None:
        self._session = _core.KeptSession(name, kept.decode())
        begun = time.monotonic()
        self._session.by_policy(0, self._session.sample)
        self.seconds = _spare * (time.monotonic() - begun)

    def plan(self, step: int, samples: list[dict[str, Any]]) -> Plan:
        return Plan(self._session.by_policy(step, _lines(samples)))


class RemoteFuture:
    """A plan that a server makes, or has made."""

    def __init__(
        self,
        server: Server,
        path: str,
        step: int,
        budget: float,
        samples: list[dict[str, Any]] | None = None,
        fallback: _Fallback | None = None,
    ) -> None:
        self._server = server
        self._path = f"{path}/steps/{step}"
        self._budget = budget
        self._samples = samples
        self._fallback = fallback if samples is not None else None
        self.step = step

    def done(self) -> bool:
        """Whether the best plan is there, or planning has failed or was cancelled."""
        return self._status() != 202

    def cancel(self) -> bool:
        """False where the plan was there already, or planning had failed."""
        if not self.done():
            self._server.ask("DELETE", self._path, within=_to_open)
        return self._status() == 410

    def _status(self) -> int:
        """Of the step, now: 202 waiting, 200 planned, 410 cancelled, 400, 422, 500 failed. Raises whatever else."""
        return self._server.status(self._path + "?wait_ms=0", (200, 202, 400, 410, 422, 500), within=_to_open)

    def submit(self, within: float) -> None:
        """Hands the batch over, to be planned in so many seconds. With a fallback a server that does not answer soon is
        left alone: result() and collect() submit again."""
        body = json.dumps({"samples": self._samples, "deadline_ms": max(1, round(1000 * within))})
        try:
            patience = within if self._fallback is None else min(within, _to_submit)
            self._server.ask("PUT", self._path, body, within=max(patience, 0.05))
        except (FileError, _NotThere):
            if self._fallback is None:
                raise

    def result(self, deadline: float | None = None) -> RemotePlan | Plan:
        """The best plan found in `deadline` seconds from now; without a deadline, in the budget. A server that was
        killed has forgotten what it had not planned: who knows the step's samples submits it again, others wait for
        that. Where the server has given no plan by then, or cannot be reached, the plan by policy, made here in the
        rest of the time (a Plan); without a fallback FileError."""
        end = self._end(deadline)
        try:
            return RemotePlan(self._server, self._path, json.loads(self._served("", end, hurry=deadline is not None)))
        except FileError:
            if self._fallback is None:
                raise
            return self._by_policy

    def collect(self, replica: int, rank: int, deadline: float | None = None) -> RankWork | None:
        """What this rank needs of the plan, as result(), and nothing else. None where there is a fallback and the
        server has given no plan in time: then by_policy(), if the other ranks do the same."""
        end = self._end(deadline)
        try:
            actions = self._served(f"/replicas/{replica}/ranks/{rank}", end, hurry=deadline is not None)
            return RankWork(self.step, _object(actions), _object(self._served("/assignment", end)))
        except FileError:
            if self._fallback is None:
                raise
            return None

    def by_policy(self, replica: int, rank: int) -> RankWork:
        """What this rank needs of the plan by policy, made in this process; the same in every process."""
        plan = self._by_policy
        return RankWork(self.step, plan.replicas[replica].rank_actions(rank), plan.assignment)

    @cached_property
    def _by_policy(self) -> Plan:
        if self._fallback is None or self._samples is None:
            raise PipeweaverError("there is no fallback: give Planner fallback=True, and of_step() the step's batch")
        return self._fallback.plan(self.step, self._samples)

    def _end(self, deadline: float | None) -> float:
        within = self._budget + 1.0 if deadline is None else deadline
        return time.monotonic() + max(0.0, within - (self._fallback.seconds if self._fallback else 0.0))

    def _served(self, part: str, end: float, hurry: bool = False) -> bytes:
        """Gets a part of the plan; FileError where there is none by `end`. With `hurry` it is planned no longer than
        that."""
        while True:
            left = max(0.0, end - time.monotonic())
            wanted = f"?by_ms={max(0, round(1000 * (left - _to_answer)))}" if hurry else ""
            try:
                answer = self._server.ask("GET", self._path + part + wanted, within=left)
            except _NotThere as error:
                if time.monotonic() + _between_tries > end:
                    raise FileError(str(error)) from error
                self._submit_again(end)
                continue
            if answer:
                return answer
            if time.monotonic() + _between_tries > end:  # else the server has its own idea of how long a wait is
                raise FileError(f"{self._server.url}{self._path}: there is no plan yet")

    def _submit_again(self, end: float) -> None:
        if self._samples is None:
            time.sleep(_between_tries)
        else:
            self.submit(max(0.001, min(self._budget, end - time.monotonic() - _to_answer)))


class RemotePlanner:
    """As Planner, of a session on a server. Of equal arguments it is the same session, whoever opens it first."""

    def __init__(
        self,
        config: Config,
        sample: Batch | None = None,
        *,
        url: str,
        token: str | None = None,
        authority: Path | None = None,
        session: str | None = None,
        fallback: bool = False,
    ) -> None:
        """`session` is its name; without one a name that follows from what is asked for. With `fallback` steps whose
        batch is known here are planned by policy in this process where the server does not give a plan in time."""
        self.server = Server(url, token, authority)
        options = _options_of(config)
        self._budget = _seconds(options.get("budget"))
        asked: dict[str, Any] = {"config": options}
        if sample is not None:
            asked["sample"] = _samples_of(sample)
        body = json.dumps(asked)
        self.name = session or f"job-{hashlib.sha256(body.encode()).hexdigest()[:32]}"
        self._path = f"/v1/sessions/{urllib.parse.quote(self.name, safe='')}"
        self._next = 0
        self.about = _object(self.server.ask("PUT", self._path, body, within=_to_open))
        self._fallback: _Fallback | None = None
        if fallback:
            self._fallback = _Fallback(self.name, self.server.ask("GET", self._path + "/kept", within=_to_open))

    @property
    def partition(self) -> dict[str, Any]:
        """How the modules are cut (`pipeweaver-partition/1`)."""
        partition: dict[str, Any] = self.about["partition"]
        return partition

    def submit(self, batch: Batch, *, step: int | None = None, deadline: float | None = None) -> RemoteFuture:
        """Hands the batch of a step over (without `step`: the next), to be planned in `deadline` seconds, without one
        in the budget."""
        number = self._next if step is None else step
        self._next = number + 1
        within = self._budget if deadline is None else deadline
        future = RemoteFuture(self.server, self._path, number, within, _samples_of(batch), self._fallback)
        future.submit(within)
        return future

    def of_step(self, step: int, batch: Batch | None = None) -> RemoteFuture:
        """The plan of a step that was submitted by whatever process. Who gives its batch as well can submit it again to
        a server that has forgotten it, and fall back."""
        samples = None if batch is None else _samples_of(batch)
        return RemoteFuture(self.server, self._path, step, self._budget, samples, self._fallback)

    def close(self) -> None:
        """Leaves the session to the others that use it; end() ends it."""

    def end(self) -> None:
        """Closes the session for all, with its plans."""
        self.server.ask("DELETE", self._path, within=_to_open)

    def __enter__(self) -> RemotePlanner:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _lines(samples: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(one) + "\n" for one in samples)


def _samples_of(batch: Batch) -> list[dict[str, Any]]:
    _, lines = as_batch(batch)
    if lines is None:
        assert isinstance(batch, (str, os.PathLike))
        lines = _core.read_text(as_path(batch))
    return [_object(line.encode()) for line in lines.splitlines()]


def _options_of(config: Config) -> dict[str, Any]:
    """With documents in place of the files that they name: a server reads none."""
    text = as_options("config", config) if isinstance(config, Mapping) else _core.read_text(as_path(config))
    options = _object(text.encode())
    for key in _not_asked:
        options.pop(key, None)
    for key in _may_be_files:
        value = options.get(key)
        if isinstance(value, str) and value.endswith(".json"):
            options[key] = _object(_core.read_text(value).encode())
    return options


_units = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}


def _seconds(budget: Any) -> float:
    if budget is None:
        return _usual_budget
    text = str(budget)
    number = text.rstrip("abcdefghijklmnopqrstuvwxyz")
    return float(number) * _units.get(text[len(number) :], 1.0)
