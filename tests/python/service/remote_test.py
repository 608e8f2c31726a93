"""Planner(url=...): the calls of Planner, answered by a server, from forked children, across kills."""

import http.server
import inspect
import json
import os
import subprocess
import threading
import time
from concurrent.futures import CancelledError

import pytest
from absent import needed
from served import CONFIG, Server, free_port, samples

remote = needed("pipeweaver")
there = needed("pipeweaver.remote")
TheServer, RemoteFuture = there.Server, there.RemoteFuture

BUDGET = {**CONFIG, "budget": 0.5}
QUICK = {**CONFIG, "budget": 60, "max_rounds": 3}  # the rounds end it, on a slow machine as well
DRAWN = {**QUICK, "dataset": "vlm-mix", "microbatches": 4}


@pytest.fixture
def server(pipeweaver, tmp_path):
    one = Server(pipeweaver.path, "--state", tmp_path / "state", http=f"127.0.0.1:{free_port()}")
    yield one
    one.kill()


def test_a_plan_has_what_one_in_process_has(server):
    with remote.Planner(DRAWN, url=server.url) as planner:
        assert planner.about["partition"]["format"] == "pipeweaver-partition/1"
        plan = planner.submit(samples()).result()
        assert plan.lower_bound_ns <= plan.makespan_ns <= plan.step_ns
        assert plan.summary["makespan_ns"] == plan.makespan_ns
        assert [replica.number for replica in plan.replicas] == [0]
        replica = plan.replicas[0]
        assert remote.replay(replica.problem, replica.solution).makespan_ns == plan.makespan_ns
        assert replica.actions["format"] == "pipeweaver-actions/1"
        assert replica.rank_actions(3)["format"] == "pipeweaver-rank-actions/1"
        ids = [one["id"] for each in plan.assignment["replicas"] for batch in each["microbatches"]
               for one in batch["samples"]]
        assert sorted(ids) == sorted(one["id"] for one in samples())
        assert plan.record["format"] == "pipeweaver-record/1"
        assert plan.deferred == []


# What the planner of a server has beside the calls of the one in process, and why.
BESIDE = {
    "Planner": {
        "name": "of the session, which others may join",
        "server": "where it is", "about": "what the server says of the session",
        "of_step": "steps are submitted and collected by other processes",
        "end": "a session outlives its planners until somebody ends it",
    },
    "PlanFuture": {
        "collect": "a rank fetches its own list alone",
        "by_policy": "the plan of who has no server", "submit": "again, to a server that has forgotten it",
    },
}
ARGUMENTS_BESIDE = {
    "Planner": {"url", "token", "authority", "session", "fallback"},  # where the session is, and what if it is not
}


def public(thing):
    return {name for name in dir(thing) if not name.startswith("_")}


def arguments(function):
    """Names, kinds and defaults."""
    return {name: (one.kind, one.default) for name, one in inspect.signature(function).parameters.items()}


def test_the_calls_are_those_of_the_planner_in_process(server):
    here = remote.Planner(QUICK, samples())
    with remote.Planner(QUICK, samples(), url=server.url) as planner:
        futures = here.submit(samples(1)), planner.submit(samples(1))
        plans = [future.result() for future in futures]
        assert [type(plan) for plan in plans] == [remote.Plan] * 2
        for name, (mine, other) in {"Planner": (here, planner), "PlanFuture": futures}.items():
            assert type(mine) is getattr(remote, name) and type(mine) is not type(other)
            assert public(other) - public(mine) == set(BESIDE[name]), name
            assert public(mine) <= public(other), name
            if name != "Planner":
                assert public(mine) == {one for one in public(mine) if not callable(getattr(mine, one))
                                        or arguments(getattr(mine, one)) == arguments(getattr(other, one))}, name
        for call in public(here):
            if callable(getattr(here, call)):
                assert arguments(getattr(here, call)) == arguments(getattr(planner, call)), call
        made, opened = (arguments(one.__init__) for one in (remote.Planner, there.RemotePlanner))
        assert {name: opened.get(name) for name in made} == made
        assert opened.keys() - made.keys() == ARGUMENTS_BESIDE["Planner"]
    here.close()


def test_what_is_planned_there_is_what_is_planned_here(server, pipeweaver, tmp_path):
    here = remote.Planner(QUICK, samples())
    planner = remote.Planner(QUICK, samples(), url=server.url)
    mine, other = here.submit(samples(1), step=7), planner.submit(samples(1), step=7)
    assert (mine.step, other.step) == (7, 7)
    mine, other = mine.result(), other.result()
    assert other.makespan_ns == mine.makespan_ns and other.lower_bound_ns == mine.lower_bound_ns
    assert 0 < other.seconds < 60 and repr(other) == repr(mine)
    assert planner.of_step(7).result().seconds == other.seconds
    assert planner.first.makespan_ns <= here.first.makespan_ns  # its search begins with the order of that
    tried = {"alternatives", "notes"}
    assert {key: value for key, value in planner.partition.items() if key not in tried} == {
        key: value for key, value in here.partition.items() if key not in tried}
    assert planner.partition["chains"] == remote.Planner(QUICK, samples(), url=server.url,
                                                         fallback=True).partition["chains"]
    mine.write(tmp_path / "here")
    other.write(tmp_path / "there")
    (tmp_path / "record.json").write_bytes((tmp_path / "there/record.json").read_bytes())
    pipeweaver("plan", "--served", tmp_path / "record.json", "--out", tmp_path / "again")
    files = {str(path.relative_to(tmp_path / "there")) for path in (tmp_path / "there").rglob("*") if path.is_file()}
    assert files == {"plan.json", "assignment.json", "partition.json", "record.json", "replica-000/problem.json.gz",
                     "replica-000/solution.json", "replica-000/actions.json"}
    for name in files - {"record.json", "plan.json"}:
        assert (tmp_path / "there" / name).read_bytes() == (tmp_path / "again" / name).read_bytes(), name
        assert (tmp_path / "here" / name).is_file()
    there, again = [json.loads((tmp_path / folder / "plan.json").read_text()) for folder in ("there", "again")]
    assert there.pop("files").keys() == files - {"plan.json"} < again.pop("files").keys() | {"record.json"}
    assert there == again
    for name in ("partition.json", "replica-000/solution.json", "replica-000/actions.json"):
        made = (tmp_path / "here" / name).read_text()
        if name == "partition.json":
            assert made == (tmp_path / "there" / name).read_text()
        else:
            assert len(made) == len((tmp_path / "there" / name).read_text())
    with pytest.raises(remote.FileError):
        other.write("/dev/null/below")
    here.close()


def test_one_replica_alone_is_planned_as_in_the_plan_of_all(server):
    config = {**QUICK, "cluster": "h100-sxm:32", "dp": 2, "microbatches": 4, "dataset": "vlm-mix", "max_rounds": 1}
    whole = remote.Planner(config, url=server.url)
    one = remote.Planner(config, url=server.url, replica=1)
    assert one.name == remote.Planner({**config, "replicas": "1"}, url=server.url).name != whole.name
    batch = remote.batch_of(config)
    plan = one.submit(batch).result()
    assert [replica.number for replica in plan.replicas] == [1]
    both = whole.submit(batch).result()
    assert [replica.number for replica in both.replicas] == [0, 1]
    assert plan.assignment["replicas"] == both.assignment["replicas"][1:]
    here = remote.Planner(config, replica=1)
    mine = here.submit(batch).result()
    assert [replica.number for replica in mine.replicas] == [1]
    assert mine.assignment["replicas"] == plan.assignment["replicas"]
    assert one.first.replicas[0].number == here.first.replicas[0].number == 1
    here.close()
    with pytest.raises(remote.InputError, match="must be a whole number from 0 to 1"):
        remote.Planner(config, url=server.url, replica=2)


@pytest.mark.alone
def test_stop_ends_the_first_plan_and_what_it_raises_is_raised(server):
    began = time.monotonic()
    config = {**CONFIG, "model": "dip-vlm-m", "cluster": "h100-sxm:32", "tp": 8, "budget": 60}
    planner = remote.Planner(config, samples(), url=server.url, stop=lambda: time.monotonic() - began > 0.3)
    assert time.monotonic() - began < 45  # of 60
    assert planner.submit(samples(1), deadline=0.5).result().gap >= 0

    def fails():
        raise KeyError("stopped")

    with pytest.raises(KeyError, match="stopped"):
        remote.Planner({**config, "seed": 2}, samples(), url=server.url, stop=fails)
    planner.server.ask("GET", "/healthz", within=10.0)  # on a connection without an answer that nobody read


@pytest.mark.alone
def test_over_tls_with_a_token_the_calls_are_the_same(pipeweaver, tmp_path):
    token, certificate, key = tmp_path / "token", tmp_path / "cert.pem", tmp_path / "key.pem"
    token.write_text("0123456789abcdef")
    token.chmod(0o600)
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate,
                    "-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"],
                   check=True, capture_output=True)
    server = Server(pipeweaver.path, "--token-file", token, "--tls-certificate", certificate, "--tls-key", key,
                    http="127.0.0.1:0")
    try:
        trusted = {"url": server.url, "authority": certificate}
        with pytest.raises(remote.InputError, match="Authorization"):
            remote.Planner(QUICK, samples(), **trusted)
        asked = []
        config = {**CONFIG, "model": "dip-vlm-m", "cluster": "h100-sxm:32", "tp": 8, "budget": 60}
        planner = remote.Planner(config, samples(), **trusted, token=token.read_text(),
                                 stop=lambda: asked.append(time.monotonic()) or len(asked) > 2)
        assert len(asked) == 3 and asked[-1] - asked[0] > 0.05 and time.monotonic() - asked[-1] < 45
        plan = planner.submit(samples(1), deadline=0.5).result()
        plan.write(tmp_path / "plan")
        assert plan.gap >= 0 and (tmp_path / "plan/record.json").is_file()
    finally:
        server.kill()


def test_priorities_are_the_same_here_and_there(server):
    for planner in (remote.Planner(BUDGET, samples()), remote.Planner(BUDGET, samples(), url=server.url)):
        for priority in (-1, 101):
            with pytest.raises(remote.InputError, match="must be 0 to 100"):
                planner.submit(samples(1), priority=priority)
        assert planner.submit(samples(1), deadline=0.5, priority=100).result().gap >= 0


def test_a_deadline_of_a_submission_is_what_its_result_waits_for():
    planner = remote.Planner(QUICK, samples())
    future = planner.submit(samples(3), deadline=0.0)
    assert future.result().gap >= 0 and future.step == 0 and planner.submit(samples(4)).step == 1
    planner.close()


def test_the_same_arguments_are_the_same_session_and_the_next_batch_the_next_step(server):
    first, second = (remote.Planner(QUICK, samples(), url=server.url) for _ in range(2))
    assert first.name == second.name
    assert [first.submit(samples(k)).step for k in range(2)] == [0, 1]
    assert second.of_step(1).result().summary == first.of_step(1).result().summary
    with pytest.raises(remote.InputError, match="other samples"):
        second.submit(samples(9), step=0)
    first.end()
    with pytest.raises(remote.InputError, match="there is none of that name"):
        second.of_step(1).done()


@pytest.mark.alone
def test_a_deadline_and_a_cancellation_are_kept(server):
    planner = remote.Planner(BUDGET, samples(), url=server.url, session="long")
    future = planner.submit(samples(1), deadline=100)  # a batch whose search meets no bound
    assert not future.done()
    began = time.monotonic()
    assert future.result(deadline=0.3).gap >= 0
    assert time.monotonic() - began < 50  # of 100
    other = planner.submit(samples(1), deadline=100)
    assert other.cancel()
    assert other.done()
    with pytest.raises(CancelledError):
        other.result()
    assert not future.cancel()


def test_a_plan_that_came_before_its_cancellation_is_not_cancelled(server):
    planner = remote.Planner(QUICK, samples(), url=server.url)
    future = planner.submit(samples(1))
    future.result()
    future.done = lambda: False  # as it was a moment before
    assert not future.cancel()
    assert planner.of_step(future.step).result().gap >= 0


class Refusing(http.server.BaseHTTPRequestHandler):
    """A server whose steps all failed."""

    def do_GET(self):
        body = b'{"error":{"message":"it does not fit"}}'
        self.send_response(422)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_DELETE = do_GET

    def log_message(self, *_):
        pass


def test_a_step_that_failed_is_done():
    with http.server.HTTPServer(("127.0.0.1", 0), Refusing) as refusing:
        thread = threading.Thread(target=refusing.serve_forever)
        thread.start()
        try:
            url = f"http://127.0.0.1:{refusing.server_port}"
            future = RemoteFuture(TheServer(url), "/v1/sessions/job", 1, 1.0)
            assert future.done() and not future.cancel()
            with pytest.raises(remote.LimitError, match="it does not fit"):
                future.result()
        finally:
            TheServer(url)._drop()
            refusing.shutdown()
            thread.join()


class Slow(Refusing):
    """A server that answers half a second after it was asked."""

    def do_GET(self):
        time.sleep(0.5)
        super().do_GET()


def test_an_answer_that_comes_a_little_late_is_taken_by_who_has_nothing_else():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slow) as slow:
        thread = threading.Thread(target=slow.serve_forever)
        thread.start()
        try:
            url = f"http://127.0.0.1:{slow.server_port}"
            with pytest.raises(remote.FileError, match="timed out"):
                TheServer(url).ask("GET", "/", within=0.1)
            with pytest.raises(remote.LimitError, match="it does not fit"):
                TheServer(url).ask("GET", "/", within=0.1, late=60.0)
        finally:
            TheServer(url)._drop()
            slow.shutdown()
            thread.join()


def test_a_connection_is_for_those_who_trust_the_same(tmp_path):
    url = "https://127.0.0.1:1"
    certificate = tmp_path / "cert.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", tmp_path / "key.pem", "-out",
                    certificate, "-days", "2", "-subj", "/CN=127.0.0.1"], check=True, capture_output=True)
    trusting, other = TheServer(url, authority=certificate), TheServer(url)
    first = trusting._connection(1.0)
    assert trusting._connection(1.0) is first
    assert other._connection(1.0) is not first


def test_children_that_were_forked_at_any_time_collect_and_submit(server):
    planner = remote.Planner(QUICK, samples(), url=server.url)
    future = planner.submit(samples(1), step=1)
    children = []
    for rank in range(4):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                mine = planner.of_step(1).result().replicas[0].rank_actions(rank)
                planner.submit(samples(2), step=2)
                status = 0 if mine["rank"] == rank else 2
            finally:
                os._exit(status)
        children.append(child)
    assert future.result().gap >= 0
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
    assert planner.of_step(2).result().gap >= 0


def test_a_server_that_is_killed_and_begun_again_is_waited_for(server, pipeweaver, tmp_path):
    planner = remote.Planner(BUDGET, samples(), url=server.url)
    planned = planner.submit(samples(1), step=1).result(deadline=60.0)
    solution = planned.replicas[0].solution.makespan_ns
    waiting = planner.submit(samples(2), step=2, deadline=60)
    server.kill()
    again = []

    def begin_again():
        time.sleep(0.3)
        again.append(Server(pipeweaver.path, "--state", tmp_path / "state", http=f"127.0.0.1:{server.port}"))

    beginner = threading.Thread(target=begin_again)
    beginner.start()
    try:
        assert waiting.result(deadline=60.0).gap >= 0  # submitted again: it was not planned before the kill
        assert planner.of_step(1).result(deadline=60.0).replicas[0].solution.makespan_ns == solution
    finally:
        beginner.join()
        for one in again:
            one.kill()


def test_steps_without_a_number_of_forked_children_do_not_collide(server):
    planner = remote.Planner(QUICK, samples(), url=server.url)
    assert planner.submit(samples(1)).step == 0
    children = []
    for child in range(3):
        if (process := os.fork()) == 0:
            status = 1
            try:
                mine = [planner.submit(samples(10 * child + k)) for k in range(2)]
                assert mine[1].step == mine[0].step + 1 > 1
                assert all(future.result().gap >= 0 for future in mine)
                status = 0
            finally:
                os._exit(status)
        children.append(process)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 3
    assert planner.submit(samples(2)).step == 1


def test_a_job_that_is_begun_again_goes_on_with_steps_of_its_own(server):
    first = remote.Planner(QUICK, samples(), url=server.url)
    first.submit(samples(1)).result()
    again = remote.Planner(QUICK, samples(), url=server.url)
    assert again.submit(samples(1)).step == 0  # the same
    third = remote.Planner(QUICK, samples(), url=server.url)
    other = third.submit(samples(2))
    assert other.step > 2**20 and third.submit(samples(3)).step == other.step + 1
    assert other.result().gap >= 0


class Shaky(http.server.BaseHTTPRequestHandler):
    """A server that takes each step, and does not say so the first time."""

    protocol_version = "HTTP/1.1"
    taken: list = []

    def do_PUT(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        Shaky.taken.append((self.path, body))
        if len(Shaky.taken) == 1:
            self.connection.close()
            self.close_connection = True
            return
        self.send_response(202)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        pass


def test_a_submission_without_an_answer_is_sent_again_as_the_same_step_with_what_is_left_of_its_time():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Shaky) as shaky:
        thread = threading.Thread(target=shaky.serve_forever)
        thread.start()
        try:
            server = TheServer(f"http://127.0.0.1:{shaky.server_port}")
            RemoteFuture(server, "/v1/sessions/job", 5, 1.0, samples(), priority=7).submit(30.0)
            (path, first), (same, second) = Shaky.taken
            assert path == same == "/v1/sessions/job/steps/5"
            assert first["samples"] == second["samples"] == samples()
            assert first["priority"] == second["priority"] == 7
            assert 0 < second["deadline_ms"] < first["deadline_ms"] <= 30_000
        finally:
            server._drop()
            shaky.shutdown()
            thread.join()


def test_a_configuration_in_files_is_read_here(server, tmp_path, pipeweaver):
    (tmp_path / "cluster.json").write_text(pipeweaver("show", "h100-sxm"))
    (tmp_path / "model.json").write_text(pipeweaver("show", "dip-vlm-s"))
    (tmp_path / "job.yaml").write_text(f"model: {tmp_path}/model.json\ncluster: {tmp_path}/cluster.json:16\ntp: 4\n"
                                       "pp: 4\nmax-rounds: 3\nbudget: 30s\n")
    planner = remote.Planner(tmp_path / "job.yaml", samples(), url=server.url)
    assert planner.submit(samples(1)).result().gap >= 0
    taught = {"model": f"{tmp_path}/model.json", "teacher": f"{tmp_path}/model.json", "cluster": "h100-sxm:16",
              "tp": 4, "pp": 4, "max-rounds": 3}
    assert remote.Planner(taught, samples(), url=server.url).submit(samples(1)).result().gap >= 0
    for wrong in ("soon", "5 parsecs", ""):
        with pytest.raises(remote.InputError, match="budget"):
            remote.Planner({**CONFIG, "budget": wrong}, samples(), url=server.url)


@pytest.mark.alone
def test_without_a_server_the_error_comes_at_the_deadline(server):
    planner = remote.Planner(BUDGET, samples(), url=server.url)
    server.kill()
    began = time.monotonic()
    with pytest.raises(remote.FileError):
        planner.submit(samples(), deadline=0.3)
    assert time.monotonic() - began < 30


def test_what_is_wrong_is_said_as_in_process(server):
    with pytest.raises(remote.InputError, match="did you mean 'dip-vlm-s'"):
        remote.Planner({**DRAWN, "model": "dip-vlm-z"}, url=server.url)
    with pytest.raises(remote.InputError, match="is not JSON"):
        remote.Planner({**DRAWN, "model": "/etc/passwd"}, url=server.url)
    with pytest.raises(remote.InputError, match="names a file"):
        remote.Planner({**DRAWN, "dataset": "/etc/passwd.jsonl"}, url=server.url)
    with pytest.raises(remote.LimitError):
        remote.Planner({"model": "dip-vlm-xl-8k", "cluster": "h100-sxm:1", "tp": 1, "pp": 1}, samples(), url=server.url)
    with pytest.raises(remote.InputError, match="must be the address of a server"):
        remote.Planner(DRAWN, url="127.0.0.1:8080")
    planner = remote.Planner(BUDGET, samples(), url=server.url)
    with pytest.raises(remote.InputError, match="text_tokens"):
        planner.submit([{"id": "a", "text_tokens": -1}])


def test_a_drawn_batch_is_the_one_that_is_planned():
    config = {**CONFIG, "dataset": "vlm-mix", "microbatches": 4, "max_rounds": 0}
    drawn = remote.batch_of(config)
    ids = [one["id"] for each in remote.plan(config).assignment["replicas"] for batch in each["microbatches"]
           for one in batch["samples"]]
    assert sorted(ids) == sorted(one["id"] for one in drawn)
    assert remote.plan({**CONFIG, "max_rounds": 0}, drawn).assignment["replicas"]


@pytest.mark.alone
def test_with_a_fallback_every_process_has_the_plan_by_policy_when_the_server_is_gone(server):
    first, second = (remote.Planner(BUDGET, samples(), url=server.url, fallback=True) for _ in range(2))
    served = first.submit(samples(1), step=1).collect(0, 2, deadline=60.0)  # planned in its budget, of 0.5
    assert served.actions["format"] == "pipeweaver-rank-actions/1" and served.step == 1
    assert first.of_step(1, samples(1)).by_policy(0, 2).assignment == served.assignment
    server.kill()
    began = time.monotonic()
    future = first.submit(samples(2), step=2, deadline=0.5)
    assert future.collect(0, 2, deadline=0.4) is None
    plan = future.result(deadline=0.4)
    assert time.monotonic() - began < 30
    assert plan.lower_bound_ns <= plan.makespan_ns <= plan.step_ns
    mine, others = future.by_policy(0, 2), second.of_step(2, samples(2)).by_policy(0, 2)
    assert mine == others
    assert mine.actions == plan.replicas[0].rank_actions(2)
    with pytest.raises(remote.FileError):
        second.of_step(2).collect(0, 2, deadline=0.1)
    with pytest.raises(remote.PipeweaverError, match="there is no fallback"):
        second.of_step(2).by_policy(0, 2)


def test_a_server_that_has_forgotten_everything_is_done_without(server, pipeweaver, tmp_path):
    planner = remote.Planner(BUDGET, samples(), url=server.url, fallback=True)
    server.kill()
    other = Server(pipeweaver.path, "--state", tmp_path / "another", http=f"127.0.0.1:{server.port}")
    try:
        future = planner.submit(samples(1), step=1)
        assert future.collect(0, 0, deadline=0.3) is None
        assert future.result(deadline=0.3).gap >= 0
    finally:
        other.kill()


def test_a_planner_that_is_made_without_a_server_plans_by_policy_until_there_is_one(pipeweaver, tmp_path):
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with pytest.raises(remote.FileError):
        TheServer(url).ask("GET", "/healthz", within=0.1)
    first, second = (remote.Planner(BUDGET, samples(), url=url, fallback=True) for _ in range(2))
    assert first.name == second.name and first.partition == second.partition
    assert first.about["partition"]["format"] == "pipeweaver-partition/1" and first.partition["chains"]
    future = first.submit(samples(1), step=1, deadline=0.5)
    assert future.collect(0, 2, deadline=0.3) is None
    mine, other = future.by_policy(0, 2), second.of_step(1, samples(1)).by_policy(0, 2)
    assert mine == other and future.result(deadline=0.3).gap >= 0
    one = Server(pipeweaver.path, "--state", tmp_path / "state", http=f"127.0.0.1:{port}")
    try:
        work = None
        for step in range(2, 10):  # the server is asked to open the session that was opened here
            seconds = 2.0 ** (step - 3)  # soon enough on any machine
            future = first.submit(samples(step), step=step, deadline=seconds)
            if (work := future.collect(0, 2, deadline=seconds)) is not None:
                break
        assert work is not None and one.ask("GET", f"/v1/sessions/{first.name}")[0] == 200
        assert second.of_step(step, samples(step)).by_policy(0, 2).assignment == work.assignment
        plan = second.of_step(step).result(deadline=60.0)
        assert plan.summary["partition"]["chains"] == first.partition["chains"]
    finally:
        one.kill()


def test_what_was_kept_of_a_session_is_remembered_for_when_there_is_no_server(server, tmp_path):
    memory = tmp_path / "memory"
    first = remote.Planner(BUDGET, samples(), url=server.url, fallback=memory)
    served = first.submit(samples(1), step=1).collect(0, 2, deadline=60.0)
    assert (memory / f"{first.name}.json").is_file()
    server.kill()
    again = remote.Planner(BUDGET, samples(), url=server.url, fallback=memory)
    assert again.name == first.name and again.partition == first.partition
    assert again.of_step(1, samples(1)).by_policy(0, 2) == first.of_step(1, samples(1)).by_policy(0, 2)
    assert again.of_step(1, samples(1)).by_policy(0, 2).assignment == served.assignment


def test_a_step_that_a_killed_server_has_forgotten_waits_or_is_given_up(server, pipeweaver, tmp_path):
    planner = remote.Planner(QUICK, samples(), url=server.url)
    future, known = planner.of_step(3), planner.of_step(3, samples(3))
    with pytest.raises(remote.InputError, match="was not submitted"):
        future.done()
    assert not known.done() and not known.cancelled()
    assert known.cancel() and known.cancelled() and known.done()
    with pytest.raises(CancelledError):
        known.result()


def test_what_is_kept_of_a_session_is_given_out(server):
    planner = remote.Planner(BUDGET, samples(), url=server.url, session="kept")
    status, kept = server.ask("GET", f"/v1/sessions/{planner.name}/kept")
    assert status == 200 and kept["format"] == "pipeweaver-session/1"
    assert kept["config"]["pp"] == 4
    assert server.ask("GET", "/v1/sessions/other/kept")[0] == 404
