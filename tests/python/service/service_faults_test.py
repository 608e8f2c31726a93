"""`pipeweaver serve` where something goes wrong: a full disk, a damaged or locked state, a clock that is set back,
clients that are killed, requests that ask for too much."""

import json
import os
import re
import resource
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time

import pytest
from absent import left_out
from served import CONFIG, eventually, samples

CLOCK = r"""
/* What the clock on the wall says, as many seconds later as the file says; the steady clock stays as it is. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
static long later(void) {
    long seconds = 0;
    FILE *file = fopen(getenv("CLOCK_FILE"), "r");
    if (file) { if (fscanf(file, "%ld", &seconds) != 1) seconds = 0; fclose(file); }
    return seconds;
}
int clock_gettime(clockid_t clock, struct timespec *time) {
    int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
    int status = real(clock, time);
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) time->tv_sec += later();
    return status;
}
int gettimeofday(struct timeval *time, void *zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *to) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (to) *to = now.tv_sec;
    return now.tv_sec;
}
"""


def metric(server, name):
    text = server.ask("GET", "/metrics")[1].decode()
    return float(re.search(rf"^{name} (\S+)", text, re.MULTILINE).group(1))


def events(server, event):
    return [line for line in server.log if line["event"] == event]


def full_at(size):
    """For a child: no file of it may become larger, as on a disk that is full."""

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


def test_where_the_disk_is_full_plans_are_served_all_the_same_and_counted(begin, tmp_path):
    first = begin("--state", tmp_path)
    first.open()
    assert first.submit(1, seed=1)[0] == 202
    assert first.ask("GET", "/v1/sessions/job/steps/1")[0] == 200
    kept = first.ask("GET", "/v1/sessions/job/steps/1/replicas/0/solution")[1]
    assert first.end() == 0
    # Less than a page of SQLite's log.
    server = begin("--state", tmp_path, "--quiet", before=full_at(4_000))
    assert eventually(lambda: server.ask("GET", "/readyz")[0] == 200)
    for step in (2, 3):
        assert server.submit(step, seed=step)[0] == 202
        status, answer = server.ask("GET", f"/v1/sessions/job/steps/{step}")
        assert (status, answer["state"]) == (200, "planned")
        for part in ("plan", "assignment", "record", "whole", "replicas/0/ranks/2"):
            assert server.ask("GET", f"/v1/sessions/job/steps/{step}/{part}")[0] == 200
    assert server.submit(2, seed=2)[0] == 200 and server.submit(2, seed=5)[0] == 409
    assert server.ask("GET", "/v1/sessions/job/steps/1/replicas/0/solution")[1] == kept
    assert metric(server, "pipeweaver_not_stored_total") == 2
    asked = {"config": {**CONFIG, "max-rounds": 1}, "sample": samples()}
    assert server.ask("PUT", "/v1/sessions/other", asked)[0] == 500
    status, answer = server.ask("DELETE", "/v1/sessions/job")
    assert status == 500 and "state.sqlite" in answer["error"]["message"]
    assert server.ask("GET", "/v1/sessions/job")[0] == 200  # as it would be after a restart
    assert server.end() == 0
    server.reader.join(300)
    assert [line["step"] for line in events(server, "plan not stored")] == [2, 3]
    assert all(line["level"] == "warning" and "full" in line["why"] for line in events(server, "plan not stored"))
    assert sorted(os.listdir(tmp_path))[0] == "state.sqlite" and not list(tmp_path.glob("*damaged*"))
    again = begin("--state", tmp_path)
    assert again.ask("GET", "/v1/sessions/job/steps/1/replicas/0/solution")[1] == kept


def fill(state, megabytes):
    """So that not all of it fits into SQLite's memory."""
    with sqlite3.connect(state) as database:
        database.executemany("INSERT INTO part VALUES(?, 'plan', randomblob(1000))",
                             [(1_000_000 + k,) for k in range(1000 * megabytes)])
    database.close()


def test_a_state_that_is_damaged_while_it_is_used_is_said_to_be_and_plans_are_served(begin, tmp_path):
    first = begin("--state", tmp_path)
    first.open()
    for step in range(3):
        assert first.submit(step, seed=step)[0] == 202
    for step in range(3):
        assert first.ask("GET", f"/v1/sessions/job/steps/{step}")[0] == 200
    assert first.end() == 0
    state = tmp_path / "state.sqlite"
    fill(state, 12)
    server = begin("--state", tmp_path)
    assert eventually(lambda: server.ask("GET", "/readyz")[0] == 200)
    size = state.stat().st_size
    with open(state, "r+b") as file:
        file.seek(4096)
        file.write(os.urandom(size - 4096))
    answers = set()
    for step in range(10, 16):
        assert server.submit(step, seed=step)[0] == 202
        status, answer = server.ask("GET", f"/v1/sessions/job/steps/{step}")
        assert (status, answer["state"]) == (200, "planned")
        assert server.ask("GET", f"/v1/sessions/job/steps/{step}/replicas/0/ranks/1")[0] == 200
    for step in range(3):
        answers.add(server.ask("GET", f"/v1/sessions/job/steps/{step}/plan")[0])
    assert answers <= {200, 500}
    assert {server.ask("GET", path)[0] for path in ("/healthz", "/v1/status", "/v1/sessions/job")} == {200}
    assert metric(server, "pipeweaver_not_stored_total") > 0
    assert server.process.poll() is None
    server.end()
    server.reader.join(300)
    said = events(server, "plan not stored") + events(server, "state not read")
    assert said and all(line["level"] == "warning" and "malformed" in line["why"] for line in said)
    damaged = state.read_bytes()
    again = begin("--state", tmp_path)
    assert any("damaged-1" in line["why"] for line in events(again, "state moved aside"))
    assert (tmp_path / "state.sqlite.damaged-1").read_bytes() == damaged
    assert again.ask("GET", "/v1/sessions")[1]["sessions"] == []
    again.open()
    assert again.submit(1)[0] == 202


def test_one_session_that_is_damaged_takes_no_other_along(begin, tmp_path):
    first = begin("--state", tmp_path)
    for name in ("job", "other"):
        first.open(name)
        assert first.submit(1, name=name)[0] == 202
        assert first.ask("GET", f"/v1/sessions/{name}/steps/1")[0] == 200
    assert first.end() == 0
    with sqlite3.connect(tmp_path / "state.sqlite") as database:
        kept, = database.execute("SELECT kept FROM session WHERE name = 'job'").fetchone()
        half = len(kept) // 2
        database.execute("UPDATE session SET kept = ? WHERE name = 'job'", (kept[:half] + bytes(half),))
    database.close()
    server = begin("--state", tmp_path, "--quiet")
    assert eventually(lambda: server.ask("GET", "/readyz")[0] == 200)
    status, answer = server.submit(2)
    assert status == 500 and "damaged" in answer["error"]["message"]
    assert server.ask("GET", "/v1/sessions/job/steps/1/plan")[0] == 200  # what can be read is there
    assert server.submit(2, name="other")[0] == 202
    assert [line["session"] for line in server.said("session not opened again")] == ["job"]
    assert server.ask("DELETE", "/v1/sessions/job")[0] == 204
    server.open("job")


def test_a_state_that_is_locked_for_seconds_is_waited_for(begin, pipeweaver, tmp_path):
    begin("--state", tmp_path).end()
    locks = ("import sqlite3, sys, time\n"
             f"database = sqlite3.connect({str(tmp_path / 'state.sqlite')!r}, isolation_level=None)\n"
             "database.execute('BEGIN IMMEDIATE')\n"
             "print('locked', flush=True)\n"
             "time.sleep(float(sys.argv[1]))\n"
             "database.execute('COMMIT')\n")
    with subprocess.Popen([sys.executable, "-c", locks, "1"], stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        server = begin("--state", tmp_path)
        assert other.wait(300) == 0
    other = sqlite3.connect(tmp_path / "state.sqlite", isolation_level=None, timeout=0.1)
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        other.execute("BEGIN IMMEDIATE")
    other.close()
    server.open()
    assert server.submit(1)[0] == 202
    assert server.ask("GET", "/v1/sessions/job/steps/1")[0] == 200
    assert metric(server, "pipeweaver_not_stored_total") == 0
    assert server.end() == 0
    with subprocess.Popen([sys.executable, "-c", locks, "600"], stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        status, line = pipeweaver.fails("serve", "--http", "127.0.0.1:0", "--state", tmp_path)
        other.kill()
    assert status == 3 and "somebody has locked it" in line
    assert not list(tmp_path.glob("*damaged*"))
    assert begin("--state", tmp_path).ask("GET", "/v1/sessions/job/steps/1")[0] == 200


@pytest.fixture
def clock(tmp_path):
    """Environment of a process whose wall clock is as far off as the file says, and that file."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        left_out("there is no C compiler")
    (tmp_path / "clock.c").write_text(CLOCK)
    library = tmp_path / "clock.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, tmp_path / "clock.c", "-ldl"], check=True)
    file = tmp_path / "clock"
    file.write_text("0")
    return {**os.environ, "LD_PRELOAD": str(library), "CLOCK_FILE": str(file)}, file


def test_a_clock_that_is_set_back_changes_nothing_but_the_logs_times(begin, tmp_path, clock):
    environment, offset = clock
    state = tmp_path / "state"
    server = begin("--state", state, "--keep-plans", "4", environment=environment)
    server.open()
    served = {}

    def plan(server, step):
        assert server.submit(step, seed=step)[0] == 202
        status, answer = server.ask("GET", f"/v1/sessions/job/steps/{step}")
        assert (status, answer["state"]) == (200, "planned")
        served[step] = server.ask("GET", f"/v1/sessions/job/steps/{step}/replicas/0/solution")[1]

    plan(server, 1)
    plan(server, 2)
    assert server.submit(3, seed=3, deadline_ms=2000)[0] == 202
    offset.write_text(str(-30 * 86400))  # a month
    assert server.ask("GET", "/v1/sessions/job/steps/3?wait_ms=60000")[1]["state"] == "planned"
    plan(server, 4)
    assert server.ask("GET", "/v1/sessions/job/steps/1?wait_ms=5000")[0] == 200
    times = [line["time"] for line in server.said("planned", 4)]
    assert times != sorted(times)  # the clock was set back indeed
    server.kill()
    again = begin("--state", state, "--keep-plans", "4", environment=environment)
    assert eventually(lambda: again.ask("GET", "/readyz")[0] == 200)
    for step in (1, 2, 4):
        assert again.ask("GET", f"/v1/sessions/job/steps/{step}/replicas/0/solution")[1] == served[step]
    plan(again, 5)
    plan(again, 6)  # of more than four the first ones go, whatever their times were
    assert again.ask("GET", "/v1/sessions/job")[1]["latest_steps"] == [6, 5, 4, 3]
    assert again.end() == 0


def test_a_client_that_is_killed_while_it_waits_costs_its_connection_until_the_wait_is_over(begin):
    server = begin()
    server.open(**{"max-rounds": 100_000_000, "budget": "300ms"})
    assert eventually(lambda: metric(server, "pipeweaver_connections") == 1)  # its own, none of before
    assert server.submit(1, deadline_ms=15_000)[0] == 202
    wait = ("import http.client\n"
            f"all = [http.client.HTTPConnection('127.0.0.1', {server.port}) for _ in range(5)]\n"
            "for one in all:\n"
            "    one.request('GET', '/v1/sessions/job/steps/1/plan')\n"
            "print('asked', flush=True)\n"
            "all[0].getresponse()\n")
    client = subprocess.Popen([sys.executable, "-c", wait], stdout=subprocess.PIPE)
    client.stdout.readline()
    assert eventually(lambda: metric(server, "pipeweaver_connections") >= 6)
    client.kill()
    client.wait()
    assert server.ask("GET", "/healthz")[0] == 200
    assert server.ask("GET", "/v1/sessions/job/steps/1")[1]["state"] == "planned"
    assert eventually(lambda: metric(server, "pipeweaver_connections") == 1)
    assert server.submit(2, seed=2, deadline_ms=300)[0] == 202
    assert server.ask("GET", "/v1/sessions/job/steps/2")[0] == 200


def test_a_batch_of_too_many_samples_is_refused_and_one_of_as_many_as_allowed_is_taken(begin):
    server = begin()
    server.open()

    def submit(step, count, **headers):
        body = json.dumps({"deadline_ms": 300_000, "samples": [{"id": str(k), "text_tokens": 1} for k in range(count)]})
        return server.ask("PUT", f"/v1/sessions/job/steps/{step}", body, **headers)

    status, answer = submit(1, 100_001)
    assert status == 413 and "has 100001, allowed are 100000" in answer["error"]["message"]
    assert server.ask("GET", "/v1/sessions/job/steps/1")[0] == 404
    assert submit(1, 100_000)[0] == 202
    assert server.ask("DELETE", "/v1/sessions/job/steps/1")[0] == 204
    assert server.ask("GET", "/healthz")[0] == 200


def test_what_is_wrong_with_a_step_is_told_over_its_connection(begin):
    server = begin()
    server.open()
    step = "/v1/sessions/job/steps/1"
    assert server.submit(1, seed=1)[0] == 202
    assert server.submit(1, seed=2)[0] == 409
    assert server.ask("GET", step)[0] == 200
    assert server.submit(1, seed=2)[0] == 409 and server.submit(1, seed=1)[0] == 200
    for deadline in (0, -1, -10**15, 600_001, 1.5, "soon", None):
        status, answer = server.submit(2, deadline_ms=deadline)
        assert status == 400 and "deadline_ms" in answer["error"]["message"]
    body = json.dumps({"deadline_ms": 100, "samples": samples()})
    for kind in ("text/plain", "application/x-www-form-urlencoded", "application/jsonl", ""):
        assert server.ask("PUT", step, body, **{"Content-Type": kind})[0] == 415
    for deep in ("[" * 1_000_000, '{"samples":' * 100_000, '{"deadline_ms":1,"samples":' + "[" * 80 + "]" * 80 + "}"):
        status, answer = server.ask("PUT", "/v1/sessions/job/steps/3", deep)
        assert status == 400 and answer["error"]["message"]
        assert server.ask("PUT", "/v1/sessions/another", deep)[0] == 400
    assert server.ask("GET", "/healthz")[0] == 200
    assert [one["session"] for one in server.ask("GET", "/v1/sessions")[1]["sessions"]] == ["job"]


def test_who_says_no_more_is_answered_and_who_goes_half_way_is_let_go(begin):
    server = begin()
    with socket.create_connection(("127.0.0.1", server.port)) as half:
        half.settimeout(60)
        half.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        half.shutdown(socket.SHUT_WR)
        got = b""
        while more := half.recv(65536):
            got += more
        assert got.startswith(b"HTTP/1.1 200")
    for begun in (b"GET /hea", b"PUT /v1/sessions/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{"):
        with socket.create_connection(("127.0.0.1", server.port)) as half:
            half.sendall(begun)
            half.shutdown(socket.SHUT_WR)
            half.settimeout(60)
            while half.recv(65536):
                pass
    assert eventually(lambda: metric(server, "pipeweaver_connections") <= 1)


@pytest.mark.alone
def test_two_thousand_idle_connections_leave_a_plan_in_time(begin):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2500:
        left_out(f"a process may open {hard} files here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    idle = []
    try:
        server = begin()
        server.open(**{"max-rounds": 100_000_000, "budget": "300ms"})
        for _ in range(2000):
            idle.append(socket.create_connection(("127.0.0.1", server.port)))
        assert eventually(lambda: metric(server, "pipeweaver_connections") >= 2000)
        late = []
        for step in range(5):
            began = time.monotonic()
            assert server.submit(step, seed=step, deadline_ms=500)[0] == 202
            status, answer = server.ask("GET", f"/v1/sessions/job/steps/{step}")
            late.append(time.monotonic() - began - 0.5)
            assert (status, answer["found"]["by"]) == (200, "search")
        assert min(late) < 0.2  # another program may have the cores meanwhile, but not each time
    finally:
        for connection in idle:
            connection.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert eventually(lambda: metric(server, "pipeweaver_connections") <= 1)


def test_two_plans_on_one_server_at_a_time_do_not_close_each_others_session(begin, pipeweaver, tmp_path):
    server = begin()
    asked = [pipeweaver.path, "plan", "--server", server.url, "--model", "dip-vlm-s", "--cluster", "h100-sxm:16",
             "--dataset", "vlm-mix", "--microbatches", "4", "--max-rounds", "1", "--budget", "60s", "--out"]
    runs = [subprocess.Popen([*asked, tmp_path / str(k)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for k in range(4)]
    for run in runs:
        _, errors = run.communicate(timeout=300)
        assert run.returncode == 0, errors
    plans = {(tmp_path / str(k) / "plan.json").read_bytes() for k in range(4)}
    assert len(plans) == 1
    assert server.ask("GET", "/v1/sessions")[1]["sessions"] == []
