#!/usr/bin/env python3
"""Checks how the C++ sources hang together, and the pages:

- circles of includes between rooms; a room is a source with its headers: the files of one stem in one module
- edges between modules beyond those that ALLOWED has
- public headers that nothing outside their module includes, directly or through another public header
- folders with more than 40 sources
- links of a page (*.md) to a file or a heading that is not there

Prints what it finds, a line each, and exits with 1 unless all of it is tolerated: a circle of two rooms always is, what
else is stands in TOLERATED with its reason, and is told if it is not there any more.
"""

import argparse
import collections
import functools
import pathlib
import re
import sys

EXTENSIONS = {".cpp", ".hpp", ".inl"}
MOST_SOURCES = 40

# What each module may include besides itself. Users of the libraries may include all of them.
ALLOWED = {
    "base": set(),
    "workloads": {"base"},
    "costdb": {"base", "workloads"},
    "schedule": {"base"},
    "emulator": {"base", "workloads", "costdb", "schedule"},
    "validation": {"base", "workloads", "costdb", "emulator", "planner"},
    "partition": {"base", "workloads", "emulator"},
    "search": {"base", "schedule"},
    "planner": {"base", "workloads", "schedule", "emulator", "partition", "search"},
    "emit": {"base", "workloads", "schedule", "emulator", "planner"},
    "service": {"base", "workloads", "schedule", "emulator", "partition", "search", "planner", "emit"},
}
USERS = {"apps", "python", "tests", "studies"}
NOT_USED = {"tests", "studies"}  # by others; studies may use everything

# Finding -> reason. Of a circle the rooms, sorted, one blank between them; a part of it is tolerated too.
TOLERATED = {}


class Tree:
    """The C++ files below a folder, and what they include of each other."""

    def __init__(self, root):
        self.root = root
        self.files = [path for folder in [*ALLOWED, *USERS, "include"] for path in self.sources(folder)]
        self.includes = {path: self.included(path) for path in self.files}

    def sources(self, folder):
        below = sorted((self.root / folder).rglob("*"))
        return [path.relative_to(self.root) for path in below if path.suffix in EXTENSIONS]

    def included(self, path):
        names = re.findall(r'^#include "([^"]+)"', (self.root / path).read_text(), re.MULTILINE)
        found = [self.find(path, name) for name in names]
        return [target for target in found if target is not None]

    def find(self, path, name):
        candidates = [pathlib.Path("include") / name, pathlib.Path(name), path.parent / name]
        return next((one for one in candidates if (self.root / one).is_file()), None)


def is_public(path):
    return path.parts[0] == "include"


def module_of(path):
    return path.parts[2] if is_public(path) else path.parts[0]


def room_of(path):
    return f"{module_of(path)}/{path.stem}"


def room_edges(tree):
    """Per room the others that it includes, each with a file that does."""
    edges = collections.defaultdict(dict)
    for path, targets in tree.includes.items():
        for target in targets:
            if room_of(target) != room_of(path):
                edges[room_of(path)].setdefault(room_of(target), path)
    return edges


def reachable(start, edges):
    seen, open_ = set(), [start]
    while open_:
        for target in edges.get(open_.pop(), ()):
            if target not in seen:
                seen.add(target)
                open_.append(target)
    return seen


def circles(edges):
    """Sets of more than two rooms of which each reaches every other."""
    reached = {room: reachable(room, edges) for room in edges}
    found, done = [], set()
    for room in sorted(edges):
        if room in done:
            continue
        circle = {other for other in reached[room] if room in reached.get(other, ())}
        done |= circle
        if len(circle) > 2:
            found.append(circle)
    return found


def is_part_of(circle, entry):
    return circle <= set(entry.split())


def describe_circle(circle, edges):
    lines = [f"circle of {len(circle)} rooms: {' '.join(sorted(circle))}"]
    for room in sorted(circle):
        for target in sorted(circle & edges[room].keys()):
            lines.append(f"    {room} includes {target} in {edges[room][target]}")
    return "\n".join(lines)


def find_circles(tree, tolerated):
    edges = room_edges(tree)
    return [describe_circle(circle, edges) for circle in circles(edges)
            if not any(is_part_of(circle, entry) for entry in tolerated)]


def find_edges(tree, tolerated):
    found = {}
    for path, targets in tree.includes.items():
        for target in targets:
            source, used = module_of(path), module_of(target)
            allowed = source in (used, "studies") or (source in USERS and used not in NOT_USED)
            if not allowed and used not in ALLOWED.get(source, set()):
                found.setdefault(f"{source} -> {used}", f"{path} includes {target}")
    return [f"edge {edge}: {why}" for edge, why in found.items() if edge not in tolerated]


def find_unused_headers(tree, tolerated):
    public = {path for path in tree.files if is_public(path)}
    used = {target for path, targets in tree.includes.items() for target in targets
            if target in public and module_of(path) != module_of(target)}
    between = {path: [target for target in tree.includes[path] if target in public] for path in public}
    for header in list(used):
        used |= reachable(header, between)
    unused = [str(path) for path in sorted(public - used)]
    return [f"public header without a user outside its module: {name}" for name in unused if name not in tolerated]


def find_wide_folders(tree, tolerated):
    widths = collections.Counter(str(path.parent) for path in tree.files)
    return [f"folder with {count} sources: {folder}" for folder, count in sorted(widths.items())
            if count > MOST_SOURCES and folder not in tolerated]


def pages(root):
    """The Markdown files of the repository, without what was built or installed in it."""
    found = (path.relative_to(root) for path in root.rglob("*.md"))
    return sorted(path for path in found if not any(part[0] == "." or part in ("build", "out") for part in path.parts))


def prose(path):
    """A page without its blocks of code."""
    return re.sub(r"^( *)(```+).*?^\1\2", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)


@functools.cache
def anchors(path):
    """What GitHub calls the headings of a page: one that comes again has a number."""
    names, seen = set(), collections.Counter()
    for heading in re.findall(r"^#+ +(.+?) *$", prose(path), re.MULTILINE):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        name = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        names.add(f"{name}-{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return names


def find_broken_links(tree, tolerated):
    found = []
    for page in pages(tree.root):
        words = re.sub(r"`[^`\n]*`", "", prose(tree.root / page))
        for link in re.findall(r"\]\(([^)\s]+)\)", words):
            if re.match(r"[a-z]+:", link):
                continue
            name, _, anchor = link.partition("#")
            target = (tree.root / page).parent / name if name else tree.root / page
            if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
                found.append(f"broken link in {page}: {link}")
    return [finding for finding in found if finding not in tolerated]


CHECKS = [find_circles, find_edges, find_unused_headers, find_wide_folders, find_broken_links]


def find_stale(tree, tolerated):
    """What is tolerated though nothing is found without it."""
    def count(entries):
        return sum(len(check(tree, entries)) for check in CHECKS)

    return [f"tolerated, but not there any more: {entry}" for entry in tolerated
            if count(tolerated.keys() - {entry}) == count(tolerated)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = pathlib.Path(__file__).resolve().parents[1]
    parser.add_argument("root", nargs="?", type=pathlib.Path, default=here, help="top folder (default: this repository)")
    root = parser.parse_args().root.resolve()
    tree = Tree(root)
    findings = [finding for check in CHECKS for finding in check(tree, TOLERATED)]
    if root == here:
        findings += find_stale(tree, TOLERATED)
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
