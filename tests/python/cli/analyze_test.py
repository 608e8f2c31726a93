"""pipeweaver analyze: a token's work and price at the roofline."""

import json

import pytest


def test_step_3_on_four_devices(pipeweaver):
    answer = json.loads(pipeweaver("analyze", "step3-321b", "--device", "h800,h20,a800,910b", "--json"))
    assert [one["context"] for one in answer["work"]] == [8192, 32768]
    assert answer["work"][1]["attention_flops"] == pytest.approx(131e9, rel=0.003)
    usd = {(one["device"], one["context"]): one["attention_usd_per_million"] for one in answer["costs"]}
    # arXiv 2507.19427, table 6.
    assert usd["h800_sxm", 8192] == pytest.approx(0.048, abs=0.002)
    assert usd["ascend_910b", 32768] == pytest.approx(0.133, abs=0.002)
    assert len(usd) == 8


def test_price_and_network_of_ones_own(pipeweaver):
    ask = ("analyze", "deepseek-v3", "--device", "h100", "--context", "32k", "--latency", "50ms", "--json")
    free = json.loads(pipeweaver(*ask))["costs"][0]
    assert free["attention_usd_per_million"] is None and free["split"]["usd_per_million"] is None
    paid = json.loads(pipeweaver(*ask, "--price", "2"))["costs"][0]
    assert paid["attention_usd_per_million"] == pytest.approx(1e6 * paid["attention_s"] * 2 / 3600)
    split = paid["split"]
    assert split["usd_per_million"] == pytest.approx(1e6 * 2 / 3600 / split["tokens_per_second_per_gpu"])
    slow = json.loads(pipeweaver(*ask, "--network", "10GB/s"))["costs"][0]
    assert slow["split"]["limit"] == "network"
    assert slow["least_sparsity"] == pytest.approx(40 * paid["least_sparsity"])
    text = pipeweaver(*ask[:-1])
    assert "of their own, 50.00 ms a token" in text and "no price" in text


def test_the_pipeline_of_both_is_replayed(pipeweaver):
    ask = ("analyze", "step3-321b", "--device", "h800", "--context", "4k", "--latency", "50ms", "--network", "400GB/s")
    nodes = (*ask, "--nodes", "2:2", "--json")
    found = json.loads(pipeweaver(*nodes))["costs"][0]["replayed"]
    assert (found["attention_nodes"], found["ffn_nodes"]) == (2, 2)
    # arXiv 2507.19427: 4,039 of two nodes each, keys and values in fp8.
    assert found["tokens_per_second_per_gpu"] == pytest.approx(4039, rel=0.1)
    assert found["token_ns"] <= 50e6
    assert found["tokens_per_second_per_gpu"] == pytest.approx(3 * found["tokens"] / found["token_ns"] * 1e9 / 32)
    best = json.loads(pipeweaver(*ask, "--json"))["costs"][0]["replayed"]
    assert best["tokens_per_second_per_gpu"] > found["tokens_per_second_per_gpu"]
    slower = json.loads(pipeweaver(*nodes, "--attention-precision", "bf16", "--attention-share", "0.2"))
    assert slower["costs"][0]["replayed"]["tokens"] < found["tokens"]
    one = json.loads(pipeweaver(*nodes, "--microbatches", "1"))["costs"][0]["replayed"]
    assert one["tokens_per_second_per_gpu"] < found["tokens_per_second_per_gpu"]  # the others idle meanwhile
    assert "replayed with 3 microbatches, attention at 65 % of the roofline" in pipeweaver(*ask)
    impossible = (*ask[:-4], "--latency", "1ms", "--json")
    assert json.loads(pipeweaver(*impossible))["costs"][0]["replayed"] is None


@pytest.mark.parametrize("arguments, status, says", [
    (["--nodes", "2:2"], 2, "--nodes: goes with --latency TIME"),
    (["--latency", "50ms", "--nodes", "2"], 2, "--nodes: is '2', must be two numbers of nodes, like 3:2"),
    (["--context", "8x"], 2, "--context: is '8x', must be a number of tokens, like 8192 or 8k"),
    (["--device", "h999"], 2, "unknown device 'h999'"),
    (["--latency", "5"], 2, "--latency: '5' is not a time"),
])
def test_what_is_wrong_is_said(pipeweaver, arguments, status, says):
    found, line = pipeweaver.fails("analyze", "deepseek-v3", *arguments)
    assert found == status and says in line


def test_a_generator_has_no_tokens_to_decode(pipeweaver):
    status, line = pipeweaver.fails("analyze", "wan2.1-t2v-14b")
    assert status == 2 and "is no language model" in line
