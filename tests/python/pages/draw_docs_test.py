"""scripts/draw_docs.py: answers of pages are drawn anew, line by line; marks, and what is no answer, stay."""

import importlib.util
import os
import subprocess
import sys

import pytest
from checkout import ROOT

SCRIPT = ROOT / "scripts/draw_docs.py"
spec = importlib.util.spec_from_file_location("draw_docs", SCRIPT)
draw_docs = importlib.util.module_from_spec(spec)
spec.loader.exec_module(draw_docs)

PRINTED = """step 2.5 s = makespan 2.4 s + optimizer 0.1 s
MFU 31.0 %: 5 model FLOPs

rank          busy     compute
0           70.0 %      50.1 %
1           80.0 %      53.3 %
2           90.0 %      55.5 %
assumed: nothing""".splitlines()


@pytest.mark.parametrize("shown, new", [
    # Numbers have changed; the line between stays out, as the block has no mark.
    (["step 3.5 s = makespan 3.4 s + optimizer 0.1 s", "assumed: nothing"],
     ["step 2.5 s = makespan 2.4 s + optimizer 0.1 s", "assumed: nothing"]),
    # Rows of a table are those of their rank, a mark stays, and a row that is new between two is taken in.
    (["rank          busy     compute", "0           71.0 %      50.0 %", "2           91.0 %      55.0 %", "…"],
     ["rank          busy     compute", "0           70.0 %      50.1 %", "1           80.0 %      53.3 %",
      "2           90.0 %      55.5 %", "…"]),
    # A line that is printed no more goes.
    (["MFU 30.0 %: 4 model FLOPs", "hazard: a long sentence that no command says", "assumed: nothing"],
     ["MFU 31.0 %: 5 model FLOPs", "assumed: nothing"]),
    # A row is found by its heading, whatever stands behind it.
    (["step 2.5 s = makespan 2.4 s + optimizer 0.1 s", "assumed: of the model that there is no bias in its layers"],
     ["step 2.5 s = makespan 2.4 s + optimizer 0.1 s", "assumed: nothing"]),
    (["csv/schedule.csv", "csv/schedule.json"], None),
])
def test_lines_are_replaced_by_what_they_are_today(shown, new):
    assert draw_docs.renewed(shown, PRINTED) == new


def test_a_row_is_taken_with_what_it_goes_on_with():
    printed = ["now       balanced interleaved,   4.9 s", "          4 chunks", "do        layout: tp 2"]
    shown = ["now       balanced, 2 chunks   5.1 s", "…"]
    assert draw_docs.renewed(shown, printed) == [*printed[:2], "…"]
    assert draw_docs.renewed(shown[:1], printed) == printed[:1]  # without a mark it shows some lines alone
    other = ["now       best known today: a chain   4.9 s", "data      balanced, 2 chunks   4.8 s"]
    assert draw_docs.renewed(shown[:1], other) == other[:1]  # the row of that name, not the one that reads like it


def test_a_verdict_may_change():
    fits = "fits: rank 0 is the fullest, 50.28 GiB of 71.39"
    other = "does not fit: rank 1 is the fullest, 90.1 GiB of 71.39"
    assert draw_docs.renewed([fits], [other, "layers of stages: 20|20"]) == [other]


def test_a_whole_answer_is_what_is_printed():
    assert draw_docs.renewed(["another"], PRINTED, whole=True) == PRINTED


PAGE = """# A page

```sh
pipeweaver emulate --model a
```
```
step 3 s of the model
…
```

```
$ pipeweaver check \\
    --model b
fits: 1 GiB left
```

```sh
cat > today.sh <<'END'
torchrun train.py
END
pipeweaver emulate --model a
```
```
step 3 s of the model
```

```sh
torchrun train.py
```
```
loss 3.0
```

```sh
pipeweaver emulate --model a
```

```
pipeweaver step of the model
```
"""


@pytest.fixture
def page(tmp_path, monkeypatch):
    """A page beside a program that prints what it was asked."""
    program = tmp_path / "bin/pipeweaver"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\n[ "$1" = check ] && echo "fits: 2 GiB left" || echo "step 4 s of the model"\n')
    program.chmod(0o755)
    path = tmp_path / "page.md"
    path.write_text(PAGE)
    monkeypatch.setattr(draw_docs, "ROOT", tmp_path)

    def drawn(number):
        folder = tmp_path / str(number)
        folder.mkdir()
        one = draw_docs.Page(path, program, folder)
        return one.drawn(), one.said

    return drawn


def test_a_page_is_drawn_from_the_program(page):
    new, said = page(1)
    assert new == PAGE.replace("step 3 s", "step 4 s").replace("fits: 1 GiB", "fits: 2 GiB")
    assert said == ["page.md:28: not run"]


def test_a_check_writes_nothing_and_says_what_differs(tmp_path, pipeweaver):
    """On a page of the repository, with a program that says another verdict."""
    false = tmp_path / "bin/pipeweaver"
    false.parent.mkdir()
    false.write_text('#!/bin/sh\necho "fits: no answer"\n')
    false.chmod(0o755)
    page = ROOT / "docs/check.md"
    before = page.read_bytes()
    status = {}
    for name, program in (("false", false), ("true", pipeweaver.path.resolve())):
        done = subprocess.run([sys.executable, SCRIPT, program, "--check", page], capture_output=True, text=True,
                              env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
        status[name] = done.returncode
    assert "+fits: no answer" not in done.stdout and status == {"false": 1, "true": 0}, done.stdout
    assert page.read_bytes() == before
