"""docs/getting-started.md followed to the letter, but for the build: its commands run, its files are there."""

import os
import re
import subprocess

import pytest
from conftest import ROOT

PAGE = (ROOT / "docs/getting-started.md").read_text()


def blocks(language):
    """The page's code blocks of one language."""
    return [text for kind, text in re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL) if kind == language]


def follow(pipeweaver, folder):
    """Runs the page's commands in the folder; returns what each block printed."""
    environment = {**os.environ, "PATH": f"{pipeweaver.path.resolve().parent}:{os.environ['PATH']}"}
    printed = []
    for block in blocks("sh"):
        done = subprocess.run(["bash", "-e", "-c", block], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, f"{block}{done.stderr}"
        printed.append(done.stdout + done.stderr)
    return printed


@pytest.fixture(scope="module")
def followed(pipeweaver, tmp_path_factory):
    folder = tmp_path_factory.mktemp("getting_started")
    return folder, follow(pipeweaver, folder)


def test_the_models_of_the_page_are_listed(followed):
    lines = blocks("")[2].splitlines()
    assert "dip-vlm-s                   step3-vit-5b + llama3-8b (cross-checked)" in lines
    for line in lines:
        assert line == "…" or line in followed[1][0].splitlines()


def test_the_edit_changes_the_model(followed):
    assert '"fixed_pixels": 448' in (followed[0] / "mine.json").read_text()


def test_the_table_has_the_rows_of_the_page(followed):
    def rows(text):
        return {tuple(line.split()[:3]) for line in text.splitlines() if re.match(r"^(dip|megatron|balanced) .*x$", line)}

    def policies(text):
        return {row for row in rows(text) if row[1] != "plan"}

    # Which partition the plan is on depends on how far the search comes in its time.
    assert len(rows(followed[1][2])) == len(policies(followed[1][2])) + 1
    assert len(policies(blocks("")[3])) >= 5 and policies(blocks("")[3]) <= policies(followed[1][2])


def test_the_files_of_the_page_are_there(followed):
    for name in re.findall(r"`((?:mine|csv)/[a-z/.]+)`", PAGE):
        assert (followed[0] / name).is_file(), name
