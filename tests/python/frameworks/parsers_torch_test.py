"""tools/framework_parsers.py: frameworks' own parsers take what they know, and say what they do not."""

import sys

import pytest
from checkout import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import framework_parsers  # noqa: E402

FLAGS = ["--parallelism.pipeline_parallel_degree", "4", "--training.seq_len", "4096"]


def test_torchtitans_command_line_takes_its_flags_alone():
    pytest.importorskip("torchtitan")
    why_not = framework_parsers.titan()
    assert why_not(FLAGS, 4) == ""
    assert why_not(FLAGS, 2) == "reads 4 pipeline ranks"
    assert "--training.sequence" in why_not([*FLAGS, "--training.sequence", "4096"], 4)


def test_megatron_cores_layouts_divide_into_ranks():
    pytest.importorskip("megatron.core")
    why_not = framework_parsers.megatron()
    assert why_not(["--pipeline-model-parallel-layout", "Et*3|t*4L"], 2) == ""
    assert "divisible" in why_not(["--pipeline-model-parallel-layout", "Et*3|t*4|t*4L"], 2)
    assert why_not(["--recompute-granularity", "full"], 2) == ""


def test_words_of_an_array_are_as_the_shell_has_them(tmp_path):
    (tmp_path / "flags.sh").write_text("FLAGS=(--a 1\n  # said so\n  --b 'x y')\n")
    assert framework_parsers.array_of(tmp_path / "flags.sh", "FLAGS") == ["--a", "1", "--b", "x y"]


def test_a_framework_whose_parser_is_never_called_is_not_said_to_be_missing(monkeypatch):
    def absent():
        raise ImportError

    monkeypatch.setattr(framework_parsers.Parsers, "known", {"here": (lambda: (lambda flags, ranks: "no"), "", ""),
                                                             "absent": (absent, "", "")})
    parsers = framework_parsers.Parsers()
    assert parsers.missing == ["absent"] and list(parsers.found) == ["here"]
    assert "ms-swift" in parsers.uncalled
