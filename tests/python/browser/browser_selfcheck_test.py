"""selfcheck.html in Chromium: all that was found is there, needs no script, and nothing is loaded from outside."""

import pytest
from browser_report_test import open_browser
from pipeweaver.selfcheck import page, show
from selenium.webdriver.common.by import By
from selfcheck_document import measured_document


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    place = tmp_path_factory.mktemp("selfcheck") / "selfcheck.html"
    document = {**measured_document(), "beyond": ["a <step> is off"], "verdict": "beyond"}
    place.write_text(page.page(document))
    driver = open_browser(scripts=False)
    driver.get(place.as_uri())
    yield driver, document
    driver.quit()


def test_every_row_of_the_text_is_on_the_page(shown):
    driver, document = shown
    cells = [cell.text for cell in driver.find_elements(By.CSS_SELECTOR, "td, th")]
    for _, header, rows in show.tables(document):
        for cell in [*header, *(cell for row in rows for cell in row)]:
            assert cell.strip() in cells


def test_the_verdict_and_what_is_beyond_come_first(shown):
    driver, _ = shown
    assert driver.find_element(By.ID, "verdict").text == "Something is beyond the limits."
    assert [item.text for item in driver.find_elements(By.TAG_NAME, "li")] == [
        "a <step> is off", "ranks: failed x", "ranks: 4, a, b, c ..."]


def test_bars_are_as_long_as_the_steps(shown):
    driver, document = shown
    measured = driver.find_elements(By.CSS_SELECTOR, ".bar.measured")
    predicted = driver.find_elements(By.CSS_SELECTOR, ".bar.predicted")
    assert len(measured) == len(predicted) == len(document["steps"])
    one = document["steps"][0]
    ratio = predicted[0].size["width"] / measured[0].size["width"]
    assert ratio == pytest.approx(one["shipped"]["seconds"] / one["seconds"], rel=0.02)


def test_the_page_needs_nothing_beside_it(shown):
    driver, _ = shown
    assert driver.get_log("browser") == []
    assert not driver.find_elements(By.CSS_SELECTOR, "script, link, img, iframe")
    assert driver.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
