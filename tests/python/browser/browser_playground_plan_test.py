"""The playground's Plan and Check: the command line as WebAssembly answers in the page, with the program's numbers.

Building it takes minutes, so that what needs it is run in the full form alone, or where PIPEWEAVER_PLAYGROUND names a
folder that tools/build_playground.py --plan has made."""

import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from absent import left_out
from browser_report_test import open_browser
from browser_ui_test import PLAN, ask, click, rows, text_of, wait_for, write
from checkout import ROOT
from given_away import given_away

sys.path.insert(0, str(ROOT / "tools"))
import build_playground  # noqa: E402

LONG = {"microbatches": "8", "max-rounds": "", "sample": ""}


def opened(folder):
    with given_away(folder) as address:
        driver = open_browser()
        driver.get(f"{address}plan.html")
        yield driver
        driver.quit()


@pytest.fixture(scope="module")
def empty_page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unbuilt")
    build_playground.lay_out(folder)
    build_playground.lay_out_plan(folder)
    yield from opened(folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    if built := os.environ.get("PIPEWEAVER_PLAYGROUND"):
        return pathlib.Path(built)
    if shutil.which("em++") is None:
        left_out("em++ is not there")
    place = tmp_path_factory.mktemp("playground")
    build_playground.build(place, os.cpu_count())
    build_playground.build_planner(place, os.cpu_count())
    return place


@pytest.fixture(scope="module")
def page(folder):
    yield from opened(folder)


@pytest.fixture(scope="module")
def loaded(page):
    wait_for(lambda: page.execute_script("return document.querySelector('#plan-model') !== null"))
    return page


def test_a_page_without_its_planner_says_so(empty_page):
    assert wait_for(lambda: text_of(empty_page, "gone")) == "the planner cannot be loaded here"


def test_the_page_leaves_out_what_is_left_to_the_program(empty_page):
    tabs = "return [...document.querySelectorAll('[role=tab]')].map(tab => tab.dataset.tab)"
    assert empty_page.execute_script(tabs) == ["plan", "check", "play"]
    assert empty_page.execute_script("return document.getElementById('panel-rent')") is None
    assert "small questions" in empty_page.execute_script("return document.querySelector('header').textContent")


def test_all_that_the_planner_is_made_of_is_there():
    """A module that one of them came to use, or a file that one came to have in it, is seen without building."""
    embedded = set()
    for module in build_playground.MODULES:
        sources = build_playground.module_sources(module)
        assert sources, module
        assert set(re.findall(r"pipeweaver::(\w+)", (ROOT / module / "CMakeLists.txt").read_text())) <= {
            *build_playground.MODULES}, module
        for source in sources:
            embedded |= {line.split()[3].partition("[")[0] for line in (ROOT / source).read_text().splitlines()
                         if line.startswith("extern const char ")}
    assert embedded == set(build_playground.EMBEDDED)
    for source in [*build_playground.COMMANDS, *build_playground.STAND_INS, *build_playground.STOOD_IN_FOR,
                   *build_playground.EMBEDDED.values()]:
        assert (ROOT / source).is_file(), source


@pytest.mark.full_form
def test_a_step_is_planned_to_the_digit(loaded, pipeweaver, tmp_path):
    ask(loaded, "plan", PLAN)
    command = text_of(loaded, "plan-command").split()
    done = subprocess.run([pipeweaver.path, *command[1:], "--json"], cwd=tmp_path, capture_output=True, text=True,
                          timeout=600, check=True)
    told = json.loads(done.stdout)
    shown = json.loads(loaded.execute_script("return document.querySelector('#plan-out pre').textContent"))
    assert shown["headline"] == told["headline"]
    assert shown["ladder"] == told["ladder"]
    assert len(rows(loaded, "plan")) == len(told["ladder"])


@pytest.mark.full_form
def test_what_is_wrong_stands_beside_its_field(loaded):
    ask(loaded, "plan", {"model": "no-such-model"})
    assert text_of(loaded, "plan-model-wrong").startswith("unknown model 'no-such-model'")
    write(loaded, "plan", {"model": "dip-vlm-s"})


@pytest.mark.full_form
def test_a_launch_is_checked(loaded, pipeweaver, tmp_path):
    script = (ROOT / "examples/launch.sh").read_text()
    (tmp_path / "launch.sh").write_text(script)
    ask(loaded, "check", {"script": script})
    shown = json.loads(loaded.execute_script("return document.querySelector('#check-out pre').textContent"))
    done = subprocess.run([pipeweaver.path, "check", "--json", "--cluster", "h100-sxm:64", "launch.sh"], cwd=tmp_path,
                          capture_output=True, text=True, timeout=600)
    assert shown == json.loads(done.stdout)


@pytest.mark.full_form
def test_a_search_is_cancelled_within_half_a_second(loaded):
    click(loaded, "#tab-plan")
    write(loaded, "plan", {name: value for name, value in LONG.items() if value})
    for name in ("max-rounds", "sample"):
        write(loaded, "plan", {name: ""})
    click(loaded, "#plan-form .main")
    wait_for(lambda: loaded.execute_script(
        "return document.querySelector('#plan-out progress')?.hasAttribute('value')"))
    took = loaded.execute_async_script(
        "const end = arguments[0], begun = performance.now(); document.querySelector('#plan-out .cancel').click();"
        "const look = () => /cancelled after/.test(document.getElementById('plan-out').textContent) ?"
        " end(performance.now() - begun) : setTimeout(look, 5); look()")
    assert took < 500


@pytest.mark.full_form
def test_a_first_answer_needs_less_than_4_mb(folder):
    """Compressed, as a server gives it: the page, its scripts, the planner, the largest of the tables."""
    files = [path for path in folder.iterdir() if path.is_file() and not path.name.startswith(("search.", "index."))]
    table = max(path.stat().st_size for path in (folder / "costdb").glob("*.sqlite.gz"))
    assert sum(len(gzip.compress(path.read_bytes())) for path in files) + table < 4_000_000


@pytest.mark.full_form
def test_nothing_leaves_the_machine(loaded):
    names = loaded.execute_script("return performance.getEntriesByType('resource').map(entry => entry.name)")
    home = loaded.current_url.split("/plan.html")[0]
    assert [name for name in names if not name.startswith((home, "blob:"))] == []
