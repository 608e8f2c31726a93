"""pipeweaver replay --trace: recorded steps, and emulated ones, replayed; bad input."""

import gzip
import json

import pytest
from checkout import ROOT

TRACES = [ROOT / f"examples/traces/rank-{rank}.json" for rank in (0, 1)]
JOB = ("--model", "dip-vlm-s", "--cluster", "h100-sxm:4", "--tp", "2", "--pp", "2", "--dataset", "vlm-mix",
       "--microbatches", "3")


def asked(pipeweaver, *words):
    return json.loads(pipeweaver("replay", "--trace", *words, "--json"))


def path_of(step):
    return {one["kind"]: one["ns"] for one in step["critical_path"]}


def test_gzip_is_the_same(pipeweaver, tmp_path):
    zipped = [tmp_path / f"{path.name}.gz" for path in TRACES]
    for path, to in zip(TRACES, zipped):
        to.write_bytes(gzip.compress(path.read_bytes()))
    plain, answer = asked(pipeweaver, *TRACES), asked(pipeweaver, *zipped)
    for one in (plain, answer):
        for rank in one["ranks"]:
            del rank["file"]
    assert answer == plain


def test_the_order_of_files_does_not_matter_for_the_step(pipeweaver):
    there, back = asked(pipeweaver, *TRACES), asked(pipeweaver, *reversed(TRACES))
    assert there == back


def test_paths_add_up_and_name_who_is_slow(pipeweaver):
    answer = asked(pipeweaver, *TRACES, "--what-if", "gemm=0.5,launch=0")
    for step in (answer["replayed"], answer["what_if"]):
        assert sum(path_of(step).values()) == step["step_ns"]
    assert answer["recorded_ns"] == answer["replayed"]["step_ns"] == 795000
    assert [rank["slow"] for rank in answer["ranks"]] == [False, True]
    assert [rank["collectives"] for rank in answer["ranks"]] == [3, 3]
    assert answer["kept_ns"] == path_of(answer["replayed"])["idle"] == 18000  # of 795 us: the rest is explained


def test_one_rank_alone_is_replayed_as_recorded(pipeweaver):
    answer = asked(pipeweaver, TRACES[0])
    assert answer["recorded_ns"] == answer["replayed"]["step_ns"] == 795000
    assert answer["collectives"] == 0 and answer["unmatched"] == 3
    assert path_of(answer["replayed"])["all_reduce"] == 3 * 94000
    assert "one rank of 2: nothing is known of the others" in pipeweaver("replay", "--trace", TRACES[0])


def test_an_emulated_step_replays_to_its_makespan(pipeweaver, tmp_path):
    emulated = json.loads(pipeweaver("emulate", *JOB, "--trace", "0,1", "--out", tmp_path / "out", "--json"))
    trace = tmp_path / "out/trace.json.gz"
    answer = asked(pipeweaver, trace)
    assert answer["recorded_ns"] == answer["replayed"]["step_ns"] == emulated["makespan_ns"]
    twice = asked(pipeweaver, trace, "--what-if", "rank0=2,rank1=2,nccl=2")["what_if"]["step_ns"]
    assert emulated["makespan_ns"] < twice <= 2 * emulated["makespan_ns"]
    beside = asked(pipeweaver, *TRACES, "--emulated", trace)
    assert beside["emulated"] == answer["replayed"]
    assert "emulated: " in pipeweaver("replay", "--trace", *TRACES, "--emulated", trace)


def test_a_plans_own_trace_replays(pipeweaver, tmp_path):
    pipeweaver("plan", *JOB, "--max-rounds", "2", "--quiet", "--out", tmp_path / "plan")
    replica = tmp_path / "plan/replica-000"
    makespan = json.loads((replica / "solution.json").read_text())["makespan_ns"]
    trace = json.loads(gzip.decompress((replica / "trace.json.gz").read_bytes()))["traceEvents"]
    optimizer = max(round(1000 * event["dur"]) for event in trace if event.get("cat") == "optimizer")
    assert asked(pipeweaver, replica / "trace.json.gz")["replayed"]["step_ns"] == makespan + optimizer


@pytest.mark.parametrize("words, line", [
    (["--trace", TRACES[0], TRACES[0]], "is of rank 0, as "),
    (["--trace", TRACES[0], "--what-if", "gem=2"], "--what-if: unknown name 'gem'; did you mean 'gemm'?"),
    (["--trace", TRACES[0], "--what-if", "rank1=2"], "--what-if: unknown name 'rank1'"),
    (["--trace", ROOT / "examples/stages.csv"], "is no JSON"),
    (["--trace", ROOT / "examples/small-vlm.json"], "is no trace"),
    (["--trace", TRACES[0], "--emulated", TRACES[1]], "is no trace of an emulated step"),
    (["--trace", TRACES[0], "--measured", TRACES[1]], "--measured: goes without --trace"),
    (["plan", "--trace", TRACES[0], "--replica", "1"], "goes without --trace"),
    (["--what-if", "gemm=2"], "missing PROBLEM or --trace FILE: "),
    (["plan", "--what-if", "gemm=2"], "--what-if: goes with --trace"),
])
def test_bad_input_is_one_line(pipeweaver, words, line):
    status, said = pipeweaver.fails("replay", *words)
    assert status == 2 and line in said and "\n" not in said.strip(), said


def test_ranks_that_do_not_go_together_are_named(pipeweaver, tmp_path):
    other = json.loads(TRACES[1].read_text())
    other["distributedInfo"]["world_size"] = 4
    (tmp_path / "other.json").write_text(json.dumps(other))
    assert "is of a run of 4 ranks" in pipeweaver.fails("replay", "--trace", TRACES[0], tmp_path / "other.json")[1]
    both = []
    for rank, path in enumerate(TRACES):
        trace = json.loads(path.read_text())
        trace["distributedInfo"]["world_size"] = 3
        both.append(tmp_path / f"{rank}.json")
        both[-1].write_text(json.dumps(trace))
    assert "of 3 ranks one is missing: 2" in pipeweaver.fails("replay", "--trace", *both)[1]


def test_a_kernel_that_no_pattern_knows_is_listed(pipeweaver, tmp_path):
    (tmp_path / "own.json").write_text(TRACES[0].read_text().replace("triton_poi_fused_add_0", "my_own_thing"))
    unknown = asked(pipeweaver, tmp_path / "own.json")["unknown"]
    assert unknown["kernels"] == [{"name": "my_own_thing", "count": 3, "ns": 60000}]
    assert unknown["share"] == pytest.approx(60 / 420)
