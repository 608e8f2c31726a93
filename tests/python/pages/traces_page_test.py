"""docs/traces.md: its command prints what it shows."""

import re
import shlex

from checkout import ROOT

PAGE = (ROOT / "docs/traces.md").read_text()
ASKED = re.compile(r"^```\n\$ pipeweaver ([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_answer_is_printed_whole(pipeweaver):
    (command, answer), = ASKED.findall(PAGE)
    words = [str(ROOT / word) if word.startswith("examples/") else word for word in shlex.split(command)]
    assert pipeweaver(*words) == answer
