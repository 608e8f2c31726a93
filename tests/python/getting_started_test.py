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
        return {tuple(part.strip() for part in row)
                for row in re.findall(r"^(\S.{23}) (\S+) +(\d+) .* [\d.]+x$", text, re.MULTILINE)}

    # Opponents and policies are the same on any machine; how far the plan's search comes is not.
    on_the_page, printed = rows(blocks("")[3]), rows(followed[1][2])
    assert len(on_the_page) >= 10 and on_the_page <= printed
    assert {row[1] for row in on_the_page} >= {"plan", "interleaved", "gpipe", "dual-queue"}


def test_the_files_of_the_page_are_there(followed):
    for name in re.findall(r"`((?:mine|csv)/[a-z/.]+)`", PAGE):
        assert (followed[0] / name).is_file(), name
