"""The service's page in Chromium: it shows sessions, histograms and the last schedule, live, and loads nothing else."""

import time

import pytest
from browser_report_test import emulate, open_browser
from selenium.webdriver.common.by import By
from served import Server


@pytest.fixture
def server(pipeweaver):
    one = Server(pipeweaver.path)
    yield one
    one.kill()


@pytest.fixture
def page(server):
    driver = open_browser()
    driver.get(server.url)
    yield driver
    driver.quit()


def wait_for(page, what, seconds=60.0):
    end = time.monotonic() + seconds
    while not (found := what(page)):
        assert time.monotonic() < end, page.find_element(By.TAG_NAME, "body").text
        time.sleep(0.05)
    return found


def text_of(page, name):
    return page.find_element(By.ID, name).text


def test_the_page_follows_what_happens(server, page):
    wait_for(page, lambda p: text_of(p, "state") == "ready")
    assert "None is open" in page.find_element(By.TAG_NAME, "body").text
    server.open("first")
    server.open("second", seed=2)
    wait_for(page, lambda p: text_of(p, "sessions") == "2")
    for step in range(3):
        assert server.submit(step, seed=step, name="first")[0] == 202
        assert server.ask("GET", f"/v1/sessions/first/steps/{step}")[0] == 200
    wait_for(page, lambda p: text_of(p, "planned") == "3")
    wait_for(page, lambda p: "first, step 2, replica 0" in text_of(p, "title"))
    tasks = server.ask("GET", "/v1/sessions/first/steps/2/replicas/0/problem")[1]["tasks"]
    assert len(page.find_elements(By.CSS_SELECTOR, "#picture rect title")) == len(tasks)
    rows = [row.text for row in page.find_elements(By.CSS_SELECTOR, "#rows tr")]
    assert "dip-vlm-s" in rows[0] and "search" in rows[0]
    assert page.find_elements(By.CSS_SELECTOR, "#seconds rect") and page.find_elements(By.CSS_SELECTOR, "#gaps rect")

    assert server.submit(0, name="second")[0] == 202
    server.ask("GET", "/v1/sessions/second/steps/0")
    page.find_elements(By.CSS_SELECTOR, "#rows tr")[1].click()
    wait_for(page, lambda p: "second, step 0" in text_of(p, "title"))
    server.kill()
    wait_for(page, lambda p: text_of(p, "state") == "no answer")


def test_nothing_is_loaded_from_elsewhere_and_nothing_is_wrong(server, page):
    server.open()
    wait_for(page, lambda p: text_of(p, "sessions") == "1")
    loaded = page.execute_script("return performance.getEntriesByType('resource').map(one => one.name)")
    assert loaded and all(name.startswith(server.url) for name in loaded)
    assert [entry for entry in page.get_log("browser") if "favicon" not in entry["message"]] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_stand_out_from_their_ground_in_both_schemes(server, page, scheme):
    emulate(page, 1200, scheme)
    page.refresh()
    wait_for(page, lambda p: text_of(p, "state") == "ready")
    script = ("const s = getComputedStyle(arguments[0]); "
              "return [s.color, getComputedStyle(document.body).backgroundColor]")

    def light(color):
        parts = [int(one) / 255 for one in color[color.index("(") + 1 : -1].split(",")[:3]]
        linear = [one / 12.92 if one <= 0.03928 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for selector in ("h1", ".soft", "th"):
        ink, ground = (light(one) for one in page.execute_script(script, page.find_element(By.CSS_SELECTOR, selector)))
        assert (max(ink, ground) + 0.05) / (min(ink, ground) + 0.05) > 4.5, selector
    assert (light(page.execute_script(script, page.find_element(By.TAG_NAME, "h1"))[1]) < 0.2) == (scheme == "dark")


def test_narrow_screens_need_no_sideways_scrolling(server, page):
    server.open()
    emulate(page, 420)
    page.refresh()
    wait_for(page, lambda p: text_of(p, "sessions") == "1")
    assert page.execute_script("return document.documentElement.scrollWidth <= window.innerWidth + 1")
