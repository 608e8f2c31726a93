"""`pipeweaver bench emulator`: its figures, not its speed."""

import json

import pytest

FIELDS = ["operators", "makespan_ns", "naive_seconds", "naive_operators_per_second", "bytes_per_operator",
          "reuse_seconds"]


@pytest.mark.parametrize("stages, microbatches, kernels", [(1, 1, 1), (4, 8, 10), (16, 256, 100), (8, 3, 5)])
def test_a_1f1b_step_takes_as_long_as_the_formula_says(pipeweaver, stages, microbatches, kernels):
    figures = json.loads(pipeweaver("bench", "emulator", "--pipeline", stages, "--microbatches", microbatches,
                                    "--kernels", kernels, "--json"))

    assert list(figures) == FIELDS
    expected = (microbatches + stages - 1) * 3 * kernels * 100_000
    assert figures["makespan_ns"] == pytest.approx(expected, rel=1e-4)
    assert figures["operators"] == stages * microbatches * 3 * kernels + 2 * (stages - 1) * microbatches
    assert figures["naive_operators_per_second"] == pytest.approx(figures["operators"] / figures["naive_seconds"],
                                                                  rel=1e-6)
    assert 0 < figures["bytes_per_operator"] <= 64
    assert figures["reuse_seconds"] > 0


def test_a_step_of_too_many_operators_is_refused(pipeweaver):
    status, line = pipeweaver.fails("bench", "emulator", "--kernels", 1_000_000)

    assert status == 2
    assert line.endswith("operators in all, allowed are 100000000")
