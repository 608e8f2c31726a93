"""pipeweaver mix: one training on two kinds of GPU."""

import json
import re

import pytest

JOB = ("mix", "--model", "qwen2.5-1.5b", "--dataset", "constant-2048", "--microbatch-tokens", "4096")
FAST, SLOW = "h100-sxm:8", "a100-sxm:4"


def asked(pipeweaver, cluster, *more, microbatches=24):
    return json.loads(pipeweaver(*JOB, "--microbatches", str(microbatches), "--cluster", cluster, *more, "--json"))


def test_the_slower_kind_takes_fewer_and_makes_no_step_longer(pipeweaver):
    answer = asked(pipeweaver, f"{FAST}+{SLOW}", "--bridge", "10TB/s", microbatches=96)
    fast, slow = answer["alone"]
    both = answer["both"]
    first, second = both["groups"]
    assert first["microbatches"] + second["microbatches"] == 96 and first["microbatches"] > second["microbatches"]
    assert both["step_ns"] == max(first["step_ns"], second["step_ns"]) + both["exchange_ns"]
    assert fast["step_ns"] < slow["step_ns"]
    assert answer["step_ns"] == min(fast["step_ns"], slow["step_ns"], both["step_ns"])
    assert answer["best"] == "both"


def test_behind_a_slow_bridge_the_fast_kind_is_alone(pipeweaver):
    answer = asked(pipeweaver, f"{FAST}+{SLOW}", "--bridge", "10MB/s")
    assert answer["best"] == FAST and answer["step_ns"] == answer["alone"][0]["step_ns"]
    alone = asked(pipeweaver, FAST)
    assert alone["alone"] == answer["alone"][:1] and alone["both"] is None


def test_the_order_of_kinds_changes_nothing_but_the_order(pipeweaver):
    one, other = asked(pipeweaver, f"{FAST}+{SLOW}"), asked(pipeweaver, f"{SLOW}+{FAST}")
    assert one["alone"] == other["alone"][::-1]


@pytest.mark.parametrize("more", [(), ("--json",), ("--precision", "h100-sxm=fp8")])
def test_two_groups_of_one_kind_are_one_to_the_byte(pipeweaver, more):
    ask = (*JOB, "--microbatches", "16", *more, "--cluster")
    assert pipeweaver(*ask, "h100-sxm:4+h100-sxm:4") == pipeweaver(*ask, "h100-sxm:8")


def test_a_group_alone_takes_what_emulate_says(pipeweaver):
    alone = asked(pipeweaver, FAST)["alone"][0]
    step = json.loads(pipeweaver("emulate", "--model", "qwen2.5-1.5b", "--cluster", FAST, "--dataset", "constant-2048",
                                 "--microbatch-tokens", "4096", "--global-batch", "24mb", "--tp", str(alone["tp"]),
                                 "--pp", str(alone["pp"]), "--dp", str(alone["dp"]), "--cp", str(alone["cp"]), "--zero",
                                 str(alone["zero"]), "--recompute", alone["recompute"], "--json"))
    assert step["step_ns"] == alone["step_ns"]


def test_the_text_names_the_best(pipeweaver):
    text = pipeweaver(*JOB, "--microbatches", "24", "--cluster", f"{FAST}+{SLOW}")
    lines = text.splitlines()
    assert lines[0].startswith("qwen2.5-1.5b: 24 microbatches of constant-2048 (seed 1)")
    assert [line.partition(":")[0] for line in lines[-3:]] == ["both", "pipeline", "best"]
    # Of each rank so many: "16,8 layers on NAME, then 4 layers on NAME".
    assert all(re.fullmatch(r"\d+(,\d+)* layers? on \S+", part)
               for part in lines[-2].split(" a step, ")[1].split(", then ")), lines[-2]


def test_layers_are_shared_out_where_little_crosses(pipeweaver):
    answer = asked(pipeweaver, f"{FAST}+{SLOW}", "--bridge", "1GB/s")
    pipeline = answer["pipeline"]
    groups = {group["cluster"]: group for group in pipeline["groups"]}
    fast, slow = groups[FAST], groups[SLOW]
    assert sum(fast["layers"]) + sum(slow["layers"]) == 28  # of Qwen2.5-1.5B
    assert len(fast["layers"]) == 2 * len(slow["layers"]) and sum(fast["layers"]) > 2 * sum(slow["layers"])
    assert answer["step_ns"] == min(pipeline["step_ns"], answer["both"]["step_ns"],
                                    *(alone["step_ns"] for alone in answer["alone"]))


def test_a_kind_has_fewer_bits_only_where_that_is_asked(pipeweaver):
    plain = asked(pipeweaver, f"{FAST}+{SLOW}")
    lower = asked(pipeweaver, f"{FAST}+{SLOW}", "--precision", "h100-sxm=fp8")
    assert all(group["products"] == "bf16" for group in plain["alone"])
    assert lower["alone"][1] == plain["alone"][1] and lower["step_ns"] <= plain["step_ns"]


@pytest.mark.parametrize("arguments, status, says", [
    ([*JOB, "--cluster", f"{FAST}+{SLOW}", "--precision", "fp8"], 2, "KIND=FORMAT"),
    ([*JOB, "--cluster", f"{FAST}+{SLOW}", "--precision", "h100-sxm="], 2, "is 'h100-sxm=', must be KIND=FORMAT"),
    ([*JOB, "--cluster", f"{FAST}+{SLOW}", "--precision", "l40s=fp8"], 2, "of h100-sxm or a100-sxm"),
    ([*JOB, "--cluster", f"{FAST}+{SLOW}", "--precision", "h100-sxm=fp7"], 2, "must be one of bf16, fp8"),
    ([*JOB, "--cluster", f"{FAST}+{SLOW}", "--precision", "a100-sxm=fp8"], 2, "a100"),
    (["mix"], 2, "missing --model MODEL: what is trained; --cluster CLUSTER+CLUSTER: two kinds of GPU"),
    ([*JOB, "--cluster", "h100-sxm:8+a100-sxm:8+h200-sxm:8"], 2, "must be two kinds"),
    ([*JOB, "--cluster", "h100-sxm:8+"], 2, "cluster"),
    ([*JOB, "--cluster", f"{FAST}+{SLOW}", "--bridge", "999999B/s"], 2, "is '999999 B/s', must be at least 1 MB/s"),
    (["mix", "--model", "qwen2.5-72b", "--dataset", "constant-2048", "--microbatches", "8", "--cluster",
      "l40s:8+a100-sxm:2"], 4,
     "neither l40s:8 nor a100-sxm:2 hold it"),
])
def test_what_cannot_be_is_one_line(pipeweaver, arguments, status, says):
    found, line = pipeweaver.fails(*arguments)
    assert found == status and says in line


def test_kinds_that_are_known_by_their_data_sheets_say_so(pipeweaver):
    """MI300X has no measured table: what it takes is modelled, in a mix as in a plan."""
    job = ("mix", "--model", "qwen2.5-7b", "--dataset", "constant-4096", "--bridge", "50GB/s")
    text = pipeweaver(*job, "--cluster", "h100-sxm:8+mi300x:8")
    assert text.count("\nmodelled: mi300x is known by ") == 1 and "0.8 to 1.5 times as long" in text
    assert "modelled" not in pipeweaver(*job, "--cluster", "h100-sxm:8+a100-sxm:8")
