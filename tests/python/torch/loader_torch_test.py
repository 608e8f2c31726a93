"""Loaders of PyTorch with 1 to 4 workers on photos, a map of files and a pipeline of webdataset's shards: their steps
are those of `emulate --loader`, and nothing waits from the number of workers on that it advises.

Photos are decoded, and the rest of what a sample takes is slept: tests have two cores, which would decide otherwise.
GPUs are slept, too."""

import io
import json
import tarfile
import time

import pytest
from absent import needed

image = needed("PIL.Image")
torch = needed("torch")

SAMPLES, STEPS = 4, 12
ASKED = ["emulate", "--model", "llama3-8b", "--cluster", "h100-sxm:8", "--tp", "8", "--dataset", "constant-2048",
         "--microbatches", "1"]


def decoded(place, file, seconds):
    """A photo's place and size, so many seconds after it was begun."""
    end = time.monotonic() + seconds
    size = image.open(file).convert("RGB").size
    time.sleep(max(0.0, end - time.monotonic()))
    return torch.tensor([place, *size])


class Photos(torch.utils.data.Dataset):
    def __init__(self, path, seconds, count):
        self.path, self.seconds, self.count = path, seconds, count

    def __len__(self):
        return self.count

    def __getitem__(self, place):
        return decoded(place, self.path, self.seconds)


def of_files(path, seconds):
    """Workers read a map of photos, and the loader puts samples together."""
    return Photos(path, seconds, SAMPLES * STEPS), SAMPLES


def of_shards(path, seconds):
    """Each worker reads shards of its own, a step's samples in each, and puts them together."""
    wds = needed("webdataset")
    photo = path.read_bytes()
    for step in range(STEPS):
        with tarfile.open(path.parent / f"{step:02}.tar", "w") as shard:
            for place in range(step * SAMPLES, (step + 1) * SAMPLES):
                entry = tarfile.TarInfo(f"{place:04}.jpg")
                entry.size = len(photo)
                shard.addfile(entry, io.BytesIO(photo))
    shards = [str(path.parent / f"{step:02}.tar") for step in range(STEPS)]
    read = wds.WebDataset(shards, shardshuffle=False).map(
        lambda one: decoded(int(one["__key__"]), io.BytesIO(one["jpg"]), seconds))
    return read.batched(SAMPLES, collation_fn=torch.stack), None


def measured(data, batch_size, workers, step):
    """Seconds from step to step, in the mean of the second half."""
    loader = torch.utils.data.DataLoader(data, batch_size=batch_size, num_workers=workers, prefetch_factor=2,
                                         multiprocessing_context="fork")
    begins, places = [], []
    for batch in loader:
        places.append(sorted(int(place) for place in batch[:, 0]))
        begins.append(time.monotonic())
        time.sleep(step)
    assert places == [list(range(first, first + SAMPLES)) for first in range(0, SAMPLES * STEPS, SAMPLES)]
    first = len(begins) // 2 - 1  # six steps: workers in turn bring whole rounds of packs in them
    return (begins[-1] - begins[first]) / (len(begins) - 1 - first)


@pytest.fixture
def photo(tmp_path):
    path = tmp_path / "one.jpg"
    image.effect_noise((320, 240), 60).convert("RGB").save(path)
    return path


@pytest.mark.alone
@pytest.mark.parametrize("data", [of_files, of_shards])
def test_waiting_begins_and_ends_at_the_predicted_number_of_workers(pipeweaver, tmp_path, photo, data):
    step_ns = json.loads(pipeweaver(*ASKED, "--json"))["step_ns"]
    sample_ns = round(2.5 * step_ns / SAMPLES)  # a pack takes two and a half steps: three workers keep up

    def predicted(workers):
        stage = {"name": "decode", "on": "core", "sample_ns": sample_ns}
        path = tmp_path / f"{workers}.json"
        path.write_text(json.dumps({"format": "pipeweaver-loader/1", "workers": workers, "stages": [stage]}))
        got = json.loads(pipeweaver(*ASKED, "--loader", path, "--json"))
        assert got["asked"]["samples"] == SAMPLES
        return got["input"]

    waits = {}
    for workers in (1, 2, 3, 4):
        expected = predicted(workers)
        assert expected["enough"]["workers"] == 3
        found = {}
        for times in (1, 2, 5):  # where something else has the cores sleeps end late, which of longer ones is less
            own = 1e-9 * times
            found[times] = measured(*data(photo, sample_ns * own), workers, step_ns * own) / own
            waits[workers] = found[times] > 1.1 * step_ns
            fits = found[times] == pytest.approx(expected["step_ns"], rel=0.15)
            if fits and waits[workers] == (expected["waits_ns"] > 0):
                break
        else:
            pytest.fail(f"{workers} workers: {expected}, nanoseconds of a step by how long all of it is: {found}")
    assert waits == {1: True, 2: True, 3: False, 4: False}
