#!/usr/bin/env python3
"""Draws printed answers of README.md and docs/ anew: draw_docs.py BINARY [--check] [--keep DIR] [PAGE ...]

Blocks of a page that are tagged sh run one after the other in a folder of their own beside examples/; a block without a
tag that follows is their answer, and so is what stands in a block below `$ pipeweaver ...`. Lines of an answer that
differ are replaced by the printed ones that are most like them, in their order. A line of `…` or `...` stands for lines
that the page leaves out, and stays. Where a block has such lines, one or two lines that are new between two of its
lines are taken in, and the rest of a row that goes on below; a block below `$` without such lines is the whole answer.

Commands that need PyTorch, a server, Slurm or a measurement are not run, and a block that is like nothing printed is
left as it is: each is said. Figures in prose that no longer stand in a page's blocks are said, too (figures.py of
tests/python/support). --check writes nothing. The exit status is 1 where a command failed, and with --check where
something differs. --keep: the folder in which the pages' folders stay, in place of a temporary one.
"""

import argparse
import difflib
import functools
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/python/support"))
import figures  # noqa: E402

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ASKED = re.compile(r"\$ (pipeweaver (?:[^\n]*\\\n)*[^\n]*)\n")
ELSEWHERE = re.compile(r"\b(torchrun|curl|sbatch|srun|mpirun|ray|serve|pip install|bench service)\b"
                       r"|pipeweaver (ui|mcp)\b|pipeweaver\.(profile|selfcheck)")
COMMANDS = re.compile(r"(?:source|torchrun|pip|cd|export|env|python3?|pipeweaver|\./\S+)(?: |$)")
HERE = re.compile(r"<<-?\s*'?(\w+)'?\n.*?^\1$", re.MULTILINE | re.DOTALL)
MARKS = ("…", "...")
GOES_ON = re.compile(r" {10}\S")  # a line of the row above
ALIKE = 0.6  # of two lines, from 0 to 1: below it one is not the other of another day
BESIDE = 0.03  # for a pair of lines that follow one another on both sides: among equals these are meant
OTHER_ROW = 0.75  # of how alike the rest is, where rows begin with other words
NEW = 2  # lines between two of the page's that are taken in
SECONDS = 900  # that a block may take


@functools.lru_cache(maxsize=None)
def without_numbers(line):
    return re.sub(r"\d[\d,.]*", "0", " ".join(line.split()))


@functools.lru_cache(maxsize=1 << 20)
def alike(one, other):
    """How alike two lines are: their words, and less their numbers."""
    if one == other:
        return 1.5
    if not one.strip() or not other.strip():
        return 0.0
    begins = least_alike(one.split()[:2], other.split()[:2])
    words = difflib.SequenceMatcher(None, without_numbers(one), without_numbers(other), autojunk=False)
    if words.quick_ratio() < ALIKE:
        return begins
    numbers = difflib.SequenceMatcher(None, one.split(), other.split(), autojunk=False)
    ratio = 0.7 * words.ratio() + 0.3 * numbers.ratio()
    return max(begins, ratio) if begins or not is_heading(one, other) else OTHER_ROW * ratio


def least_alike(one, other):
    """Of lines that begin with these words: the heading of a row, and the row's number, say what it is."""
    if one[0] != other[0] or not one[0].rstrip(":").isalpha():
        return 0.0
    return ALIKE + (0.2 if one == other else 0.15)


def is_heading(one, other):
    """Whether both lines begin with a word: they are rows of other things, as those are not the same."""
    return all(line.split()[0].rstrip(":").isalpha() and not line[0].isspace() for line in (one, other))


def matched(shown, printed):
    """For each shown line the place of its printed one, or None: the most alike that keep the order."""
    rows, columns = len(shown), len(printed)
    best = [[0.0] * (columns + 1) for _ in range(rows + 1)]
    ends = [[float("-inf")] * (columns + 1) for _ in range(rows + 1)]  # where these two are a pair
    for i in range(1, rows + 1):
        for j in range(1, columns + 1):
            pair = alike(shown[i - 1], printed[j - 1]) - ALIKE if shown[i - 1] not in MARKS else -1
            if pair > 0:
                ends[i][j] = pair + max(best[i - 1][j - 1], ends[i - 1][j - 1] + BESIDE)
            best[i][j] = max(best[i - 1][j], best[i][j - 1], ends[i][j])
    places, i, j, beside = [None] * rows, rows, columns, False
    while i and j:
        if beside or best[i][j] == ends[i][j]:
            places[i - 1] = j - 1
            beside = ends[i - 1][j - 1] + BESIDE > best[i - 1][j - 1]
            i, j = i - 1, j - 1
        elif best[i][j] == best[i - 1][j]:
            i -= 1
        else:
            j -= 1
    return places


def renewed(shown, printed, whole=False):
    """The shown lines as they are printed now, or None where they are no answer of what was printed."""
    marked = any(line in MARKS for line in shown)
    if whole and not marked:
        return printed
    places = matched(shown, printed)
    lines = sum(line not in MARKS and line.strip() != "" for line in shown)
    if lines == 0 or 2 * sum(place is not None and shown[k].strip() != "" for k, place in enumerate(places)) < lines:
        return None
    goes_on = marked or any(map(GOES_ON.match, shown))
    new, last = [], None  # the printed line in front, where nothing is left out between
    for line, place in zip(shown, places):
        if line in MARKS or not line.strip():
            new.append(line)
        elif place is not None:
            between = printed[last + 1:place] if marked and last is not None else []
            if len(between) <= NEW and all(one.strip() for one in between):
                new += between
            new.append(printed[place])
            while goes_on and place + 1 not in places and any(map(GOES_ON.match, printed[place + 1:place + 2])):
                place += 1
                new.append(printed[place])
        last = place if place is not None else None if line in MARKS or not line.strip() else last
    return new


class Page:
    """A page whose commands are run in the order of its blocks."""

    def __init__(self, path, binary, folder):
        self.path, self.binary, self.folder = path, binary, folder
        self.text, self.printed, self.said = path.read_text(), None, []
        self.failed, self.lacks = 0, False  # commands that failed; whether one in front of them was not run
        (folder / "examples").symlink_to(ROOT / "examples")
        paths = [binary.parent, pathlib.Path(sys.executable).parent, os.environ["PATH"]]
        self.environment = {**os.environ, "PATH": ":".join(map(str, paths)), "PYTHONPATH": str(ROOT / "python")}

    def drawn(self):
        """The page with its answers of today."""
        return BLOCK.sub(self._block, self.text)

    def _say(self, match, what):
        line = self.text.count("\n", 0, match.start()) + 2
        self.said.append(f"{self.path.relative_to(ROOT)}:{line}: {what}")

    def _run(self, match, command):
        if ELSEWHERE.search(HERE.sub("", command)):
            self.lacks = True
            return self._say(match, "not run")
        done = subprocess.run(["bash", "-e", "-c", command], cwd=self.folder, env=self.environment, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS)
        status = done.returncode
        if status and not (status in (4, 5) and command.startswith("pipeweaver check")):
            last = (done.stderr.strip().splitlines() or [""])[-1]
            self.failed += not self.lacks and "_core is not built" not in last
            return self._say(match, f"not drawn, exit status {status}: {last}")
        told = [] if status else [line for line in done.stderr.splitlines() if not line.endswith((" left", " % done"))]
        return done.stdout.splitlines() + told

    def _block(self, match):
        kind, text = match.groups()
        asked = ASKED.match(text) if kind == "" else None
        if kind == "sh":
            self.printed = self._run(match, text)
        elif asked:
            printed = self._run(match, shlex.join(shlex.split(asked[1].replace("\\\n", " "))))
            return match[0] if printed is None else self._answer(match, text[:asked.end()], printed, whole=True)
        elif kind:
            self.printed = None  # what follows is of another program
        elif self.printed is not None and not COMMANDS.match(text):
            return self._answer(match, "", self.printed)
        return match[0]

    def _answer(self, match, head, printed, whole=False):
        shown = match[2][len(head):].splitlines()
        new = renewed(shown, printed, whole)
        if new is None:
            self._say(match, "like nothing that the command above prints: left as it is")
            return match[0]
        return "```\n" + head + "".join(line + "\n" for line in new) + "```"


def pages(named):
    return [path.resolve() for path in named] or [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def draw(path, options, folder):
    """Whether the page differed, and how many of its commands failed."""
    folder.mkdir(parents=True)
    page = Page(path, options.binary.resolve(), folder)
    new = page.drawn()
    name = str(path.relative_to(ROOT))
    print(*page.said, sep="\n", end="\n" if page.said else "", flush=True)
    for line in difflib.unified_diff(page.text.splitlines(), new.splitlines(), name, name, lineterm="", n=0):
        print(line, flush=True)
    for complaint in figures.complaints(new):
        print(f"{name}: prose: {complaint}", flush=True)
    if new != page.text and not options.check:
        path.write_text(new)
    return new != page.text, page.failed


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", type=pathlib.Path, metavar="BINARY")
    parser.add_argument("pages", type=pathlib.Path, nargs="*", metavar="PAGE", help="(default: README.md and docs/)")
    parser.add_argument("--check", action="store_true", help="write nothing; exit status 1 where a page differs")
    parser.add_argument("--keep", type=pathlib.Path, metavar="DIR", help="keep what the commands write")
    return parser.parse_intermixed_args()


def main():
    options = parse()
    with tempfile.TemporaryDirectory(prefix="draw-docs-") as temporary:
        home = options.keep or pathlib.Path(temporary)
        drawn = [draw(path, options, home / path.relative_to(ROOT).with_suffix("")) for path in pages(options.pages)]
    differing, failed = sum(differs for differs, _ in drawn), sum(failed for _, failed in drawn)
    print(f"{differing} pages {'differ' if options.check else 'drawn anew'}, {failed} commands failed")
    return 1 if failed or (differing and options.check) else 0


if __name__ == "__main__":
    sys.exit(main())
