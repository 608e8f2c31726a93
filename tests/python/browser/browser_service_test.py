"""The service's page in Chromium: it shows what happens as it happens, in words that can be read, and loads nothing
else."""

import re
import time

import pytest
from browser_report_test import emulate, open_browser
from checkout import ROOT
from selenium.webdriver.common.by import By
from served import free_port, samples


@pytest.fixture
def server(begin):
    return begin()


@pytest.fixture(scope="module")
def chromium():
    driver = open_browser()
    yield driver
    driver.quit()


@pytest.fixture
def browser(chromium):
    """As it was begun: each test's server is an origin of its own."""
    chromium.get("about:blank")
    chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    chromium.get_log("browser")
    return chromium


@pytest.fixture
def page(server, browser):
    browser.get(server.url)
    return browser


def wait_for(page, what, seconds=200.0):
    end = time.monotonic() + seconds
    while not (found := what(page)):
        assert time.monotonic() < end, page.find_element(By.TAG_NAME, "body").text
        time.sleep(0.05)
    return found


def text_of(page, name):
    return page.find_element(By.ID, name).text


def rows(page, table):
    """Each row's cells; at once, since the page makes them anew."""
    return page.execute_script("return [...document.querySelectorAll(`#${arguments[0]} tbody tr`)]"
                               ".map(row => [...row.cells].map(cell => cell.textContent))", table)


def pictures(page):
    return page.execute_script("return [...document.querySelectorAll('.picture h3')].map(one => one.textContent)")


def count(page, selector):
    return page.execute_script("return document.querySelectorAll(arguments[0]).length", selector)


def plan(server, step, **more):
    name = more.get("name", "job")
    assert server.submit(step, seed=step, **more)[0] == 202
    assert server.ask("GET", f"/v1/sessions/{name}/steps/{step}")[0] == 200


# Of so many that a device's memory is short of room for all that is to be kept.
LONG = [{"id": f"s{k}", "text_tokens": 3500, "images": [{"width": 896, "height": 896}] * 4} for k in range(16)]


def open_tight(server, more):
    config = {"model": "dip-vlm-m", "cluster": "h100-sxm:16", "tp": 4, "pp": 4, **more}
    assert server.ask("PUT", "/v1/sessions/tight", {"config": config, "sample": LONG})[0] == 200


def test_the_page_follows_what_happens(server, page):
    wait_for(page, lambda p: text_of(p, "state") == "live")
    assert "None is open" in page.find_element(By.TAG_NAME, "body").text
    page.execute_script("window.same = true")
    server.open("first")
    server.open("second", seed=2)
    wait_for(page, lambda p: text_of(p, "sessions") == "2")
    for step in range(3):
        plan(server, step, name="first")
    wait_for(page, lambda p: text_of(p, "planned") == "3")
    wait_for(page, lambda p: pictures(p) == ["first, step 2, replica 0"])
    below = "/v1/sessions/first/steps/2/replicas/0/"
    problem, solution = (server.ask("GET", below + part)[1] for part in ("problem", "solution"))
    longer = sum(pair["modes"][mode]["backward_ns"] > pair["modes"][0]["backward_ns"]
                 for pair, mode in zip(problem["pairs"], solution["mode"]))
    assert count(page, ".picture rect title") == len(problem["tasks"]) + longer
    shown = rows(page, "rows")
    assert shown[0][:5] == ["first", "dip-vlm-s", "h100-sxm:16", "1 of 1", "0"] and shown[0][5] == "3"
    assert "step 2" in shown[0][8] and shown[1][8] == ""
    for plot in ("seconds", "gaps"):
        assert count(page, f"#{plot} .dot") == 3

    plan(server, 0, name="second")
    wait_for(page, lambda p: pictures(p) == ["first, step 2, replica 0", "second, step 0, replica 0"])
    assert server.ask("DELETE", "/v1/sessions/first")[0] == 204
    wait_for(page, lambda p: pictures(p) == ["second, step 0, replica 0"])
    assert page.execute_script("return window.same")  # it was not loaded again


def test_what_is_recomputed_is_drawn_at_the_beginning_of_its_backward(server, page):
    step = "/v1/sessions/tight/steps/1"
    open_tight(server, {"max-rounds": 1})
    assert server.ask("PUT", step, {"samples": LONG, "deadline_ms": 60_000})[0] == 202
    assert server.ask("GET", step)[0] == 200
    problem, solution = (server.ask("GET", f"{step}/replicas/0/{part}")[1] for part in ("problem", "solution"))
    longer = {pair["backward"]: (pair["modes"][mode]["backward_ns"] - pair["modes"][0]["backward_ns"])
              for pair, mode in zip(problem["pairs"], solution["mode"]) if mode > 0}
    assert longer  # memory is short
    wait_for(page, lambda p: count(p, ".picture rect.R") == len(longer))
    left, wide = page.execute_script("const ground = document.querySelector('.picture rect.idle');"
                                     "return [ground.x.baseVal.value, ground.width.baseVal.value]")
    drawn = page.execute_script("return [...document.querySelectorAll('.picture rect.R')]"
                                ".map(box => [box.x.baseVal.value, box.width.baseVal.value])")
    scale = wide / solution["makespan_ns"]
    expected = sorted((left + solution["start_ns"][task] * scale, time * scale) for task, time in longer.items())
    for (x, width), (wanted_x, wanted_width) in zip(sorted(drawn), expected):
        assert x == pytest.approx(wanted_x, abs=0.05) and width == pytest.approx(wanted_width, abs=0.5)


def test_a_step_that_was_late_is_told_with_the_reason(server, page):
    wait_for(page, lambda p: text_of(p, "state") == "live")
    server.open()
    plan(server, 1)
    wait_for(page, lambda p: text_of(p, "planned") == "1")
    assert (text_of(page, "late"), text_of(page, "late-none")) == ("0", "Nothing was late.")
    plan(server, 2, deadline_ms=1)
    (_, session, step, late, why), = wait_for(page, lambda p: rows(p, "late-rows"))
    assert (session, step) == ("job", "2") and late.endswith("ms")
    line = next(one for one in server.log if one["event"] == "planned" and one["step"] == 2)
    assert why == line["why_late"] and why.startswith("submitted with less time (1.0 ms) than a plan by policy takes")
    wait_for(page, lambda p: text_of(p, "late") == "1")
    assert count(page, "#seconds .dot.late") == 1


def test_steps_that_wait_are_shown_until_they_are_planned(server, page):
    open_tight(server, {"budget": "300ms"})
    for step in (3, 2, 1):
        batch = {"samples": LONG, "deadline_ms": 100_000 * step, "priority": step}
        assert server.ask("PUT", f"/v1/sessions/tight/steps/{step}", batch)[0] == 202
    queue = wait_for(page, lambda p: (found := rows(p, "queue")) and len(found) == 3 and found)
    assert [row[:4] for row in queue] == [["tight", str(step), str(step), "16"] for step in (1, 2, 3)]  # due first
    wait_for(page, lambda p: "is searched" in [row[5] for row in rows(p, "queue")])

    def due():
        return float(rows(page, "queue")[2][4].removeprefix("in ").removesuffix(" s"))

    before = due()
    assert 200 < before <= 300
    wait_for(page, lambda p: due() < before - 1)
    for step in (1, 2, 3):
        assert server.ask("DELETE", f"/v1/sessions/tight/steps/{step}")[0] == 204
    wait_for(page, lambda p: text_of(p, "queue-none") == "No step waits.")


def test_the_page_says_when_the_server_is_gone_and_goes_on_when_it_is_back(begin, browser, tmp_path):
    http = f"127.0.0.1:{free_port()}"
    server = begin("--state", tmp_path, http=http)
    server.open()
    plan(server, 1)
    browser.get(server.url)
    wait_for(browser, lambda p: text_of(p, "state") == "live" and pictures(p))
    assert not browser.find_element(By.ID, "gone").is_displayed()
    server.kill()
    wait_for(browser, lambda p: text_of(p, "state") == "no answer")
    assert "no answer since" in text_of(browser, "gone")
    assert text_of(browser, "sessions") == "1"  # what was known
    server = begin("--state", tmp_path, http=http)
    wait_for(browser, lambda p: text_of(p, "state") == "live")
    assert not browser.find_element(By.ID, "gone").is_displayed()
    plan(server, 2)
    wait_for(browser, lambda p: pictures(p) == ["job, step 2, replica 0"])
    wait_for(browser, lambda p: text_of(p, "planned") == "1")


def test_a_server_with_a_token_is_shown_to_who_has_it(begin, browser, tmp_path):
    token = tmp_path / "token"
    token.write_text("0123456789abcdef\n")
    token.chmod(0o600)
    server = begin("--token-file", token)
    browser.get(server.url)
    for given, said in (("a wrong one of some length", "token needed"), ("0123456789abcdef", "live")):
        wait_for(browser, lambda p: text_of(p, "state") == "token needed")
        field = browser.find_element(By.ID, "token")
        field.clear()
        field.send_keys(given)
        field.submit()
        wait_for(browser, lambda p: text_of(p, "state") == said)
    assert not browser.find_element(By.ID, "ask").is_displayed()
    bearer = {"Authorization": "Bearer 0123456789abcdef"}
    asked = {"config": {"model": "dip-vlm-s", "cluster": "h100-sxm:16", "tp": 4, "pp": 4, "max-rounds": 1},
             "sample": samples()}
    assert server.ask("PUT", "/v1/sessions/job", asked, **bearer)[0] == 200
    wait_for(browser, lambda p: text_of(p, "sessions") == "1")
    server.kill()
    wait_for(browser, lambda p: text_of(p, "state") == "no answer")


def test_nothing_is_loaded_from_elsewhere_and_nothing_is_wrong(server, page):
    server.open()
    plan(server, 1)
    wait_for(page, lambda p: pictures(p) == ["job, step 1, replica 0"])
    loaded = page.execute_script("return performance.getEntriesByType('resource').map(one => one.name)")
    assert loaded and all(name.startswith(server.url) for name in loaded)
    assert [entry for entry in page.get_log("browser") if "favicon" not in entry["message"]] == []


def test_what_is_shown_becomes_text_and_no_markup():
    text = (ROOT / "service/page.html").read_text()
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function", text)


def light(color):
    parts = [int(one) / 255 for one in color[color.index("(") + 1 : -1].split(",")[:3]]
    linear = [one / 12.92 if one <= 0.03928 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_of_it_is_seen_on_narrow_and_wide_screens_in_both_schemes(server, page, width, scheme):
    emulate(page, width, scheme)
    name = "a-session-whose-name-is-as-long-as-the-names-of-sessions-may-be0"
    server.open(name)
    plan(server, 1, name=name)
    plan(server, 2, name=name, deadline_ms=1)
    wait_for(page, lambda p: rows(p, "late-rows") and pictures(p) == [f"{name}, step 2, replica 0"])
    assert page.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
    wider = """return [...document.querySelectorAll('.card, .card *')].filter(one => {
        const box = one.getBoundingClientRect();
        return box.width > 0 && (box.right > window.innerWidth + 0.5 || box.left < -0.5);
    }).map(one => one.outerHTML)"""
    wait_for(page, lambda p: p.execute_script(wider) == [], 60)
    script = ("const s = getComputedStyle(arguments[0]); "
              "return [arguments[0].closest('svg') ? s.fill : s.color, getComputedStyle(document.body).backgroundColor,"
              " getComputedStyle(document.querySelector('.card')).backgroundColor]")
    for selector in ("h1", ".soft", "h3", "#seconds text", "#late-rows td", ".big.bad", ".pill"):
        shown = page.find_element(By.CSS_SELECTOR, selector)
        ink, *grounds = (light(one) for one in page.execute_script(script, shown))
        for ground in grounds:
            assert (max(ink, ground) + 0.05) / (min(ink, ground) + 0.05) > 4.5, selector
            assert (ground < 0.2) == (scheme == "dark")
