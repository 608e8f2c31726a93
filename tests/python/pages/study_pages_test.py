"""docs/studies/*.md: their commands run beside examples/, print every line that the pages show, and take four minutes
of processor time at most: two on two cores, where nothing else runs."""

import json
import os
import re
import subprocess

import pytest
from checkout import ROOT
from used import seconds_of_children, slowness

PAGES = sorted(path.name for path in (ROOT / "docs/studies").glob("*.md"))


def blocks(page):
    """The page's code blocks, as (language, text)."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", (ROOT / "docs/studies" / page).read_text(), re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def follow(pipeweaver, tmp_path_factory):
    """Runs a page's commands once: their folder, (language, text, what the command before it printed) of each block,
    and the processor time that they took."""
    followed = {}
    environment = {**os.environ, "PATH": f"{pipeweaver.path.resolve().parent}:{os.environ['PATH']}"}

    def run(page):
        folder = tmp_path_factory.mktemp("study")
        (folder / "examples").symlink_to(ROOT / "examples")
        found, printed, begun = [], "", seconds_of_children()
        for language, text in blocks(page):
            if language == "sh":
                done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", text], cwd=folder, env=environment,
                                      stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)
                assert done.returncode == 0, f"{text}{done.stderr}"
                printed = done.stdout
            found.append((language, text, printed))
        return folder, found, seconds_of_children() - begun

    def once(page):
        if page not in followed:
            followed[page] = run(page)
        return followed[page]
    return once


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("page", PAGES)
def test_a_page_prints_what_it_shows_in_under_two_minutes(follow, page):
    _, found, seconds = follow(page)
    for language, text, printed in found:
        if language == "":
            shown = [line for line in text.splitlines() if line != "…"]
            missing = [line for line in shown if line not in printed.splitlines()]
            assert shown and missing == [], f"docs/studies/{page} shows what the command does not print:\n{printed}"
    assert seconds < 240 * slowness()


@pytest.mark.timeout(1800)
def test_the_speeds_are_what_the_study_says_and_a_job_may_name_it(follow, pipeweaver, tmp_path):
    """The three trainings that are shared out: their speeds are typed, or come from the study of their page."""
    page = (ROOT / "docs/studies/three-trainings.md").read_text()
    results = follow("three-trainings.md")[0] / "speeds/results.csv"
    models = {"vl-72b": "qwen2.5-vl-72b", "vl-32b": "qwen2.5-vl-32b", "moe-35b-a3b": "qwen3.6-35b-a3b"}
    typed = json.loads(pipeweaver("share", ROOT / "examples/three-trainings.yaml", "--json"))["cluster"]
    document = {"format": "pipeweaver-jobs/1", "gpus": typed["gpus"], "jobs": [
        {key: job[key] for key in ("name", "weight", "tokens")} |
        {"study": str(results), "model": models[job["name"]]} for job in typed["jobs"]]}
    file = tmp_path / "jobs.json"
    file.write_text(json.dumps(document))
    named = json.loads(pipeweaver("share", file, "--json"))["cluster"]["jobs"]
    for job, same in zip(typed["jobs"], named):
        for speed, studied in zip(job["speed"], same["speed"], strict=True):
            assert (speed["gpus"], speed["tokens_per_s"]) == (studied["gpus"], pytest.approx(studied["tokens_per_s"],
                                                                                             abs=0.51))
            assert f"{speed['tokens_per_s']:,.0f}" in page


def test_there_are_pages():
    assert "nvl72-or-hgx.md" in PAGES
