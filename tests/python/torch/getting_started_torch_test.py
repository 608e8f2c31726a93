"""The last step of docs/getting-started.md: its script runs the emitted schedule on PyTorch."""

import re

from example_ranks import printed_by
from getting_started import blocks


def test_the_script_of_the_page_runs_the_schedule(followed, tmp_path):
    folder, _ = followed
    script, = blocks("python")
    (folder / "run.py").write_text(script)
    said = printed_by(4, folder, folder / "run.py", [], tmp_path)
    assert re.findall(r"rank \d+(?=: stages)", said) == ["rank 0", "rank 1", "rank 2", "rank 3"]
    assert "16 microbatches, mean loss " in said
