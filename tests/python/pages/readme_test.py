"""README.md: its commands run as they stand, and print every line that it shows."""

import re

import pytest
from checkout import ROOT
from getting_started import follow, page_of

PAGE = page_of("README.md")
PAIRS = re.findall(r"^```sh\n(.*?)^```\n```\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("command, shown", PAIRS, ids=[command.split()[1] for command, _ in PAIRS])
def test_a_command_prints_the_lines_below_it(pipeweaver, tmp_path, command, shown):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    printed, = follow(pipeweaver, tmp_path, f"```sh\n{command}```\n")
    missing = [line for line in shown.splitlines() if line not in printed.splitlines()]
    assert missing == [], f"README.md shows what the command does not print:\n{printed}"


def test_the_four_questions_have_a_command_each():
    assert [command.split()[1] for command, _ in PAIRS] == ["check", "emulate", "plan", "recommend"]


def test_errors_are_those_of_the_page_on_accuracy():
    rows = re.findall(r"^\| [^|]+ (\|[ \d.|]+\|)$", PAGE.partition("| other sources |")[2], re.MULTILINE)
    assert len(rows) == 4
    accuracy = page_of("docs/accuracy.md").splitlines()
    for errors in rows:
        assert any(line.endswith(f" {errors}") for line in accuracy), errors
