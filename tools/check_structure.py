#!/usr/bin/env python3
"""Checks how the C++ sources hang together, and the pages:

- circles of includes between rooms; a room is a source with its headers: the files of one stem in one module
- edges between modules beyond those that ALLOWED has
- public headers that no production code outside their module includes, directly or through another public header, or
  that fewer than two sources or headers of production include; tests and studies are no production code
- chains of includes with more than 15 files, the source with which they begin counted; the longest of a module
- folders with more than 40 sources
- lines of C++ and Python with more than 120 characters
- functions of C++ and Python with more than 50 lines, of tests, tools and studies with more than 60; a function that is
  one table of data has "Table:" in the comment above it, and any number
- a namespace that is not its module's: a file of search/ opens pipeweaver::search or one inside it (of base/,
  pipeweaver), and declares names of others without saying what they are; headers of production open none by `using`
- names of policies, partitions and recomputations spelled outside their rows: other code has constants for them. What
  frameworks call theirs is spelled in FRAMEWORKS; a name that is an ordinary word, too (PLAIN), counts where the line
  speaks of a partition, policy or recomputation
- places that catch an Error: what cannot be is a value. Commands, services, bindings and what is no product may, and
  the READERS
- links of a page (*.md) to a file or a heading that is not there

Prints what it finds, a line each, and of this repository the longest chain of includes. Exits with 1 unless all that
was found is tolerated: a circle of two rooms always is, what else is stands in TOLERATED with its reason, and is told
if it is not there any more.
"""

import argparse
import ast
import collections
import functools
import os
import pathlib
import re
import sys

EXTENSIONS = {".cpp", ".hpp", ".inl"}
MOST_SOURCES = 40
MOST_IN_CHAIN = 15
MOST_CHARACTERS = 120
MOST_LINES, MOST_LINES_BESIDE = 50, 60
BESIDE = {"tests", "tools", "studies", "examples", "bench"}  # production

# What each module may include besides itself.
ALLOWED = {
    "base": set(),
    "workloads": {"base"},
    "costdb": {"base", "workloads"},
    "schedule": {"base"},
    "emulator": {"base", "workloads", "costdb", "schedule"},
    "validation": {"base", "workloads", "costdb", "emulator", "partition", "search", "planner"},
    "partition": {"base", "workloads", "emulator"},
    "search": {"base", "schedule"},
    "loader": {"base", "workloads"},
    "planner": {"base", "workloads", "schedule", "emulator", "partition", "groups", "search", "loader", "frameworks"},
    "frameworks": {"base", "workloads"},
    "launch": {"base", "workloads", "emulator", "partition", "groups", "planner", "frameworks"},
    "emit": {"base", "workloads", "schedule", "emulator", "search", "loader", "groups", "planner", "frameworks",
             "launch"},
    "measured": {"base", "workloads", "costdb", "schedule", "emulator", "partition", "planner", "emit"},
    "service": {"base", "workloads", "schedule", "emulator", "partition", "search", "planner", "emit"},
    "groups": {"base", "workloads", "costdb", "schedule", "emulator", "partition"},
    "rl": {"base", "workloads", "capacity"},
    "traces": {"base", "costdb"},
    "capacity": {"base", "workloads", "costdb", "schedule", "emulator", "partition", "groups", "search", "planner",
                 "emit"},
}
# What users of the libraries may include besides those, which may be all of them.
USERS = {
    "apps": set(),
    "python": set(),
    "bench": {"apps"},
    "tests": {"apps", "bench", "tools"},
    "studies": {"apps", "bench", "tests"},
}
NOT_PRODUCTION = {"tests", "studies"}

# Where an Error may be caught whatever it is of: it is told there, or is of tests.
CATCHERS = {"apps", "service", "python", "bench", "tests", "studies"}
# Readers of files and options. They say where an error is, or that what is damaged or contradicts itself is left out.
READERS = {
    "base/files.cpp",  # the file whose gzip data is damaged
    "base/options.cpp",  # file and key of an option in a configuration
    "capacity/jobs/jobs.cpp",  # file and key of a number of tokens
    "capacity/study/cell.cpp",  # a cell of a study whose options contradict each other is left out, with the reason
    "capacity/study/recommend.cpp",  # the option that a key of the study was made of
    "capacity/study/rows.cpp",  # the same of a row
    "capacity/study/run.cpp",  # a cell's file that is damaged is judged again
    "capacity/study/study.cpp",  # file and key of a number of tokens
    "costdb/query.cpp",  # row and column of a question
    "costdb/store/store.cpp",  # the database that is damaged
    "emit/plan/finish_plan.cpp",  # of an older plan whose files are damaged nothing is kept
    "emulator/recipe/recipe_file.cpp",  # file and key of the recipe that is extended
    "launch/check.cpp",  # of a launch the file that is not at hand and may say what is missing
    "planner/options/emulate_options.cpp",  # options that contradict each other, for who tries several
    "schedule/problem_json.cpp",  # the file of a problem
    "validation/predict.cpp",  # a row of published runs that cannot be emulated is left out, with the reason
    "validation/read_runs.cpp",  # the same of a row that cannot be read
    "workloads/model_file.cpp",  # file and key of an architecture
}

# Names that are rows: of what, the rooms that may spell them, the file that does, and how a row begins.
NAMES = [
    ("policy", ("search/", "include/pipeweaver/search/"), "search/policies/policies.cpp", r'\{\{"([\w-]+)",'),
    ("policy", ("search/", "include/pipeweaver/search/"), "include/pipeweaver/search/policy_names.hpp",
     r'_policy = "([\w-]+)"'),
    ("partition", ("partition/", "include/pipeweaver/partition/"), "partition/partitioners.cpp",
     r'\.name = "([\w-]+)"'),
    ("recomputation", ("emulator/step/recompute.cpp",), "emulator/step/recompute.cpp", r'\.name = "([\w-]+:?)"'),
]
FRAMEWORKS = ("frameworks", "launch")
PLAIN = {"none", "half", "full", "offload", "encoders", "backbone", "modules", "megatron", "balanced", "uniform", "dip"}

# Finding -> reason. Of a circle the rooms, sorted, one blank between them; a part of it is tolerated too. Of chains,
# lines and functions the rule with a module or a top folder: "chain: planner", "lines: planner", "functions: planner".
# Of names the rule with the file.
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
        return next((pathlib.Path(os.path.normpath(one)) for one in candidates if (self.root / one).is_file()), None)


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
            allowed = USERS[source] | ALLOWED.keys() if source in USERS else ALLOWED[source]
            if used != source and used not in allowed:
                found.setdefault(f"{source} -> {used}", f"{path} includes {target}")
    return [f"edge {edge}: {why}" for edge, why in found.items() if edge not in tolerated]


def find_unused_headers(tree, tolerated):
    public = {path for path in tree.files if is_public(path)}
    used = {target for path, targets in tree.includes.items() for target in targets
            if target in public and module_of(path) not in (module_of(target), *NOT_PRODUCTION)}
    between = {path: [target for target in tree.includes[path] if target in public] for path in public}
    for header in list(used):
        used |= reachable(header, between)
    unused = [str(path) for path in sorted(public - used)]
    return [f"public header without a production user outside its module: {name}" for name in unused
            if name not in tolerated]


def find_lonely_headers(tree, tolerated):
    users = collections.Counter(target for path, targets in tree.includes.items() for target in set(targets)
                                if is_public(target) and module_of(path) not in NOT_PRODUCTION)
    return [f"public header with {users[path]} users in production: {path}" for path in tree.files
            if is_public(path) and users[path] < 2 and str(path) not in tolerated]


def longest_chains(tree):
    """Per module the longest row of files, from a .cpp on, of which each includes the next."""
    known = {}

    def chain(path):
        if path not in known:
            known[path] = [path]  # for a circle
            known[path] = [path, *max((chain(target) for target in tree.includes.get(path, [])), key=len, default=[])]
        return known[path]

    longest = {}
    for path in tree.files:
        if path.suffix == ".cpp":
            module = module_of(path)
            longest[module] = max(longest.get(module, []), chain(path), key=len)
    return longest


def describe_chain(chain):
    return f"chain of {len(chain)} files: {' -> '.join(map(str, chain))}"


def find_long_chains(tree, tolerated):
    return [describe_chain(chain) for module, chain in sorted(longest_chains(tree).items())
            if len(chain) > MOST_IN_CHAIN and f"chain: {module}" not in tolerated]


def find_wide_folders(tree, tolerated):
    widths = collections.Counter(str(path.parent) for path in tree.files)
    return [f"folder with {count} sources: {folder}" for folder, count in sorted(widths.items())
            if count > MOST_SOURCES and folder not in tolerated]


@functools.cache
def files_of(root, *extensions):
    """The files of the repository with one of these extensions, without what was built or installed in it."""
    found = (path.relative_to(root) for path in root.rglob("*") if path.suffix in extensions and path.is_file())
    return sorted(path for path in found if not any(part[0] == "." or part in ("build", "out") for part in path.parts))


def sources(tree):
    """All C++ and Python of the repository, each with the module or the top folder that tolerates it."""
    others = files_of(tree.root, ".py")
    return [*((path, module_of(path)) for path in tree.files), *((path, path.parts[0]) for path in others)]


@functools.cache
def text_of(path):
    return path.read_text()


def find_long_lines(tree, tolerated):
    return [f"line of {len(line)} characters: {path}:{number}" for path, owner in sources(tree)
            if f"lines: {owner}" not in tolerated
            for number, line in enumerate(text_of(tree.root / path).splitlines(), 1) if len(line) > MOST_CHARACTERS]


# A comment, a string, a character, or a directive of the preprocessor with the lines that continue it.
NO_CODE = re.compile(r'''
    //[^\n]* | /\*.*?\*/ | R"([^\s()\\]{0,16})\(.*?\)\1" | "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)+' |
    \#(?:[^\n]*\\\n)*[^\n]*
''', re.VERBOSE | re.DOTALL)

SCOPE = re.compile(r'''
    \s* (?:template\s*<.*>\s*)? (?:inline\s+)? (?:(?:namespace|class|struct|union|enum)\b | extern\s*$)
''', re.VERBOSE | re.DOTALL)
ACCESS = re.compile(r"\s*(?:(?:public|private|protected)\s*:\s*)+")

# What stands between the parameters, of which the parentheses alone are left, and the body.
AFTER_PARAMETERS = re.compile(r'''
    \(\) \s* (?:(?:const|noexcept|override|final|try|&&?|\(\))\s*)* (?:(?:->|:|requires\b).*)? $
''', re.VERBOSE | re.DOTALL)


def opens_function(head):
    """Whether the brace after this text opens the body of a function, where it stands in no function."""
    flat, depth = "", 0
    for character in re.sub(r"\boperator\s*(\(\)|[^\s\w(]+)", "operator_", head):
        depth -= character in ")}"
        flat += character if depth == 0 else ""
        depth += character in "({"
    return "=" not in flat and AFTER_PARAMETERS.search(flat) is not None


def opens_member(head):
    """Whether the brace after this text begins a member in a constructor's list: `A(int b) : a_` or `..., c_`."""
    return re.search(r"\)[^:{}]*(?<!:):(?!:)(?:.*,)?\s*[\w:<>]+\s*$", head, re.DOTALL) is not None


def cpp_functions(text):
    """(first line, last line) of each function with a body, from its template or return type to the closing brace."""
    digits = re.sub(r"(?<=[0-9A-Fa-f])'(?=[0-9A-Fa-f])", "", text)
    code = NO_CODE.sub(lambda found: "\n" * found[0].count("\n"), digits)
    found, open_, begin, parentheses = [], [], 0, 0
    for at in (one.start() for one in re.finditer(r"[{}();]", code)):
        kind = open_[-1][0] if open_ else "scope"
        if code[at] == "{":
            head = ACCESS.sub("", code[begin:at], count=1)
            if kind != "scope" or parentheses > 0 or opens_member(head):
                inner = "nested"
            elif SCOPE.match(head):
                inner = "scope"
            else:
                inner = "function" if opens_function(head) else "nested"
            open_.append((inner, at - len(head.lstrip())))
            begin = at + 1 if inner == "scope" else begin
        elif code[at] == "}" and open_:
            ended, first = open_.pop()
            if ended == "function":
                found.append((code.count("\n", 0, first) + 1, code.count("\n", 0, at) + 1))
            begin = begin if ended == "nested" else at + 1
        elif kind == "scope":
            parentheses += {"(": 1, ")": -1}.get(code[at], 0)
            begin = at + 1 if code[at] == ";" and parentheses == 0 else begin
    return found


def python_functions(text):
    return [(one.lineno, one.end_lineno) for one in ast.walk(ast.parse(text))
            if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))]


def is_table(path, first):
    """Whether the comment above a function says that it is one."""
    lines, above = path.read_text().splitlines(), first - 2
    while above >= 0 and lines[above].lstrip().startswith(("//", "#")):
        if "Table:" in lines[above]:
            return True
        above -= 1
    return False


@functools.cache
def long_functions(path, most):
    functions = python_functions if path.suffix == ".py" else cpp_functions
    return [(first, last) for first, last in functions(text_of(path))
            if last - first >= most and not is_table(path, first)]


def most_lines(path):
    return MOST_LINES_BESIDE if path.parts[0] in BESIDE else MOST_LINES


def find_long_functions(tree, tolerated):
    return [f"function of {last - first + 1} lines: {path}:{first}" for path, owner in sources(tree)
            if f"functions: {owner}" not in tolerated
            for first, last in long_functions(tree.root / path, most_lines(path))]


CATCH = re.compile(r"\bcatch\s*\(\s*(?:const\s+)?(?:::\s*)?(?:pipeweaver\s*::\s*)?Error\b")


def find_catches(tree, tolerated):
    found = []
    for path in tree.files:
        if module_of(path) in CATCHERS or str(path) in tolerated:
            continue
        code = code_of(tree.root / path)
        lines = [code.count("\n", 0, one.start()) + 1 for one in CATCH.finditer(code)]
        if str(path) not in READERS:
            found += [f"catches an Error, and is no reader: {path}:{line}" for line in lines]
        elif not lines:
            found.append(f"a reader that catches no Error any more: {path}")
    return found


def code_of(path):
    """A source without comments, texts and directives, of which the lines are left."""
    return NO_CODE.sub(lambda found: "\n" * found[0].count("\n"), text_of(path))


def top_namespaces(code):
    """(name, line, what is in it) of each namespace that is in no other; anonymous ones are of no name."""
    found, end = [], 0
    for opened in re.finditer(r"^(?:inline )?namespace\s*([\w:]*)\s*\{", code, re.MULTILINE):
        if opened.start() < end:
            continue
        depth, end = 1, opened.end()
        while depth > 0 and end < len(code):
            depth += {"{": 1, "}": -1}.get(code[end], 0)
            end += 1
        found.append((opened[1], code.count("\n", 0, opened.start()) + 1, code[opened.end() : end - 1]))
    return found


ONLY_DECLARED = re.compile(r"(?:\s*(?:struct|class|enum class)\s+\w+(?:\s*:\s*[\w:]+)?\s*;)*\s*")


def find_foreign_namespaces(tree, tolerated):
    found = []
    for path in tree.files:
        module = module_of(path)
        if module in NOT_PRODUCTION or str(path) in tolerated:
            continue
        code, own = code_of(tree.root / path), "pipeweaver" if module == "base" else f"pipeweaver::{module}"
        found += [f"namespace {name} in {path}:{line}, which is of {own}"
                  for name, line, within in top_namespaces(code)
                  if name not in ("", own) and not name.startswith(f"{own}::") and not ONLY_DECLARED.fullmatch(within)]
        if path.suffix == ".hpp":
            found += [f"a header opens a namespace: {path}:{code.count(chr(10), 0, one.start()) + 1}"
                      for one in re.finditer(r"^using namespace\b", code, re.MULTILINE)]
    return found


def row_names(tree):
    """Of each row of NAMES the names and who may spell them."""
    for kind, rooms, file, row in NAMES:
        if (tree.root / file).is_file():
            yield kind, rooms, set(re.findall(row, text_of(tree.root / file)))


def find_spelled_names(tree, tolerated):
    kinds = list(row_names(tree))
    found = []
    for path in tree.files:
        if module_of(path) in (*BESIDE, *FRAMEWORKS) or f"names: {path}" in tolerated:
            continue
        for number, line in enumerate(text_of(tree.root / path).splitlines(), 1):
            spelled = set(re.findall(r'"([\w-]+:?)"', line.partition("//")[0]))
            if not re.search(r"partition(?!::)|polic|recompute", re.sub(r'"[^"]*"', "", line), re.IGNORECASE):
                spelled -= PLAIN
            found += [f'{kind} "{name}" spelled outside its row: {path}:{number}' for kind, rooms, names in kinds
                      for name in sorted(spelled & names) if not str(path).startswith(rooms)]
    return found


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
    for page in files_of(tree.root, ".md"):
        words = re.sub(r"`[^`\n]*`", "", prose(tree.root / page))
        for link in re.findall(r"\]\(([^)\s]+)\)", words):
            if re.match(r"[a-z]+:", link):
                continue
            name, _, anchor = link.partition("#")
            target = (tree.root / page).parent / name if name else tree.root / page
            if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
                found.append(f"broken link in {page}: {link}")
    return [finding for finding in found if finding not in tolerated]


CHECKS = [find_circles, find_edges, find_unused_headers, find_lonely_headers, find_long_chains, find_wide_folders,
          find_long_lines, find_long_functions, find_foreign_namespaces, find_spelled_names, find_catches,
          find_broken_links]


def find_stale(tree, tolerated):
    """What is tolerated though nothing is found without it."""
    def count(entries):
        return sum(len(check(tree, entries)) for check in CHECKS)

    return [f"tolerated, but not there any more: {entry}" for entry in tolerated
            if count(tolerated.keys() - {entry}) == count(tolerated)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = pathlib.Path(__file__).resolve().parents[1]
    parser.add_argument("root", nargs="?", type=pathlib.Path, default=here,
                        help="top folder (default: this repository)")
    root = parser.parse_args().root.resolve()
    tree = Tree(root)
    findings = [finding for check in CHECKS for finding in check(tree, TOLERATED)]
    if root == here:
        findings += find_stale(tree, TOLERATED)
        print("longest", describe_chain(max(longest_chains(tree).values(), key=len)))
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
