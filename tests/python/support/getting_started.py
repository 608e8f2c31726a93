"""A page of docs/, by default docs/getting-started.md: its code blocks, and its commands run one after the other."""

import os
import pathlib
import re
import subprocess
import sys

from checkout import ROOT

FILE = "docs/getting-started.md"
PAGE = (ROOT / FILE).read_text()


def page_of(file):
    """The page's text."""
    return (ROOT / file).read_text()


def blocks(language, page=PAGE):
    """The page's code blocks of one language."""
    return [text for kind, text in re.findall(r"^```(\w*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
            if kind == language]


def follow(pipeweaver, folder, page=PAGE):
    """Runs the page's commands in the folder; returns what each block printed."""
    paths = [pipeweaver.path.resolve().parent, pathlib.Path(sys.executable).parent, os.environ["PATH"]]
    environment = {**os.environ, "PATH": ":".join(map(str, paths))}
    printed = []
    for block in blocks("sh", page):
        done = subprocess.run(["bash", "-e", "-c", block], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, f"{block}{done.stderr}"
        printed.append(done.stdout + done.stderr)
    return printed
