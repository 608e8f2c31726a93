"""python -m pipeweaver.data.measure: a loader from one's own files."""

import json
import os
import subprocess
import sys

import own_files as files
import pytest
from absent import needed
from checkout import ROOT
from cli_shared import BATCH, PLAN

jsonschema = needed("jsonschema")
image = needed("PIL.Image")
numpy = needed("numpy")
measure = needed("pipeweaver.data.measure")


def command(*arguments):
    """(status, output, errors)"""
    done = subprocess.run([sys.executable, "-m", "pipeweaver.data.measure", *map(str, arguments)],
                          capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Photos of two sizes, sound, a text, and what is none of these."""
    into = tmp_path_factory.mktemp("own")
    random = numpy.random.default_rng(1)
    for number in range(6):
        side = 200 if number % 2 else 600
        pixels = random.integers(0, 255, (side, side, 3), dtype=numpy.uint8)
        image.fromarray(pixels).save(into / f"{number}.jpg", quality=80)
    (into / "sound.wav").write_bytes(files.wav(3))
    (into / "text.txt").write_text("a few words")
    (into / "other.bin").write_bytes(b"no media")
    return into


def test_what_is_measured_is_a_loader_that_emulate_takes(folder, tmp_path, pipeweaver):
    status, output, errors = command(folder, "--out", tmp_path / "own.json", "--workers", 3)
    assert (status, output) == (0, "") and errors == "texts: not measured: needs --tokenizer FILE\n"
    loader = json.loads((tmp_path / "own.json").read_text())
    jsonschema.validate(loader, json.loads((ROOT / "docs/schema/loader.json").read_text()))
    read, decode = loader["stages"]
    assert decode["megapixel_ns"] > 0 and decode["audio_second_ns"] >= 0
    # Four bytes a pixel and more: noise compresses badly.
    size = sum(path.stat().st_size for path in folder.glob("*.jpg")) / (3 * 0.04 + 3 * 0.36)
    assert read["megapixel_bytes"] == round(size) and "6 photos" in read["source"]
    got = json.loads(pipeweaver("emulate", *PLAN[1:], *BATCH, "--loader", tmp_path / "own.json", "--json"))["input"]
    assert (got["workers"], got["stages"][1]["source"]) == (3, decode["source"])
    assert got["stages"][1]["work_ns"] > 0


def test_a_line_is_fitted_to_what_is_on_one_and_never_below_nothing():
    assert measure.line([1, 2, 4], [5, 7, 11]) == pytest.approx((3, 2))
    assert measure.line([2, 2], [6, 6]) == pytest.approx((0, 3))
    assert measure.line([1, 2], [0, 3]) == pytest.approx((0, 6 / 5))  # through 0: 6 / 5 x is nearest
    assert measure.line([1, 2], [4, 2]) == pytest.approx((0, 8 / 5))  # larger ones are not faster


def test_what_cannot_be_measured_is_one_line(folder, tmp_path):
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts/a.txt").write_text("words")
    (tmp_path / "empty").mkdir()
    for arguments, status, words in [
        ([tmp_path / "none"], 3, "is no folder that can be read"),
        ([tmp_path / "empty"], 2, "has no file"),
        ([tmp_path / "texts"], 2, "has nothing that can be measured; texts: not measured: needs --tokenizer FILE"),
        ([folder, "--workers", "many"], 2, "is 'many', must be a whole number from 0 to 1024"),
        ([folder, "--out", tmp_path / "none/own.json"], 3, "cannot be written: No such file or directory"),
    ]:
        got, output, errors = command(*arguments)
        assert got == status and words in errors and output == "" and len(errors.splitlines()) == 1, errors


def test_files_that_are_broken_are_left_out(tmp_path):
    image.new("RGB", (300, 300)).save(tmp_path / "good.jpg")
    data = (tmp_path / "good.jpg").read_bytes()
    (tmp_path / "bad.jpg").write_bytes(data[: len(data) // 2])
    loader, lost = measure.measure(os.fspath(tmp_path))
    assert "1 photos" in loader["stages"][1]["source"] and len(lost) == 1 and "some cannot be decoded" in lost[0]
