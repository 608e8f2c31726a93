"""--out of a folder that another kind of command wrote is refused, and a plan says which plan it replaces."""

import json

import pytest

JOB = ("--model", "dip-vlm-s", "--dataset", "vlm-mix")
PLAN = ("plan", *JOB, "--cluster", "h100-sxm:16", "--tp", "4", "--pp", "4", "--microbatches", "4", "--max-rounds", "0")
RECOMMEND = ("recommend", *JOB, "--tokens", "1B", "--clusters", "h100-sxm", "--gpus", "16", "--global-batch", "64",
             "--prices", "h100-sxm=2.5", "--cp", "1", "--max-rounds", "0")
STUDY = {"format": "pipeweaver-study/1", "name": "small", "tokens": "1B",
         "plan": {"dataset": "vlm-mix", "max-rounds": 0},
         "axes": {"model": "dip-vlm-s", "cluster": ["h100-sxm"], "gpus": [16], "global-batch": 64},
         "layouts": {"tp": [4], "cp": 1}, "prices": {"h100-sxm": 2.5}, "planned": 0}


@pytest.fixture
def commands(tmp_path):
    (tmp_path / "mine.json").write_text(json.dumps(STUDY))
    return {"plan": PLAN, "study": ("capacity", tmp_path / "mine.json"), "recommend": RECOMMEND}


MARKS = {"plan": ("plan.json", "a plan"), "study": ("study.json", "a study"),
         "recommend": ("answer.json", "a recommendation")}


@pytest.mark.parametrize("there", MARKS)
def test_a_folder_of_another_kind_is_refused_before_anything_is_done(pipeweaver, commands, tmp_path, there):
    folder = tmp_path / "out"
    folder.mkdir()
    file, what = MARKS[there]
    (folder / file).write_text("{}")
    for kind, command in commands.items():
        if kind == there:
            continue
        status, line = pipeweaver.fails(*command, "--out", folder)
        assert status == 2
        assert line.endswith(f"{folder / file}: is the folder of {what}: allowed for --out is another folder")
        assert [one.name for one in folder.iterdir()] == [file]


@pytest.mark.parametrize("kind", MARKS)
def test_a_folder_of_the_same_kind_is_taken_again(pipeweaver, commands, tmp_path, kind):
    for time in range(2):
        done = pipeweaver.run(*commands[kind], "--out", tmp_path / "out")
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "out" / MARKS[kind][0]).exists()
        replaced = f"{tmp_path / 'out'}: replaces the plan of dip-vlm-s on 16 x h100_sxm\n"
        assert (replaced in done.stderr) == (kind == "plan" and time == 1)
