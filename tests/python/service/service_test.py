"""`pipeweaver serve` over its connections: plans in time, restarts, bad and slow clients, what others may not do."""

import gzip
import json
import os
import pathlib
import re
import signal
import socket
import sqlite3
import ssl
import subprocess
import time
import urllib.error
import urllib.request

import pytest
from absent import left_out
from checkout import ROOT
from served import free_port, samples


@pytest.mark.alone
def test_a_step_is_planned_in_time_and_comes_again_from_its_record(begin, pipeweaver, tmp_path):
    server = begin()
    opened = server.open(**{"max-rounds": 100_000, "budget": "300ms"})
    assert opened["ready"] and opened["partition"]["format"] == "pipeweaver-partition/1"
    status, answer = server.submit(7, seed=1, deadline_ms=400)
    began = time.monotonic()
    assert (status, answer["state"]) == (202, "waiting")
    status, answer = server.ask("GET", "/v1/sessions/job/steps/7")
    assert time.monotonic() - began < 30  # so many rounds take minutes
    assert (status, answer["state"]) == (200, "planned")
    assert 0 <= answer["found"]["gap"] < 1

    below = "/v1/sessions/job/steps/7/"
    record = tmp_path / "record.json"
    record.write_text(json.dumps(server.ask("GET", below + "record")[1]))
    pipeweaver("plan", "--served", record, "--out", tmp_path / "again", "--quiet")
    for part, file in {"plan": "plan.json", "assignment": "assignment.json",
                       "replicas/0/solution": "replica-000/solution.json",
                       "replicas/0/actions": "replica-000/actions.json"}.items():
        with urllib.request.urlopen(server.url + below + part) as there:
            served, written = there.read(), (tmp_path / "again" / file).read_bytes()
        if part == "plan":  # in a folder it also says what the files beside it are
            plan = json.loads(written)
            assert set(plan.pop("files")) > {"assignment.json", "replica-000/solution.json"}
            assert plan == json.loads(served)
        else:
            assert served == written, part


@pytest.mark.alone
def test_a_plan_by_policy_is_there_within_milliseconds(begin):
    server = begin()
    server.open(model="dip-vlm-m", cluster="h100-sxm:32", tp=8, pp=4)
    took = []
    for step in range(8):
        began = time.monotonic()
        assert server.submit(step, seed=step, deadline_ms=1)[0] == 202
        status, answer = server.ask("GET", f"/v1/sessions/job/steps/{step}")
        took.append(time.monotonic() - began)
        assert (status, answer["found"]["by"]) == (200, "policy")
    assert min(took) < 0.5  # 30 ms where nothing else runs


def test_plan_server_writes_what_the_server_has(begin, pipeweaver, tmp_path):
    server = begin()
    asked = ["plan", "--server", server.url, "--model", "dip-vlm-s", "--cluster", "h100-sxm:16", "--dataset", "vlm-mix",
             "--microbatches", "4", "--max-rounds", "5", "--budget", "60s"]
    assert "found by search" in pipeweaver(*asked, "--out", tmp_path / "first")
    pipeweaver(*asked, "--out", tmp_path / "second")
    files = sorted(path.relative_to(tmp_path / "first") for path in (tmp_path / "first").rglob("*") if path.is_file())
    assert pathlib.Path("replica-000/actions.json") in files and pathlib.Path("record.json") in files
    for file in files:
        assert (tmp_path / "first" / file).read_bytes() == (tmp_path / "second" / file).read_bytes()
    assert server.ask("GET", "/v1/sessions")[1]["sessions"] == []  # of a command that is over nothing stays
    pipeweaver("replay", tmp_path / "first/replica-000/problem.json.gz", tmp_path / "first/replica-000/solution.json")
    pipeweaver("plan", "--served", tmp_path / "first/record.json", "--out", tmp_path / "again", "--quiet")
    for file in files:
        if file.name not in ("record.json", "plan.json"):
            assert (tmp_path / "first" / file).read_bytes() == (tmp_path / "again" / file).read_bytes(), file
    first, again = [json.loads((tmp_path / name / "plan.json").read_text()) for name in ("first", "again")]
    assert first.pop("files").keys() < again.pop("files").keys() | {"record.json"}  # what is made of the record, too
    assert first == again
    cluster = tmp_path / "cluster.json"
    cluster.write_text(pipeweaver("show", "h100-sxm"))
    in_file = [f"{cluster}:16" if one == "h100-sxm:16" else one for one in asked]
    pipeweaver(*in_file, "--out", tmp_path / "third")
    assert (tmp_path / "third/partition.json").read_bytes() == (tmp_path / "first/partition.json").read_bytes()
    server.end()
    status, line = pipeweaver.fails(*asked, "--out", tmp_path / "none")
    assert status == 3 and "gives no answer" in line
    assert not (tmp_path / "none").exists()


def test_a_server_on_an_address_of_ipv6_is_reached_by_it(begin, pipeweaver, tmp_path):
    try:
        with socket.socket(socket.AF_INET6) as there:
            there.bind(("::1", 0))
    except OSError:
        left_out("there is no IPv6 on this machine")
    server = begin(http="[::1]:0")
    asked = ["plan", "--model", "dip-vlm-s", "--cluster", "h100-sxm:16", "--dataset", "vlm-mix", "--microbatches", "2",
             "--max-rounds", "1", "--budget", "1s"]
    pipeweaver(*asked, "--server", f"http://[::1]:{server.port}", "--out", tmp_path / "plan")
    for wrong in ("http://[::1", "http://[::1]x", "http://::1:80", "http://a:80:90", "http://a:b", "http://[]:80"):
        status, line = pipeweaver.fails(*asked, "--server", wrong, "--out", tmp_path / "none")
        assert status == 2 and "is no address of a server" in line


def test_what_was_acknowledged_outlives_kills(begin, tmp_path):
    state = tmp_path / "state"
    served = {}
    for life in range(4):
        server = begin("--state", state)
        if life == 0:
            server.open()
        assert server.ask("GET", "/v1/sessions/job")[0] == 200
        for step, solution in served.items():
            assert server.ask("GET", f"/v1/sessions/job/steps/{step}/replicas/0/solution")[1] == solution
        while server.ask("GET", "/readyz")[0] != 200:
            time.sleep(0.02)
        for step in range(3 * life, 3 * life + 3):
            assert server.submit(step, seed=step)[0] == 202
        step = 3 * life
        assert server.ask("GET", f"/v1/sessions/job/steps/{step}")[0] == 200
        served[step] = server.ask("GET", f"/v1/sessions/job/steps/{step}/replicas/0/solution")[1]
        server.kill()  # while the others are planned


def test_sigterm_plans_what_was_taken_and_then_ends(begin, tmp_path):
    state = tmp_path / "state"
    server = begin("--state", state)
    server.open(**{"max-rounds": 100_000, "budget": "300ms"})
    assert server.submit(1, deadline_ms=5000)[0] == 202
    assert server.end() == 0
    again = begin("--state", state)
    assert again.ask("GET", "/v1/sessions/job/steps/1")[1]["found"]["by"] == "search"


def test_sigterm_while_the_state_is_opened_ends_the_server_in_order(begin, pipeweaver, tmp_path):
    state = tmp_path / "state"
    begin("--state", state).end()
    with sqlite3.connect(state / "state.sqlite") as database:  # some 100 MB, which take long to check
        database.executemany("INSERT INTO part VALUES(?, 'plan', randomblob(1000))", [(k,) for k in range(80_000)])
    database.close()
    port = free_port()
    process = subprocess.Popen([pipeweaver.path, "serve", "--http", f"127.0.0.1:{port}", "--state", state],
                               stderr=subprocess.PIPE, text=True)
    while process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            break
        except ConnectionRefusedError:
            time.sleep(0.001)
    process.send_signal(signal.SIGTERM)
    _, log = process.communicate(timeout=300)
    assert process.returncode == 0 and json.loads(log.splitlines()[-1])["event"] == "ended"


def test_never_more_threads_than_told(begin):
    server = begin()
    server.open()
    for step in range(6):
        server.submit(step, seed=step, deadline_ms=300)
        assert server.threads() <= 3  # two that plan, one that talks
    server.ask("GET", "/v1/sessions/job/steps/5")
    assert server.threads() <= 3


def raw(server, text, wait=60.0):
    """What a server answers to these bytes, until it closes or the time is over."""
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.settimeout(wait)
        connection.sendall(text)
        got = b""
        try:
            while more := connection.recv(65536):
                got += more
                if b"\r\n\r\n" in got and got.endswith(b"\n"):
                    break
        except TimeoutError:
            pass
        return got


def test_what_is_no_http_or_too_large_is_refused(begin):
    server = begin()
    assert raw(server, b"nonsense\r\n\r\n").startswith(b"HTTP/1.1 400")
    assert raw(server, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 20000
               + b"\r\n\r\n").startswith(b"HTTP/1.1 431")
    head = b"PUT /v1/sessions/a HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
    assert raw(server, head + b"999999999\r\n\r\n").startswith(b"HTTP/1.1 413")
    assert b"100 Continue" in raw(server, head + b"2\r\nExpect: 100-continue\r\n\r\n")
    assert raw(server, b"HEAD /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").startswith(b"HTTP/1.1 200")
    assert raw(server, b"GET /v1/sessions HTTP/1.1\r\nHost: evil.example\r\n\r\n").startswith(b"HTTP/1.1 421")
    assert server.ask("GET", "/healthz")[0] == 200


def test_what_is_refused_for_its_size_is_told_so_after_it_was_sent(begin):
    server = begin()
    assert server.ask("PUT", "/v1/sessions/a", b"x" * (17 << 20))[0] == 413
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.settimeout(60)
        connection.sendall(b"HEAD /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nnonsense\r\n\r\n")
        got = b""
        while more := connection.recv(65536):
            got += more
    assert b"HTTP/1.1 400" in got and b"is no HTTP request" in got  # not without its body, as what came before


def test_idle_slow_and_dead_clients_cost_a_connection_and_nothing_else(begin):
    server = begin()
    server.open()
    idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(900)]
    for connection in idle[:300]:
        connection.sendall(b"GET /healthz HT")  # and then nothing
    assert server.submit(1, deadline_ms=300)[0] == 202
    for connection in idle[300:320]:
        connection.sendall(b"GET /v1/sessions/job/steps/1 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        connection.close()  # killed while it waits
    assert server.ask("GET", "/v1/sessions/job/steps/1")[0] == 200
    assert server.ask("GET", "/healthz")[0] == 200
    for connection in idle:
        connection.close()


def test_a_damaged_state_is_moved_aside_and_said(begin, tmp_path):
    state = tmp_path / "state"
    state.mkdir()
    (state / "state.sqlite").write_bytes(b"no database" * 1000)
    server = begin("--state", state)
    assert any(line["event"] == "state moved aside" and "damaged-1" in line["why"] for line in server.log)
    assert (state / "state.sqlite.damaged-1").read_bytes() == b"no database" * 1000
    server.open()


def test_one_state_is_for_one_server(begin, pipeweaver, tmp_path):
    begin("--state", tmp_path)
    status, line = pipeweaver.fails("serve", "--http", "127.0.0.1:0", "--state", tmp_path)
    assert status == 3 and "another server has it" in line


def test_others_are_served_with_a_token_and_tls_alone(begin, pipeweaver, tmp_path):
    token, certificate, key = tmp_path / "token", tmp_path / "cert.pem", tmp_path / "key.pem"
    token.write_text("0123456789abcdef\n")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate,
                    "-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"],
                   check=True, capture_output=True)
    tls = ["--tls-certificate", certificate, "--tls-key", key]
    refused = {("--http", "0.0.0.0:0"): "needs --token-file", ("--http", "0.0.0.0:0", *tls): "needs --token-file",
               ("--http", "nowhere"): "must be ADDRESS:PORT", ("--http", "example:80"): "needs --token-file"}
    for options, why in refused.items():
        status, line = pipeweaver.fails("serve", *options)
        assert status == 2 and why in line
    token.chmod(0o644)
    assert "others may read" in pipeweaver.fails("serve", "--http", "127.0.0.1:0", "--token-file", token)[1]
    token.chmod(0o600)

    server = begin("--token-file", token, *tls, http="0.0.0.0:0")
    trusted = ssl.create_default_context(cafile=certificate)

    def ask(path, **headers):
        request = urllib.request.Request(f"https://127.0.0.1:{server.port}{path}", headers=headers)
        try:
            with urllib.request.urlopen(request, context=trusted) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    assert ask("/healthz") == 200
    assert ask("/v1/sessions") == 401
    assert ask("/v1/sessions", Authorization="Bearer 0123456789abcdeg") == 401
    assert ask("/v1/sessions", Authorization="Bearer 0123456789abcdef") == 200
    assert ask("/v1/events?for_ms=300") == 401
    request = urllib.request.Request(f"https://127.0.0.1:{server.port}/v1/events?for_ms=300",
                                     headers={"Authorization": "Bearer 0123456789abcdef"})
    with urllib.request.urlopen(request, context=trusted) as answer:
        assert b"event: state" in answer.read()
    asked = ["plan", "--server", f"https://127.0.0.1:{server.port}", "--server-token", token, "--model", "dip-vlm-s",
             "--cluster", "h100-sxm:16", "--dataset", "vlm-mix", "--microbatches", "2", "--max-rounds", "1"]
    pipeweaver(*asked, "--server-authority", certificate, "--budget", "1s", "--out", tmp_path / "plan")
    assert "gives no answer" in pipeweaver.fails(*asked, "--out", tmp_path / "untrusted")[1]
    assert ask("/healthz") == 200


def test_requests_have_ids_and_the_log_is_json(begin):
    server = begin()
    server.ask("GET", "/v1/sessions/none", **{"X-Request-Id": "mine-1"})
    server.ask("GET", "/v1/sessions/\"quoted\"\xff".encode("latin1").decode("latin1").replace("\xff", "%ff"))
    server.end()
    server.reader.join(300)
    requests = [line for line in server.log if line["event"] == "request"]
    assert requests[0]["id"] == "mine-1" and requests[0]["status"] == 404
    assert len(requests) == 2 and requests[1]["status"] == 400


def test_the_commands_of_the_documentation_run_as_they_stand(begin, pipeweaver, tmp_path):
    """Every shell block of docs/service.md, one after the other, but for a port that is free."""
    text = (ROOT / "docs/service.md").read_text()
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    port = str(free_port())
    script = "set -e\n" + "\n".join(blocks).replace("8080", port)
    # The server needs a moment before it is asked for the first time.
    script = script.replace("threads 2 &\n", "threads 2 2>server.log &\nuntil curl -sf http://127.0.0.1:" + port
                            + "/readyz; do sleep 0.05; done\n")
    path = f"{pathlib.Path(pipeweaver.path).parent}:{os.environ['PATH']}"
    done = subprocess.run(["bash", "-c", script + "\nwait"], cwd=tmp_path, env={**os.environ, "PATH": path},
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr + done.stdout
    for said in ('"healthy": true', "pipeweaver-partition/1", '"state": "waiting"', "pipeweaver-rank-actions/1",
                 '"lower_bound_ns"'):
        assert said in done.stdout
    assert (tmp_path / "served-again/plan.json").is_file()
    log = [json.loads(line) for line in (tmp_path / "server.log").read_text().splitlines()]
    assert log[-1]["event"] == "ended"
    assert "no plan" not in done.stdout


def stream(server, query="", **options):
    """A connection that reads /v1/events, or will."""
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=60)
    for name, value in options.items():
        connection.setsockopt(socket.SOL_SOCKET, getattr(socket, name), value)
    connection.sendall(f"GET /v1/events{query} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    return connection


def read_until(connection, text):
    """What comes until the text is there, or all there is."""
    got = b""
    while text.encode() not in got and (more := connection.recv(65536)):
        got += more
    return got.decode()


def events_of(text):
    """(name, data) of each whole event."""
    return [(name, json.loads(data)) for name, data in re.findall(r"event: (\w+)\ndata: (.*)\n\n", text)]


def test_events_tell_of_a_step_that_is_submitted_and_planned(begin):
    server = begin()
    server.open()
    with stream(server) as connection:
        head, _, first = read_until(connection, "event: state").partition("\r\n\r\n")
        assert head.startswith("HTTP/1.1 200") and "Content-Type: text/event-stream" in head
        assert events_of(first)[:1] == [("history", [])]
        assert server.submit(7, deadline_ms=1)[0] == 202
        later = read_until(connection, '"planned":1')  # in a state
    done, = next(data for name, data in events_of(later + "\n\n") if name == "done")
    assert (done["session"], done["step"], done["how"]) == ("job", 7, "policy")
    assert done["late_seconds"] > 0 and done["why"]
    line, = server.said("planned")
    assert line["why_late"] == done["why"] and line["late_seconds"] == done["late_seconds"]


def test_events_end_when_their_time_is_over(begin):
    server = begin()
    began = time.monotonic()
    with stream(server, "?for_ms=300") as connection:
        assert "event: state" in read_until(connection, "none of this is sent")
    assert 0.2 < time.monotonic() - began < 30


def test_readers_of_events_that_do_not_read_hold_nothing_up(begin):
    server = begin()
    server.open()
    silent = [stream(server, SO_RCVBUF=2048) for _ in range(16)]
    gone = [stream(server) for _ in range(8)]
    for connection in gone:
        read_until(connection, "event: state")
        connection.close()
    for step in range(40):
        assert server.submit(step, seed=step, deadline_ms=1)[0] == 202
        began = time.monotonic()
        assert server.ask("GET", f"/v1/sessions/job/steps/{step}")[0] == 200
        assert time.monotonic() - began < 30
    # Who left has made room; with those that do not read these are as many as may.
    more = [stream(server) for _ in range(16)]
    assert all("HTTP/1.1 200" in read_until(connection, "\r\n\r\n") for connection in more)
    with stream(server) as refused:
        answer = read_until(refused, "as many as may")
    assert answer.startswith("HTTP/1.1 503") and "Retry-After: 5" in answer
    for connection in silent + more:
        connection.close()


def test_open_streams_of_events_do_not_hold_up_the_end(begin):
    server = begin()
    server.open()
    readers = [stream(server) for _ in range(8)]
    for connection in readers[:4]:
        read_until(connection, "event: state")
    began = time.monotonic()
    assert server.end() == 0
    assert time.monotonic() - began < 30  # by themselves the streams have no end
    for connection in readers[:4]:
        assert "event: done" not in read_until(connection, "none of this is sent")
    for connection in readers:
        connection.close()


def test_streams_of_events_end_at_once_while_a_server_still_plans(begin):
    server = begin()
    server.open(**{"max-rounds": 100_000, "budget": "300ms"})
    assert server.submit(1, deadline_ms=120_000)[0] == 202
    with stream(server) as connection:
        read_until(connection, "event: state")
        server.process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        read_until(connection, "none of this is sent")
        assert time.monotonic() - began < 60  # of 120
    assert server.process.poll() is None  # it plans what it took
    with stream(server) as connection:
        assert read_until(connection, "the server is ending").startswith("HTTP/1.1 503")
    assert server.end() == 0  # told twice, it waits for nothing
