"""docs/getting-started.md followed to the letter, but for the build: its commands run, its
files are there."""

import re

from getting_started import FILE, PAGE, blocks

ROW = r"^(\S.*?) +(plan|1f1b|interleaved|gpipe|dual-queue|bubble-filling|nesting|critical-path) +(\d+) .* [\d.]+x$"


def test_the_models_of_the_page_are_listed(followed):
    lines = blocks("")[2].splitlines()
    assert "dip-vlm-s                      step3-vit-5b + llama3-8b (cross-checked)" in lines
    for line in lines:
        assert line == "…" or line in followed[1][0].splitlines()


def test_the_edit_changes_the_model(followed):
    assert '"fixed_pixels": 448' in (followed[0] / "mine.json").read_text()


def test_the_table_has_the_rows_of_the_page(followed):
    def rows(text):
        return {tuple(part.strip() for part in match.groups()): match[0]
                for match in re.finditer(ROW, text, re.MULTILINE)}

    # Opponents and policies are the same on any machine; how far the plan's search comes is not.
    on_the_page, printed = rows(blocks("")[3]), rows(followed[1][2])
    assert len(on_the_page) >= 10
    assert {row[1] for row in on_the_page} >= {"plan", "interleaved", "gpipe", "dual-queue"}
    other = [f"line {PAGE[:PAGE.index(line)].count(chr(10)) + 1}: {line}" for row, line in on_the_page.items()
             if row not in printed]
    assert other == [], "\n".join([f"{FILE} shows rows that the command does not print; where costs or the model were "
                                   "meant to change, update these lines of the page", *other, "printed:",
                                   followed[1][2]])


def test_the_files_of_the_page_are_there(followed):
    for name in re.findall(r"`((?:mine|csv)/[a-z/.]+)`", PAGE):
        assert (followed[0] / name).is_file(), name
