"""The page of `pipeweaver ui` in Chromium: the README's questions answered by clicks, with the command line's numbers
and its words for what is wrong; nothing leaves the machine, and all of it can be reached and read."""

import gzip
import importlib.util
import os
import pathlib
import re
import shlex
import subprocess
import time

import pytest
from browser_report_test import emulate, open_browser
from checkout import ROOT
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

PLAN = {"model": "dip-vlm-s", "cluster": "h100-sxm:16", "dataset": "vlm-mix", "microbatches": "2", "tp": "8", "pp": "2",
        "max-rounds": "1", "sample": "101"}
RENT = {"model": "llama2-7b", "dataset": "c4", "global-batch": "64", "tokens": "30B", "days": "60",
        "clusters": "h100-sxm", "gpus": "16", "cp": "1", "max-rounds": "1"}
LOOKS = [(1440, "light"), (390, "dark"), (1440, "dark"), (390, "light")]


@pytest.fixture(scope="module")
def url(pipeweaver, tmp_path_factory):
    """Of a server, which leaves nothing behind when it ends."""
    folder = tmp_path_factory.mktemp("ui")
    server = subprocess.Popen([pipeweaver.path, "ui", "--http", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True,
                              env={**os.environ, "TMPDIR": str(folder)})
    yield server.stderr.readline().split()[0]
    assert list(folder.glob("pipeweaver-ui-*"))
    server.terminate()
    assert server.wait(timeout=120) == 0
    assert not list(folder.iterdir())


@pytest.fixture(scope="module")
def browser():
    driver = open_browser()
    yield driver
    driver.quit()


@pytest.fixture
def page(browser, url):
    """As it opens, with no errors at the end, and nothing from elsewhere."""
    emulate(browser, 1440)
    open_page(browser, url)
    yield browser
    loaded = browser.execute_script("return performance.getEntriesByType('resource').map(entry => entry.name)")
    assert {name for name in loaded if not name.startswith((url, "blob:"))} == set()
    assert browser.get_log("browser") == []


def wait_for(what, seconds=200.0):
    end = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return found


def open_page(page, url):
    page.get("about:blank")
    page.get(url)
    wait_for(lambda: page.find_elements(By.CSS_SELECTOR, "#plan-model"))


def address(page):
    """Once it holds all that was asked so far, which it does when the hand rests."""
    wait_for(lambda: page.execute_script("return location.hash === `#${linkOf(state.tab)}`"))
    return page.current_url


def text_of(page, name):
    return page.execute_script("return document.getElementById(arguments[0]).textContent", name)


def click(page, selector):
    page.find_element(By.CSS_SELECTOR, selector).click()


def write(page, tab, values):
    """As a hand does: what is folded is opened, what was there goes."""
    for name, value in values.items():
        field = page.find_element(By.ID, f"{tab}-{name}")
        if page.execute_script("return arguments[0].closest('details:not([open])')", field):
            click(page, f"#{tab}-form summary")
        if field.tag_name == "textarea":  # pasted
            page.execute_script("arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input', "
                                "{bubbles: true}))", field, value)
            continue
        if field.tag_name != "select":
            field.clear()
        field.send_keys(value)


def ask(page, tab, values):
    click(page, f"#tab-{tab}")
    write(page, tab, values)
    click(page, f"#{tab}-form .main")
    wait_for(lambda: page.find_element(By.CSS_SELECTOR, f"#{tab}-form .main").is_enabled())


def rows(page, tab):
    return page.execute_script("return [...document.querySelectorAll(arguments[0])]"
                               ".map(row => [...row.cells].map(cell => cell.innerText))", f"#{tab}-out tbody tr")


def wide(page):
    return page.execute_script("return document.documentElement.scrollWidth - innerWidth")


@pytest.fixture(scope="module")
def answered(pipeweaver, tmp_path_factory):
    """The command line's words for the command that a tab shows, run once."""
    folder, said = tmp_path_factory.mktemp("answered"), {}

    def run(command):
        if command not in said:
            name, *words = shlex.split(command)
            assert name == "pipeweaver"
            (folder / "launch.sh").write_text((ROOT / "examples/launch.sh").read_text())
            done = subprocess.run([pipeweaver.path.resolve(), *words], cwd=folder, capture_output=True, text=True,
                                  timeout=600)
            said[command] = done.stdout + done.stderr
        return said[command]
    return run


@pytest.mark.parametrize(("width", "scheme"), LOOKS[:2])
def test_a_step_is_planned(page, answered, width, scheme):
    emulate(page, width, scheme)
    ask(page, "plan", PLAN)
    text = answered(text_of(page, "plan-command"))
    ladder = rows(page, "plan")
    assert [rung for rung, *_ in ladder] == ["now", "data", "flags", "layout", "schedule"]
    for rung, way, *numbers in ladder:
        line, = re.findall(rf"^{rung} .*$", text, re.MULTILINE)
        if way.startswith("nothing: "):
            assert way in line
            continue
        assert all(one and one in line for one in numbers), (numbers, line)
    done = re.search(r"^do +(\w+):", text, re.MULTILINE)[1]
    assert text_of(page, "plan-out").startswith(f"Do{done}: ")
    assert wide(page) <= 0


def test_the_ladder_is_drawn_as_it_climbs(page):
    """Row by row, each as the answer has it; what is drawn is watched, so that no row can be missed."""
    page.execute_script("""
        window.climbed = [];
        const rowsOf = all => all.flatMap(one => [...one.addedNodes]).filter(one => one.nodeName === 'TR');
        new MutationObserver(all => {
          for (const row of rowsOf(all)) climbed.push([...row.cells].map(cell => cell.textContent));
        }).observe(document.getElementById('plan-out'), {childList: true, subtree: true});""")
    ask(page, "plan", PLAN)
    climbed, ladder = page.execute_script("return climbed"), rows(page, "plan")
    assert [rung for rung, *_ in ladder] == ["now", "data", "flags", "layout", "schedule"]
    assert [(rung, *numbers) for rung, _, *numbers in climbed] == [(rung, *numbers) for rung, _, *numbers in ladder]


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_a_pasted_launch_is_checked(page, answered, width, scheme):
    emulate(page, width, scheme)
    click(page, "#tab-check")
    ask(page, "check", {"script": (ROOT / "examples/launch.sh").read_text(), "cluster": "h100-sxm:64"})
    said = re.match(r"(\w+): rank (\d+) is the fullest, ([\d.]+ GiB) of ([\d.]+ GiB)",
                    answered(text_of(page, "check-command"))).groups()
    shown = page.find_element(By.ID, "check-out").text
    assert all(one in shown for one in said)
    assert f"rank {said[1]} is the fullest: {said[2]} of {said[3]} usable" in shown
    assert wide(page) <= 0


@pytest.mark.parametrize(("width", "scheme"), LOOKS[:2])
def test_what_to_rent_is_found(page, answered, width, scheme):
    emulate(page, width, scheme)
    ask(page, "rent", RENT)
    (which, cluster, gpus, layout, *numbers), = rows(page, "rent")
    line, = re.findall(rf"^.* {cluster} +{gpus} .*$", answered(text_of(page, "rent-command")), re.MULTILINE)
    assert set(which.split(", ")) == set(line.split("  ")[0].split(", ")) | {"fastest"}
    step, days, hours, usd, mfu, left = numbers[:6]
    assert usd == ""  # without prices
    for one in (layout, step, days, hours, mfu, left.removesuffix(" GiB")):
        assert re.search(rf"(?<![\d.,]){re.escape(one)}(?![\d.,])", line), (one, line)
    assert wide(page) <= 0


def test_two_rungs_are_drawn(page):
    ask(page, "plan", PLAN)
    page.find_element(By.XPATH, "//button[text()='Draw them']").click()
    labels = wait_for(lambda: [found for found in [page.execute_script(
        "return [...document.querySelectorAll('#plan-out canvas')].map(one => one.getAttribute('aria-label'))")]
        if len(found) == 2 and all("ends at" in (one or "") for one in found)])[0]
    (ranks, passes, end), (_, searched, sooner) = (re.search(
        r": (\d+) ranks, (\d+) passes, ends at ([\d.]+) ms$", label).groups() for label in labels)
    assert int(ranks) == 2 and int(passes) > 8 and int(searched) > 8
    assert float(sooner) < float(end)
    page.find_element(By.XPATH, "//button[text()='Show the report']").click()
    frame = wait_for(lambda: page.find_elements(By.CSS_SELECTOR, "#plan-out iframe"))[0]
    page.switch_to.frame(frame)
    assert "dip-vlm-s" in wait_for(lambda: page.find_elements(By.TAG_NAME, "h1"))[0].text
    page.switch_to.default_content()


def test_a_pass_says_what_it_waited_for(page):
    """A on rank 0 takes 10 us, travels 5; B on rank 1 30, travels 3; C and D on rank 0 20 each, D takes A's, too."""
    said = page.execute_script("""
        const pass = (name, rank, start, end) => ({name, rank, start: start / 1e6, end: end / 1e6});
        const tasks = [pass('A', 0, 0, 10), pass('B', 1, 15, 45), pass('C', 0, 48, 68), pass('D', 0, 68, 88)];
        const problem = {tasks: tasks.map((one, id) => ({id, label: one.name})),
                         edges: [[0, 1, 5000], [1, 2, 3000], [0, 3, 0]]};
        Chart.explainBy(problem, tasks, 's');
        return tasks.map(one => one.why || null);""")
    assert said == [None, "its rank waited 15.00 us for A of rank 0, whose result travels 5.000 us",
                    "its rank waited 38.00 us for B of rank 1, whose result travels 3.000 us",
                    "was ready 58.00 us before, behind C"]


def test_each_replica_of_the_searched_schedule_is_drawn(page):
    ask(page, "plan", {**PLAN, "tp": "4", "cp": "1"})
    options = page.execute_script("return [...document.getElementById('rung-1').options].map(one => one.textContent)")
    assert [one.split(", ")[1] for one in options if one.startswith("schedule: ")] == ["replica 0", "replica 1"]
    chosen = page.execute_script("return document.getElementById('rung-1').selectedOptions[0].textContent")
    assert chosen.endswith("replica 0")
    page.find_element(By.ID, "rung-1").send_keys(Keys.ARROW_DOWN)
    wait_for(lambda: page.execute_script("return document.querySelectorAll('#plan-out canvas[aria-label]').length"))
    assert "passes, ends at" in page.execute_script(
        "return document.querySelectorAll('#plan-out canvas')[1].getAttribute('aria-label')")


def running(marker):
    """Processes that have this word on their command line."""
    found = []
    for place in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if marker.encode() in place.read_bytes().split(b"\0"):
                found.append(place.parent.name)
        except OSError:  # it has ended
            pass
    return found


@pytest.mark.parametrize("how", ["cancel", "leave"])
def test_what_is_cancelled_or_left_ends_at_once(page, url, how):
    marker, budget_s = f"{os.getpid()}{len(how)}77", 120
    write(page, "plan", {**PLAN, "model": "dip-vlm-l", "cluster": "h100-sxm:64", "microbatches": "64", "tp": "",
                         "pp": "", "max-rounds": "", "budget": f"{budget_s}s", "seed": marker})
    click(page, "#plan-form .main")
    wait_for(lambda: running(marker))
    wait_for(lambda: page.find_elements(By.CSS_SELECTOR, "#plan-out .cancel:enabled"))
    begun = time.monotonic()
    if how == "cancel":
        click(page, "#plan-out .cancel")
    else:
        page.get("about:blank")
    wait_for(lambda: not running(marker))
    assert time.monotonic() - begun < 0.5 * budget_s  # and not when it would have ended by itself
    if how == "cancel":
        wait_for(lambda: text_of(page, "plan-out").startswith("cancelled after"))
    else:
        open_page(page, url)


WRONG = [("plan", "model", ""), ("plan", "model", "nosuch"), ("plan", "cluster", "h100-sxm"), ("plan", "tp", "3"),
         ("plan", "dataset", "nosuch"), ("plan", "budget", "soon"), ("plan", "seed", "-1"), ("check", "script", ""),
         ("check", "script", "torchrun pretrain_gpt.py --num-layers x"), ("rent", "global-batch", "x"),
         ("rent", "tokens", "lots"), ("rent", "clusters", "foo")]


def test_what_is_wrong_is_said_beside_its_field(page, pipeweaver, tmp_path):
    for tab, field, value in WRONG:
        click(page, f"#tab-{tab}")
        before = page.find_element(By.ID, f"{tab}-{field}").get_property("value")
        ask(page, tab, {field: value})
        if field == "script":
            (tmp_path / "launch.sh").write_text(value)
        done = subprocess.run([pipeweaver.path.resolve(), *shlex.split(text_of(page, f"{tab}-command"))[1:]],
                              cwd=tmp_path, capture_output=True, text=True, timeout=300)
        line = done.stderr.splitlines()[-1].removeprefix("pipeweaver: ")
        assert done.returncode > 0 and line
        assert text_of(page, f"{tab}-{field}-wrong") == line, (field, value)
        assert page.switch_to.active_element.get_attribute("id") == f"{tab}-{field}"
        assert page.switch_to.active_element.get_attribute("aria-invalid") == "true"
        write(page, tab, {field: before})


def test_no_file_is_read_that_was_not_given(page, tmp_path):
    """Nor by an option, nor by what a given file names."""
    elsewhere = tmp_path / "elsewhere.sh"
    elsewhere.write_text("LAYERS=77777\n")
    launch = (ROOT / "examples/launch.sh").read_text()
    ask(page, "check", {"script": re.sub(r"--num-layers \d+", "--num-layers $LAYERS", f"source {elsewhere}\n{launch}")})
    assert text_of(page, "check-out").startswith("Verdictundecided") and "$LAYERS" in text_of(page, "check-out")
    assert "77777" not in page.find_element(By.TAG_NAME, "body").text
    ask(page, "plan", {"model": str(elsewhere)})
    assert "without '/'" in text_of(page, "plan-model-wrong")
    assert len(page.get_log("browser")) == 1  # the server has refused it


def picker_of(page, name):
    return page.find_element(By.XPATH, f"//input[@id='plan-{name}']/following::input[@type='file'][1]")


def test_files_are_given_by_their_names(page, tmp_path):
    """Of a model, in Hugging Face's form, and of a batch, zipped; the link of the question has them."""
    (tmp_path / "batch.jsonl.gz").write_bytes(gzip.compress((ROOT / "examples/batch.jsonl").read_bytes()))
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\xff\xfe")
    for name, path in (("model", ROOT / "examples/qwen2.5-vl-7b.json"), ("batch", tmp_path / "batch.jsonl.gz")):
        picker_of(page, name).send_keys(str(path))
    wait_for(lambda: "--batch batch.jsonl" in text_of(page, "plan-command"))
    assert "--model hf:qwen2.5-vl-7b.json" in text_of(page, "plan-command")
    picker_of(page, "batch").send_keys(str(tmp_path / "picture.png"))
    wait_for(lambda: "is no text" in text_of(page, "plan-batch-wrong"))
    write(page, "plan", {"dataset": "", "cluster": "h200-sxm:4", "tp": "2", "pp": "2", "max-rounds": "1"})
    link = address(page)
    assert len(link) > 1000
    open_page(page, link)
    ask(page, "plan", {})
    assert len(rows(page, "plan")) == 5, text_of(page, "plan-form")


def test_the_address_holds_the_question(page):
    write(page, "plan", {"model": "dip-vlm-m", "target": "megatron", "seed": "12"})
    command, link = text_of(page, "plan-command"), address(page)
    open_page(page, link)
    assert text_of(page, "plan-command") == command
    click(page, "#tab-play")
    page.find_element(By.ID, "play-unequal").send_keys(Keys.ARROW_RIGHT * 4)
    click(page, "#play-split")
    shown, link = text_of(page, "play-known-facts"), address(page)
    open_page(page, link)
    wait_for(lambda: page.find_element(By.ID, "play-known-facts").text == shown)
    assert page.find_element(By.ID, "tab-play").get_attribute("aria-selected") == "true"


def painted_ms(page, url):
    """From when it is opened until something is seen."""
    open_page(page, url)
    return wait_for(lambda: page.execute_script(
        "return performance.getEntriesByName('first-contentful-paint').map(entry => entry.startTime)"))[0]


def test_it_is_there_soon_and_play_follows_the_hand(page, url):
    """Loosely, and the best of a few: other tests run beside it. Alone, it was 64 to 156 ms and 8 to 30 ms, on two
    cores."""
    assert min(painted_ms(page, url) for _ in range(3)) < 3000
    click(page, "#tab-play")
    millis = []
    for name, value in (("ranks", 8), ("micro", 64), *(("unequal", share) for share in (0.5, 0.4, 0.5, 0.4, 0.5))):
        page.execute_script("const one = document.getElementById(`play-${arguments[0]}`); one.value = arguments[1];"
                            "one.dispatchEvent(new Event('input', {bubbles: true}))", name, value)
        if name == "unequal":
            millis.append(float(page.execute_script(
                "return document.querySelector('#panel-play [data-millis]').dataset.millis")))
    assert min(millis) < 500


def test_a_pass_is_moved_by_keys_alone(page):
    page.find_element(By.ID, "tab-plan").send_keys(Keys.END)
    assert page.switch_to.active_element.get_attribute("id") == "tab-play"
    canvas = page.find_elements(By.CSS_SELECTOR, "#panel-play canvas")[1]
    canvas.send_keys("...")
    tip = canvas.find_element(By.XPATH, "following-sibling::div")
    assert tip.text.startswith("F2 of stage 0: ")
    canvas.send_keys("<")
    assert re.match(r"F2 of stage 0 moved: the step is (as long|[\d.]+ ms longer)", text_of(page, "play-note"))


@pytest.mark.parametrize(("width", "scheme"), LOOKS[:2])
def test_axe_finds_nothing(page, width, scheme):
    """axe-core's rules, on each tab with an answer or an error on it."""
    found = importlib.util.find_spec("axe_core_python")
    axe = (pathlib.Path(found.submodule_search_locations[0]) / "axe.min.js").read_text()
    emulate(page, width, scheme)
    page.execute_cdp_cmd("Runtime.evaluate", {"expression": axe})  # past the page's own rules for scripts
    ask(page, "rent", {"tokens": "lots"})
    ask(page, "check", {"script": (ROOT / "examples/launch.sh").read_text()})
    ask(page, "plan", {"tp": "x"})
    for tab in ("plan", "check", "rent", "play"):
        click(page, f"#tab-{tab}")
        page.execute_script("document.querySelectorAll('[role=tabpanel]:not([hidden]) details')"
                            ".forEach(fold => { fold.open = true; })")
        wrong = page.execute_async_script(
            "const done = arguments[0], asked = {exclude: [['datalist']]};"
            "axe.run(asked, {resultTypes: ['violations']}).then(found => done(found.violations.map("
            "one => [one.id, one.nodes.map(node => node.html.slice(0, 200))])))")
        assert wrong == [], tab
        assert wide(page) <= 0
