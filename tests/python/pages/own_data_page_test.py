"""docs/your-own-data.md: its commands run one after the other, and print what it shows."""

from absent import needed
from checkout import ROOT
from getting_started import blocks, follow, page_of

needed("pipeweaver.data.convert")

PAGE = page_of("docs/your-own-data.md")


def test_the_page_prints_what_it_shows(pipeweaver, tmp_path):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    printed = follow(pipeweaver, tmp_path, PAGE)
    assert [text for text in printed if text] == blocks("", PAGE)
    assert len(printed) == 4


def test_every_option_of_the_tool_is_on_the_page():
    from pipeweaver.data.convert.__main__ import _parser

    known = {option for action in _parser()._actions for option in action.option_strings}
    for option in sorted(known - {"-h", "--help", "--out"}):
        assert f"`{option}" in PAGE or f" {option} " in PAGE, option
