"""python3 -m pipeweaver.data.convert: chat and conversation files in the forms in which people have them."""

import base64
import gzip
import json
import time
import tracemalloc

import own_files as files
import pytest
from absent import needed
from cli_shared import full
from used import slowness

pipeweaver = needed("pipeweaver")
convert = needed("pipeweaver.data.convert").convert
forms = needed("pipeweaver.data.convert.forms")

TURNS = [{"from": "human", "value": "<image>\nwhat is it"}, {"from": "gpt", "value": "a dog"}]
CHAT = [{"role": "user", "content": "<image> what is it"}, {"role": "assistant", "content": "a dog"}]
INLINE = "data:image/png;base64," + base64.b64encode(files.png(30, 40)).decode()


def written(path, entries):
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return path


def read(source, **options):
    """Samples without their names, and what was assumed."""
    done = convert(source, source.parent / "batch.jsonl", tokens_per_word=1, **options)
    return [{key: value for key, value in line.items() if key != "id"} for line in done.samples], done.assumed


ROWS = [
    ("openai", {"messages": [{"role": "user", "content": [
        {"type": "text", "text": "what is it"}, {"type": "image_url", "image_url": {"url": INLINE}},
        {"type": "image_url", "image_url": {"url": "a.png"}}]}, {"role": "assistant", "content": "a dog"}]},
     {"text_tokens": 5, "images": [{"width": 30, "height": 40}, {"width": 7, "height": 9}]}),
    ("openai", {"messages": [{"role": "user", "content": [
        {"type": "video", "video": "http://far/x.mp4", "width": 640, "height": 360, "frames": 48, "fps": 24},
        {"type": "image", "url": "a.png"}, {"type": "text", "text": "why"}]}]},
     {"text_tokens": 1, "images": [{"width": 7, "height": 9}],
      "videos": [{"frames": 48, "fps": 24, "width": 640, "height": 360}]}),
    ("openai", {"messages": [{"role": "user", "content": [{"type": "video", "video": ["a.png", "b.png", "c.png"]}]},
                             {"role": "assistant", "content": "x y"}]},
     {"text_tokens": 2, "videos": [{"frames": 3, "fps": 2.0, "width": 7, "height": 9}]}),
    ("sharegpt", {"conversations": TURNS, "system": "be brief"}, {"text_tokens": 7}),
    ("llava", {"image": "a.png", "conversations": TURNS}, {"text_tokens": 5, "images": [{"width": 7, "height": 9}]}),
    ("internvl", {"video": "no.mp4", "duration": 4.5, "width": 32, "height": 48, "conversations": TURNS},
     {"text_tokens": 5, "videos": [{"seconds": 4.5, "width": 32, "height": 48}]}),
    ("internvl", {"image": "no.jpg", "width": 897, "height": 1152, "conversations": TURNS},
     {"text_tokens": 5, "images": [{"width": 897, "height": 1152}]}),
    ("internvl", {"image": ["1.png", "2.png"], "width_list": [240, 241], "height_list": [23, 22],
                  "conversations": TURNS},
     {"text_tokens": 5, "images": [{"width": 240, "height": 23}, {"width": 241, "height": 22}]}),
    ("swift", {"messages": CHAT, "images": ["a.png"], "rejected_response": "a cat"},
     {"text_tokens": 5, "images": [{"width": 7, "height": 9}]}),
    ("swift", {"messages": CHAT, "videos": [["a.png", "b.png"]], "fps": 4},
     {"text_tokens": 5, "videos": [{"frames": 2, "fps": 4, "width": 7, "height": 9}]}),
    ("alpaca", {"instruction": "add them", "input": "1 and 2", "output": "3", "history": [["a", "b"]]},
     {"text_tokens": 8}),
    ("query-response", {"query": "what is it", "response": "a dog", "images": ["a.png"]},
     {"text_tokens": 5, "images": [{"width": 7, "height": 9}]}),
    ("preference", {"prompt": "what is it", "chosen": "a dog", "rejected": "a cat"}, {"text_tokens": 5}),
    ("preference", {"prompt": "what is it", "chosen": CHAT, "rejected": CHAT}, {"text_tokens": 5}),
    ("openai", {"messages": CHAT, "chosen": CHAT, "rejected": CHAT}, {"text_tokens": 5}),
    ("captions", {"file_name": "a.png", "text": "a dog"}, {"text_tokens": 2, "images": [{"width": 7, "height": 9}]}),
]


@pytest.mark.parametrize("form, entry, expected", ROWS)
def test_each_form_is_known_by_its_keys_and_read_for_sizes(tmp_path, form, entry, expected):
    (tmp_path / "a.png").write_bytes(files.png(7, 9))
    samples, assumed = read(written(tmp_path / "own.jsonl", [entry]))
    assert samples == [expected]
    assert f"entries of the form {form}, by their keys (--form names one)" in assumed
    assert read(tmp_path / "own.jsonl", form=form)[0] == [expected]
    written(tmp_path / "own.jsonl", [entry, {key: entry[key] for key in forms.form_named(form).needs}])
    read(tmp_path / "own.jsonl", form=form)  # entries of text alone are of the form, too
    (tmp_path / "own.json").write_text(json.dumps([entry], indent=1))
    assert read(tmp_path / "own.json")[0] == [expected]
    (tmp_path / "own.jsonl.gz").write_bytes(gzip.compress(("\n" + json.dumps(entry)).encode()))
    assert read(tmp_path / "own.jsonl.gz")[0] == [expected]


@pytest.mark.parametrize("text, options, line", [
    ('{"text":"a"}\n{"text":', {}, "own.jsonl:2: is no JSON: Expecting value"),
    ('{"text":"a"}\n\n7\n', {}, "own.jsonl:3: is no object"),
    ('[{"text":"a"},\n {"text":]', {}, "own.jsonl:2: is no JSON: Expecting value"),
    (b'{"text":"a"}\n{"text":"\xff"}', {}, "own.jsonl:2: is no JSON: 'utf-8' codec"),
    ('{"conversations":[],"image":"a","width":0,"height":3}', {}, "own.jsonl:1: width is 0, must be a whole number "
     "from 1 to 100000"),
    ('{"conversations":[],"image":"a","width":7.5,"height":3}', {}, "own.jsonl:1: width is 7.5, must be a whole"),
    ('{"conversations":[],"image":["a","b"],"width_list":[7],"height_list":[7]}', {},
     "own.jsonl:1: width_list has 1 values for 2 items"),
    ('{"messages":[],"videos":["a.mp4"],"width":7,"height":7,"frames":9,"fps":0}', {},
     "own.jsonl:1: fps is 0, must be"),
    ('{"image":"data:image/png;base64,@"}', {}, "own.jsonl:1: data:image/png;base64 cannot be read: "),
    ('{"text":"a"}\n{"conversations":[{"value":"a"}]}', {"form": "openai"},
     "own.jsonl:2: lacks 'messages', which entries of the form openai have"),
])
def test_a_broken_entry_is_named_by_file_and_line(tmp_path, text, options, line):
    source = tmp_path / "own.jsonl"
    source.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(pipeweaver.InputError) as error:
        if options:
            source.write_text('{"messages":[{"content":"a"}]}\n' + text.partition("\n")[2])
        convert(source, tmp_path / "batch.jsonl", **options)
    assert str(error.value).startswith(f"{tmp_path}/{line}")


def test_broken_entries_may_be_left_out(tmp_path):
    source = tmp_path / "own.jsonl"
    source.write_text('{"text":"a"}\n{"te\n{"text":"b","image":"s3://far/b.png"}\n{"text":"c"}\n')
    done = convert(source, tmp_path / "batch.jsonl", skip_broken=True)
    assert [line["id"] for line in done.samples] == ["0", "3"]
    assert done.remarks[0].startswith(f"left out: 2 broken, the first {source}:2: is no JSON")


def test_samples_that_share_a_name_are_told_apart(tmp_path):
    done = convert(written(tmp_path / "own.jsonl", [{"id": "x", "text": "a"}, {"id": "x", "text": "a b"}]),
                   tmp_path / "batch.jsonl", tokens_per_word=1)
    assert done.samples == [{"id": "x", "text_tokens": 1}, {"id": "x#2", "text_tokens": 2}]


def test_a_rejected_answer_is_not_counted_and_said(tmp_path):
    _, assumed = read(written(tmp_path / "own.jsonl", [{"messages": CHAT, "rejected_response": "no"}]))
    assert "1 samples have a rejected answer, of which nothing is counted: a pair is two sequences" in assumed


def test_a_meta_file_of_internvl_reads_its_sets_as_often_as_it_says(tmp_path):
    (tmp_path / "media").mkdir()
    (tmp_path / "media" / "a.png").write_bytes(files.png(7, 9))
    written(tmp_path / "a.jsonl", [{"id": 1, "image": "a.png", "conversations": TURNS}])
    written(tmp_path / "b.jsonl", [{"text": str(i)} for i in range(4)])
    source = tmp_path / "meta.json"
    source.write_text(json.dumps({"one": {"root": "media", "annotation": "a.jsonl", "repeat_time": 2},
                                  "two": {"root": "", "annotation": "b.jsonl", "repeat_time": 0.5, "length": 4}}))
    done = convert(source, tmp_path / "batch.jsonl")
    assert [line["id"] for line in done.samples] == ["one/1", "one/1@2", "two/0", "two/1"]
    assert done.samples[1]["images"] == [{"width": 7, "height": 9}]
    assert [line["id"] for line in convert(source, tmp_path / "batch.jsonl", sets=["two"]).samples] == [
        "two/0", "two/1"]


def test_data_sets_of_llama_factory_are_read_by_their_columns(tmp_path):
    listed = {"mine": {"file_name": "a.json", "formatting": "sharegpt",
                       "columns": {"messages": "talk", "images": "pictures"},
                       "tags": {"role_tag": "who", "content_tag": "said"}},
              "plain": {"file_name": "b.jsonl", "columns": {"prompt": "question", "response": "answer"}},
              "far": {"hf_hub_url": "x/y"}}
    (tmp_path / "dataset_info.json").write_text(json.dumps(listed))
    (tmp_path / "a.png").write_bytes(files.png(7, 9))
    (tmp_path / "a.json").write_text(json.dumps([{"talk": [{"who": "user", "said": "<image> one two"}],
                                                  "pictures": ["a.png"]}]))
    written(tmp_path / "b.jsonl", [{"question": "a b", "answer": "c"}])
    done = convert(tmp_path, tmp_path / "batch", sets=["mine", "plain"], tokens_per_word=1)
    assert done.samples == [{"id": "mine/0", "text_tokens": 2, "images": [{"width": 7, "height": 9}]},
                            {"id": "plain/0", "text_tokens": 3}]
    for sets, wrong in (([], "lists 3 data sets; --sets takes some of mine, plain, far"),
                        (["far"], "far: has hf_hub_url, and nothing is downloaded; allowed is file_name"),
                        (["no"], "--sets: .*has no 'no', it has mine, plain, far")):
        with pytest.raises(pipeweaver.InputError, match=wrong):
            convert(tmp_path, tmp_path / "batch", sets=sets)


@pytest.mark.parametrize("form, entry", [
    (form, entry) for form, entry, _ in ROWS if "a.png" not in json.dumps(entry) and INLINE not in json.dumps(entry)])
def test_a_hundred_thousand_entries_take_less_than_a_minute(tmp_path, form, entry):
    """In short a fifth of them, in a tenth of the time: what grows with their square is seen there, too."""
    count, seconds = (100_000, 60) if full() else (20_000, 6)
    written(tmp_path / "own.jsonl", [{**entry, "more": "word " * 100}] * count)
    before = time.process_time()
    samples, _ = read(tmp_path / "own.jsonl")
    assert len(samples) == count and time.process_time() - before < seconds * slowness()


def test_a_table_is_read_by_the_keys_of_its_columns(tmp_path):
    arrow, parquet = needed("pyarrow"), needed("pyarrow.parquet")
    (tmp_path / "a.png").write_bytes(files.png(7, 9))
    parquet.write_table(arrow.table({
        "messages": [CHAT, CHAT], "images": [["a.png"], None], "more": ["not counted"] * 2}), tmp_path / "a.parquet")
    parquet.write_table(arrow.table({"instruction": ["a b"], "output": ["c"]}), tmp_path / "b.parquet")
    samples, assumed = read(tmp_path / "a.parquet")
    assert samples == [{"text_tokens": 5, "images": [{"width": 7, "height": 9}]}, {"text_tokens": 5}]
    assert "entries of the form openai, swift, by their keys (--form names one)" in assumed
    assert read(tmp_path / "b.parquet")[0] == [{"text_tokens": 3}]
    (tmp_path / "a.png").unlink()
    with pytest.raises(pipeweaver.FileError, match=r"a.parquet: row 0: .*a.png: No such file"):
        read(tmp_path / "a.parquet")


def test_a_metadata_set_of_energon_blends_its_sets_by_their_weights(tmp_path):
    for name, samples in (("a", 20), ("b", 20)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "0.tar").write_bytes(files.tar({f"{i:02}.txt": name for i in range(samples)}))
    source = tmp_path / "mix.yaml"
    blend = {"train": {"blend": [{"weight": 3, "path": "a"}, {"weight": 1, "path": "b"}]}, "val": {"path": "b"},
             "test": {"join": {}}, "gone": {"path": "c"}}
    source.write_text(json.dumps({"__module__": "megatron.energon", "__class__": "MetadatasetV2", "splits": blend}))
    done = convert(source, tmp_path / "batch.jsonl")
    sets = [line["id"][0] for line in done.samples]
    assert sets.count("0") == 20 and sets.count("1") == 6 and sets[:8].count("0") == 6
    assert "the data sets of mix.yaml are blended by their weights until one of them ends" in done.assumed
    assert len(convert(source, tmp_path / "batch.jsonl", split="val").samples) == 20
    for split, error, wrong in (("test", pipeweaver.InputError, "splits.test: has join; allowed are path and blend"),
                                ("gone", pipeweaver.FileError, "splits.gone: .*/c: there is no such data set"),
                                ("dev", pipeweaver.InputError, "--split: is 'dev', .* has gone, test, train, val")):
        with pytest.raises(error, match=wrong):
            convert(source, tmp_path / "batch.jsonl", split=split)


def test_a_folder_of_shards_with_a_list_of_metadata_is_read_by_its_shards(tmp_path):
    (tmp_path / "metadata.jsonl").write_text('{"text":"a"}')
    (tmp_path / "0.tar").write_bytes(files.tar({"1.txt": "a b"}))
    assert [line["id"] for line in convert(tmp_path, tmp_path / "batch").samples] == ["0/1"]


@pytest.mark.parametrize("given, line", [
    ({"annotation": "a.jsonl", "repeat_time": 0}, "one: repeat_time is 0, must be a number above 0 to 1000"),
    ({"annotation": "no.jsonl"}, "one: .*no.jsonl: there is no such file"),
    ({"file_name": "a.jsonl", "formatting": ["alpaca"]}, r"one: formatting is '\['alpaca'\]', allowed are alpaca and"),
    ({"file_name": "a.jsonl", "columns": 7}, "one: columns and tags: must be objects"),
    ({"file_name": "a.jsonl", "tags": "x"}, "one: columns and tags: must be objects"),
])
def test_a_list_of_data_sets_that_cannot_be_read_is_said(tmp_path, given, line):
    written(tmp_path / "a.jsonl", [{"text": "a"}])
    (tmp_path / "meta.json").write_text(json.dumps({"one": given}))
    with pytest.raises(pipeweaver.PipeweaverError, match=line):
        convert(tmp_path / "meta.json", tmp_path / "batch.jsonl")


def test_a_path_that_is_no_file_of_media_leaves_its_sample_out(tmp_path):
    source = written(tmp_path / "own.jsonl", [{"image": "a.psd", "text": "a"}, {"text": "b"}])
    with pytest.raises(pipeweaver.InputError, match=r"own.jsonl:1: .*a.psd: .psd is not read, allowed are bmp"):
        convert(source, tmp_path / "batch.jsonl")
    assert [line["id"] for line in convert(source, tmp_path / "batch.jsonl", skip_broken=True).samples] == ["1"]


@pytest.mark.parametrize("own, named, items", [
    ("image", {"file_name": "no.png", "caption": "a dog"}, {"images": [{"width": 7, "height": 9}]}),
    ("images", {"image": "http://far/x.png", "caption": "a dog"}, {"images": [{"width": 7, "height": 9}]}),
    ("picture", {"image": "no.png", "caption": "a dog"}, {"images": [{"width": 7, "height": 9}]}),
    ("images", {"messages": [{"role": "user", "content": [
        {"type": "image", "image": "no.png", "text": None}, {"type": "text", "image": None, "text": "a dog"}]}]},
     {"images": [{"width": 7, "height": 9}]}),
    ("image", {"audio": "a.wav", "caption": "a dog"},
     {"images": [{"width": 7, "height": 9}], "audio": [{"seconds": 2.5}]}),
])
def test_paths_beside_the_files_themselves_in_a_table_are_the_same_items(tmp_path, own, named, items):
    arrow, parquet = needed("pyarrow"), needed("pyarrow.parquet")
    (tmp_path / "a.wav").write_bytes(files.wav(2.5))
    cell = {"bytes": files.png(7, 9), "path": "x.png"}
    table = {own: [[cell] if own == "images" else cell], **{key: [value] for key, value in named.items()}}
    parquet.write_table(arrow.table(table), tmp_path / "own.parquet")
    assert read(tmp_path / "own.parquet")[0] == [{"text_tokens": 2, **items}]


def test_audio_in_an_entry_is_read_and_never_printed(tmp_path):
    said = base64.b64encode(files.wav(2.5)).decode()

    def entry(data):
        return {"messages": [{"role": "user", "content": [
            {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}, {"type": "text", "text": "a"}]}]}
    (tmp_path / "a.wav").write_bytes(files.wav(2.5))
    for data in (said, "data:;base64," + said, "a.wav"):
        assert read(written(tmp_path / "own.jsonl", [entry(data)]))[0] == [
            {"text_tokens": 1, "audio": [{"seconds": 2.5}]}]
    for broken in (entry("@" * 9000), {"image": said}):
        with pytest.raises(pipeweaver.InputError) as error:
            read(written(tmp_path / "own.jsonl", [broken]))
        assert len(str(error.value)) < 700


def test_of_a_list_of_data_sets_no_more_is_read_than_asked(tmp_path):
    good = [{"text": str(i)} for i in range(6)]
    for name in "ab":
        with open(written(tmp_path / f"{name}.jsonl", good), "a") as file:
            file.write("{broken\n")
    for times, names in ((1, "012345"), (2, "012345"), (0.5, "012")):
        (tmp_path / "meta.json").write_text(json.dumps({
            "a": {"annotation": "a.jsonl", "repeat_time": times}, "b": {"annotation": "b.jsonl"}}))
        done = convert(tmp_path / "meta.json", tmp_path / "batch.jsonl", samples=len(names))
        assert [line["id"] for line in done.samples] == [f"a/{name}" for name in names]
        whole = convert(tmp_path / "meta.json", tmp_path / "batch.jsonl", skip_broken=True)
        again = [f"a/{name}@2" for name in names] if times == 2 else []
        assert [line["id"] for line in whole.samples] == [
            *(f"a/{name}" for name in names), *again, *(f"b/{name}" for name in "012345")]


def test_entries_a_line_are_read_no_further_than_asked(tmp_path):
    written(tmp_path / "own.jsonl", [{"text": "word " * 1000}] * 4000)
    tracemalloc.start()
    try:
        assert len(read(tmp_path / "own.jsonl", samples=2)[0]) == 2
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("said, expected", [
    ({"image": "a.png", "width": "10", "height": " 12 "}, {"images": [{"width": 10, "height": 12}]}),
    ({"image": "a.png", "width": "wide", "height": 12}, {"images": [{"width": 7, "height": 9}]}),
    ({"audio": "a.wav", "duration": "1.0"}, {"audio": [{"seconds": 1.0}]}),
    ({"audio": "a.wav", "duration": "00:00:01"}, {"audio": [{"seconds": 2.5}]}),
    ({"audio": "a.wav", "duration": "nan"}, {"audio": [{"seconds": 2.5}]}),
])
def test_sizes_may_be_texts_and_those_of_no_number_are_looked_up_in_the_file(tmp_path, said, expected):
    (tmp_path / "a.png").write_bytes(files.png(7, 9))
    (tmp_path / "a.wav").write_bytes(files.wav(2.5))
    assert read(written(tmp_path / "own.jsonl", [{"text": "a", **said}]))[0] == [{"text_tokens": 1, **expected}]


def test_an_object_in_place_of_a_list_is_said_and_a_byte_order_mark_is_skipped(tmp_path):
    source = tmp_path / "own.json"
    for indent in (None, 1):
        source.write_text(json.dumps({"data": [{"text": "a"}]}, indent=indent))
        with pytest.raises(pipeweaver.InputError) as error:
            read(source)
        assert str(error.value) == (f"{source}: is no list of objects; allowed are a list of them, or a .jsonl with "
                                    "one a line")
    for text in ('[{"text":"a"}]', '\n[{"text":"a"}]', '{"text":"a"}\n{"text":"a"}'):
        source.write_bytes(b"\xef\xbb\xbf" + text.encode())
        assert read(source)[0][0] == {"text_tokens": 1}
    written(tmp_path / "a.jsonl", [{"text": "a"}])
    source.write_bytes(b"\xef\xbb\xbf" + json.dumps({"one": {"annotation": "a.jsonl"}}).encode())
    assert read(source)[0] == [{"text_tokens": 1}]
