"""pipeweaver costdb explain: figures by hand, the page, refusals."""

import json

import pytest
from checkout import ROOT
from getting_started import blocks, follow, page_of

PAGE = page_of("docs/explain-costs.md")
PRODUCT = "--device a100_sxm --m 3584 --n 2048 --k 1024"


def explained(pipeweaver, options):
    return json.loads(pipeweaver("costdb", "explain", *options.split(), "--json"))


def test_the_page_prints_what_it_shows_and_is_short(pipeweaver, tmp_path):
    assert follow(pipeweaver, tmp_path, PAGE) == blocks("", PAGE)
    assert len(PAGE.split()) <= 350 and (ROOT / "docs/pictures/explain.svg").is_file()


def test_figures_are_those_of_the_wave_arithmetic(pipeweaver):
    answer = explained(pipeweaver, PRODUCT)
    product, = answer["products"]
    # 28 x 8 tiles of 128 x 256 on 108 multiprocessors; 0.85 of the work waits for the third wave.
    waves = 28 * 8 / 108
    assert product["tiling"] == {"rows": 128, "columns": 256, "parts": 1, "tiles": 224, "waves": round(waves, 4),
                                 "multiprocessors": 108}
    assert product["losses"]["wave"] == pytest.approx((0.85 * 3 + 0.15 * waves) / waves, abs=1e-4)
    assert product["losses"]["alignment"] == 1
    assert product["flops"] == 2 * 3584 * 2048 * 1024
    assert product["peak_us"] == pytest.approx(product["flops"] / 312e6, abs=1e-3)
    assert product["tflops_per_s"] == pytest.approx(product["flops"] / product["latency_ns"] / 1e3, abs=1e-3)
    assert (product["bound"], answer["model"]) == ("compute", None)


def test_what_is_faster_has_the_speed_that_a_query_gives(pipeweaver, tmp_path):
    answer = explained(pipeweaver, PRODUCT)
    found = {one["axis"]: one for one in answer["faster"]}
    assert found["n"]["to"] == 4096 and found["n"]["cause"] == "wave" and found["k"]["cause"] is None
    (tmp_path / "q.csv").write_text(f"dtype,m,n,k\nbf16,{found['m']['to']},2048,1024\n")
    pipeweaver("costdb", "query", "--device", "a100_sxm", "--op", "gemm", "--input", tmp_path / "q.csv", "--output",
               tmp_path / "a.csv")
    latency_us = float((tmp_path / "a.csv").read_text().splitlines()[1].split(",")[4])
    assert found["m"]["tflops_per_s"] == pytest.approx(2 * found["m"]["to"] * 2048 * 1024 / latency_us / 1e6, abs=1e-3)
    assert found["m"]["gain_percent"] == pytest.approx(
        100 * (found["m"]["tflops_per_s"] / answer["tflops_per_s"] - 1), abs=1e-2)


def test_a_model_has_the_products_of_its_layers_and_head(pipeweaver):
    answer = explained(pipeweaver, "--device a100_sxm --model llama3-8b --tp 4 --m 4096")
    shapes = {(one["n"], one["k"]): one["times"] for one in answer["products"]}
    # Queries, keys and values (4096 + 2 x 1024) / 4; output 4096 / 4; gate and up 2 x 14336 / 4; down.
    assert {(1536, 4096), (4096, 1024), (7168, 4096), (4096, 3584)} < set(shapes)
    assert shapes[1536, 4096] == 32 and {one["m"] for one in answer["products"]} == {4096}
    assert answer["model"]["tp"] == 4
    flops, ns = (sum(one["times"] * one[key] for one in answer["products"]) for key in ("flops", "latency_ns"))
    assert answer["tflops_per_s"] == pytest.approx(flops / ns / 1e3, abs=1e-3)
    assert {one["axis"] for one in answer["faster"]} <= {"hidden", "ffn", "vocab", "tp"}
    assert all(one["to"] in (2, 8) for one in answer["faster"] if one["axis"] == "tp")


@pytest.mark.parametrize("device, model, experts", [("h100_sxm", "mixtral-8x7b", "fused"),
                                                    ("a100_sxm", "mixtral-8x7b", "apart"),
                                                    ("a100_sxm", "llama3-8b", "none")])
def test_experts_are_fused_where_their_layer_was_measured(pipeweaver, device, model, experts):
    options = f"--device {device} --model {model} --m 4096"
    assert explained(pipeweaver, options)["model"]["experts"] == experts
    said = pipeweaver("costdb", "explain", *options.split())
    assert ("experts    fused" in said, "experts    not fused" in said) == (experts == "fused", experts == "apart")


def test_of_later_devices_nothing_is_said_of_tiles(pipeweaver):
    said = pipeweaver("costdb", "explain", "--device", "h100_sxm", "--m", "4096", "--n", "4097", "--k", "4096")
    assert "tiles      nothing is known of them on this device" in said and "pad it" in said
    answer = explained(pipeweaver, "--device h100_sxm --m 4096 --n 4097 --k 4096")
    assert answer["products"][0]["tiling"] is None and answer["products"][0]["aligned"] is False


def test_waves_that_traffic_outlasts_lose_nothing(pipeweaver):
    # 8 columns in tiles of 64: what reaches beyond them is no loss, but no fit either.
    said = pipeweaver("costdb", "explain", "--device", "a100_sxm", "--m", "4294967296", "--n", "8", "--k", "8")
    assert "155344.59 waves, shorter than the traffic takes in practice" in said
    assert "tiles cost nothing beside the traffic" in said and "the last loses" not in said


def test_what_is_faster_names_a_product_that_is(pipeweaver):
    # With fewer words the head, slow at one token, has a smaller share: no product is faster by that.
    options = "--device a100_sxm --model llama3-8b --m 1"
    assert all(one["product"] for one in explained(pipeweaver, options)["faster"])
    assert "tp 1, 1 token, forward" in pipeweaver("costdb", "explain", *options.split())


@pytest.mark.parametrize("options, line", [
    ("--device a100_sxm --m 1", "missing --n N: columns, or --model MODEL; --k N: the inner size, or --model MODEL"),
    ("--device a100_sxm --model llama3-8b", "missing --m N: tokens of a microbatch"),
    ("--device a100_sxm --model llama3-8b --m 1 --n 1", "--n: is given beside --model"),
    (PRODUCT + " --tp 2", "--tp: is of a model, must stand beside --model"),
    ("--device a100_sxm --model llama3-8b --m 1 --tp 3", "--tp: is 3, must divide 32 heads"),
    ("--device a100_sxm --model llama3-8b --m 1 --module vit", "unknown module 'vit'"),
    (PRODUCT + " --dtype bf61", "--dtype: is 'bf61', must be one of"),
    (PRODUCT + " --dtype fp8", "dtype: fp8 is not supported by a100_sxm"),
    ("--device a100_sxm --m 0 --n 1 --k 1", "--m: is '0', must be a whole number from 1"),
])
def test_what_is_wrong_is_one_line(pipeweaver, options, line):
    status, said = pipeweaver.fails("costdb", "explain", *options.split())
    assert status == 2 and line in said
