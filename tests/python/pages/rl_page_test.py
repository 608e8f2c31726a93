"""docs/rl.md: its commands print what it shows, and run."""

import re
import shlex

from checkout import ROOT

PAGE = (ROOT / "docs/rl.md").read_text()
ASKED = re.compile(r"^```\n\$ pipeweaver ((?:[^\n]*\\\n)*[^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def words(command):
    return shlex.split(command.replace("\\\n", " "))


def test_the_answer_is_printed_whole(pipeweaver):
    asked = ASKED.findall(PAGE)
    assert len(asked) == 2
    for command, answer in asked:
        assert pipeweaver(*words(command)) == answer


def test_the_other_commands_run(pipeweaver):
    commands = re.findall(r"^```sh\npipeweaver (.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert len(commands) == 2
    for command, says in zip(commands, ("\nbest: ", " USD")):
        assert says in pipeweaver(*words(command))
