"""examples/train_with_server.py where no server is there: all ranks open the same session and plan by policy."""

import re

from absent import needed
from checkout import ROOT

needed("pipeweaver")
needed("torch")

from example_ranks import printed_by  # noqa: E402

LINE = re.compile(r"^step (\d+) rank (\d): loss ([0-9.]+), (served|by policy), waited (\d+) ms", re.MULTILINE)


def test_a_job_trains_by_policy_until_there_is_a_server(tmp_path):
    said = printed_by(4, ROOT, ROOT / "examples/train_with_server.py",
                      ["--server", "http://127.0.0.1:1", "--steps", "4", "--deadline", "0.2"], tmp_path)
    lines = LINE.findall(said)
    assert sorted((int(step), int(rank)) for step, rank, *_ in lines) == [(s, r) for s in range(4) for r in range(4)]
    assert {how for *_, how, _ in lines} == {"by policy"}
    for step in range(4):
        assert len({loss for number, _, loss, *_ in lines if int(number) == step}) == 1
