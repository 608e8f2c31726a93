"""tools/corpus.py: what is added is there again, equal cases are equal bytes, and no case is lost."""

import gzip
import importlib.util
import os

import pytest
from checkout import ROOT


@pytest.fixture
def corpus(tmp_path):
    spec = importlib.util.spec_from_file_location("corpus", ROOT / "tools/corpus.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.CORPUS = tmp_path / "corpus"
    module.CORPUS.mkdir()
    return module


@pytest.fixture
def files(tmp_path):
    def write(**cases):
        for name, content in cases.items():
            (tmp_path / name).write_bytes(content)
        return [tmp_path / name for name in cases]

    return write


def test_cases_that_are_added_are_extracted_again(corpus, files, tmp_path):
    assert corpus.add("how", files(empty=b"", block=b"x" * 512), True) == 2
    assert corpus.add("how", files(bytes=bytes(range(256)) * 3), False) == 3
    corpus.extract("how", tmp_path / "out")
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == {
        "empty": b"", "block": b"x" * 512, "bytes": bytes(range(256)) * 3}


def test_equal_cases_are_equal_bytes_whenever_and_in_whatever_order_they_come(corpus, files):
    a, b = files(a=b"1", b=b"2")
    corpus.add("one", [a, b], True)
    os.utime(a, (1, 1))
    a.chmod(0o600)
    corpus.add("two", [b], True)
    corpus.add("two", [a], False)
    assert (corpus.CORPUS / "one.tar.gz").read_bytes() == (corpus.CORPUS / "two.tar.gz").read_bytes()


def test_another_case_of_a_name_and_a_reader_misspelt_are_refused(corpus, files):
    corpus.add("how", files(a=b"1"), True)
    before = (corpus.CORPUS / "how.tar.gz").read_bytes()
    with pytest.raises(ValueError, match="how has another case of that name"):
        corpus.add("how", files(b=b"2", a=b"3"), False)
    with pytest.raises(ValueError, match="hwo: has no archive; how do"):
        corpus.add("hwo", files(b=b"2"), False)
    with pytest.raises(ValueError, match="how: has an archive"):
        corpus.add("how", files(b=b"2"), True)
    assert [path.name for path in corpus.CORPUS.iterdir()] == ["how.tar.gz"]
    assert (corpus.CORPUS / "how.tar.gz").read_bytes() == before


def test_the_archives_are_as_the_script_writes_them(corpus):
    for archive in sorted((ROOT / "tests/fuzz/corpus").iterdir()):
        (corpus.CORPUS / archive.name).write_bytes(archive.read_bytes())
    assert len(corpus.readers()) > 5
    for reader in corpus.readers():
        written = gzip.decompress(corpus.packed(corpus.cases_of(reader)))
        assert written == gzip.decompress((corpus.CORPUS / f"{reader}.tar.gz").read_bytes()), reader
