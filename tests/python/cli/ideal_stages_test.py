"""solve --stages: ideal pipelines take no longer than schedules that are published for them, in as much memory."""

import json

import pytest

RANKS, STAGE_US, STAGE_BYTES = 8, 1000, 1_000_000


def in_a_loop(chunks, split):
    time = STAGE_US // chunks
    return [(stage % RANKS, time, time if split else 2 * time, time if split else "")
            for stage in range(chunks * RANKS)]


def in_a_v():
    time = STAGE_US // 2
    return [(min(stage, 2 * RANKS - 1 - stage), time, time, time) for stage in range(2 * RANKS)]


# AMD-AGI/Primus @fd1eeabb, its pipeline simulator: 32 microbatches, their memory in microbatches of a whole stage.
@pytest.mark.parametrize("name, stages, microbatches_held, makespan_us", [
    ("1f1b", in_a_loop(1, False), 8, 117_000),
    ("interleaved", in_a_loop(2, False), 11.5, 106_500),
    ("zero-bubble", in_a_loop(1, True), 8, 103_000),
    ("zero-bubble heuristic", in_a_loop(1, True), 8, 103_000),
    ("zero-bubble heuristic, more memory", in_a_loop(1, True), 10, 103_000),
    ("zb-v", in_a_v(), 8, 99_500),
    ("v-half", in_a_v(), 5, 104_500),
    ("v-min", in_a_v(), 4, 109_000),
])
def test_no_published_schedule_is_shorter(pipeweaver, tmp_path, name, stages, microbatches_held, makespan_us):
    size = STAGE_BYTES * RANKS // len(stages)
    lines = ["stage,rank,forward_us,backward_us,weight_us,activation_bytes,weights_bytes,send_bytes"]
    lines += [f"{number},{rank},{forward},{backward},{weight},{size},0,0"
              for number, (rank, forward, backward, weight) in enumerate(stages)]
    table = tmp_path / "stages.csv"
    table.write_text("\n".join(lines) + "\n", encoding="utf-8")
    answer = json.loads(pipeweaver("solve", "--stages", table, "--microbatches", "32", "--max-rounds", "2",
                                   "--capacity", f"{int(microbatches_held * STAGE_BYTES)}B", "--out", tmp_path / "plan",
                                   "--json"))
    assert answer["makespan_ns"] <= 1000 * makespan_us, name
    assert max(answer["peak_bytes"]) <= microbatches_held * STAGE_BYTES
