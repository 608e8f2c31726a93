"""Plans of a server (`pipeweaver serve`), by the standard library alone: `Planner(url=...)` gives these.

Processes  what was submitted in one process may be collected in any other; a child may be forked at any time.
Retries    opening a session or submitting a step twice with equal contents is the same as once, so what has no answer
           is sent again. A server that was killed and began anew has what it acknowledged.
Fallback   with `fallback` a planner can make the plan by policy itself, the same in every process, where the server has
           given none in time, or is not there. Which of the two a step is run by all its ranks must agree on:
           Executor.load() does.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import urllib.parse
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Union

from . import _core
from ._options import Batch, Config, Path, Stop, as_batch, as_options, as_path, as_priority
from ._plan import Plan
from ._remote_plan import ServedPlan, as_object
from ._server import NotThere, Server, Taken, between_tries, to_answer
from .errors import FileError, InputError, PipeweaverError

__all__ = ["RankWork", "RemoteFuture", "RemotePlanner", "Server"]

_to_open = 120.0
_to_look = 10.0
_to_reach = 2.0  # where there is a fallback: how long a server is tried when a planner is made
_usual_budget = 3.0
_to_submit = 0.25  # where there is a fallback: how long a server is tried that does not answer
_late = 5.0  # where there is none: an answer that comes so much later is better than no plan
_spare = 2.0  # times what a plan by policy took, which other processes may make at the same time
_step_of_first = 2**53 - 1
_own_steps = 2**28  # of a forked child: so many, from a number that it draws
# Options of a plan that a session has not: they say where the batch is, or what is done with the plan.
_not_asked = ("out", "threads")
_may_be_files = ("model", "teacher", "cluster", "network", "recipe", "partition")

Fallback = Union[bool, Path]


@dataclass(frozen=True)
class RankWork:
    """What a rank needs of a step: its list (`pipeweaver-rank-actions/1`) and assignment.json."""

    step: int
    actions: dict[str, Any]
    assignment: dict[str, Any]


class _ByPolicy:
    """Plans of a session by policy, in this process."""

    def __init__(self, name: str, kept: str) -> None:
        self._session = _core.KeptSession(name, kept)
        begun = time.monotonic()
        self._session.by_policy(0, self._session.sample)
        self.seconds = _spare * (time.monotonic() - begun)

    @property
    def partition_file(self) -> dict[str, Any]:
        """The partition (`pipeweaver-partition/1`)."""
        return as_object(self._session.partition.encode())

    @cached_property
    def partition(self) -> dict[str, Any]:
        """That of a plan's summary."""
        partition: dict[str, Any] = Plan(self._session.by_policy(0, self._session.sample)).summary["partition"]
        return partition

    @property
    def sample(self) -> str:
        """The batch that the session was opened on, as a batch file."""
        sample: str = self._session.sample
        return sample

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
        fallback: _ByPolicy | None = None,
        *,
        priority: int = 0,
        open_again: Callable[[float], None] | None = None,
    ) -> None:
        self._server = server
        self._path = f"{path}/steps/{step}"
        self._budget = budget
        self._samples = samples
        self._fallback = fallback if samples is not None else None
        self._priority = priority
        self._open_again = open_again
        self._given_up = False
        self.step = step

    def done(self) -> bool:
        """Whether the best plan is there, or planning has failed or was cancelled."""
        return self._status() != 202

    def cancelled(self) -> bool:
        return self._status() == 410

    def cancel(self) -> bool:
        """False where the plan was there already, or planning had failed."""
        if not self.done():
            try:
                self._server.ask("DELETE", self._path, within=_to_open)
            except NotThere:
                self._given_up = True  # of a server that has forgotten it
        return self.cancelled()

    def _status(self) -> int:
        """Of the step, now: 202 waiting, 200 planned, 410 cancelled, 400, 422, 500 failed. Raises whatever else. What a
        server that was killed has forgotten waits, for who can submit it again."""
        if self._given_up:
            return 410
        try:
            return self._server.status(self._path + "?wait_ms=0", (200, 202, 400, 410, 422, 500), within=_to_look)
        except NotThere:
            if self._samples is None:
                raise
            return 202

    def submit(self, within: float) -> None:
        """Hands the batch over, to be planned in so many seconds. With a fallback a server that does not answer soon is
        left alone: result() and collect() submit again."""
        end = time.monotonic() + within
        patience = max(0.05, within if self._fallback is None else min(within, _to_submit))
        try:
            try:
                self._hand_over(end, patience)
            except NotThere:
                if self._open_again is None:
                    raise
                self._open_again(patience)
                self._hand_over(end, patience)
        except (FileError, NotThere):
            if self._fallback is None:
                raise

    def _hand_over(self, end: float, patience: float) -> None:
        samples = json.dumps(self._samples)
        priority = f', "priority": {self._priority}' if self._priority else ""

        def body() -> str:  # of each try: meanwhile the deadline has come nearer
            left = max(1, round(1000 * (end - time.monotonic())))
            return f'{{"deadline_ms": {left}{priority}, "samples": {samples}}}'

        self._server.ask("PUT", self._path, body, within=patience)

    def result(self, deadline: float | None = None) -> Plan:
        """The best plan found in `deadline` seconds from now; without a deadline, in the budget. A server that was
        killed has forgotten what it had not planned: who knows the step's samples submits it again, others wait for
        that. Where the server has given no plan by then, or cannot be reached, the plan by policy, made here in the
        rest of the time; without a fallback FileError, where a server that can be reached gives none soon after."""
        end = self._end(deadline)
        try:
            answer = json.loads(self._served("", end, hurry=deadline is not None))
            return Plan(ServedPlan(self._server, self._path, answer))
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
            return RankWork(self.step, as_object(actions), as_object(self._served("/assignment", end)))
        except FileError:
            if self._fallback is None:
                raise
            return None

    def by_policy(self, replica: int, rank: int) -> RankWork:
        """What this rank needs of the plan by policy, made in this process; the same in every process."""
        plan = self._by_policy
        mine = next((one for one in plan.replicas if one.number == replica), None)
        if mine is None:
            raise InputError(f"replica: is {replica}, planned are {[one.number for one in plan.replicas]}")
        return RankWork(self.step, mine.rank_actions(rank), plan.assignment)

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
            if self._given_up:
                raise CancelledError("planning was cancelled")
            left = max(0.0, end - time.monotonic())
            wanted = f"?by_ms={max(0, round(1000 * (left - to_answer)))}" if hurry else ""
            try:
                late = 0.0 if self._fallback else _late
                answer = self._server.ask("GET", self._path + part + wanted, within=left, late=late)
            except NotThere as error:
                if time.monotonic() + between_tries > end:
                    raise FileError(str(error)) from error
                self._submit_again(end)
                continue
            if answer:
                return answer
            if time.monotonic() + between_tries > end:  # else the server has its own idea of how long a wait is
                raise FileError(f"{self._server.url}{self._path}: there is no plan yet")

    def _submit_again(self, end: float) -> None:
        if self._samples is None:
            time.sleep(between_tries)
        else:
            self.submit(max(0.001, min(self._budget, end - time.monotonic() - to_answer)))


class RemotePlanner:
    """As Planner, of a session on a server. Of equal arguments it is the same session, whoever opens it first."""

    def __init__(
        self,
        config: Config,
        sample: Batch | None = None,
        *,
        replica: int | None = None,
        stop: Stop = None,
        url: str,
        token: str | None = None,
        authority: Path | None = None,
        session: str | None = None,
        fallback: Fallback = False,
    ) -> None:
        """`replica` and `stop` as in process. `session` is its name; without one a name that follows from what is asked
        for. With `fallback` steps whose batch is known here are planned by policy in this process where the server
        does not give a plan in time. A fallback is made of what the server keeps of the session; one that is a folder
        remembers that there. Where the server is not there when the planner is made, what the folder remembers is
        taken, else a session is opened here by policy: without a search, and the same in every process; a server that
        is there later opens the same, with the same partition, under another name."""
        self.server = Server(url, token, authority)
        options = _options_of(config)
        if replica is not None:
            options["replicas"] = str(replica)
        self._budget = _seconds(options.get("budget"))
        self._process, self._next = os.getpid(), 0
        self._fallback: _ByPolicy | None = None
        self._again: str | None = None  # what a session that was opened here is opened with at the server
        asked: dict[str, Any] = {"config": options}
        if sample is not None:
            asked["sample"] = _samples_of(sample)
        self._be_called(session, body := json.dumps(asked), whole=session is not None)
        memory = None if isinstance(fallback, bool) else os.path.join(as_path(fallback), f"{self.name}.json")
        if fallback is False:
            self._open_there(body, stop)
            return
        try:
            self.server.ask("GET", "/healthz", within=_to_reach)
            self._open_there(body, stop)
            kept = self.server.ask("GET", self._path + "/kept", within=_to_open).decode()
            if memory is not None:
                _core.write_files([(memory, kept.encode())])
        except FileError:
            if memory is not None and os.path.exists(memory):
                kept = _core.read_text(memory)
            else:
                kept = self._open_here(session, asked)
        self._fallback = _ByPolicy(self.name, kept)
        self.about.setdefault("partition", self._fallback.partition_file)

    def _be_called(self, session: str | None, contents: str, whole: bool) -> None:
        digest = hashlib.sha256(contents.encode()).hexdigest()[:32]
        self.name = session if session is not None and whole else f"{(session or 'job')[:31]}-{digest}"
        self._path = f"/v1/sessions/{urllib.parse.quote(self.name, safe='')}"
        self.about: dict[str, Any] = {"session": self.name}

    def _open_there(self, body: str, stop: Stop) -> None:
        told = False

        def ask_stop() -> None:
            nonlocal told
            if stop is not None and not told and stop():
                told = True
                self.server.tell(self._path + "?by_ms=0")

        meanwhile = None if stop is None else ask_stop
        self.about = as_object(self.server.ask("PUT", self._path, body, within=_to_open, meanwhile=meanwhile))

    def _open_here(self, session: str | None, asked: dict[str, Any]) -> str:
        """By policy. What a server keeps of such a session, which is called after its partition."""
        config = {key: json.dumps(value) if key in _may_be_files and isinstance(value, dict) else value
                  for key, value in asked["config"].items()}
        kept = _core.keep_by_policy(json.dumps(config), _lines(asked["sample"]) if "sample" in asked else None)
        pinned = as_object(kept.encode())["config"]
        for key in ("budget", "replicas"):
            if key in config:
                pinned[key] = config[key]
        self._again = json.dumps({**asked, "config": pinned}, sort_keys=True)
        self._be_called(session, self._again, whole=False)
        return kept

    def _open_again(self, within: float) -> None:
        self.server.ask("PUT", self._path, self._again, within=within)

    @cached_property
    def first(self) -> Plan:
        """The plan of the batch that the session was opened on, which is planned when it is first asked for, once for
        all processes. Without opponents."""
        if self._fallback is not None:
            lines = self._fallback.sample
        else:
            kept = self.server.ask("GET", self._path + "/kept", within=_to_open).decode()
            lines = _core.KeptSession(self.name, kept).sample
        samples = [as_object(line.encode()) for line in lines.splitlines()]
        return self._submitted(_step_of_first, samples, self._budget, 0).result()

    @property
    def partition(self) -> dict[str, Any]:
        """How the modules are cut: chains of stages, each with its rank and layers, without what else was tried.
        `about["partition"]` is the same as `pipeweaver-partition/1`."""
        if self._fallback is not None:
            return self._fallback.partition
        partition: dict[str, Any] = self.first.summary["partition"]
        return partition

    def submit(
        self, batch: Batch, *, step: int | None = None, deadline: float | None = None, priority: int = 0
    ) -> RemoteFuture:
        """Hands the batch of a step over (without `step`: the next), to be planned in `deadline` seconds, without one
        in the budget; of what waits the highest `priority`, 0 to 100, has its turn first. A forked child has steps of
        its own numbers unless it says which, and so has a planner whose next step others have submitted with another
        batch."""
        samples, within = _samples_of(batch), self._budget if deadline is None else deadline
        as_priority(priority)
        if step is not None:
            self._next = step + 1
            return self._submitted(step, samples, within, priority)
        if self._process != os.getpid():
            self._number_own_steps()
        self._next += 1
        try:
            return self._submitted(self._next - 1, samples, within, priority)
        except Taken:
            self._number_own_steps()
            self._next += 1
            return self._submitted(self._next - 1, samples, within, priority)

    def _number_own_steps(self) -> None:
        self._process = os.getpid()
        self._next = _own_steps * (1 + int.from_bytes(os.urandom(3), "big"))

    def _submitted(self, step: int, samples: list[dict[str, Any]], within: float, priority: int) -> RemoteFuture:
        future = self._future(step, samples, within, priority)
        future.submit(within)
        return future

    def _future(
        self, step: int, samples: list[dict[str, Any]] | None, budget: float, priority: int = 0
    ) -> RemoteFuture:
        open_again = None if self._again is None else self._open_again
        return RemoteFuture(self.server, self._path, step, budget, samples, self._fallback, priority=priority,
                            open_again=open_again)

    def of_step(self, step: int, batch: Batch | None = None) -> RemoteFuture:
        """The plan of a step that was submitted by whatever process. Who gives its batch as well can submit it again to
        a server that has forgotten it, and fall back."""
        return self._future(step, None if batch is None else _samples_of(batch), self._budget)

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
    return [as_object(line.encode()) for line in lines.splitlines()]


def _options_of(config: Config) -> dict[str, Any]:
    """With documents in place of the files that they name: a server reads none."""
    text = as_options("config", config) if isinstance(config, Mapping) else _core.read_document(as_path(config))
    options = as_object(text.encode())
    for key in _not_asked:
        options.pop(key, None)
    for key in _may_be_files:
        if isinstance(value := options.get(key), str):
            options[key] = _document(value)
    return options


def _document(value: str) -> Any:
    """The document in a file of that name (a cluster's may be followed by a number of GPUs), else the value itself."""
    name, colon, count = value.rpartition(":")
    if value.startswith("{") or value.startswith("hf:"):
        return value
    if colon and count.isdigit() and _core.names_a_document(name):
        return {**as_object(_core.read_document(name).encode()), "gpus": int(count)}
    return as_object(_core.read_document(value).encode()) if _core.names_a_document(value) else value


_units = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}


def _seconds(budget: Any) -> float:
    if budget is None:
        return _usual_budget
    text = str(budget)
    number = text.rstrip("abcdefghijklmnopqrstuvwxyz")
    try:
        return float(number) * _units.get(text[len(number) :], 1.0)
    except ValueError:
        return _usual_budget  # what is wrong with it whoever opens the session says
