#!/usr/bin/env python3
"""Runs `pipeweaver serve` under the thread sanitizer while many clients ask at once; fails where it reports anything.

    tools/tsan_service.py [--seconds 60] [--threads 3] [--program FILE]

Builds the program of the preset tsan first, unless one is named. The server has two lives on one state: load, SIGTERM
under load, and again. Exits with 1 for any report of the sanitizer, an exit status of the server other than 0, an
answer of status 500, or a kind of request that was never answered as it should be; what was found is printed.
tools/tsan.supp says which reports are none of this program's.
"""

import argparse
import collections
import contextlib
import gzip
import http.client
import json
import math
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "build/tsan/bin/pipeweaver"
SESSIONS = 4
LONGEST_OPENING = 300  # seconds of all of them, on a machine that has other work
CONFIG = {"model": "dip-vlm-s", "cluster": "h100-sxm:16", "tp": 4, "pp": 4, "budget": "300ms"}
PARTS = ("", "/whole", "/plan", "/assignment", "/record", "/replicas/0", "/replicas/0/problem", "/replicas/0/solution",
         "/replicas/0/actions", "/replicas/0/ranks/3")
PAGES = ("/", "/healthz", "/readyz", "/metrics", "/openapi.json", "/v1/status", "/v1/sessions")


def samples(draw):
    return [{"id": f"s{k}", "text_tokens": draw.randrange(300, 900),
             "images": [{"width": 448, "height": 448}] * draw.randrange(3)} for k in range(8)]


def many_samples(draw):
    """So many bytes that they are read on a thread that plans, for a few microbatches."""
    return [{"id": f"sample-{k}", "text_tokens": draw.randrange(1, 9), "images": []} for k in range(8000)]


class Load:
    """What all clients share: where the server is, whether it goes on, and how often what was answered."""

    def __init__(self, port, streams):
        self.port, self.streams = port, streams
        self.until = math.inf
        self.steps = {}  # the latest of each session
        self.answers = collections.Counter()
        self.wrong = []
        self.lock = threading.Lock()

    def goes_on(self):
        return time.monotonic() < self.until

    def count(self, kind, status):
        with self.lock:
            self.answers[kind, status] += 1

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)

    def ask(self, kind, connection, method, path, body=None, **headers):
        """Status and body of an answer; None, None where the server is gone."""
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException):
            connection.close()
            return None, None
        if answer.getheader("Content-Encoding") == "gzip":
            content = gzip.decompress(content)
        self.count(kind, answer.status)
        if answer.status == 500:
            with self.lock:
                self.wrong.append(f"{method} {path}: {answer.status} {content[:500]!r}")
        return answer.status, content


def owner(load, draw, name):
    """Opens a session, submits, waits for and takes steps, cancels some, closes it now and then and begins again."""
    path, connection, step = f"/v1/sessions/{name}", load.connect(), 0
    opened = {"config": CONFIG, "sample": samples(draw)}
    while load.goes_on():
        status, _ = load.ask("open", connection, "PUT", path, opened)
        if status != 200:
            time.sleep(0.05)
            if status == 409:  # open with other contents, from the server's earlier life
                load.ask("close", connection, "DELETE", path)
            continue
        for _ in range(draw.randrange(5, 40)):
            step += 1
            load.steps[name] = step
            of_step = f"{path}/steps/{step}"
            asked = {"samples": many_samples(draw) if draw.random() < 0.05 else samples(draw),
                     "deadline_ms": draw.choice((1, 20, 100, 500, 2000)), "priority": draw.randrange(3)}
            load.ask("submit", connection, "PUT", of_step, asked)
            way = draw.random()
            if way < 0.2:
                load.ask("cancel", connection, "DELETE", of_step)
            elif way < 0.3:
                load.ask("submit again", connection, "PUT", of_step, asked)
            elif way < 0.35:
                load.ask("submit others", connection, "PUT", of_step, {**asked, "samples": samples(draw)})
            elif way < 0.4:
                continue  # and so the queue grows
            elif way < 0.5:
                load.ask("wait a little", connection, "GET", f"{of_step}?wait_ms={draw.randrange(30)}")
            zipped = {"Accept-Encoding": "gzip"} if draw.random() < 0.5 else {}
            hurried = "?by_ms=50" if draw.random() < 0.5 else ""
            load.ask("collect", connection, "GET", of_step + draw.choice(PARTS) + hurried, **zipped)
            if draw.random() < 0.2:
                connection.close()
            if not load.goes_on():
                return
        load.ask("close", connection, "DELETE", path)


def reader(load, draw):
    """Looks at everything, each time on another connection, and at steps that others wait for."""
    while load.goes_on():
        with contextlib.closing(load.connect()) as connection:
            for _ in range(draw.randrange(1, 6)):
                name = f"job-{draw.randrange(SESSIONS)}"
                path = f"/v1/sessions/{name}"
                about = draw.choice((*PAGES, path, path + "/kept", "step", "step"))
                if about == "step":
                    step = max(1, load.steps.get(name, 1) - draw.randrange(3))
                    about = f"{path}/steps/{step}{draw.choice(PARTS)}?wait_ms={draw.choice((0, 10, 300))}"
                load.ask("look", connection, "GET", about, **{"Accept-Encoding": "gzip"})


def leaver(load, draw):
    """Goes away in the middle of requests and before their answers."""
    while load.goes_on():
        try:
            with socket.create_connection(("127.0.0.1", load.port), timeout=10) as there:
                name = f"job-{draw.randrange(SESSIONS)}"
                asked = (f"GET /v1/sessions/{name}/steps/{load.steps.get(name, 1)}/whole HTTP/1.1\r\n"
                         f"Host: localhost\r\n\r\n").encode()
                there.sendall(asked[: draw.randrange(1, len(asked) + 40)])
                if draw.random() < 0.3:
                    there.shutdown(socket.SHUT_WR)
                time.sleep(draw.random() * 0.05)
                load.count("leave", 0)
        except OSError:
            time.sleep(0.01)


def listener(load, draw):
    """Listens to the server's events for a while, again and again."""
    while load.goes_on():
        with contextlib.closing(load.connect()) as connection, contextlib.suppress(OSError, http.client.HTTPException):
            connection.request("GET", draw.choice(load.streams))
            answer = connection.getresponse()
            end = time.monotonic() + draw.random() * 3
            while time.monotonic() < end and load.goes_on() and answer.readline():
                load.count("event", answer.status)


def streams_of(port):
    """Addresses without places whose answers are streams of events."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.request("GET", "/openapi.json")
        paths = json.loads(connection.getresponse().read())["paths"]
    gets = {path: methods["get"] for path, methods in paths.items() if "{" not in path and "get" in methods}
    return [path for path, get in gets.items() if "text/event-stream" in get["responses"]["200"].get("content", {})]


def sanitizer_options(reports):
    """TSAN_OPTIONS with which reports go into files of that folder."""
    options = {"log_path": f"{reports}/report", "exitcode": 66, "history_size": 4, "second_deadlock_stack": 1,
               "suppressions": ROOT / "tools/tsan.supp"}
    return " ".join(f"{name}={value}" for name, value in options.items())


def begin(program, state, threads, reports, log):
    command = [program, "serve", "--http", "127.0.0.1:0", "--threads", str(threads), "--state", state]
    with open(log, "a", encoding="utf-8") as there:
        environment = {**os.environ, "TSAN_OPTIONS": sanitizer_options(reports)}
        process = subprocess.Popen(command, stderr=there, env=environment)
    end = time.monotonic() + 120
    while time.monotonic() < end and process.poll() is None:
        for line in reversed(pathlib.Path(log).read_text(encoding="utf-8").splitlines()):
            said = json.loads(line) if line.startswith("{") and line.endswith("}") else {}
            if said.get("event") == "ended":
                break  # of the life before
            if said.get("event") == "listening":
                return process, int(said["url"].rsplit(":", 1)[1])
        time.sleep(0.05)
    process.kill()
    sys.exit(f"the server does not listen:\n{pathlib.Path(log).read_text(encoding='utf-8')[-3000:]}")


def live(process, port, seconds, seed):
    """Clients for so long after all sessions are open, and SIGTERM while they ask; returns what they saw and the exit
    status."""
    load = Load(port, streams_of(port))
    jobs = [(owner, f"job-{k}") for k in range(SESSIONS)] + [(reader,)] * 3 + [(leaver,)] * 2
    jobs += [(listener,)] * (2 if load.streams else 0)
    threads = [threading.Thread(target=job, args=(load, random.Random(f"{seed} {k}"), *more))
               for k, (job, *more) in enumerate(jobs)]
    for thread in threads:
        thread.start()
    begun = time.monotonic()
    while load.answers["open", 200] < SESSIONS and time.monotonic() < begun + LONGEST_OPENING:
        time.sleep(0.1)
    time.sleep(seconds)
    process.send_signal(signal.SIGTERM)
    load.until = time.monotonic() + 1
    for thread in threads:
        thread.join()
    try:
        return load, process.wait(120)
    except subprocess.TimeoutExpired:
        process.kill()
        return load, "none, 120 s after SIGTERM"


def missing(load):
    """Kinds of requests that were never answered as they should be."""
    wanted = {"open": 200, "close": 204, "submit": 202, "submit again": 202, "submit others": 409, "cancel": 204,
              "wait a little": 202, "collect": 200, "look": 200, "leave": 0}
    if load.streams:
        wanted["event"] = 200
    return [f"{kind} ({status})" for kind, status in wanted.items() if load.answers[kind, status] == 0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--threads", type=int, default=3)
    parser.add_argument("--program", type=pathlib.Path)
    asked = parser.parse_args()
    if asked.program is None:
        subprocess.run(["cmake", "--preset", "tsan"], cwd=ROOT, check=True)
        subprocess.run(["cmake", "--build", "--preset", "tsan", "--target", "pipeweaver"], cwd=ROOT, check=True)
    with tempfile.TemporaryDirectory() as folder:
        reports, log = pathlib.Path(folder, "reports"), pathlib.Path(folder, "log")
        reports.mkdir()
        wrong = []
        for life, part in enumerate((0.6, 0.4)):
            process, port = begin(asked.program or PROGRAM, f"{folder}/state", asked.threads, reports, log)
            load, status = live(process, port, part * asked.seconds, life)
            for (kind, answer), count in sorted(load.answers.items()):
                print(f"{life} {kind:14} {answer:4} {count:7}")
            wrong += load.wrong[:5] + [f"never answered as it should be: {kind}" for kind in missing(load)]
            if status != 0:
                wrong.append(f"exit status of the server: {status}")
        for report in sorted(reports.iterdir()):
            wrong.append(report.read_text(encoding="utf-8", errors="replace")[:20_000])
        if any("exit status" in line for line in wrong):
            wrong.append(log.read_text(encoding="utf-8", errors="replace")[-3000:])
    print("\n".join(wrong) or "nothing found")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
