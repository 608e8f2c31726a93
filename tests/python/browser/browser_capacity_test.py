"""The page of a capacity study in Chromium: its plots show every row, it fits any window, and it loads nothing."""

import csv
import json

import pytest
from browser_report_test import boxes, emulate, open_browser
from selenium.webdriver.common.by import By

STUDY = {
    "format": "pipeweaver-study/1", "name": "what to rent", "tokens": "100B",
    "plan": {"dataset": "vlm-mix", "max-rounds": 1},
    "axes": {"model": "dip-vlm-s", "cluster": ["h100-sxm", "h200-sxm"], "gpus": [16, 32, 64], "global-batch": 64},
    "layouts": {"tp": [4, 8]}, "prices": {"h100-sxm": 2.5, "h200-sxm": 3.2}, "planned": 1,
}


@pytest.fixture(scope="module")
def studied(pipeweaver, tmp_path_factory):
    folder = tmp_path_factory.mktemp("capacity")
    (folder / "study.json").write_text(json.dumps(STUDY))
    pipeweaver("capacity", folder / "study.json", "--out", folder / "out", "--quiet")
    return folder / "out"


@pytest.fixture(scope="module")
def rows(studied):
    with open(studied / "rows.csv", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def browser(studied):
    driver = open_browser()
    driver.get((studied / "report.html").as_uri())
    yield driver
    driver.quit()


def test_every_row_is_a_dot_and_the_sooner_it_is_the_further_to_the_left(browser, rows):
    emulate(browser, 1440)
    assert len(rows) == 6
    dots = boxes(browser, "#pareto-plot .dot")
    assert len(dots) == len(rows)
    (left, top, width, height), = boxes(browser, "#pareto-plot svg")
    assert width > 1000 and height == 300
    by_days = sorted(range(len(rows)), key=lambda i: float(rows[i]["days"]))
    by_usd = sorted(range(len(rows)), key=lambda i: -float(rows[i]["usd"]))
    xs, ys = [x + w / 2 for x, _, w, _ in dots], [y + h / 2 for _, y, _, h in dots]
    assert all(left <= x <= left + width for x in xs) and all(top <= y <= top + height for y in ys)
    assert [xs[i] for i in by_days] == sorted(xs)
    assert [ys[i] for i in by_usd] == sorted(ys)
    numbers = {one.text for one in browser.find_elements(By.CSS_SELECTOR, "#pareto-plot .place")}
    assert numbers == {row["place"] for row in rows if row["front"] == "yes"}


def test_the_table_and_the_commands_are_those_of_the_files(browser, rows):
    emulate(browser, 1440)
    for row, line in zip(rows, browser.find_elements(By.CSS_SELECTOR, "table.rows tbody tr")):
        cells = {one.get_attribute("data-column"): one.text for one in line.find_elements(By.TAG_NAME, "td")}
        assert cells["row"] == row["place"]
        assert cells["GPUs"] == row["gpus"]
        assert float(cells["days"]) == pytest.approx(float(row["days"]), abs=0.06)
        assert float(cells["USD"].replace(",", "")) == pytest.approx(float(row["usd"]), abs=0.6)
    shown = {one.text for one in browser.find_elements(By.CSS_SELECTOR, "#run > pre.command")}
    assert shown == {row["command"] for row in rows if row["answer"]}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 800, 1440])
def test_the_page_fits_the_window(browser, width, scheme):
    emulate(browser, width, scheme)
    browser.execute_script("document.querySelectorAll('details').forEach(fold => { fold.open = true; })")
    try:
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        for left, _, wide, _ in boxes(browser, "figure svg"):
            assert left >= 0 and 100 < wide and left + wide <= width
    finally:
        browser.refresh()


def test_nothing_is_loaded_from_outside_and_nothing_fails(browser):
    browser.refresh()
    assert browser.execute_script("return performance.getEntriesByType('resource').map(entry => entry.name)") == []
    assert browser.get_log("browser") == []
