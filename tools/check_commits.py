#!/usr/bin/env python3
"""Checks how the last commits say what they are:

- a subject of at most 72 characters that does not join topics by semicolons
- a body that says why, where sources change
- a body that says what goes, where more than 1,000 lines come outside tests/ ("deletes" or "takes out")

Prints what it finds, a line each, and exits with 1 if there is something. A folder without a history passes, and
so does the oldest commit of a shallow clone, which holds all files of those before it.
"""

import argparse
import pathlib
import subprocess
import sys

MOST_CHARACTERS = 72
MOST_LINES = 1000
SOURCES = {".cpp", ".hpp", ".py"}
DELETES = ("delet", "take out", "takes out", "taken out", "move")  # and "nothing is deleted"


def git(folder, *arguments):
    done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else ""


def changes(folder, commit):
    """(lines that came, path) of every file of text that the commit changed."""
    for line in git(folder, "show", "--numstat", "--format=", "--find-renames", commit).splitlines():
        came, _, path = line.split("\t")  # of a renamed file "a => b"
        if came != "-":
            yield int(came), pathlib.PurePosixPath(path)


def findings(folder, commit):
    """What is wrong with a commit."""
    subject, _, body = git(folder, "show", "--no-patch", "--format=%s%n%b", commit).partition("\n")
    changed = list(changes(folder, commit))
    if len(subject) > MOST_CHARACTERS:
        yield f"subject of {len(subject)} characters, allowed are {MOST_CHARACTERS}"
    if ";" in subject:
        yield "subject of several topics: one commit, one topic"
    if not body.strip() and any(path.suffix in SOURCES for _, path in changed):
        yield "no body that says why, though sources change"
    came = sum(lines for lines, path in changed if path.suffix in SOURCES and path.parts[0] != "tests")
    if came > MOST_LINES and not any(word in body.lower() for word in DELETES):
        yield f"{came} lines come outside tests/, and the body does not say what goes"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = pathlib.Path(__file__).resolve().parents[1]
    parser.add_argument("folder", nargs="?", type=pathlib.Path, default=here, help="repository (default: this one)")
    parser.add_argument("--last", type=int, default=10, metavar="N", help="so many commits (default 10)")
    options = parser.parse_args()
    is_shallow = git(options.folder, "rev-parse", "--is-shallow-repository").strip() == "true"
    log = git(options.folder, "log", f"-{options.last}", "--no-merges", "--format=%h %p").splitlines()
    commits = [line.split()[0] for line in log if not is_shallow or len(line.split()) > 1]
    found = [f"{commit}: {text}" for commit in commits for text in findings(options.folder, commit)]
    print("\n".join(found) or f"{len(commits)} commits say what they are")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
