"""expert_splits.py: the page shows what the script prints; where it explains no difference, there is none."""

from conftest import STUDIES


def test_the_page_shows_what_is_printed(pipeweaver, script):
    page = (STUDIES / "expert-splits.md").read_text()
    printed = script("expert_splits.py", "--program", pipeweaver.path).splitlines()
    assert len(printed) > 6 and all(line in page for line in printed)


def test_all_but_the_one_explained_are_within_two_layers(pipeweaver, script):
    rows = [line.strip("| ").split(" | ") for line in script("expert_splits.py", "--program",
                                                              pipeweaver.path).splitlines()[2:]]
    far = [row[0] for row in rows if int(row[5]) > 2]
    assert far == ["InternVL3.5-241B-A28B"]
