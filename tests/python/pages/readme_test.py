"""README.md: its commands run as they stand, and print every line that it shows. What quickstart.sh plans is what it
shows, whatever the machine and however many threads it has."""

import json
import re
import shlex

import pytest
from checkout import ROOT
from cli_shared import digests
from getting_started import follow, page_of

PAGE = page_of("README.md")
PAIRS = re.findall(r"^```sh\n(.*?)^```\n```\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def run(pipeweaver, tmp_path_factory):
    """Runs a command of the page once: its folder, and what it printed."""
    ran = {}

    def run(command):
        if command not in ran:
            folder = tmp_path_factory.mktemp("readme")
            (folder / "examples").symlink_to(ROOT / "examples")
            ran[command] = folder, *follow(pipeweaver, folder, f"```sh\n{command}```\n")
        return ran[command]
    return run


@pytest.mark.parametrize("command, shown", PAIRS, ids=[command.split()[1] for command, _ in PAIRS])
def test_a_command_prints_the_lines_below_it(run, command, shown):
    _, printed = run(command)
    missing = [line for line in shown.splitlines() if line not in printed.splitlines()]
    assert missing == [], f"README.md shows what the command does not print:\n{printed}"


def planned_by(script):
    """The arguments of the plan that the script makes."""
    command = re.search(r"^(?:build/release/bin/)?pipeweaver (plan (?:.*\\\n)*.*)", script.read_text(), re.MULTILINE)[1]
    return shlex.split(command.replace("\\\n", " "))


def test_the_quickstart_plans_the_readmes_step_and_the_same_files_on_any_number_of_threads(run, pipeweaver, tmp_path):
    arguments = planned_by(ROOT / "quickstart.sh")
    assert arguments[-2] == "--out" and "--budget" not in arguments and "--max-rounds" not in arguments
    assert arguments[:-1] == planned_by(ROOT / "README.md")[:-1]
    of_the_readme, = [command for command, _ in PAIRS if command.split()[1] == "plan"]
    readmes = run(of_the_readme)[0] / planned_by(ROOT / "README.md")[-1]
    threads = json.loads((readmes / "run.json").read_text())["threads"]  # as many as the machine has cores
    done = pipeweaver.run(*arguments[:-1], tmp_path / "other", "--threads", 1 if threads > 1 else 2)
    assert done.returncode == 0, done.stderr
    assert digests(tmp_path / "other") == digests(readmes)


def test_the_four_questions_have_a_command_each():
    assert [command.split()[1] for command, _ in PAIRS] == ["check", "emulate", "plan", "recommend"]


def test_errors_are_those_of_the_page_on_accuracy():
    rows = re.findall(r"^\| [^|]+ (\|[ \d.|]+\|)$", PAGE.partition("| other sources |")[2], re.MULTILINE)
    assert len(rows) == 4
    accuracy = page_of("docs/accuracy.md").splitlines()
    for errors in rows:
        assert any(line.endswith(f" {errors}") for line in accuracy), errors
