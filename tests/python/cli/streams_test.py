"""Streams that are closed or full, outputs that are no plain files, and files that are read and written at once."""

import gzip
import json
import os
import re
import stat
import subprocess

import pytest
from checkout import ROOT
from cli_shared import BATCH, PLAN, small_problem

BAD = ["list", "nothing"]
COMMANDS = [["--help"], ["plan", "--help"], ["list", "models"], ["show", "dip-vlm-s"], ["completion", "bash"],
            ["list", "models", "--json"], ["--version"]]


def shell(pipeweaver, arguments, redirection, **more):
    """Runs the command in a shell, with standard streams as `redirection` says."""
    command = " ".join([f"exec '{pipeweaver.path}'", *map(str, arguments), redirection])
    return subprocess.run(["bash", "-c", command], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=600, **more)


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full", ">&- 2>&- <&-"])
def test_an_error_that_cannot_be_written_ends_with_its_status(pipeweaver, redirection):
    assert shell(pipeweaver, BAD, redirection).returncode == 2


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("redirection", [">&-", ">/dev/full"])
def test_an_answer_that_cannot_be_written_is_an_error_of_files(pipeweaver, arguments, redirection):
    done = shell(pipeweaver, arguments, redirection)
    assert (done.returncode, done.stderr) == (3, "pipeweaver: stdout cannot be written\n")


def test_a_plan_whose_answer_is_lost_says_so_and_is_there(pipeweaver, tmp_path):
    plan = [*PLAN, *BATCH, "--max-rounds", "1", "--out", tmp_path / "plan"]
    done = shell(pipeweaver, plan, ">/dev/full")
    assert done.returncode == 3 and done.stderr.endswith("pipeweaver: stdout cannot be written\n")
    assert (tmp_path / "plan/plan.json").exists()


def test_what_is_closed_is_taken_by_no_file(pipeweaver, tmp_path):
    """Without care the solution file is opened as descriptor 1, and the answer goes into it."""
    (tmp_path / "p.json").write_text(json.dumps(small_problem()))
    solve = ["solve", tmp_path / "p.json", "--max-rounds", "1", "--out", tmp_path / "s.json"]
    assert shell(pipeweaver, solve, ">&-").returncode == 3
    assert json.loads((tmp_path / "s.json").read_text())["format"] == "pipeweaver-solution/1"


def test_inputs_come_from_pipes(pipeweaver, tmp_path):
    text = json.dumps(small_problem())
    (tmp_path / "p.json.gz").write_bytes(gzip.compress(text.encode()))
    answer = pipeweaver("solve", tmp_path / "p.json.gz", "--max-rounds", "1", "--out", tmp_path / "a.json")
    for way in (f"<(zcat {tmp_path}/p.json.gz)", f"<(cat {tmp_path}/p.json.gz)", f"/dev/stdin < {tmp_path}/p.json.gz"):
        done = shell(pipeweaver, ["solve", "--max-rounds", "1", "--out", tmp_path / "b.json"], way)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert answer


@pytest.mark.parametrize("name", ["n" * 300, "loop", "loop/p.json", "p.json/below"])
def test_what_cannot_be_looked_up_is_an_error_of_files_in_one_line(pipeweaver, tmp_path, name):
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "p.json").write_text("{}")
    for command in (["solve", tmp_path / name, "--out", tmp_path / "s.json"], ["replay", tmp_path / name],
                    ["show", f"hf:{tmp_path / name}"], [*PLAN, "--batch", tmp_path / name, "--out", tmp_path / "o"],
                    ["emit", "--plan", tmp_path / name, "--target", "torch-actions", "--out", tmp_path / "e"],
                    ["solve", tmp_path / "p.json", "--out", tmp_path / name / "s.json"]):
        status, line = pipeweaver.fails(*command)
        assert status in (2, 3) and "bug" not in line, line


def test_outputs_go_through_pipes_devices_and_links(pipeweaver, tmp_path):
    (tmp_path / "p.json").write_text(json.dumps(small_problem()))
    solve = ["solve", str(tmp_path / "p.json"), "--max-rounds", "1", "--quiet", "--out"]
    pipeweaver(*solve, tmp_path / "plain.json")
    expected = (tmp_path / "plain.json").read_text()

    done = shell(pipeweaver, [*solve, ">(cat > /dev/stderr)"], "")
    assert done.returncode == 0 and expected in done.stderr
    done = shell(pipeweaver, [*solve, "/dev/stdout"], "| cat")
    assert expected in done.stdout
    done = shell(pipeweaver, [*solve, "/dev/stdout"], f"> {tmp_path}/kept")
    assert expected in (tmp_path / "kept").read_text()
    pipeweaver(*solve, "/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)

    (tmp_path / "link.json").symlink_to("target.json")
    (tmp_path / "target.json").write_text("old")
    (tmp_path / "target.json").chmod(0o640)
    pipeweaver(*solve, tmp_path / "link.json")
    assert (tmp_path / "link.json").is_symlink() and (tmp_path / "target.json").read_text() == expected
    assert stat.S_IMODE((tmp_path / "target.json").stat().st_mode) == 0o640

    (tmp_path / "target.json").chmod(0o444)
    status, line = pipeweaver.fails(*solve, tmp_path / "link.json")
    assert (status, line) == (3, f"pipeweaver: {tmp_path}/link.json: cannot be written: it is read-only")


def test_no_command_destroys_what_it_reads_or_writes(pipeweaver, tmp_path):
    problem = tmp_path / "p.json"
    problem.write_text(json.dumps(small_problem()))
    (tmp_path / "link").symlink_to("p.json")
    pipeweaver("solve", problem, "--max-rounds", "1", "--out", tmp_path / "s.json")
    (tmp_path / "conf.json").write_text(json.dumps({"picture": str(tmp_path / "conf.json")}))
    model = ["--model", "dip-vlm-s", "--cluster", "h100-sxm:16", "--tp", "4", "--pp", "4", "--dataset", "vlm-mix",
             "--microbatches", "4"]
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for command in (["solve", problem, "--out", problem],
                    ["solve", problem, "--out", tmp_path / "link"],
                    ["solve", tmp_path / "link", "--out", f"{tmp_path}/./p.json"],
                    ["solve", problem, "--out", tmp_path / "x", "--log", f"{tmp_path}/./x"],
                    ["solve", problem, "--warm", tmp_path / "s.json", "--out", tmp_path / "s.json"],
                    ["partition", *model, "--out", tmp_path / "Y", "--config", tmp_path / "conf.json"],
                    ["partition", *model, "--out", tmp_path / "X", "--picture", tmp_path / "X"],
                    ["costdb", "import", tmp_path / "s.json", "--out", tmp_path / "s.json"]):
        status, line = pipeweaver.fails(*command)
        assert status == 2 and ", the file of " in line and line.endswith(", allowed is another one"), line
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_plan_is_not_written_over_what_it_reads(pipeweaver, tmp_path):
    (tmp_path / "d").mkdir()
    model = tmp_path / "d/report.html"
    model.write_text(pipeweaver("show", "dip-vlm-s"))
    before = model.read_bytes()
    for out in (tmp_path / "d", f"{tmp_path}/d/../d/"):
        status, line = pipeweaver.fails("plan", "--model", model, "--cluster", "h100-sxm:16", *BATCH, "--out", out)
        assert status == 2 and "which the plan would write over" in line, line
    assert model.read_bytes() == before


def test_messages_are_one_short_printable_line(pipeweaver, tmp_path):
    status, line = pipeweaver.fails("show", "a\x1b[31m\x01" + "n" * 300)
    assert status == 2 and "\\x1b[31m\\x01n" in line and len(line) <= 400
    assert len(pipeweaver.fails("show", "llama")[1]) <= 400  # with all names that there are
    for words in (["show", b"\xff\xfe"], ["plan", "--batch", b"b\xff\xfe.jsonl"], ["solve", b"\xff\xfe"]):
        done = subprocess.run([pipeweaver.path, *words], capture_output=True, timeout=60)
        assert done.returncode == 2 and b"\\xff\\xfe" in done.stderr and b"UTF-8" in done.stderr


def test_answers_are_printable_and_json_whatever_the_input_has(pipeweaver, tmp_path):
    """Of a launch, a table of runs and a trace: words of theirs are in what is printed."""
    launch = (ROOT / "examples/launch.sh").read_bytes()
    (tmp_path / "launch.sh").write_bytes(launch.replace(b"--bf16", b"--bf16 --log-\xff\x1b[31m-x 1"))
    runs = (ROOT / "examples/runs.csv").read_bytes().splitlines()[:2]
    (tmp_path / "runs.csv").write_bytes(runs[0] + b"\n" + runs[1].replace(b"GPT-39.1B,48", b"\xff\x1b[31m,48\xfe"))
    trace = (ROOT / "examples/trace.json").read_text()
    (tmp_path / "trace.json").write_text(trace.replace('"name": "', '"name": "\\u009b2J\\u001b[31m', 1))
    for command in (["check", "--cluster", "h100-sxm:64", "--rules-only", tmp_path / "launch.sh"],
                    ["validate", tmp_path / "runs.csv"], ["costdb", "import", "--trace", tmp_path / "trace.json"]):
        done = subprocess.run([pipeweaver.path, *command], capture_output=True, timeout=60)
        assert done.returncode in (0, 2, 4), done.stderr
        text = done.stdout.decode() + done.stderr.decode()
        assert text and not any(ord(c) < 32 and c != "\n" or 127 <= ord(c) < 160 for c in text), text
        if command[0] != "costdb":
            done = subprocess.run([pipeweaver.path, *command, "--json"], capture_output=True, timeout=60)
            json.loads(done.stdout)
            assert b"bug" not in done.stderr


def test_threads_that_cannot_be_made_are_said_or_done_without(pipeweaver, tmp_path):
    """Each thread takes address space for its stack."""
    plan = [*PLAN, *BATCH, "--partition", "dip", "--max-rounds", "1", "--out", str(tmp_path / "plan")]

    def run(*more):
        command = "ulimit -s 2097152; ulimit -v 2000000; exec \"$@\""
        return subprocess.run(["bash", "-c", command, "bash", str(pipeweaver.path), *plan, *more], capture_output=True,
                              text=True, timeout=600)

    refused = run("--threads", "64")
    assert refused.returncode == 4 and not (tmp_path / "plan").exists()
    assert refused.stderr.startswith("pipeweaver: --threads: is 64, ") and len(refused.stderr.splitlines()) == 1
    fewer = run()
    assert fewer.returncode == 0
    if len(os.sched_getaffinity(0)) > 1:  # of all that there are the program takes those that it may
        said = "^1 of [0-9]+ threads: the limits of processes or memory here allow no more$"
        assert re.search(said, fewer.stderr, re.MULTILINE)
    assert "allow no more" not in run("--quiet").stderr


@pytest.mark.parametrize("change", [{"acquire_bytes": 2**63 - 1}, {"release_bytes": 2**62}, {"duration_ns": 2**63 - 1}])
def test_sums_that_cannot_be_said_are_refused_before_they_are_made(pipeweaver, tmp_path, change):
    problem = small_problem()
    problem["tasks"][1].update(change)
    problem["tasks"][2].update(change)
    (tmp_path / "p.json").write_text(json.dumps(problem))
    status, line = pipeweaver.fails("solve", tmp_path / "p.json", "--out", tmp_path / "s.json")
    assert status == 2 and line.endswith((" memory exceeds 4611686018427387903", " tails exceeds 9223372036854775807"))


def test_a_pairs_modes_are_summed_before_they_are_compared(pipeweaver, tmp_path):
    problem = small_problem()
    mode = {"forward_ns": 1000, "backward_ns": 1000, "held_bytes": 2**63 - 1, "forward_transient_bytes": 2**63 - 1,
            "transient_bytes": 2**63 - 1, "kept_bytes": 2**63 - 1}
    problem["pairs"] = [{"forward": 0, "backward": 3, "modes": [mode]}]
    (tmp_path / "p.json").write_text(json.dumps(problem))
    status, line = pipeweaver.fails("solve", tmp_path / "p.json", "--out", tmp_path / "s.json")
    assert status == 2 and "the sum of all memory exceeds" in line, line


def test_an_option_with_nothing_behind_its_sign_takes_no_other(pipeweaver, tmp_path):
    status, line = pipeweaver.fails(*PLAN, *BATCH, "--replicas=", "--out", tmp_path / "plan")
    assert (status, line) == (2, "pipeweaver: --replicas: has no value behind '='")


def test_a_trace_of_another_or_an_unknown_device_leaves_no_file(pipeweaver, tmp_path):
    known = (ROOT / "examples/trace.json").read_text()
    (tmp_path / "h100.json").write_text(known)
    (tmp_path / "other.json").write_text(known.replace("NVIDIA H100 80GB HBM3", "Fancy GPU 9000"))
    before = set(tmp_path.iterdir())
    for trace, device, words in (("h100.json", ["--device", "a100_sxm"], "is h100_sxm, but --device says a100_sxm"),
                                 ("other.json", [], "is none that is known here"),
                                 ("other.json", ["--device", "fancy"], "'fancy'")):
        status, line = pipeweaver.fails("costdb", "import", "--trace", tmp_path / trace, "--json", tmp_path / "r.json",
                                        "--kernels", tmp_path / "k.csv", *device, "--out", tmp_path / "db")
        assert status == 2 and words in line, line
        assert set(tmp_path.iterdir()) == before
    # Without a database the report is all that is asked for.
    pipeweaver("costdb", "import", "--trace", tmp_path / "other.json", "--json", tmp_path / "r.json", "--kernels",
               tmp_path / "k.csv")
    assert {path.name for path in set(tmp_path.iterdir()) - before} == {"r.json", "k.csv"}
