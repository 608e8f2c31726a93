"""python3 -m pipeweaver.data.convert: batch files of one's own data, in sizes alone."""

import io
import json
import os
import random
import subprocess
import sys
import tarfile

import own_files as files
import pytest
from absent import needed
from used import seconds_of_children, slowness

pipeweaver = needed("pipeweaver")
convert = needed("pipeweaver.data.convert").convert
headers = needed("pipeweaver.data.convert.headers")

ROWS = [
    (files.png(1024, 768), "images", 1024, 768),
    (files.jpeg(640, 480), "images", 640, 480),
    (files.jpeg(4000, 3000, before=files.exif(60_000) + b"\xff" + files.exif(300), start=0xC2), "images", 4000, 3000),
    (files.webp(550, 368), "images", 550, 368),
    (files.webp(16_383, 1, b"VP8L"), "images", 16_383, 1),
    (files.webp(900, 20_000, b"VP8X"), "images", 900, 20_000),
    (files.gif(300, 2), "images", 300, 2),
    (files.bmp(77, 99), "images", 77, 99),
    (files.bmp(7, 9, old=True), "images", 7, 9),
    (files.tiff(3456, 2304, before=[254]), "images", 3456, 2304),
    (files.tiff(70_000, 12, order=">", form="I"), "images", 70_000, 12),
    (files.mp4(1280, 720, 8.5, 24), "videos", 1280, 720),
    (files.mp4(640, 360, 30, 2, last=False, version=1), "videos", 640, 360),
    (files.wav(2.5), "audio", 0, 0),
    (files.flac(12.25), "audio", 0, 0),
]


def command(*arguments):
    """What the tool prints; one line on stderr, and its status, where it fails."""
    done = subprocess.run([sys.executable, "-m", "pipeweaver.data.convert", *map(str, arguments)],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0 or len(done.stderr.splitlines()) == 1 and not done.stdout, done.stderr
    return done.returncode, done.stdout if done.returncode == 0 else done.stderr.rstrip("\n")


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def write_all(folder, contents):
    for name, content in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def shard(path, contents, mode="w"):
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, mode) as tar:
        for name, content in contents.items():
            member = tarfile.TarInfo(name)
            data = content if isinstance(content, bytes) else content.encode()
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))


@pytest.mark.parametrize("content, kind, width, height", ROWS)
def test_sizes_are_those_that_the_header_says(content, kind, width, height):
    media = headers.media_of(io.BytesIO(content))
    assert (media.kind, media.width, media.height) == (kind, width, height)


def test_lengths_and_rates_are_those_of_the_file():
    of = [headers.media_of(io.BytesIO(content)) for content, kind, _, _ in ROWS if kind != "images"]
    assert [one.seconds for one in of] == pytest.approx([8.5, 30, 2.5, 12.25])
    assert [one.fps for one in of] == pytest.approx([24, 2, 0, 0])


@pytest.mark.parametrize("content, kind", [(content, kind) for content, kind, _, _ in ROWS])
def test_a_file_cut_anywhere_says_its_size_or_that_it_is_broken(content, kind):
    for length in [*range(0, min(len(content), 400)), *range(400, len(content), 997)]:
        try:
            media = headers.media_of(io.BytesIO(content[:length]))
        except headers.BrokenMedia as error:
            assert str(error)
        else:
            assert media is None or media.kind == kind


def test_noise_behind_a_magic_number_is_never_a_crash():
    drawn = random.Random(1)
    for _ in range(3000):
        start = drawn.choice(ROWS)[0][: drawn.randrange(4, 40)]
        content = start + drawn.randbytes(drawn.randrange(200))
        try:
            headers.media_of(io.BytesIO(content))
        except headers.BrokenMedia:
            pass


def test_sizes_equal_those_of_a_decoder(tmp_path):
    image = needed("PIL.Image")
    drawn = random.Random(2)
    for form, options in [("JPEG", {}), ("JPEG", {"progressive": True, "exif": b"Exif\0\0" + b"x" * 9000}), ("PNG", {}),
                          ("WEBP", {}), ("WEBP", {"lossless": True}), ("WEBP", {"exif": b"Exif\0\0abc"}), ("GIF", {}),
                          ("BMP", {}), ("TIFF", {})]:
        size = drawn.randrange(1, 400), drawn.randrange(1, 400)
        image.new("RGB", size, (9, 99, 199)).save(tmp_path / "one", form, **options)
        with open(tmp_path / "one", "rb") as file:
            media = headers.media_of(file)
        assert (media.width, media.height) == size, form


def test_a_folder_is_samples_of_files_of_one_name(pipeweaver, tmp_path):
    source = write_all(tmp_path / "own", {
        "b/one.jpg": files.jpeg(640, 480), "b/one.txt": "a cat on a <image> mat",
        "a.png": files.png(30, 40), "a.webp": files.webp(50, 60), "a.json": json.dumps({"caption": "two of them"}),
        "clip.mp4": files.mp4(1280, 720, 8.5, 24), "said.wav": files.wav(2.5), "notes.md": "x", "b/.hidden": ""})
    status, printed = command(source, "--out", tmp_path / "batch.jsonl", "--tokens-per-word", "2")
    assert status == 0
    assert lines_of(tmp_path / "batch.jsonl") == [
        {"id": "a", "text_tokens": 6, "images": [{"width": 30, "height": 40}, {"width": 50, "height": 60}]},
        {"id": "clip", "text_tokens": 0, "videos": [{"seconds": 8.5, "fps": 24.0, "width": 1280, "height": 720}]},
        {"id": "said", "text_tokens": 0, "audio": [{"seconds": 2.5}]},
        {"id": "b/one", "text_tokens": 10, "images": [{"width": 640, "height": 480}]}]
    assert printed.splitlines() == [
        f"{tmp_path / 'batch.jsonl'}: 4 samples: 16 tokens of text; 3 images, by area 30 x 40 to 640 x 480 pixels, "
        "median 50 x 60; 1 clip of 8.5 to 8.5 s, median 8.5; 1 piece of audio of 2.5 to 2.5 s, median 2.5",
        "assumed: text from 'caption' of .json files, .txt files",
        "assumed: 2 tokens of text a word, or a character of Chinese, Japanese or Korean (--tokens-per-word; "
        "--tokenizer FILE counts)",
        "assumed: 2 of 4 samples have no text: 0 tokens (a .txt beside them, or --text)",
        "assumed: clips have their whole length; the model's rule says how much of it is read",
        "assumed: no tokens of a chat template or of markers around items are counted",
        "passed over: 1 .md, 1 samples without text and items"]
    # The planner reads the file as it is.
    assert command(source, "--out", tmp_path / "images.jsonl", "--samples", 1)[0] == 0
    plan = json.loads(pipeweaver("plan", "--model", "qwen2.5-vl-7b", "--cluster", "h100-sxm:4", "--tp", "2", "--pp",
                                 "2", "--batch", tmp_path / "images.jsonl", "--max-rounds", "0", "--json",
                                 "--out", tmp_path / "plan"))
    assert plan["asked"]["samples"] == 1


def test_shards_are_samples_of_members_of_one_key(tmp_path):
    members = {"0001.jpg": files.jpeg(640, 480), "0001.txt": "a b", "0001.cls": "7",
               "x/0002.left.png": files.png(1, 2), "x/0002.right.png": files.png(3, 4),
               "x/0002.json": json.dumps({"conversations": [{"from": "human", "value": "<image>\nwhat is it"},
                                                            {"from": "gpt", "value": "a dog"}]}), "0003.cls": "1"}
    shard(tmp_path / "s" / "000.tar", members)
    shard(tmp_path / "s" / "001.tar.gz", members, "w:gz")
    status, printed = command(tmp_path / "s", "--out", tmp_path / "batch.jsonl", "--tokens-per-word", 1)
    assert status == 0 and printed.splitlines()[-1] == "passed over: 4 .cls, 2 samples without text and items"
    assert lines_of(tmp_path / "batch.jsonl") == [
        line for name in ("000", "001") for line in (
            {"id": f"{name}/0001", "text_tokens": 2, "images": [{"width": 640, "height": 480}]},
            {"id": f"{name}/x/0002", "text_tokens": 5,
             "images": [{"width": 1, "height": 2}, {"width": 3, "height": 4}]})]


def test_an_energon_data_set_gives_the_shards_of_its_split(tmp_path):
    for number in range(12):
        shard(tmp_path / "shards" / f"shard_{number:03}.tar", {"a.jpg": files.jpeg(10 + number, 20)})
    write_all(tmp_path, {".nv-meta/split.yaml": "exclude: [shards/shard_001.tar]\nsplit_parts:\n  train:\n"
                         "  - shards/shard_{000..009}.tar\n  val:\n  - shards/shard_010.tar\n  test: []\n"})

    def widths(*more):
        assert command(tmp_path, "--out", tmp_path / "batch.jsonl", *more)[0] == 0
        return [line["images"][0]["width"] for line in lines_of(tmp_path / "batch.jsonl")]
    assert widths() == [10, *range(12, 20)]
    assert widths("--split", "val") == [20]
    for split, wrong in (("dev", "--split: is 'dev'"), ("test", "split 'test' has no shards")):
        status, line = command(tmp_path, "--out", tmp_path / "batch.jsonl", "--split", split)
        assert status == 2 and wrong in line


def test_annotations_name_files_and_texts(tmp_path):
    write_all(tmp_path / "media", {"a.jpg": files.jpeg(640, 480), "b.png": files.png(1, 2),
                                   "c.mp4": files.mp4(1280, 720, 8.5, 24)})
    entries = [{"id": 7, "image": "a.jpg", "conversations": [{"from": "human", "value": "<image>what"},
                                                            {"from": "gpt", "value": "a cat"}]},
               {"messages": [{"role": "user", "content": [{"type": "image", "image": "b.png"},
                                                          {"type": "text", "text": "one two three"}]}],
                "videos": ["c.mp4"]},
               {"text": "你好 world"}]
    write_all(tmp_path, {"data.json": json.dumps(entries), "data.jsonl": "\n".join(map(json.dumps, entries))})
    for name in ("data.json", "data.jsonl"):
        done = convert(tmp_path / name, tmp_path / "batch.jsonl", media=tmp_path / "media", tokens_per_word=1,
                       target=name == "data.jsonl")
        items = [item for line in done.samples for kind in ("images", "videos") for item in line.get(kind, ())]
        assert all((item.pop("role", "input") == "target") == (name == "data.jsonl") for item in items)
        assert done.samples == [
            {"id": "7", "text_tokens": 3, "images": [{"width": 640, "height": 480}]},
            {"id": "1", "text_tokens": 3, "images": [{"width": 1, "height": 2}],
             "videos": [{"seconds": 8.5, "fps": 24.0, "width": 1280, "height": 720}]},
            {"id": "2", "text_tokens": 3}]
    write_all(tmp_path / "media", {"metadata.jsonl": '{"file_name":"a.jpg","text":"x y"}\n'})
    done = convert(tmp_path / "media", tmp_path / "batch.jsonl", tokens_per_word=1)
    assert done.samples == [{"id": "a.jpg", "text_tokens": 2, "images": [{"width": 640, "height": 480}]}]


def test_a_hugging_face_data_set_on_disk_gives_its_images_and_texts(tmp_path):
    arrow, parquet = needed("pyarrow"), needed("pyarrow.parquet")
    cell = arrow.struct([("bytes", arrow.binary()), ("path", arrow.string())])
    write_all(tmp_path, {"train/far.png": files.png(11, 12)})
    table = arrow.table({
        "image": arrow.array([{"bytes": files.jpeg(640, 480), "path": "x.jpg"}, None,
                              {"bytes": None, "path": "far.png"}], cell),
        "images": arrow.array([[], [{"bytes": files.png(1, 2), "path": None}] * 2, None], arrow.list_(cell)),
        "raw": arrow.array([b"1", b"2", b"3"], arrow.binary()),
        "messages": [[{"role": "user", "content": "a b c"}], [{"role": "user", "content": "d"}], []]})
    for split in ("train", "test"):
        (tmp_path / split).mkdir(exist_ok=True)
        part = table if split == "train" else table.slice(0, 1)
        with arrow.OSFile(str(tmp_path / split / "data-00000-of-00001.arrow"), "wb") as sink:
            with arrow.ipc.new_stream(sink, part.schema) as writer:
                writer.write_table(part)
    expected = [{"text_tokens": 3, "images": [{"width": 640, "height": 480}]},
                {"text_tokens": 1, "images": [{"width": 1, "height": 2}] * 2},
                {"text_tokens": 0, "images": [{"width": 11, "height": 12}]}]
    done = convert(tmp_path, tmp_path / "batch.jsonl", tokens_per_word=1)
    assert [line.pop("id") for line in done.samples] == [f"train/data-00000-of-00001/{row}" for row in range(3)]
    assert done.samples == expected
    assert "text from column 'messages'" in done.assumed
    assert len(convert(tmp_path, tmp_path / "batch.jsonl", split="test").samples) == 1
    parquet.write_table(table, tmp_path / "train" / "x.parquet")
    done = convert(tmp_path / "train" / "x.parquet", tmp_path / "batch.jsonl", tokens_per_word=1)
    assert [{key: line[key] for key in ("text_tokens", "images")} for line in done.samples] == expected
    with pytest.raises(pipeweaver.InputError, match="--split: is 'dev'.*has test, train"):
        convert(tmp_path, tmp_path / "batch.jsonl", split="dev")


def test_tables_and_tokenizers_without_their_packages_say_so_in_one_line(tmp_path):
    write_all(tmp_path, {"t/a.parquet": "x", "f/a.txt": "x"})
    for module, arguments, line in (
            ("pyarrow", ["t"], "t: tables are read with the package pyarrow (pip install pyarrow); allowed without it "
             "are folders of files, .tar shards, .json and .jsonl"),
            ("tokenizers", ["f", "--tokenizer", "x"], "--tokenizer: needs the package tokenizers (pip install "
             "tokenizers); allowed without it is --tokens-per-word")):
        code = (f"import sys; sys.modules[{module!r}] = None; from pipeweaver.data.convert.__main__ import main; "
                f"sys.exit(main({[*arguments, '--out', 'b.jsonl']!r}))")
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (2, f"pipeweaver: {line}\n")
        assert not (tmp_path / "b.jsonl").exists()


def test_a_tokenizer_counts(tmp_path):
    tokenizers = needed("tokenizers")
    words = {word: i for i, word in enumerate(["[UNK]", "a", "b"])}
    one = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))
    one.pre_tokenizer = tokenizers.pre_tokenizers.Split("", "isolated")
    one.save(str(tmp_path / "tokenizer.json"))
    write_all(tmp_path, {"own/a.txt": "ab cab", "bad.json": "{}"})
    done = convert(tmp_path / "own", tmp_path / "batch.jsonl", tokenizer=str(tmp_path / "tokenizer.json"))
    assert done.samples[0]["text_tokens"] == len(one.encode("ab cab").ids)
    assert f"tokens of texts: by {tmp_path / 'tokenizer.json'}" in done.assumed
    with pytest.raises(pipeweaver.InputError, match="--tokenizer: .*bad.json: "):
        convert(tmp_path / "own", tmp_path / "batch.jsonl", tokenizer=str(tmp_path / "bad.json"))
    with pytest.raises(pipeweaver.FileError, match="--tokenizer: /nowhere: "):
        convert(tmp_path / "own", tmp_path / "batch.jsonl", tokenizer="/nowhere")


def test_samples_are_the_first_or_drawn_the_same_again(tmp_path):
    write_all(tmp_path / "own", {f"{i:03}.png": files.png(1 + i, 5) for i in range(200)})

    def widths(**options):
        done = convert(tmp_path / "own", tmp_path / "batch.jsonl.gz", **options)
        return [line["images"][0]["width"] for line in done.samples], (tmp_path / "batch.jsonl.gz").read_bytes()
    assert widths(samples=3)[0] == [1, 2, 3]
    drawn = widths(samples=30, seed=1)
    assert drawn == widths(samples=30, seed=1) and drawn[0] != widths(samples=30, seed=2)[0]
    assert drawn[0] == sorted(set(drawn[0])) and len(drawn[0]) == 30 and max(drawn[0]) > 100
    assert widths(samples=999, seed=1)[0] == list(range(1, 201))


@pytest.mark.parametrize("contents, arguments, status, line", [
    ({"a.jpg": files.jpeg(9, 9)[:23]}, [], 2,
     "own/a.jpg: ends before it says its size; --skip-broken leaves out samples that cannot be read"),
    ({"a.png": "<html>"}, [], 2, "own/a.png: is no image, clip or audio that is read; --skip-broken leaves out samples "
     "that cannot be read"),
    ({"a.png": files.png(0, 5)}, [], 2, "own/a.png: says 0 x 5 pixels; --skip-broken leaves out samples that cannot be "
     "read"),
    ({"a.mkv": "x"}, [], 2, "own/a.mkv: .mkv is not read, allowed are bmp, flac, gif, jpeg, jpg, m4a, m4v, mov, mp4, "
     "png, tif, tiff, wav, webp; --skip-broken leaves out such samples"),
    ({"a.json": "{"}, [], 2, "own/a.json: is no JSON: "),
    ({"a.txt": b"\xff"}, [], 2, "own/a.txt: is no UTF-8: "),
    ({"a.md": ""}, [], 2, "own: has no samples"),
    ({"a.jpg": "x"}, ["--skip-broken"], 2, "own: has no samples: all are left out: 1 broken, the first own/a.jpg: is "
     "no image, clip or audio that is read"),
    ({"a.heic": "x"}, ["--skip-broken"], 2, "own: has no samples: all are left out: 1 with .heic, which is not read"),
    ({"metadata.jsonl": '{"image":"x.avif"}'}, [], 2, "own/metadata.jsonl:1: own/x.avif: .avif is "
     "not read, allowed are "),
    ({"a.tar": "x" * 600}, [], 2, "own/a.tar: is no shard that can be read: "),
    ({"a.txt": "x"}, ["--seed", "3"], 2, "--seed: goes with --samples, how many are drawn"),
    ({"a.txt": "x"}, ["--samples", "0"], 2, "argument --samples: is '0', must be a whole number from 1"),
    ({"a.txt": "x"}, ["--tokens-per-word", "0"], 2, "argument --tokens-per-word: is '0', must be a number above 0 "
     "to 100"),
    ({"a.txt": "x"}, ["--tokenizer", "t", "--tokens-per-word", "2"], 2, "--tokenizer, --tokens-per-word: allowed is "
     "one of the two"),
    ({"a.txt": "x"}, ["--media", "x"], 2, "--media: goes with a .json or .jsonl of annotations, own is none"),
    ({"metadata.jsonl": '{"file_name":"x.png"}'}, [], 3, "own/metadata.jsonl:1: own/x.png: No such file or "
     "directory"),
    ({"metadata.jsonl": '{"image":"http://a/b.png"}'}, [], 2, "own/metadata.jsonl:1: http://a/b.png is an address; "
     "allowed are files"),
    ({"a.tar": files.tar({"1.txt": "a", "2.txt": "b", "1.json": '{"text":"c"}'})}, [], 2, "own: sample 'a/1' is there "
     "twice; allowed are samples of different names"),
    ({}, [], 3, "own: there is no such file or folder"),
])
def test_what_cannot_be_converted_is_said_in_one_line_and_nothing_is_written(tmp_path, monkeypatch, contents, arguments,
                                                                             status, line):
    write_all(tmp_path / "own", contents)
    monkeypatch.chdir(tmp_path)
    got, said = command("own", "--out", "batch.jsonl", *arguments)
    assert got == status and said.startswith(f"pipeweaver: {line}")
    assert not list(tmp_path.glob("batch.jsonl*"))


def test_a_sample_with_a_broken_item_may_be_left_out(tmp_path):
    write_all(tmp_path / "own", {"a.jpg": files.jpeg(9, 9), "b.jpg": "x", "b.txt": "x"})
    shard(tmp_path / "s.tar", {"a.jpg": files.jpeg(9, 9), "b.jpg": "x", "b.txt": "x", "c.jpg": files.jpeg(8, 8)})
    assert [line["id"] for line in convert(tmp_path / "own", tmp_path / "b", skip_broken=True).samples] == ["a"]
    done = convert(tmp_path / "s.tar", tmp_path / "b", skip_broken=True)
    assert [line["id"] for line in done.samples] == ["s/a", "s/c"]
    assert done.remarks == [f"left out: 1 broken, the first {tmp_path}/s.tar:b.jpg: is no image, clip or audio that is "
                            "read"]


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    write_all(tmp_path / "own", {"a.txt": "x"})
    assert command(tmp_path / "own", "--out", tmp_path / "no" / "b.jsonl") == (
        3, f"pipeweaver: --out: {tmp_path}/no/b.jsonl: No such file or directory")


@pytest.mark.parametrize("form", ["folder", "shards"])
def test_ten_thousand_images_take_less_than_twenty_seconds(tmp_path, form):
    drawn = random.Random(4)
    makers = [files.jpeg, lambda w, h: files.jpeg(w, h, before=files.exif(30_000)), files.png, files.webp]
    images = {f"{i // 1000}/{i:05}.{('jpg', 'jpg', 'png', 'webp')[i % 4]}":
              makers[i % 4](drawn.randrange(64, 4000), drawn.randrange(64, 4000)) for i in range(10_000)}
    if form == "folder":
        write_all(tmp_path / "own", images)
    else:
        shard(tmp_path / "own" / "0.tar", images)
    before = seconds_of_children()
    assert command(tmp_path / "own", "--out", tmp_path / "batch.jsonl")[0] == 0
    seconds = seconds_of_children() - before
    assert len(lines_of(tmp_path / "batch.jsonl")) == 10_000
    # Processor time: how long a busy machine makes it wait says nothing of the tool.
    assert seconds < 20 * slowness()
    assert os.path.getsize(tmp_path / "batch.jsonl") < 1_000_000


def test_samples_with_media_that_is_not_read_are_left_out_and_counted(tmp_path):
    contents = {"a.heic": "x", "a.txt": "a", "b.heic": "x", "c.mkv": "x", "d.tif": files.tiff(3000, 20), "e.jpg": "x"}
    write_all(tmp_path / "own", contents)
    shard(tmp_path / "shards" / "0.tar", {"own/" + name: content for name, content in contents.items()})
    (tmp_path / "own.jsonl").write_text("".join(
        json.dumps({"id": name, "image": "own/" + name}) + "\n" for name in contents if name != "a.txt"))
    for source in ("own", "shards", "own.jsonl"):
        status, printed = command(tmp_path / source, "--out", tmp_path / "batch.jsonl", "--skip-broken")
        assert status == 0 and "1 sample: 0 tokens of text; 1 image, by area 3000 x 20 to 3000 x 20 pixels" in printed
        assert "left out: 1 broken, the first " in printed
        assert printed.splitlines()[-1] == "left out: 2 with .heic, 1 with .mkv, which is not read"


def test_the_smallest_and_the_largest_image_are_images(tmp_path):
    write_all(tmp_path / "own", {"a.png": files.png(191, 3168), "b.png": files.png(3180, 190),
                                 "c.png": files.png(9, 99)})
    _, printed = command(tmp_path / "own", "--out", tmp_path / "batch.jsonl")
    assert "3 images, by area 9 x 99 to 191 x 3168 pixels, median 3180 x 190" in printed
