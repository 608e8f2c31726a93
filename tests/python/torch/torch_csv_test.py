"""What emitted files are judged by: PyTorch runs hand-written schedules right, and the comparison notices a wrong one.
"""

import pytest
import torch_run
from torch_run import ONE_F_ONE_B_2, write_folder

ONE_F_ONE_B_4 = ["0F0 0F1 0F2 0F3 0B0 0F4 0B1 0F5 0B2 0B3 0B4 0B5",
                 "1F0 1F1 1F2 1B0 1F3 1B1 1F4 1B2 1F5 1B3 1B4 1B5",
                 "2F0 2F1 2B0 2F2 2B1 2F3 2B2 2F4 2B3 2F5 2B4 2B5",
                 "3F0 3B0 3F1 3B1 3F2 3B2 3F3 3B3 3F4 3B4 3F5 3B5"]
# Two stages a rank in a loop; backwards not in the forwards' order, an empty cell, rows of unequal length.
LOOP_4 = ["0F1 0F0 2F0 2F1 0F2 0F3 2F2 2B1 2F3 2B0 0B0 2B2 0B1 2B3 0B3 0B2",
          "1F1 1F0 3F0 3F1 3B1 1F2 3B0 1F3 1B0 3F2 3B2 1B1 3F3 3B3 1B2 1B3"]
LOOP_8 = ["0F0 0F1 0F2 4F0 4F1 4F2 4B0 4B1 4B2 0B0 0B1 0B2",
          "1F0 1F1 1F2 5F0 5F1 5F2 5B0 5B1 5B2 1B0 1B1 1B2",
          "2F0 2F1 2F2 6F0 6F1 6F2 6B0 6B1 6B2 2B0 2B1 2B2",
          "3F0 3F1 3F2 7F0 7B0 7F1 7B1 7F2 7B2 3B0 3B1 3B2"]
SPLIT_2 = ["0F0 0F1 0F2 0I0 0F3 0W0 0I1 0I2 0W1 0I3 0W3 0W2",
           "1F0 1I0 1F1 1I1 1W0 1F2 1I2 1F3 1W2 1I3 1W1 1W3"]
# Some backwards split, others whole, on the same stages.
SPLIT_LOOP_4 = ["0F0 0F1 2F0 2F1 2I0 2B1 0B0 2W0 0I1 0W1",
                "1F0 1F1 3F0 3I0 3F1 3I1 1I0 3W0 1B1 1W0 3W1"]
SPLIT_4 = ["0F0 0F1 0F2 0F3 0B0 0I1 0W1 0B2 0B3",
           "1F0 1F1 1F2 1I0 1F3 1W0 1I1 1I2 1I3 1W1 1W2 1W3",
           "2F0 2F1 2I0 2F2 2I1 2F3 2I2 2I3 2W0 2W1 2W2 2W3",
           "3F0 3I0 3F1 3I1 3F2 3W0 3I2 3F3 3W1 3I3 3W2 3W3"]

RIGHT = {
    "1f1b, 2 ranks": (ONE_F_ONE_B_2, [0, 1], 4),
    "1f1b, 4 ranks": (ONE_F_ONE_B_4, [0, 1, 2, 3], 6),
    "loop, 2 ranks, 4 stages": (LOOP_4, [0, 1, 0, 1], 4),
    "loop, 4 ranks, 8 stages": (LOOP_8, [0, 1, 2, 3, 0, 1, 2, 3], 3),
    "split backwards, 2 ranks": (SPLIT_2, [0, 1], 4),
    "split backwards, 2 ranks, 4 stages": (SPLIT_LOOP_4, [0, 1, 0, 1], 2),
    "split backwards, 4 ranks": (SPLIT_4, [0, 1, 2, 3], 4),
    "1 rank, 2 stages": (["0F0 1F0 1B0 0F1 1F1 0B0 1B1 0B1"], [0, 0], 2),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_schedule_equals_a_sequential_run(tmp_path, name):
    rows, stage_to_rank, microbatches = RIGHT[name]
    assert torch_run.check(write_folder(tmp_path, rows, stage_to_rank, microbatches)) <= torch_run.TOLERANCE


def test_losses_belong_to_the_microbatches_that_the_order_names(tmp_path):
    folder = write_folder(tmp_path, ONE_F_ONE_B_2, [0, 1], 4, order=[2, 0, 3, 1])
    assert torch_run.check(folder) <= torch_run.TOLERANCE


def test_swapped_forwards_of_the_last_stage_are_noticed(tmp_path):
    rows = [ONE_F_ONE_B_2[0], "1F1 1F0 1B0 1B1 1F2 1B2 1F3 1B3"]
    with pytest.raises(torch_run.Mismatch, match="differs from the sequential run"):
        torch_run.check(write_folder(tmp_path, rows, [0, 1], 4))


@pytest.mark.parametrize("rows, reason", [
    (["0F0 0B0 0F1 0B1", "1F1 1B1 1F0 1B0"], "Malformed compute schedule"),  # each rank waits for the other
    (["0F0 0F1 0B0 0B1", "1F0 1F1 1B0"], "stage 1: expected 2 total backwards"),
])
def test_a_schedule_that_cannot_run_is_noticed(tmp_path, rows, reason):
    with pytest.raises(torch_run.Mismatch, match=reason):
        torch_run.check(write_folder(tmp_path, rows, [0, 1], 2))


def test_a_folder_that_contradicts_itself_is_noticed(tmp_path):
    with pytest.raises(AssertionError):
        torch_run.check(write_folder(tmp_path, ONE_F_ONE_B_2, [1, 0], 4))
