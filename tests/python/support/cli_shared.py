"""What the tests of the command line share: small inputs, digests of the files that a plan is, how much to do."""

import hashlib
import json
import os

PLAN = ["plan", "--model", "dip-vlm-m", "--cluster", "h100-sxm:32", "--tp", "8", "--pp", "4"]
BATCH = ["--dataset", "vlm-mix", "--microbatches", "4"]
# Partition and opponent chosen on one other batch of the data set, not on five: a third of the time or more. Where
# nothing depends on which are chosen; what is chosen without it is compared where it is the subject.
ONE_DRAW = ["--sample", "101"]
SCREEN = {"width": 640, "height": 480}


def full():
    """Whether tests that draw many cases draw all of them (PIPEWEAVER_FULL=1, as run-tests.sh --all has it)."""
    return os.environ.get("PIPEWEAVER_FULL", "0") not in ("", "0")


def write_batch(folder, samples):
    """A batch file of (text tokens, images); returns its path."""
    lines = [json.dumps({"id": f"s{i}", "text_tokens": text, "images": images})
             for i, (text, images) in enumerate(samples)]
    (folder / "batch.jsonl").write_text("\n".join(lines) + "\n")
    return folder / "batch.jsonl"


def small_problem():
    """Two ranks, one microbatch: F0 F1 B1 B0."""
    def task(number, rank, kind, acquire, release):
        return {"id": number, "rank": rank, "kind": kind, "duration_ns": 1000, "acquire_bytes": acquire,
                "release_bytes": release, "label": f"{kind}{rank}", "stage": rank, "microbatch": 0}
    return {"format": "pipeweaver-problem/1", "name": "small", "source": "by hand",
            "ranks": [{"capacity_bytes": 100, "base_bytes": 10}] * 2,
            "tasks": [task(0, 0, "F", 50, 0), task(1, 1, "F", 50, 0), task(2, 1, "B", 0, 50), task(3, 0, "B", 0, 50)],
            "edges": [[0, 1, 5], [1, 2, 0], [2, 3, 5], [0, 3, 0]]}


def digests(folder):
    """SHA-256 of every result file below the folder; run.json holds what was measured and is left out."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "run.json")
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
