"""Builds the playground, pages without a server: Play with pipeweaver's own search, and with --plan the forms of
*Plan* and *Check* with its planner, compiled to WebAssembly. A device's costs are fetched when a question needs them.

    python3 tools/build_playground.py [--out out/playground] [--plan]

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
SOURCES = ["tools/playground/main.cpp", "tools/playground/stand_ins/search.cpp", "service/ui/play_search.cpp",
           "schedule/fixed_order.cpp", "schedule/graph.cpp", "schedule/problem.cpp", "schedule/ready_queue.cpp",
           "schedule/replay.cpp", "schedule/solution.cpp"]
# Modules of the planner; of base and costdb all but what stand_ins/planner.cpp stands in for.
MODULES = ["base", "workloads", "costdb", "schedule", "search", "emulator", "partition", "loader", "planner", "groups",
           "frameworks", "launch", "emit"]
STOOD_IN_FOR = {"base/byte_reader.cpp", "base/gzip.cpp", "base/sha256.cpp", "base/threads.cpp", "base/yaml.cpp",
                "costdb/embedded.cpp"}
COMMANDS = ["tools/playground/planner.cpp", "service/ui/forms.cpp",
            *(f"apps/{name}.cpp" for name in (
                "check", "command_line", "completion/words", "console", "emulate", "interrupt", "manual", "next_steps",
                "output_kind", "plan", "programs", "progress_line", "ui/forms"))]
STAND_INS = ["tools/playground/stand_ins/planner.cpp", "tools/playground/stand_ins/sqlite/sqlite.cpp"]
EMBEDDED = {  # symbol: file
    **{f"pipeweaver_workloads_{name}": f"workloads/data/{name}.json"
       for name in ("catalogue", "clusters", "datasets", "networks", "public_models")},
    "pipeweaver_frameworks_bridge": "frameworks/bridge/recipes.txt",
    "pipeweaver_frameworks_titan": "frameworks/titan/configurations.txt",
    "pipeweaver_frameworks_titan_toml": "frameworks/titan/train_configs.txt",
    "pipeweaver_emit_report_template": "emit/report/report_template.html",
    "pipeweaver_emit_report_style": "emit/report/report_style.css"}
SCRIPTS = ["chart.js", "play.js", "play_page.js"]
OPTIMIZED = "-O2"
FLAGS = ["-std=c++20", OPTIMIZED, "-fexceptions", "-DFMT_HEADER_ONLY", "-Wno-defaulted-function-deleted"]
OLDER = ["-include", "tools/playground/stand_ins/older_library.hpp", "-w"]  # of a libc++ that lacks parts of C++20
LINKED_PLANNER = ["-sMODULARIZE=1", "-sEXPORT_NAME=PipeweaverPlanner", "-sEXPORTED_RUNTIME_METHODS=callMain,FS",
                  "-sINVOKE_RUN=0", "-sEXIT_RUNTIME=0", "-sALLOW_MEMORY_GROWTH=1", "-sTOTAL_STACK=8MB",
                  "-sENVIRONMENT=web,worker", "-sFORCE_FILESYSTEM=1"]
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
    for name in ("boost", "fmt", "nlohmann", "rapidjson", "CLI"):
        link = folder / name
        if not link.is_symlink():
            link.symlink_to(pathlib.Path("/usr/include") / name)
    return folder


def compiled(source, include):
    made = OBJECTS / (source.replace("/", "_") + ".o")
    run("em++", *FLAGS, "-I", ROOT / "include", "-I", ROOT, "-isystem", include, "-c", ROOT / source, "-o", made)
    return made


def module_sources(module):
    listed = re.search(r"SOURCES(.*?)(?:PUBLIC|PRIVATE)", (ROOT / module / "CMakeLists.txt").read_text(), re.DOTALL)
    sources = [f"{module}/{word}" for word in listed.group(1).split() if word.endswith(".cpp")]
    return [source for source in sources if source not in STOOD_IN_FOR]


def united(name, sources):
    """One source of them all, as CMake's unity build has it."""
    source = OBJECTS / f"{name}.cpp"
    source.write_text("".join(f'#include "{ROOT / one}"\n' for one in sources))
    return source


def compiled_planner(source, include):
    made = OBJECTS / f"planner_{source.parent.name}_{source.stem}.o"
    devices = " ".join(sorted(path.name.split(".")[0] for path in (ROOT / "costdb/data").glob("*.sqlite.gz")))
    version = re.search(r"project\(pipeweaver VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
    run("em++", *FLAGS, *OLDER, f'-DPIPEWEAVER_DEVICES="{devices}"', f'-DPIPEWEAVER_VERSION="{version}"',
        "-I", ROOT / "include", "-I", ROOT, "-I", ROOT / "tools/playground/stand_ins/sqlite", "-isystem", include,
        "-c", source, "-o", made)
    return made


def embedded():
    """The data files as an object, between the symbols that the modules name."""
    source, made = OBJECTS / "embedded.S", OBJECTS / "embedded.o"
    source.write_text("".join(
        f'        .section .rodata.{name},"",@\n        .globl {name}\n        .globl {name}_end\n'
        f'        .type {name},@object\n{name}:\n        .incbin "{ROOT / file}"\n        .size {name}, .-{name}\n'
        f'        .type {name}_end,@object\n{name}_end:\n        .byte 0\n        .size {name}_end, 1\n'
        for name, file in EMBEDDED.items()))
    run("em++", "-c", source, "-o", made)
    return made


def plan_page():
    """The page of `pipeweaver ui` whose server is in it, without what is left to the program."""
    text = (UI / "page.html").read_text()
    text = re.sub(r'\n *<button role="tab"[^\n]*data-tab="rent"[^\n]*', "", text)
    text = re.sub(r'\n *<section role="tabpanel" id="panel-rent"[^\n]*', "", text)
    text = text.replace("</header>", '  <span class="soft">Runs in this page: small questions. Large plans need the '
                        "program.</span>\n</header>", 1)
    scripts = "".join(f'<script src="{name}"></script>\n' for name in ("play_search.js", "server.js"))
    return text.replace('src="/ui/', 'src="').replace("<script", scripts + "<script", 1)


def build_planner(out, workers):
    include = headers()
    units = [*(united(module, module_sources(module)) for module in MODULES), united("commands", COMMANDS),
             *(ROOT / source for source in STAND_INS)]
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        objects = list(pool.map(lambda unit: compiled_planner(unit, include), units))
    lay_out_plan(out)
    run("em++", OPTIMIZED, "-fexceptions", *objects, embedded(), "-o", out / "planner.js", *LINKED_PLANNER)


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
            + "".join(f'<script src="{name}"></script>\n' for name in [*SCRIPTS, "play_search.js", "static.js"])
            + "</body>\n</html>\n")


def lay_out(out):
    """The page and its scripts, without the search."""
    out.mkdir(parents=True, exist_ok=True)
    for name in SCRIPTS:
        shutil.copy(UI / name, out / name)
    for name in ("play_search.js", "static.js", "worker.js"):
        shutil.copy(ROOT / "tools/playground" / name, out / name)
    (out / "index.html").write_text(page())


def lay_out_plan(out):
    """The page of Plan and Check, beside what lay_out() makes, without the planner."""
    shutil.copy(UI / "app.js", out / "app.js")
    for name in ("server.js", "planner_worker.js"):
        shutil.copy(ROOT / "tools/playground" / name, out / name)
    shutil.copytree(ROOT / "costdb/data", out / "costdb", dirs_exist_ok=True)
    (out / "plan.html").write_text(plan_page())


def build(out, workers):
    include = headers()
    searches = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "search").rglob("*.cpp"))
    sources = SOURCES + [source for source in searches if source not in LEFT_OUT]
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        objects = list(pool.map(lambda source: compiled(source, include), sources))
    lay_out(out)
    run("em++", OPTIMIZED, "-fexceptions", *objects, "-o", out / "search.js", *LINKED)


def main():
    parser = argparse.ArgumentParser(description="builds the playground, a page without a server")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "out/playground")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--plan", action="store_true", help="with Plan and Check, some ten minutes of a core")
    options = parser.parse_args()
    if shutil.which("em++") is None:
        sys.exit("build_playground: em++ is not there; Debian has it: apt-get install emscripten")
    build(options.out.resolve(), options.workers)
    if options.plan:
        build_planner(options.out.resolve(), options.workers)
    print(f"{options.out}/index.html")


if __name__ == "__main__":
    main()
