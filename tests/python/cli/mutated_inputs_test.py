"""Mutated inputs of every kind that the command line reads: read, or refused with one line and nothing left behind."""

import sys

from checkout import ROOT
from cli_shared import full

sys.path.insert(0, str(ROOT / "tests/fuzz"))
import mutated_inputs  # noqa: E402


def test_mutated_inputs_are_read_or_refused_in_one_line_and_leave_nothing_behind(pipeweaver, tmp_path):
    count = 6000 if full() else 100
    asked = mutated_inputs.options(["--program", str(pipeweaver.path), "--count", str(count)])
    done = mutated_inputs.run_all(asked, tmp_path)
    statuses = [status for _, status, _, _ in done]
    assert [lines for *_, lines in done if lines] == []
    assert statuses.count(0) > count // 20 and statuses.count(2) > count // 3


def test_what_a_run_must_not_do_is_found(tmp_path):
    """The checks themselves, on programs that do it."""
    found = {}
    for name, script in {"silent": "exit 2", "crash": "kill -SEGV $$", "two lines": "echo a >&2; echo b >&2; exit 2",
                         "escape": "printf 'pipeweaver: \\033[31m\\n' >&2; exit 2", "bytes": "printf '\\377'; exit 0",
                         "status": "echo pipeweaver: a >&2; exit 1",
                         "file": "touch out/o; echo pipeweaver: a >&2; exit 3",
                         "temporary": "touch tmp/x; exit 0", "long": "printf 'pipeweaver: %400s\\n' >&2; exit 2",
                         "hangs": "while :; do :; done", "right": "echo pipeweaver: a >&2; exit 2"}.items():
        place, program = tmp_path / name, tmp_path / f"{name}.sh"
        (place / "good").mkdir(parents=True)
        (place / "good/input").write_text("{}")
        program.write_text(f"#!/bin/bash\n{script}\n")
        program.chmod(0o755)
        asked = mutated_inputs.options(["--program", str(program), "--slow", "0.05"])
        case = mutated_inputs.good_inputs.Case(name, "bytes", place / "good/input", ["@IN", "@OUT"])
        found[name] = mutated_inputs.one(0, asked, [case], place / "good", place)[3]
    assert {name for name, lines in found.items() if not lines} == {"right"}
    for name, words in (("silent", "0 lines on stderr"), ("crash", "exit status -11"),
                        ("two lines", "2 lines on stderr"), ("escape", "stderr has"), ("bytes", "stdout: 'utf-8'"),
                        ("status", "exit status 1"),
                        ("file", "left behind: ['out/o']"), ("temporary", "temporary files: ['tmp/x']"),
                        ("long", "a line of 412 characters"), ("hangs", "took too long")):
        assert words in found[name][0], name
