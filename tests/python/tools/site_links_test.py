"""tools/site_links.py and mkdocs.yml: links out of docs/ lead into the repository; every page is in the menu once."""

import importlib.util
import re
import types

import pytest
from checkout import ROOT

spec = importlib.util.spec_from_file_location("site_links", ROOT / "tools/site_links.py")
site_links = importlib.util.module_from_spec(spec)
spec.loader.exec_module(site_links)


def on(place, markdown, url):
    page = types.SimpleNamespace(file=types.SimpleNamespace(src_uri=place))
    return site_links.on_page_markdown(markdown, page, types.SimpleNamespace(repo_url=url), None)


@pytest.mark.parametrize("place, markdown, linked, bare", [
    ("costs.md", "see [it](../costdb/README.md#one)", "see [it](https://here/blob/main/costdb/README.md)", "see it"),
    ("studies/a.md", "[x](../../examples)", "[x](https://here/tree/main/examples)", "x"),
    ("studies/a.md", "[x](../limits.md#times)", "[x](../limits.md#times)", "[x](../limits.md#times)"),
    ("a.md", "[x](https://b/c.md) [y](#z)", "[x](https://b/c.md) [y](#z)", "[x](https://b/c.md) [y](#z)"),
    ("a.md", "![p](../p.svg)", "![p](../p.svg)", "![p](../p.svg)"),
])
def test_a_link_leads_into_the_repository_or_is_text(place, markdown, linked, bare):
    assert (on(place, markdown, "https://here"), on(place, markdown, "")) == (linked, bare)


def test_every_page_is_in_the_menu_once():
    menu = re.findall(r"([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2], re.MULTILINE)
    assert sorted(menu) == sorted(str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md"))
