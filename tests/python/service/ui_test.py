"""`pipeweaver ui` without a browser: what is told of a run while it goes on, and that no answer is another for it."""

import gzip
import json
import os
import subprocess
import urllib.request

import pytest

PLAN = {"model": "dip-vlm-s", "cluster": "h100-sxm:16", "dataset": "vlm-mix", "microbatches": "2", "tp": "8", "pp": "2",
        "max-rounds": "1"}
LONG = {**PLAN, "microbatches": "32", "max-rounds": "", "budget": "100s"}
RUNGS = ["now", "data", "flags", "layout", "schedule"]


class Page:
    """What the page asks its server."""

    def __init__(self, url):
        self.url = url

    def ask(self, path, method="GET", body=None):
        headers = {} if body is None else {"Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        return urllib.request.urlopen(request, timeout=300)

    def begin(self, options):
        options = {name: value for name, value in options.items() if value}
        with self.ask("/ui/runs", "POST", {"command": "plan", "options": options}) as answer:
            return json.load(answer)["run"]

    def events(self, run):
        """(name, data) of each, when it comes."""
        with self.ask(f"/ui/runs/{run}/events") as stream:
            for line in map(bytes.decode, stream):
                if line.startswith("event: "):
                    name = line.removeprefix("event: ").strip()
                elif line.startswith("data: "):
                    yield name, json.loads(line.removeprefix("data: "))


@pytest.fixture(scope="module")
def page(pipeweaver, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ui")
    server = subprocess.Popen([pipeweaver.path, "ui", "--http", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True,
                              env={**os.environ, "TMPDIR": str(folder)})
    yield Page(server.stderr.readline().split()[0])
    server.terminate()
    assert server.wait(timeout=60) == 0


def words(options):
    return [word for name, value in options.items() for word in (f"--{name}", value)]


def test_the_ladder_climbs_to_that_of_the_answer(page, pipeweaver, tmp_path):
    run = page.begin(PLAN)
    events = list(page.events(run))
    assert events[-1][0] == "end" and events[-1][1]["status"] == 0
    assert not [data for name, data in events if name == "lines" and "{" in data["text"]]
    shares = [data["share"] for name, data in events if name == "doing"]
    assert all(0 <= one <= 1 for one in shares)

    told = [data for name, data in events if name == "rung"]
    assert [one["rung"] for one in told] == RUNGS and [one["place"] for one in told] == [0, 1, 2, 3, 4]
    with page.ask(f"/ui/runs/{run}/answer") as text:
        answer = json.load(text)
    for so_far, at_last in zip(told, answer["ladder"], strict=True):
        known = set(so_far) - {"place", "millis"}
        assert {"step_ns", "over_now", "way", "peak_bytes"} <= known
        assert {key: so_far[key] for key in known} == {key: at_last[key] for key in known}

    # And the command's own, to the byte.
    printed = json.loads(pipeweaver("plan", *words(PLAN), "--out", tmp_path / "plan", "--json", "--quiet"))
    assert {**printed, "run": None} == {**answer, "run": None}
    for name in ("plan.json", "assignment.json", "replica-000/problem.json.gz", "replica-000/solution.json"):
        written = (tmp_path / "plan" / name).read_bytes()
        with page.ask(f"/ui/runs/{run}/files?name={name}") as file:
            assert file.read() == (gzip.decompress(written) if name.endswith(".gz") else written)


def test_a_rung_is_told_while_the_rest_is_sought(page):
    run = page.begin(LONG)
    told = []
    for name, data in page.events(run):
        if name == "rung" and not told:  # the others are not known yet
            page.ask(f"/ui/runs/{run}", "DELETE").close()
        told += [data["rung"]] if name == "rung" else []
    assert (name, data["status"]) == ("end", -1)
    assert told[0] == "now" and "schedule" not in told


def test_nobody_else_is_told(pipeweaver, tmp_path):
    said = {}
    for option in ([], ["--progress-json"]):
        command = [pipeweaver.path.absolute(), "plan", *words(PLAN), "--out", "plan", *option]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        said[bool(option)] = done
        assert any(line.startswith("{") for line in done.stderr.splitlines()) == bool(option)
    assert said[False].stdout == said[True].stdout
    assert "--progress-json" not in pipeweaver("plan", "--help-all")
