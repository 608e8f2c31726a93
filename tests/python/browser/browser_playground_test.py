"""The playground's page: Play without a server. Its search is WebAssembly, which Emscripten builds; where that was not
done the page says so and tries orders itself."""

import sys

import pytest
from browser_report_test import open_browser
from browser_service_test import wait_for
from checkout import ROOT
from given_away import given_away

sys.path.insert(0, str(ROOT / "tools"))
import build_playground  # noqa: E402


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The page, without the search."""
    place = tmp_path_factory.mktemp("playground")
    build_playground.lay_out(place)
    return place


@pytest.fixture(scope="module")
def page(folder):
    with given_away(folder) as address:
        driver = open_browser()
        driver.get(address)
        yield driver
        driver.quit()


def facts(page, name):
    return page.execute_script(f"return document.getElementById('play-{name}-facts').textContent")


def test_three_schedules_are_drawn_at_once(page):
    wait_for(page, lambda page: facts(page, "sought"))
    # 4 ranks, 16 equal microbatches of 10 + 20 ms: (16 + 3) * 30.
    assert facts(page, "known").startswith("570.0 ms, bubble 15.8 %")
    assert facts(page, "gpipe").startswith("570.0 ms")
    assert facts(page, "sought").endswith("0.0 % above the bound of 570.0 ms")


def test_a_page_without_its_search_says_so_and_tries_itself(page):
    note = wait_for(page, lambda page: "cannot" in (text := page.execute_script(
        "return document.getElementById('play-note').textContent")) and text)
    assert note == "the search cannot be loaded here"
    page.execute_script("[...document.querySelectorAll('button')]"
                        ".find(one => one.textContent.startsWith('Why unequal')).click()")
    known, sought = (float(facts(page, name).split(" ms")[0]) for name in ("known", "sought"))
    assert sought <= known


def test_all_that_is_built_is_there():
    for source in [*build_playground.SOURCES, *build_playground.LEFT_OUT]:
        assert (ROOT / source).is_file(), source
