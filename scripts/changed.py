"""Which C++ files changed of late: in the work tree, then in the last commits, the latest first.

    changed.py [--commits N]     prints the modules that they belong to, a line each; a test belongs to what it tests
"""

import argparse
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[1]
COMMITS = 10


def git(root, *arguments):
    return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True).stdout.splitlines()


def changed(root=ROOT, commits=COMMITS):
    """Those that are still there, but for the bindings, which need Python's headers, and the playground's, which need
    Emscripten's; neither are unity sources."""
    names = [*git(root, "diff", "--name-only", "HEAD"), *git(root, "ls-files", "--others", "--exclude-standard"),
             *git(root, "log", f"--max-count={commits}", "--diff-merges=first-parent", "--format=", "--name-only")]
    paths = [root / name for name in dict.fromkeys(names)
             if name.endswith((".cpp", ".hpp")) and not name.startswith(("python/", "tools/playground/"))]
    return [path for path in paths if path.exists()]


def module_of(path, root=ROOT):
    """`planner` of planner/plan.cpp, include/pipeweaver/planner/plan.hpp and tests/planner/plan_test.cpp."""
    parts = path.relative_to(root).parts
    return next(part for part in parts if part not in {"include", "pipeweaver", "tests"})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commits", type=int, default=COMMITS)
    asked = parser.parse_args()
    print("\n".join(dict.fromkeys(module_of(path) for path in changed(ROOT, asked.commits))))


if __name__ == "__main__":
    main()
