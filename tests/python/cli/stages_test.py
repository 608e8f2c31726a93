"""solve --stages: measured stage times in, a folder with plan and PyTorch schedule out, one line for bad tables."""

import csv
import gzip
import html.parser
import json
import re
import shlex
import subprocess
import sys
import time

import pytest
from checkout import ROOT

HEADER = "stage,rank,forward_us,backward_us,weight_us,activation_bytes,weights_bytes,send_bytes"
PAGE = ROOT / "docs/your-own-stage-times.md"


def blocks(language):
    """The page's code blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def write(folder, *rows, header=HEADER):
    """A table of stages; returns its path."""
    path = folder / "stages.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def solve(pipeweaver, table, folder, *more):
    return json.loads(pipeweaver("solve", "--stages", table, "--microbatches", "3", "--max-rounds", "5", "--json",
                                 "--out", folder, *more))


def problem_in(folder):
    return json.loads(gzip.decompress((folder / "problem.json.gz").read_bytes()))


def test_two_stages_by_hand(pipeweaver, tmp_path):
    table = write(tmp_path, "0,0,10,20,,100,1000,5000", "1,1,10,12,8,70,2000,0")
    answer = solve(pipeweaver, table, tmp_path / "out", "--capacity", "1MB", "--link", "1GB/s")
    # Rank 1 begins at 15 us and has three F and I before its last gradient leaves, W may wait: 15 + 3 * (10 + 12); that
    # gradient takes 5 us to rank 0, whose last backward takes 20 us.
    assert answer["makespan_ns"] == 106_000
    assert answer["lower_bound_ns"] <= answer["makespan_ns"]
    problem = problem_in(tmp_path / "out")
    assert [rank["base_bytes"] for rank in problem["ranks"]] == [1000, 2000]
    assert [task["kind"] for task in problem["tasks"]] == list("FFIWB") * 3
    assert {tuple(edge) for edge in problem["edges"][:5]} == {
        (0, 1, 5000), (1, 2, 0), (2, 3, 0), (0, 4, 0), (2, 4, 5000)}
    assert problem["pairs"][1]["modes"] == [{"forward_ns": 10000, "backward_ns": 12000, "weight_ns": 8000,
                                             "held_bytes": 70, "transient_bytes": 0, "kept_bytes": 70}]


def test_torch_has_its_own_rules_and_buffers(pipeweaver, tmp_path):
    table = write(tmp_path, "0,0,10,12,8,100,1000,50", "1,1,10,12,8,70,2000,0")
    solve(pipeweaver, table, tmp_path / "out")
    free, torch = problem_in(tmp_path / "out"), problem_in(tmp_path / "out/torch")
    assert [rank["base_bytes"] for rank in torch["ranks"]] == [1000 + 3 * 50, 2000 + 3 * 50]
    first = [task for task in torch["tasks"] if task["stage"] == 0 and task["microbatch"] == 0]
    assert [(task["kind"], task["duration_ns"]) for task in first] == [("F", 10_000), ("I", 1), ("W", 20_000)]
    assert [task["duration_ns"] for task in free["tasks"] if task["stage"] == 0][1:3] == [12_000, 8_000]
    solve(pipeweaver, table, tmp_path / "target", "--target", "torch-csv")
    assert problem_in(tmp_path / "target") == torch


def test_stages_of_one_rank_hand_over_without_a_lag(pipeweaver, tmp_path):
    table = write(tmp_path, "0,0,10,20,,1,1,5000", "1,0,10,20,,1,1,5000", "2,1,10,20,,1,1,5000")
    solve(pipeweaver, table, tmp_path / "out", "--link", "1GB/s")
    problem = problem_in(tmp_path / "out")
    lag = {(source, to): lag for source, to, lag in problem["edges"]}
    assert (lag[0, 1], lag[1, 2]) == (0, 5000)


def test_every_policy_is_in_the_answer_and_none_beats_the_plan(pipeweaver, tmp_path):
    table = write(tmp_path, *blocks("csv")[0].splitlines()[1:])
    answer = solve(pipeweaver, table, tmp_path / "out", "--capacity", "80GiB", "--link", "50GB/s")
    assert {"1f1b", "interleaved", "gpipe", "dual-queue"} <= {one["policy"] for one in answer["policies"]}
    times = [one["makespan_ns"] for one in answer["policies"] if "makespan_ns" in one]
    assert times and answer["makespan_ns"] <= min(times)
    assert all(one["gap"] >= 0 for one in answer["policies"] if "gap" in one)
    assert all(one["why_not"] for one in answer["policies"] if "makespan_ns" not in one)


@pytest.mark.parametrize("threads", ["1", "3"])
def test_files_do_not_depend_on_threads(pipeweaver, tmp_path, threads):
    table = write(tmp_path, *blocks("csv")[0].splitlines()[1:])
    names = ["problem.json.gz", "solution.json", "actions.json", "trace.json.gz", "report.html", "torch/schedule.csv",
             "torch/schedule.comms.csv", "torch/schedule.json", "torch/problem.json.gz", "torch/solution.json"]
    for folder, count in [("a", "2"), ("b", threads)]:
        solve(pipeweaver, table, tmp_path / folder, "--capacity", "30GiB", "--threads", count)
    assert {str(path.relative_to(tmp_path / "a")) for path in (tmp_path / "a").rglob("*") if path.is_file()} == {
        *names, "run.json"}
    for name in names:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


class Page(html.parser.HTMLParser):
    """The elements of report.html, and what stands in its table of schedules."""

    def __init__(self, path):
        super().__init__()
        self.elements, self.texts, self.rows = [], [], 0
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.texts.append(data)

    def of_class(self, tag, name):
        return [attributes for kind, attributes in self.elements
                if kind == tag and name in (attributes.get("class") or "").split()]


def test_the_report_draws_the_plan_and_the_fastest_policy(pipeweaver, tmp_path):
    table = write(tmp_path, *blocks("csv")[0].splitlines()[1:])
    answer = solve(pipeweaver, table, tmp_path / "out", "--capacity", "80GiB", "--link", "50GB/s")
    page = Page(tmp_path / "out/report.html")
    problem = problem_in(tmp_path / "out")
    assert len(page.of_class("figure", "schedule")) == 2
    assert len(page.of_class("g", "rank")) == 2 * len(problem["ranks"])
    assert len(page.of_class("rect", "bar")) == 2 * len(problem["tasks"])
    # A chunk has its colour: stages 0-3 are the first of their ranks, stages 4-7 the second.
    for chunk in (0, 1):
        tasks = [task for task in problem["tasks"] if task["stage"] // 4 == chunk]
        assert len([bar for bar in page.of_class("rect", "bar")
                    if f"m{chunk}" in bar["class"].split()]) == 2 * len(tasks)
    assert len(page.of_class("path", "limit")) == len(problem["ranks"])
    assert f"{answer['gap'] * 100:.1f} %" in page.texts
    for policy in answer["policies"]:
        assert (policy["policy"] if "makespan_ns" in policy
                else f"{policy['policy']}: {policy['why_not']}") in page.texts
    sections = {attributes["id"] for tag, attributes in page.elements if tag == "section"}
    assert sections == {"schedules", "pairs", "search", "time", "torch", "inputs"}


def test_the_report_loads_nothing_and_escapes_the_name_of_the_table(pipeweaver, tmp_path):
    table = tmp_path / "<i>stages&.csv"
    table.write_text("\n".join([HEADER, *GOOD]) + "\n")
    solve(pipeweaver, table, tmp_path / "out")
    page = Page(tmp_path / "out/report.html")
    assert "<i>stages&.csv" in page.texts
    loading = {"src", "href", "data", "srcset", "xlink:href", "action", "poster"}
    assert not [element for element in page.elements if loading & element[1].keys()]
    assert not [tag for tag, _ in page.elements if tag in ("link", "iframe", "object", "embed", "img")]
    text = (tmp_path / "out/report.html").read_text()
    assert "url(" not in text and "@import" not in text and "{{" not in text


def test_the_report_without_memory_limit_draws_none(pipeweaver, tmp_path):
    solve(pipeweaver, write(tmp_path, *GOOD), tmp_path / "out")
    page = Page(tmp_path / "out/report.html")
    assert page.of_class("svg", "memory") and not page.of_class("path", "limit")
    assert any("memory not limited, transfers take no time" in text for text in page.texts)


@pytest.mark.alone
def test_a_short_budget_is_kept(pipeweaver, tmp_path):
    table = write(tmp_path, *blocks("csv")[0].splitlines()[1:])

    def seconds(budget):
        start = time.monotonic()
        pipeweaver("solve", "--stages", table, "--microbatches", "16", "--capacity", "30GiB", "--link", "50GB/s",
                   "--budget", budget, "--out", tmp_path / "out")
        return time.monotonic() - start

    # The search by itself, the best of several; without a limit it takes many seconds.
    assert any(seconds("300ms") - seconds("0s") < 1.5 for _ in range(5))
    seconds("300ms")
    assert json.loads((tmp_path / "out/run.json").read_text())["budget_ns"] == 300_000_000


def test_the_documented_example_works_as_written(pipeweaver, tmp_path):
    (tmp_path / "stages.csv").write_text(blocks("csv")[0])
    commands = [shlex.split(line) for block in blocks("sh") for line in block.splitlines()]
    assert [command[1] for command in commands] == ["solve", "replay"]
    for command in commands:
        assert command[0] == "pipeweaver"
        done = subprocess.run([str(pipeweaver.path.resolve()), *command[1:]], cwd=tmp_path, capture_output=True,
                              text=True)
        assert done.returncode == 0, done.stderr
    for name in re.findall(r"^\| `([^|]*)` \|", PAGE.read_text().split("## 3.")[1].split("## 4.")[0], re.MULTILINE):
        for file in name.split("`, `"):
            assert (tmp_path / "plan" / file).is_file(), file
    with open(tmp_path / "plan/torch/schedule.csv", newline="") as file:
        assert len(list(csv.reader(file))) == 4


def test_the_referee_accepts_both_solutions(pipeweaver, tmp_path, shared):
    table = write(tmp_path, *blocks("csv")[0].splitlines()[1:])
    solve(pipeweaver, table, tmp_path / "out", "--capacity", "30GiB", "--link", "50GB/s")
    for folder in [tmp_path / "out", tmp_path / "out/torch"]:
        subprocess.run([sys.executable, shared / "tools/verify_schedule.py", folder / "problem.json.gz",
                        folder / "solution.json"], check=True, stdout=subprocess.DEVNULL)


GOOD = ["0,0,10,20,,100,1000,5", "1,1,10,20,,100,1000,5"]
BAD = {
    "a hole in the stages": (["0,0,10,20,,1,1,1", "2,1,10,20,,1,1,1"],
                             r":3: stage: is 2, must be 1: .*without holes"),
    "stages out of order": (["1,0,10,20,,1,1,1", "0,1,10,20,,1,1,1"], r":2: stage: is 1, must be 0"),
    "a rank that is no number": (["0,one,10,20,,1,1,1"], r":2: rank: is 'one', must be a whole number"),
    "a negative rank": (["0,-1,10,20,,1,1,1"], r":2: rank: is '-1', must be a whole number"),
    "a hole in the ranks": ([GOOD[0], "1,2,10,20,,1,1,1"], r":3: rank: is 2, but no stage is on rank 1"),
    "no stage on rank 0": (["0,1,10,20,,1,1,1"], r":2: rank: is 1, but no stage is on rank 0"),
    "a stage of an hour": ([GOOD[0], "1,1,3600000000,20,,1,1,1"],
                           r":3: forward_us: is '3600000000', must be a number"),
    "a time of 0": (["0,0,10,0,,1,1,1"], r":2: backward_us: is '0', must be a number above 0"),
    "a negative time": (["0,0,-3,20,,1,1,1"], r":2: forward_us: is '-3', must be a number above 0"),
    "a time that is no number": (["0,0,10,nan,,1,1,1"], r":2: backward_us: is 'nan', must be a number"),
    "a time below a nanosecond": (["0,0,0.0001,20,,1,1,1"], r":2: forward_us: .*less than a nanosecond"),
    "a weight time of 0": (["0,0,10,20,0,1,1,1"], r":2: weight_us: is '0', must be a number above 0"),
    "a negative size": (["0,0,10,20,,-1,1,1"], r":2: activation_bytes: is '-1', must be a whole number"),
    "an impossible size": (["0,0,10,20,,1,99999999999999,1"], r":2: weights_bytes: is '99999999999999', must be"),
    "an empty cell": (["0,0,10,,,1,1,1"], r":2: backward_us: is '', must be a number"),
    "a missing cell": (["0,0,10,20,,1,1"], r":2: has 7 cells, the header has 8"),
    "no stages": ([], r": has no stages"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_table_is_refused_in_one_line(pipeweaver, tmp_path, name):
    rows, message = BAD[name]
    status, line = pipeweaver.fails("solve", "--stages", write(tmp_path, *rows), "--microbatches", "3", "--out",
                                    tmp_path / "out")
    assert status == 2
    assert re.search("stages.csv" + message, line), line
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("header, message", [
    (HEADER.replace("forward_us", "forward_ms"), ":1: column 'forward_us' is missing; is 'forward_ms' meant to be it?"),
    (HEADER.replace(",weight_us", ""), ":1: column 'weight_us' is missing"),
    (HEADER + ",colour", ":1: unknown column 'colour'"),
    (HEADER.replace("weight_us", "rank"), ":1: column 'rank' occurs twice"),
])
def test_a_bad_header_is_refused(pipeweaver, tmp_path, header, message):
    row = ",".join("0" for _ in header.split(","))
    status, line = pipeweaver.fails("solve", "--stages", write(tmp_path, row, header=header), "--microbatches", "3",
                                    "--out", tmp_path / "out")
    assert status == 2
    assert "stages.csv" + message in line


@pytest.mark.parametrize("capacity, message", [
    ("1000B", r"rank 0 does not fit: .*: 100 B short$"), ("1099B", r"rank 0 does not fit: .*: 1 B short$")])
def test_a_capacity_that_is_too_small_names_rank_and_bytes(pipeweaver, tmp_path, capacity, message):
    status, line = pipeweaver.fails("solve", "--stages", write(tmp_path, *GOOD), "--microbatches", "3", "--capacity",
                                    capacity, "--out", tmp_path / "out")
    assert status == 4
    assert re.search(message, line)


def test_one_microbatch_at_a_time_fits_exactly_and_torch_says_why_not(pipeweaver, tmp_path):
    answer = solve(pipeweaver, write(tmp_path, *GOOD), tmp_path / "out", "--capacity", "1100B")
    assert answer["makespan_ns"] == 3 * 60_000
    assert re.search(r"receive buffers .* rank 0 does not fit: .* 15 B short", answer["torch"]["why_not"])
    assert not (tmp_path / "out/torch").exists()
    status, line = pipeweaver.fails("solve", "--stages", tmp_path / "stages.csv", "--microbatches", "3",
                                    "--capacity", "1100B", "--target", "torch-csv", "--out", tmp_path / "out2")
    assert status == 4 and "15 B short" in line


@pytest.mark.parametrize("options, message", [
    (["--microbatches", "0"], "--microbatches: is '0', must be a whole number from 1"),
    (["--microbatches", "-3"], "--microbatches: is '-3', must be a whole number from 1"),
    (["--microbatches", "99999999999"], "--microbatches: is '99999999999', must be a whole number from 1"),
    (["--microbatches", "1000000"],
     "1000000 microbatches of 2 stages are more than 50000 tasks, allowed are up to 12500"),
    ([], "missing --microbatches N: of a step"),
    (["--microbatches", "3", "--capacity", "0B"], "--capacity: '0B' is no capacity"),
    (["--microbatches", "3", "--capacity", "80"], "--capacity: '80' is not a size"),
    (["--microbatches", "3", "--link", "0GB/s"], "--link: '0GB/s' is out of range"),
    (["--microbatches", "3", "--link", "0.0000000004GB/s"], "--link: "),
    (["--microbatches", "3", "--policy", "1f1b"], "--policy: does not go with --stages"),
    (["--microbatches", "3", "--target", "torch"], "--target: is 'torch', must be torch-csv"),
])
def test_bad_options_are_refused(pipeweaver, tmp_path, options, message):
    status, line = pipeweaver.fails("solve", "--stages", write(tmp_path, *GOOD), *options, "--out", tmp_path / "out")
    assert status == 2
    assert message in line


def test_a_transfer_of_minutes_is_refused_with_its_line(pipeweaver, tmp_path):
    table = write(tmp_path, "0,0,10,20,,1,1,61", GOOD[1])
    status, line = pipeweaver.fails("solve", "--stages", table, "--microbatches", "3", "--link", "1B/s",
                                    "--out", tmp_path / "out")
    assert status == 2
    assert "stages.csv:2: send_bytes: 61 take 61 s" in line


def test_options_of_stages_need_stages(pipeweaver, tmp_path):
    status, line = pipeweaver.fails("solve", tmp_path / "problem.json", "--capacity", "1GB", "--out", tmp_path / "out")
    assert status == 2 and "--capacity: is for --stages" in line
    status, line = pipeweaver.fails("solve", "--out", tmp_path / "out")
    assert status == 2 and "missing PROBLEM: a problem file" in line


def test_times_below_a_millisecond_are_remarked_and_planned_all_the_same(pipeweaver, tmp_path):
    def said(*rows):
        command = [pipeweaver.path, "solve", "--stages", write(tmp_path, *rows), "--microbatches", "3",
                   "--max-rounds", "1", "--out", tmp_path / "out"]
        return subprocess.run(command, capture_output=True, text=True, timeout=600, check=True).stderr
    assert "every time is below 1 ms" in said("0,0,9.8,19.7,,100,1000,50", "1,1,12,24,11,70,2000,0")
    assert "every time" not in said("0,0,9.8,19.7,,100,1000,50", "1,1,12,1000,11,70,2000,0")
