"""python -m pipeweaver.data.measure: a loader from one's own files."""

import io
import json
import os
import subprocess
import sys
import wave

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
    assert "1 photo of" in loader["stages"][1]["source"] and len(lost) == 1 and "some cannot be decoded" in lost[0]


def test_full_kinds_are_read_no_more_and_kinds_take_turns(tmp_path, monkeypatch):
    for number in range(5):
        image.new("RGB", (64, 64)).save(tmp_path / f"a{number}.jpg")
        (tmp_path / f"b{number}.wav").write_bytes(files.wav(1))
        (tmp_path / f"c{number}.bin").write_bytes(b"no media")
    read = []
    cold = measure.read_cold
    monkeypatch.setattr(measure, "read_cold", lambda path: read.append(path.name) or cold(path))
    loader, lost = measure.measure(os.fspath(tmp_path), most=2)
    assert read == ["a0.jpg", "b0.wav", "a1.jpg", "b1.wav"] and lost == []
    assert "2 pieces of sound, 2 photos of" in loader["stages"][0]["source"]


def test_what_ends_early_or_cannot_be_read_is_said(tmp_path, monkeypatch):
    for name in ("a.jpg", "b.jpg", "c.jpg"):
        image.new("RGB", (64, 64)).save(tmp_path / name)
    cold = measure.read_cold

    def refused(path):
        if path.name != "b.jpg":
            raise measure.FileError(f"{path}: cannot be read: Permission denied")
        return cold(path)

    monkeypatch.setattr(measure, "read_cold", refused)
    assert measure.measure(os.fspath(tmp_path))[1] == [
        f"{tmp_path / 'a.jpg'}: cannot be read: Permission denied (left out, and 1 more)"]
    with pytest.raises(measure.InputError, match="--seconds: were over before 3 of 3 files"):
        measure.measure(os.fspath(tmp_path), seconds=-1)


def test_files_without_a_length_and_errors_without_words_are_said(tmp_path, monkeypatch):
    def decode(data):
        raise RuntimeError

    image.new("RGB", (64, 64)).save(tmp_path / "a.jpg")
    (tmp_path / "b.wav").write_bytes(files.wav(0))
    (tmp_path / "c.wav").write_bytes(files.wav(1))
    media = measure.media_in
    endless = measure.Media("audio", seconds=0)
    monkeypatch.setattr(measure, "media_in", lambda path: endless if path.name == "c.wav" else media(path))
    monkeypatch.setitem(measure._DECODERS, "images", lambda size: (decode, "nothing"))
    with pytest.raises(measure.InputError) as caught:
        measure.measure(os.fspath(tmp_path))
    assert "photos: not measured: some cannot be decoded by nothing: RuntimeError" in str(caught.value)
    assert "pieces of sound: not measured: some do not say in their header how long they are" in str(caught.value)
    assert f"{tmp_path / 'b.wav'}: " in str(caught.value)


def test_texts_are_known_by_their_suffix_in_any_case(tmp_path):
    (tmp_path / "A.TXT").write_text("a few words")
    measuring = measure.Measuring(9, 60, None, None)
    measuring.count = len
    measuring.run(measure.files_of(tmp_path))
    assert measuring.kinds["texts"].amounts == [11]


@pytest.mark.parametrize("width, data, values", [
    (1, bytes([128, 127, 255]), [0, -1, 127]),
    (2, b"\x01\x00\xff\xff", [1, -1]),
    (3, b"\x01\x00\x00\xfe\xff\xff\x00\x00\x80", [1, -2, -2**23]),
    (4, b"\xff\xff\xff\xff", [-1]),
])
def test_sound_of_any_width_is_read(width, data, values):
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(width)
        sound.setframerate(16_000)
        sound.writeframes(data)
    assert measure._by_wave(file.getvalue()).tolist() == values


def test_a_decoder_that_does_not_load_is_passed_over(monkeypatch):
    monkeypatch.setattr(measure, "_loads", lambda module: module == "av")
    assert measure._videos(None)[1] == "av"
    monkeypatch.setattr(measure, "_loads", lambda module: False)
    with pytest.raises(ImportError, match="torchcodec, decord or av"):
        measure._videos(None)
