"""Builds the playground, a page without a server: Play with pipeweaver's own search, compiled to WebAssembly.

    python3 tools/build_playground.py [--out out/playground]

Needs Emscripten (Debian: apt-get install emscripten) and the headers of Boost, fmt and nlohmann_json. The folder holds
all that the page loads; any server of files can give it away, `python3 -m http.server -d out/playground` for one.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
UI = ROOT / "service/ui"
OBJECTS = ROOT / "build/playground"
# Emscripten's libc++ compares no durations with <=>, which only the search for less memory does.
LEFT_OUT = {"search/improve/lower_memory.cpp"}
SOURCES = ["tools/playground/main.cpp", "tools/playground/stand_ins.cpp", "service/ui/play_search.cpp",
           "schedule/fixed_order.cpp", "schedule/graph.cpp", "schedule/problem.cpp", "schedule/ready_queue.cpp",
           "schedule/replay.cpp", "schedule/solution.cpp"]
SCRIPTS = ["chart.js", "play.js", "play_page.js"]
FLAGS = ["-std=c++20", "-O2", "-fexceptions", "-DFMT_HEADER_ONLY", "-Wno-defaulted-function-deleted"]
LINKED = ["-sMODULARIZE=1", "-sEXPORT_NAME=PipeweaverSearch", "-sEXPORTED_FUNCTIONS=_pipeweaver_search",
          "-sEXPORTED_RUNTIME_METHODS=ccall", "-sALLOW_MEMORY_GROWTH=1", "-sENVIRONMENT=web,worker,node",
          "-sFILESYSTEM=0"]


def run(*words):
    # Debian's Emscripten brings its system libraries built, and looks for its JavaScript where Debian puts it.
    environment = {**os.environ, "EM_FROZEN_CACHE": "0", "NODE_PATH": "/usr/share/nodejs"}
    done = subprocess.run([*map(str, words)], cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"build_playground: {words[0]} ended with {done.returncode}:\n{done.stderr[-2000:]}")


def headers():
    """A folder with the libraries' headers alone: those of the system itself are not WebAssembly's."""
    folder = OBJECTS / "include"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("boost", "fmt", "nlohmann"):
        link = folder / name
        if not link.is_symlink():
            link.symlink_to(pathlib.Path("/usr/include") / name)
    return folder


def compiled(source, include):
    made = OBJECTS / (source.replace("/", "_") + ".o")
    run("em++", *FLAGS, "-I", ROOT / "include", "-I", ROOT, "-isystem", include, "-c", ROOT / source, "-o", made)
    return made


def page():
    """The page of `pipeweaver ui` with Play alone."""
    text = (UI / "page.html").read_text()
    style = re.search(r"<style>.*?</style>", text, re.DOTALL).group(0)
    return ('<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>pipeweaver: play</title>\n'
            f'<link rel="icon" href="data:,">\n{style}\n</head>\n<body>\n'
            '<header><h1>pipeweaver</h1> <p class="soft">Schedules to play with. Large plans, models and costs need '
            'the program: <code>pipeweaver plan</code>.</p></header>\n'
            '<main><section id="panel-play"><div class="two"></div></section></main>\n'
            + "".join(f'<script src="{name}"></script>\n' for name in [*SCRIPTS, "static.js"])
            + "</body>\n</html>\n")


def lay_out(out):
    """The page and its scripts, without the search."""
    out.mkdir(parents=True, exist_ok=True)
    for name in SCRIPTS:
        shutil.copy(UI / name, out / name)
    for name in ("static.js", "worker.js"):
        shutil.copy(ROOT / "tools/playground" / name, out / name)
    (out / "index.html").write_text(page())


def build(out, workers):
    include = headers()
    searches = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "search").rglob("*.cpp"))
    sources = SOURCES + [source for source in searches if source not in LEFT_OUT]
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        objects = list(pool.map(lambda source: compiled(source, include), sources))
    lay_out(out)
    run("em++", "-O2", "-fexceptions", *objects, "-o", out / "search.js", *LINKED)


def main():
    parser = argparse.ArgumentParser(description="builds the playground, a page without a server")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "out/playground")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    options = parser.parse_args()
    if shutil.which("em++") is None:
        sys.exit("build_playground: em++ is not there; Debian has it: apt-get install emscripten")
    build(options.out.resolve(), options.workers)
    print(f"{options.out}/index.html")


if __name__ == "__main__":
    main()
