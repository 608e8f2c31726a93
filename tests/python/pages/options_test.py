"""Commands that pages name: their options are those of --help-all, and what a list has is in the list."""

import re
import shlex

import pytest
from checkout import ROOT

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").glob("*.txt")])
COMMANDS = ("plan", "partition", "solve", "replay", "explain", "check", "emit", "emulate", "layers", "analyze",
            "recommend", "support", "capacity", "faults", "share", "groups", "mix", "rl", "fuse", "validate",
            "costdb import", "costdb needs", "costdb query", "costdb explain", "costdb evaluate", "costdb calibrate",
            "serve", "mcp", "ui", "list", "show")
LISTED = {"--policy": "policies", "--target": "targets", "--recipe": "recipes"}
SPAN = re.compile(r"`([^`\n]+)`|^(?:\$ )?(pipeweaver .+)$", re.MULTILINE)


def asked(text):
    """(command, word behind its name, ...) of every command in code."""
    for span in SPAN.finditer(text.replace("\\\n", " ")):
        try:
            words = shlex.split((span[1] or span[2]).removeprefix("pipeweaver "), comments=True)
        except ValueError:  # half of a quotation
            continue
        for name in COMMANDS:
            if words[:len(name.split())] == name.split() and "--" in " ".join(words):
                yield name, words[len(name.split()):]


@pytest.fixture(scope="module")
def options(pipeweaver):
    return {name: set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", pipeweaver(*name.split(), "--help-all")))
            for name in COMMANDS}


@pytest.fixture(scope="module")
def lists(pipeweaver):
    return {option: {line.split()[0] for line in pipeweaver("list", kind).splitlines() if line.strip()} | {"any"}
            for option, kind in LISTED.items()}


def wrong(text, options, lists):
    """Options that a command has not, and values that are in no list."""
    for name, words in asked(text):
        said = [word.partition("=")[0] for word in words if re.fullmatch("--[a-z-]+(=.*)?", word)]
        yield from ((name, option) for option in said if option not in options[name])
        yield from ((option, value) for option, value in zip(words, words[1:])
                    if re.fullmatch("[a-z0-9-]+", value) and value not in lists.get(option, {value}))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_options_that_a_page_names_are_there(options, lists, page):
    assert [*wrong(page.read_text(), options, lists)] == []


def test_an_option_and_a_policy_that_are_not_there_are_found(options, lists):
    text = "`emulate --policy zb-w --chunks 2`, `plan --rounds=3`, `check --megatron-args '--tp 2'`"
    assert [*wrong(text, options, lists)] == [("--policy", "zb-w"), ("plan", "--rounds")]


def test_commands_are_found_in_blocks_and_sentences():
    text = "`plan --layout auto` or `--zero 1`, not `show NAME`.\n```\n$ pipeweaver check --set A=1 \\\n  b.sh\n```\n"
    assert [*asked(text)] == [("plan", ["--layout", "auto"]), ("check", ["--set", "A=1", "b.sh"])]
