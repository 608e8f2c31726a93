"""report.html in Chromium: its pictures hold every task, need no script, and nothing is loaded from outside."""

import gzip
import json
import pathlib
import re
import shlex
import shutil
import subprocess

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

PLAN = ["plan", "--model", "dip-vlm-m", "--cluster", "h100-sxm:32", "--tp", "8", "--pp", "4", "--dataset", "vlm-mix",
        "--microbatches", "4", "--max-rounds", "5"]


@pytest.fixture(scope="module")
def planned(pipeweaver, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report") / "plan"
    pipeweaver(*PLAN, "--out", folder)
    return folder


def open_browser(scripts=True):
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    # Root in a container has no user namespaces for the sandbox and often a small /dev/shm.
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu",
                 "--disable-dev-shm-usage", "--window-size=1440,1000"):
        options.add_argument(flag)
    if not scripts:
        options.add_experimental_option("prefs", {"profile.managed_default_content_settings.javascript": 2})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    driver.set_script_timeout(200)  # axe looks at all of a page, on a busy machine for long
    return driver


@pytest.fixture(scope="module")
def browser(planned):
    driver = open_browser()
    driver.get((planned / "report.html").as_uri())
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def solved(planned):
    problem = json.loads(gzip.decompress((planned / "replica-000/problem.json.gz").read_bytes()))
    return problem, json.loads((planned / "replica-000/solution.json").read_text())


def emulate(browser, width, scheme="light"):
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia",
                            {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                            {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False})


def boxes(browser, selector):
    """[x, y, width, height] as laid out, of each element."""
    return browser.execute_script("""return [...document.querySelectorAll(arguments[0])].map(element => {
        const box = element.getBoundingClientRect(); return [box.x, box.y, box.width, box.height]; })""", selector)


def test_rows_are_ranks_and_bars_are_tasks(browser, solved):
    problem, solution = solved
    emulate(browser, 1440)
    rows = browser.find_elements(By.CSS_SELECTOR, "#plan g.rank")
    assert len(rows) == len(problem["ranks"])
    for row, order in zip(rows, solution["order"]):
        assert len(row.find_elements(By.CSS_SELECTOR, "rect.bar")) == len(order)
    assert len(browser.find_elements(By.CSS_SELECTOR, "#chain g.rank")) == len(problem["ranks"])
    assert len(browser.find_elements(By.CSS_SELECTOR, "#chain rect.bar")) > 0
    assert len(browser.find_elements(By.CSS_SELECTOR, "svg.memory path.limit")) == len(problem["ranks"])


def test_bars_lie_where_the_solution_starts_them_and_do_not_overlap(browser, solved):
    _, solution = solved
    emulate(browser, 1440)
    horizon = int(browser.find_element(By.TAG_NAME, "body").get_attribute("data-horizon-ns"))
    (left, _, width, _), = boxes(browser, "#plan svg.bars")
    for rank, order in enumerate(solution["order"]):
        end = 0
        for task, (x, _, length, _) in zip(order, boxes(browser, f"#plan g.rank[data-rank='{rank}'] rect.bar")):
            assert x - left == pytest.approx(width * solution["start_ns"][task] / horizon, abs=0.05)
            assert x >= end - 0.05
            end = x + length


def test_hovering_over_a_bar_tells_its_task(browser, solved):
    problem, solution = solved
    emulate(browser, 1440)
    shown = browser.execute_script("""return [...document.querySelectorAll('#plan rect.bar')].map(bar => {
        bar.scrollIntoView({block: 'center'});
        const box = bar.getBoundingClientRect();
        const hit = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
        return hit === bar ? bar.querySelector('title').textContent : 'covered'; })""")
    tasks = [task for order in solution["order"] for task in order]
    assert len(shown) == len(tasks)
    for task, text in zip(tasks, shown):
        first, second, third, *sent = text.split("\n")
        assert first == problem["tasks"][task]["label"]
        assert second.startswith("start ") and ", duration " in second
        assert third.startswith(f"rank {problem['tasks'][task]['rank']}, memory mode ")
        receivers = [problem["tasks"][to]["rank"] for start, to, lag in problem["edges"] if start == task and lag > 0
                     and problem["tasks"][to]["rank"] != problem["tasks"][task]["rank"]]
        assert [int(rank) for rank in re.findall(r" to rank (\d+) in ", "".join(sent))] == receivers


def test_nothing_is_loaded_from_outside_and_nothing_fails(browser):
    browser.refresh()
    assert browser.execute_script("return performance.getEntriesByType('resource').map(entry => entry.name)") == []
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("width", [390, 800, 1440])
def test_the_page_fits_the_window(browser, width):
    emulate(browser, width)
    browser.execute_script("document.querySelectorAll('details').forEach(fold => { fold.open = true; })")
    try:
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        (_, _, plan, _), (_, _, chain, _) = boxes(browser, "svg.bars")
        assert plan == chain > 0.7 * width
        legend = boxes(browser, "#schedules .legend li")
        assert len(legend) >= 6
        assert all(left >= 0 and left + wide <= width for left, _, wide, _ in legend)
    finally:
        browser.refresh()


@pytest.mark.parametrize("width", [390, 800, 1440])
def test_the_numbers_are_in_view_without_scrolling(browser, width):
    """Step, ratio and memory of every rung, and step and ratio of every opponent: neither cut nor one over another."""
    emulate(browser, width)
    for table, columns in (("ladder", ("step", "over now", "fullest rank")), ("pairs", ("step", "over plan"))):
        for column in columns:
            cells = browser.execute_script("""return [...document.querySelectorAll(arguments[0])].filter(
                cell => cell.getBoundingClientRect().width).map(cell => {
                  const text = document.createRange(); text.selectNodeContents(cell);
                  const [inner, outer] = [text, cell].map(one => one.getBoundingClientRect());
                  return [cell.textContent, inner.left, inner.right, outer.left, outer.right]; })""",
                                           f"table.{table} td[data-column='{column}']")
            assert len(cells) >= (2 if table == "ladder" else 11)
            for text, left, right, cell_left, cell_right in cells:
                assert text
                assert 0 <= cell_left - 0.5 <= left <= right <= cell_right + 0.5 <= width + 0.5, (column, text)


def test_the_ladder_comes_first_then_how_to_run_it(browser):
    sections = [one.get_attribute("id") for one in browser.find_elements(By.CSS_SELECTOR, "main > section")]
    assert sections[:3] == ["ladder", "run", "schedules"]


def test_what_the_page_says_of_the_folder_is_there(browser, planned):
    """Every file that is written but the page itself and run.json is listed, and no other; a list of ranks has none."""
    listed = set()
    for name in browser.find_elements(By.CSS_SELECTOR, "#run .folder tbody th"):
        first, *others = name.text.split(", ")
        listed |= {first, *(str(pathlib.PurePath(first).parent / one) for one in others)}
    there = {str(one.relative_to(planned)) for one in planned.rglob("*") if one.is_file()}
    torch = {"torch/problem.json.gz", "torch/solution.json"}  # as those of a replica
    assert listed == there - {"report.html", "run.json"} - torch


def test_the_commands_of_the_page_print_what_stands_above_them(browser, pipeweaver, planned):
    emulate(browser, 1440)
    browser.execute_script("document.querySelectorAll('#run details').forEach(fold => { fold.open = true; })")
    said = [(one.text, one.find_element(By.XPATH, "following-sibling::pre[1]").text)
            for one in browser.find_elements(By.CSS_SELECTOR, "#run .prints")]
    assert any(command.startswith("pipeweaver emulate ") for _, command in said)
    for text, command in said:
        first, *arguments = shlex.split(command)
        assert first == "pipeweaver"
        done = subprocess.run([pipeweaver.path.resolve(), *arguments], cwd=planned, capture_output=True, text=True,
                              timeout=600)
        assert done.returncode == 0, done.stderr
        (said_as, said_in), (printed, unit) = (
            re.search(r"(?:step|makespan) ([\d.]+) (m?s)\b", told).groups() for told in (text, done.stdout))
        second = {"s": 1, "ms": 0.001}
        assert float(printed) * second[unit] == pytest.approx(float(said_as) * second[said_in], rel=5e-4), text
    browser.refresh()


def test_stages_and_layers_are_those_of_the_partition(browser, planned):
    plan = json.loads((planned / "partition.json").read_text())
    emulate(browser, 390)
    browser.execute_script("document.querySelectorAll('#run details').forEach(fold => { fold.open = true; })")
    rows = [[cell.text for cell in row.find_elements(By.CSS_SELECTOR, "td")]
            for row in browser.find_elements(By.CSS_SELECTOR, "#run .stages tbody tr")]
    layers = {}
    for module in plan["modules"]:
        for stage in module["stages"]:
            _, count = layers.setdefault(stage["stage"], (stage["rank"], 0))
            layers[stage["stage"]] = (stage["rank"], count + stage["layers"])
    assert {int(stage): (int(rank), int(count)) for rank, _, stage, _, count, _ in rows} == layers
    assert [rank for rank, *_ in rows] == sorted(rank for rank, *_ in rows)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    browser.refresh()


def test_transfers_are_drawn_where_few_enough_are_in_view(browser):
    emulate(browser, 1440)
    settle = "requestAnimationFrame(() => requestAnimationFrame(() => arguments[0]()))"
    drawn = browser.find_element(By.CSS_SELECTOR, "#plan .transfers")
    all_of_them = drawn.find_element(By.CSS_SELECTOR, ".line").get_attribute("d").count("M")
    most = int(drawn.get_attribute("data-most"))
    assert drawn.is_displayed() == (all_of_them <= most)
    for _ in range(8):
        browser.find_element(By.CSS_SELECTOR, "[data-zoom='0.5']").click()
    browser.execute_async_script(settle)
    assert "crowded" not in drawn.get_attribute("class")
    browser.find_element(By.CSS_SELECTOR, "[data-zoom='0']").click()
    browser.execute_async_script(settle)
    assert ("crowded" in drawn.get_attribute("class")) == (all_of_them > most)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_stand_out_from_what_is_behind_them(browser, scheme):
    """Contrast of at least 4.5 (WCAG 2.1, 1.4.3), and of bars against the page of at least 3 (1.4.11)."""
    emulate(browser, 1440, scheme)
    colors = browser.execute_script("""
        const rgb = text => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
        const of = (selector, property) => {
          const element = document.querySelector(selector);
          return element && rgb(getComputedStyle(element)[property]); };
        return {page: of('body', 'backgroundColor'), panel: of('.figure', 'backgroundColor'),
                best: of('.best td', 'backgroundColor'), ink: of('body', 'color'), soft: of('.figure span', 'color'),
                bars: [...document.querySelectorAll('.legend rect:not(.c8)')]
                  .map(r => rgb(getComputedStyle(r).fill))};""")

    def luminance(color):
        parts = [c / 255 for c in color]
        parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    def contrast(one, other):
        dark, light = sorted((luminance(one), luminance(other)))
        return (light + 0.05) / (dark + 0.05)

    for text, behind in (("ink", "page"), ("ink", "panel"), ("ink", "best"), ("soft", "page"), ("soft", "panel")):
        assert contrast(colors[text], colors[behind]) >= 4.5, (text, behind)
    assert len(colors["bars"]) >= 6
    for bar in colors["bars"]:
        assert contrast(bar, colors["page"]) >= 3, bar
    assert (luminance(colors["page"]) < 0.2) == (scheme == "dark")


def test_robustness_is_that_of_the_plan_file(browser, planned):
    told = json.loads((planned / "plan.json").read_text())["robustness"]
    emulate(browser, 800)
    rows = [[cell.text for cell in row.find_elements(By.CSS_SELECTOR, "th, td")]
            for row in browser.find_elements(By.CSS_SELECTOR, "#robustness tbody tr")]
    assert rows == [[f"{one['partition']}, {one['policy']}, {one['chunks_per_rank']} chunks a rank".replace(
        " 1 chunks", " 1 chunk"), *(f"{one[key]:.3f}x" for key in ("gain_p10", "gain_p50", "gain_p90")),
        f"{one['wins']} of {told['replays']}", str(one["losses"])] for one in told["baselines"]]
    assert told["against"] == {key: told["baselines"][0][key] for key in told["against"]}
    named = [(one["partition"], one["policy"]) for one in told["baselines"]]
    assert len(named) == 2
    assert len(named) == len(set(named))


def test_zoom_widens_the_bars_of_both_schedules_alike_and_goes_back(browser):
    emulate(browser, 1440)
    views = "return [...new Set([...document.querySelectorAll('svg.time')].map(s => s.viewBox.baseVal.width))]"
    settle = "requestAnimationFrame(() => requestAnimationFrame(() => arguments[0]()))"
    before = boxes(browser, "#plan rect.bar")[0][2]
    browser.find_element(By.CSS_SELECTOR, "[data-zoom='0.5']").click()
    browser.execute_async_script(settle)
    assert browser.execute_script(views) == [500000]
    assert boxes(browser, "#plan rect.bar")[0][2] == pytest.approx(2 * before, rel=0.01)
    browser.find_element(By.CSS_SELECTOR, "[data-zoom='0']").click()
    browser.execute_async_script(settle)
    assert browser.execute_script(views) == [1000000]


def test_the_pictures_are_there_without_javascript(planned, solved):
    problem, _ = solved
    driver = open_browser(scripts=False)
    try:
        driver.get((planned / "report.html").as_uri())
        emulate(driver, 1440)
        bars = driver.find_elements(By.CSS_SELECTOR, "#plan rect.bar")
        assert len(bars) == len(problem["tasks"])
        assert bars[0].rect["width"] > 1
        assert [mark.text for mark in driver.find_elements(By.CSS_SELECTOR, ".marks.labels i")][0].startswith("0")
        assert not driver.find_element(By.CSS_SELECTOR, ".tools").is_displayed()
    finally:
        driver.quit()


def test_the_page_of_own_stage_times_has_its_bars_fits_and_loads_nothing(browser, pipeweaver, planned, tmp_path):
    table = tmp_path / "stages.csv"
    table.write_text("stage,rank,forward_us,backward_us,weight_us,activation_bytes,weights_bytes,send_bytes\n"
                     "0,0,10,20,,100,1000,5000\n1,1,10,12,8,70,2000,5000\n"
                     "2,0,11,12,9,80,1000,5000\n3,1,9,20,,90,2000,0\n")
    pipeweaver("solve", "--stages", table, "--microbatches", "5", "--max-rounds", "5", "--out", tmp_path / "out")
    solution = json.loads((tmp_path / "out/solution.json").read_text())
    emulate(browser, 800, "dark")
    try:
        browser.get((tmp_path / "out/report.html").as_uri())
        horizon = int(browser.find_element(By.TAG_NAME, "body").get_attribute("data-horizon-ns"))
        (left, _, width, _), = boxes(browser, "#plan svg.bars")
        for rank, order in enumerate(solution["order"]):
            bars = boxes(browser, f"#plan g.rank[data-rank='{rank}'] rect.bar")
            assert [x - left for x, _, _, _ in bars] == pytest.approx(
                [width * solution["start_ns"][task] / horizon for task in order], abs=0.05)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 800
        assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
        assert browser.get_log("browser") == []
    finally:
        browser.get((planned / "report.html").as_uri())


def test_the_page_of_a_search_shows_it_before_and_after_and_loads_nothing(browser, pipeweaver, planned, tmp_path):
    problem = planned / "replica-000/problem.json.gz"
    pipeweaver("solve", problem, "--max-rounds", "30", "--out", tmp_path / "solution.json", "--log", tmp_path / "log",
               "--report", tmp_path / "search.html")
    lines = [line.split("\t") for line in (tmp_path / "log").read_text().splitlines()[1:]]
    tasks = len(json.loads(gzip.decompress(problem.read_bytes()))["tasks"])
    try:
        for scheme in ("light", "dark"):
            emulate(browser, 1000, scheme)
            browser.get((tmp_path / "search.html").as_uri())
            rows = [[cell.text for cell in row.find_elements(By.CSS_SELECTOR, "td")]
                    for row in browser.find_elements(By.CSS_SELECTOR, ".improvements tbody tr")]
            assert [(row[0], row[1], row[6]) for row in rows] == [(line[0], line[1], line[5]) for line in lines]
            dots = boxes(browser, "#search .dot")
            assert len(dots) == len({line[2] for line in lines})
            # They go down and to the right, and lie on the line.
            assert [x for x, _, _, _ in dots] == sorted(x for x, _, _, _ in dots)
            assert [y for _, y, _, _ in dots] == sorted(y for _, y, _, _ in dots)
            assert browser.execute_script(
                "return getComputedStyle(document.querySelector('.dot')).strokeLinecap") == "round"
            labels = boxes(browser, ".row.progress .label span")
            assert all(above[1] + above[3] <= below[1] for above, below in zip(labels, labels[1:]))
            for schedule in ("#first", "#plan"):
                assert len(browser.find_elements(By.CSS_SELECTOR, f"{schedule} rect.bar")) == tasks
            (_, _, before, _), (_, _, after, _) = boxes(browser, "svg.bars")
            assert before == after
            assert browser.execute_script("return document.documentElement.scrollWidth") <= 1000
            assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
            assert browser.get_log("browser") == []
    finally:
        browser.get((planned / "report.html").as_uri())
