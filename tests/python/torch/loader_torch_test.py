"""A DataLoader of PyTorch with 1 to 4 workers on photos: its steps are those of `emulate --loader`, and nothing waits
from the number of workers on that it advises.

Photos are decoded, and the rest of what a sample takes is slept: tests have two cores, which would decide otherwise.
GPUs are slept, too."""

import json
import time

import pytest
from absent import needed

image = needed("PIL.Image")
torch = needed("torch")

SAMPLES, STEPS = 4, 12
ASKED = ["emulate", "--model", "llama3-8b", "--cluster", "h100-sxm:8", "--tp", "8", "--dataset", "constant-2048",
         "--microbatches", "1"]


class Photos(torch.utils.data.Dataset):
    def __init__(self, path, seconds, count):
        self.path, self.seconds, self.count = path, seconds, count

    def __len__(self):
        return self.count

    def __getitem__(self, place):
        end = time.monotonic() + self.seconds
        size = image.open(self.path).convert("RGB").size
        time.sleep(max(0.0, end - time.monotonic()))
        return torch.tensor([place, *size])


def measured(photos, workers, prefetch, step):
    """Seconds from step to step, in the mean of the second half."""
    loader = torch.utils.data.DataLoader(photos, batch_size=SAMPLES, num_workers=workers, prefetch_factor=prefetch,
                                         multiprocessing_context="fork")
    begins = []
    for batch in loader:
        assert len(batch) == SAMPLES
        begins.append(time.monotonic())
        time.sleep(step)
    first = len(begins) // 2
    return (begins[-1] - begins[first]) / (len(begins) - 1 - first)


@pytest.fixture(scope="module")
def photo(tmp_path_factory):
    path = tmp_path_factory.mktemp("photos") / "one.jpg"
    image.effect_noise((320, 240), 60).convert("RGB").save(path)
    return path


@pytest.mark.alone
def test_waiting_begins_and_ends_at_the_predicted_number_of_workers(pipeweaver, tmp_path, photo):
    step_ns = json.loads(pipeweaver(*ASKED, "--json"))["step_ns"]
    sample_ns = round(2.5 * step_ns / SAMPLES)  # a pack takes two and a half steps: three workers keep up

    def predicted(workers):
        stage = {"name": "decode", "on": "core", "sample_ns": sample_ns}
        path = tmp_path / f"{workers}.json"
        path.write_text(json.dumps({"format": "pipeweaver-loader/1", "workers": workers, "stages": [stage]}))
        got = json.loads(pipeweaver(*ASKED, "--loader", path, "--json"))
        assert got["asked"]["samples"] == SAMPLES
        return got["input"]

    photos = Photos(photo, sample_ns * 1e-9, SAMPLES * STEPS)
    waits = {}
    for workers in (1, 2, 3, 4):
        expected = predicted(workers)
        assert expected["enough"]["workers"] == 3
        seconds = measured(photos, workers, 2, step_ns * 1e-9)
        assert seconds == pytest.approx(expected["step_ns"] * 1e-9, rel=0.15), workers
        waits[workers] = seconds > 1.1 * step_ns * 1e-9
        assert waits[workers] == (expected["waits_ns"] > 0)
    assert waits == {1: True, 2: True, 3: False, 4: False}
