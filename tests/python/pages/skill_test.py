"""docs/skill/SKILL.md: ten questions, whose commands run in their order and say what the skill promises; docs/llms.txt:
its links lead somewhere."""

import re

from absent import needed
from checkout import ROOT
from getting_started import follow, page_of

PAGE = page_of("docs/skill/SKILL.md")
QUESTIONS = re.findall(r"^## (.+)\n```sh\n.+\n```\nSays (.+?)\. ", PAGE, re.MULTILINE)


def test_the_ten_commands_say_what_is_promised(pipeweaver, tmp_path):
    needed("pipeweaver.data.convert")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    assert len(QUESTIONS) == 10 and len(re.findall("^```sh$", PAGE, re.MULTILINE)) == 10
    missing = {}
    for (question, promised), printed in zip(QUESTIONS, follow(pipeweaver, tmp_path, PAGE), strict=True):
        words = re.findall("`([^`]+)`", promised)
        assert words, question
        missing |= {(question, word): printed[:2000] for word in words if word not in printed}
    assert missing == {}


def test_a_skill_says_its_name_and_what_it_is_for():
    head = re.match(r"---\nname: ([a-z-]{1,64})\ndescription: (.{40,1024})\n---\n", PAGE)
    assert head and head[1] == "pipeweaver"


def test_links_for_agents_lead_to_pages():
    targets = re.findall(r"\]\(([^)]+)\)", page_of("docs/llms.txt"))
    assert len(targets) > 15 and [one for one in targets if not (ROOT / "docs" / one).is_file()] == []
