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


@pytest.mark.parametrize("arguments, status, says", [
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
