"""Schedules that `solve --stages` makes of measured stage times run in PyTorch, equal to a sequential run."""

import pytest
import torch_run


def write_stages(path, split):
    """Eight uneven stages in a loop over four ranks."""
    rows = ["stage,rank,forward_us,backward_us,weight_us,activation_bytes,weights_bytes,send_bytes"]
    for stage in range(8):
        times = 100 + 30 * (stage % 3), 110 + 20 * (stage % 4), (90 + 10 * stage if split else "")
        rows.append(f"{stage},{stage % 4},{times[0]},{times[1]},{times[2]},1000,5000,64")
    path.write_text("\n".join(rows) + "\n")


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("target", [[], ["--target", "torch-csv"]])
def test_eight_stages_on_four_ranks_run_on_pytorch(tmp_path, pipeweaver, split, target):
    write_stages(tmp_path / "stages.csv", split)
    pipeweaver("solve", "--stages", tmp_path / "stages.csv", "--microbatches", "8", "--capacity", "20KB",
               "--link", "50GB/s", "--max-rounds", "20", *target, "--out", tmp_path / "plan")

    schedule = torch_run.read_folder(tmp_path / "plan/torch")
    assert (schedule.ranks, schedule.stages, schedule.microbatches) == (4, 8, 8)
    assert torch_run.check(tmp_path / "plan/torch") <= torch_run.TOLERANCE
