"""pipeweaver fuse: two models trained at once on the same ranks."""

import json

import pytest

PAIR = ("fuse", "--model", "qwen2.5-7b", "--beside", "qwen2.5-1.5b", "--cluster", "h100-sxm:8", "--tp", "2",
        "--lengths", "0:256,100:4k", "--answers", "32", "--max-rounds", "3")


def chain(path, name, ranks, microbatches, forward, backward, kept):
    """Writes a problem of equal stages, one a rank."""
    tasks, edges, pairs = [], [], []

    def add(rank, kind, microbatch, after):
        task = {"id": len(tasks), "rank": rank, "kind": kind, "duration_ns": forward if kind == "F" else backward,
                "acquire_bytes": kept if kind == "F" else 0, "release_bytes": 0 if kind == "F" else kept,
                "label": f"{kind}{microbatch} of {rank}", "stage": rank, "microbatch": microbatch, "module": "llm"}
        tasks.append(task)
        edges.extend([[before, task["id"], 0] for before in after])
        return task["id"]

    for microbatch in range(microbatches):
        forwards, after = [], []
        for rank in range(ranks):
            forwards.append(add(rank, "F", microbatch, after))
            after = [forwards[-1]]
        for rank in reversed(range(ranks)):
            back = add(rank, "B", microbatch, after)
            after = [back]
            pairs.append({"forward": forwards[rank], "backward": back, "modes": [
                {"forward_ns": forward, "backward_ns": backward, "held_bytes": kept, "transient_bytes": 0}]})
    path.write_text(json.dumps({
        "format": "pipeweaver-problem/1", "name": name, "source": "",
        "ranks": [{"capacity_bytes": None, "base_bytes": 0} for _ in range(ranks)],
        "stages": [{"stage": rank, "rank": rank, "parts": [{"module": "llm"}]} for rank in range(ranks)],
        "tasks": tasks, "edges": edges, "pairs": pairs}))
    return path


def test_published_pairs_take_no_longer_than_their_authors_found(pipeweaver, shared, tmp_path):
    """RLHFuse's own search took 20 s to over an hour on 512 cores and more."""
    for one in json.loads((shared / "data/schedules/fused_pipelines.json").read_text())["instances"]:
        big = chain(tmp_path / "big.json", "big", one["nodes"], one["mb_big"], one["fwd_big"], one["bwd_big"],
                    round(100 * one["mem_big"]))
        small = chain(tmp_path / "small.json", "small", one["pp_small"], one["mb_small"], one["fwd_small"],
                      one["bwd_small"], round(100 * one["mem_small"]))
        found = json.loads(pipeweaver("fuse", big, small, "--max-rounds", "5", "--json"))
        assert len(found["beside_ns"]) == one["copies_small"]
        assert found["in_turn_ns"] == one["serial_1f1b"]
        assert one["lower_bound"] <= found["lower_bound_ns"] <= found["makespan_ns"] <= one["best"], one["name"]


def test_models_are_priced_and_their_schedule_is_checked(pipeweaver, tmp_path):
    out = tmp_path / "fused"
    found = json.loads(pipeweaver(*PAIR, "--beside-pp", "2", "--out", out, "--json"))
    assert len(found["beside_ns"]) == 2 and found["ranks"] == 4
    assert found["in_turn_ns"] == found["first_ns"] + max(found["beside_ns"])
    assert found["lower_bound_ns"] <= found["makespan_ns"] < found["in_turn_ns"]
    replayed = json.loads(pipeweaver("replay", out / "problem.json.gz", out / "solution.json", "--json"))
    assert replayed["makespan_ns"] == found["makespan_ns"] and replayed["peak_bytes"] == found["peak_bytes"]
    problem = json.loads((out / "solution.json").read_text())
    assert problem["makespan_ns"] == found["makespan_ns"]


def test_the_first_alone_takes_what_emulate_says(pipeweaver, tmp_path):
    """Of equal answers, so that their order is none."""
    (tmp_path / "lengths.txt").write_text("1500\n")
    batch = tmp_path / "batch.jsonl"
    batch.write_text("".join(json.dumps({"id": f"a{i}", "text_tokens": 2012}) + "\n" for i in range(32)))
    found = json.loads(pipeweaver(*PAIR[:9], "--lengths", tmp_path / "lengths.txt", "--answers", "32", "--max-rounds",
                                  "1", "--json"))
    step = json.loads(pipeweaver("emulate", "--model", "qwen2.5-7b", "--cluster", "h100-sxm:8", "--tp", "2", "--pp",
                                 "4", "--batch", batch, "--recompute", found["recompute"], "--json"))
    assert found["first_ns"] == step["makespan_ns"]


def test_the_text_says_what_is_gained_and_twice_the_same(pipeweaver):
    text = pipeweaver(*PAIR)
    lines = text.splitlines()
    assert lines[0].startswith("qwen2.5-7b: 4 ranks, 1f1b ")
    assert lines[1].startswith("qwen2.5-1.5b: 1 pipeline of 4 ranks, 1f1b ")
    assert lines[2].startswith("one after the other: ") and lines[3].startswith("at once: ")
    assert lines[4].startswith("fullest rank: ") and " recomputation " in lines[4]
    assert pipeweaver(*PAIR, "--threads", "1") == text


@pytest.mark.parametrize("arguments, status, says", [
    (["fuse"], 2, "missing --model MODEL: or two problem files; --beside MODEL: that is trained at the same time"),
    (["fuse", "a.json"], 2, "missing BESIDE-PROBLEM"),
    (["fuse", "a.json", "b.json", "--model", "qwen2.5-7b"], 2, "--model: does not go with problem files"),
    (["fuse", "a.json", "b.json", "--answers", "8"], 2, "--answers: does not go with problem files"),
    ([*PAIR[:12], "1", *PAIR[13:], "--beside-pp", "2"], 2, "--answers: fill 1 microbatch of qwen2.5-1.5b"),
    ([*PAIR[:8], "3", *PAIR[9:]], 2, "--tp: is 3, must be a divisor of the 8 GPUs"),
    ([*PAIR, "--beside-pp", "3"], 2, "--beside-pp: is 3, must be a divisor of the 4 ranks"),
    ([*PAIR[:4], "qwen2.5-72b", *PAIR[5:]], 4, "qwen2.5-7b beside qwen2.5-72b: rank"),
])
def test_what_cannot_be_is_one_line(pipeweaver, arguments, status, says):
    found, line = pipeweaver.fails(*arguments)
    assert found == status and says in line


def test_ranks_that_do_not_divide_are_refused(pipeweaver, tmp_path):
    big = chain(tmp_path / "big.json", "big", 4, 2, 5, 10, 1)
    small = chain(tmp_path / "small.json", "small", 3, 2, 5, 10, 1)
    found, line = pipeweaver.fails("fuse", big, small)
    assert found == 2 and "has 3 ranks, allowed are numbers that divide the 4" in line
