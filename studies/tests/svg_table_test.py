"""svg.py and table.py: what every picture and every page is made of."""

import xml.etree.ElementTree

import pytest
import svg
import table


def test_a_document_is_svg_and_escapes_words():
    parts = [svg.text(1, 2.346, "a < b & c", "end", "#111"), svg.rect(0, 0, 3, 4, "#222", title="<3>"),
             *svg.across(50, 10, 100, "1 s")]
    root = xml.etree.ElementTree.fromstring(svg.document(10, 20.5, parts))
    words = root[1]
    assert (words.text, words.get("y"), words.get("text-anchor"), words.get("style")) == ("a < b & c", "2.35", "end",
                                                                                           "fill:#111")
    assert root.get("viewBox") == "0 0 10 20.5" and root[2][0].text == "<3>"
    assert root[3].get("d") == "M50 10h100" and root[4].text == "1 s"


def test_paths_are_of_words_and_numbers():
    assert svg.path(("M", 1.5, 2, "h", -3.004, "z")) == "M1.5 2h-3z"
    assert 'd="M1 2L3 4L5 6"' in svg.curve([(1, 2), (3, 4), (5, 6)], "#333")


def test_a_table_has_as_many_cells_as_its_head():
    rows = ["| a | b |", "|---|---:|", "| 1 | x |", "| | 2 |"]
    assert list(table.table(("a", "b"), [(1, "x"), ("", 2)], right=(1,))) == rows
    with pytest.raises(AssertionError):
        list(table.table(("a", "b"), [(1,)]))


def test_a_page_without_a_marker_is_refused():
    assert table.fill("a\n<!-- x -->\nold\n<!-- end -->\nb", "x", ["new"]) == "a\n<!-- x -->\nnew\n<!-- end -->\nb"
    with pytest.raises(SystemExit, match="<!-- y -->"):
        table.fill("a", "y", [])
