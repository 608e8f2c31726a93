"""Planner(url=...): the calls of Planner, answered by a server, from forked children, across kills."""

import http.server
import os
import subprocess
import threading
import time
from concurrent.futures import CancelledError

import pytest
from absent import needed
from served import CONFIG, Server, free_port, samples

remote = needed("pipeweaver")
TheServer, RemoteFuture = needed("pipeweaver.remote").Server, needed("pipeweaver.remote").RemoteFuture

BUDGET = {**CONFIG, "budget": 0.5}
QUICK = {**CONFIG, "budget": 30, "max_rounds": 20}
DRAWN = {**QUICK, "dataset": "vlm-mix", "microbatches": 4}


@pytest.fixture
def server(pipeweaver, tmp_path):
    one = Server(pipeweaver.path, "--state", tmp_path / "state", http=f"127.0.0.1:{free_port()}")
    yield one
    one.kill()


def test_a_plan_has_what_one_in_process_has(server):
    with remote.Planner(DRAWN, url=server.url) as planner:
        assert planner.partition["format"] == "pipeweaver-partition/1"
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


def test_the_same_arguments_are_the_same_session_and_the_next_batch_the_next_step(server):
    first, second = (remote.Planner(QUICK, samples(), url=server.url) for _ in range(2))
    assert first.name == second.name
    assert [first.submit(samples(k)).step for k in range(2)] == [0, 1]
    assert second.of_step(1).result().found == first.of_step(1).result().found
    with pytest.raises(remote.InputError, match="other samples"):
        second.submit(samples(9), step=0)
    first.end()
    with pytest.raises(remote.InputError, match="there is none of that name"):
        second.of_step(1).done()


@pytest.mark.alone
def test_a_deadline_and_a_cancellation_are_kept(server):
    planner = remote.Planner(BUDGET, samples(), url=server.url, session="long")
    future = planner.submit(samples(1), deadline=30)
    assert not future.done()
    began = time.monotonic()
    assert future.result(deadline=0.3).gap >= 0
    assert time.monotonic() - began < 3  # of 30
    other = planner.submit(samples(2), deadline=30)
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
    planned = planner.submit(samples(1), step=1).result(deadline=20.0)
    solution = planned.replicas[0].solution.makespan_ns
    waiting = planner.submit(samples(2), step=2, deadline=20)
    server.kill()
    again = []

    def begin_again():
        time.sleep(0.3)
        again.append(Server(pipeweaver.path, "--state", tmp_path / "state", http=f"127.0.0.1:{server.port}"))

    beginner = threading.Thread(target=begin_again)
    beginner.start()
    try:
        assert waiting.result(deadline=20.0).gap >= 0  # submitted again: it was not planned before the kill
        assert planner.of_step(1).result(deadline=20.0).replicas[0].solution.makespan_ns == solution
    finally:
        beginner.join()
        for one in again:
            one.kill()


@pytest.mark.alone
def test_without_a_server_the_error_comes_at_the_deadline(server):
    planner = remote.Planner(BUDGET, samples(), url=server.url)
    server.kill()
    began = time.monotonic()
    with pytest.raises(remote.FileError):
        planner.submit(samples(), deadline=0.3)
    assert time.monotonic() - began < 5


def test_what_is_wrong_is_said_as_in_process(server):
    with pytest.raises(remote.InputError, match="did you mean 'dip-vlm-s'"):
        remote.Planner({**DRAWN, "model": "dip-vlm-z"}, url=server.url)
    with pytest.raises(remote.InputError, match="names a file"):
        remote.Planner({**DRAWN, "model": "/etc/passwd"}, url=server.url)
    with pytest.raises(remote.LimitError):
        remote.Planner({"model": "dip-vlm-xl-8k", "cluster": "h100-sxm:1", "tp": 1, "pp": 1}, samples(), url=server.url)
    with pytest.raises(remote.InputError, match="allowed is the address of a server"):
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
    served = first.submit(samples(1), step=1).collect(0, 2, deadline=10.0)
    assert served.actions["format"] == "pipeweaver-rank-actions/1" and served.step == 1
    assert first.of_step(1, samples(1)).by_policy(0, 2).assignment == served.assignment
    server.kill()
    began = time.monotonic()
    future = first.submit(samples(2), step=2, deadline=0.5)
    assert future.collect(0, 2, deadline=0.4) is None
    plan = future.result(deadline=0.4)
    assert time.monotonic() - began < 5
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


def test_what_is_kept_of_a_session_is_given_out(server):
    planner = remote.Planner(BUDGET, samples(), url=server.url, session="kept")
    status, kept = server.ask("GET", f"/v1/sessions/{planner.name}/kept")
    assert status == 200 and kept["format"] == "pipeweaver-session/1"
    assert kept["config"]["pp"] == 4
    assert server.ask("GET", "/v1/sessions/other/kept")[0] == 404
