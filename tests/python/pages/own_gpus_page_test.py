"""docs/own-gpus.md: its command prints what it shows."""

from checkout import ROOT

BLOCK = (ROOT / "docs/own-gpus.md").read_text().split("```\n")[1]


def test_the_answer_is_printed_whole(pipeweaver):
    command, answer = BLOCK.removeprefix("$ pipeweaver ").split("\n", 1)
    assert pipeweaver(*command.split()) == answer
