"""Planner.submit() from several threads that cancel, wait and look; tools/tsan_runs.py runs it under the sanitizer.

    tsan_submits.py COUNT THREADS
"""

import concurrent.futures
import pathlib
import random
import sys
import threading

import pipeweaver

EXAMPLES = pathlib.Path(__file__).resolve().parents[1] / "examples"
CONFIG = {"model": str(EXAMPLES / "small-vlm.json"), "cluster": "h100-sxm:4", "tp": 1, "pp": 2, "dp": 2,
          "partition": "megatron", "max_rounds": 3}


def samples(draw):
    return [{"id": f"s{k}", "text_tokens": draw.randrange(50, 300),
             "images": [{"width": 56, "height": 56}] * draw.randrange(3)} for k in range(8)]


def one_thread(planner, number, count, said):
    """Submits its share, and of each plan waits, waits a little, cancels, or looks at it from time to time."""
    draw = random.Random(number)
    for k in range(count):
        future = planner.submit(samples(draw), priority=draw.randrange(3))
        way = k % 5
        if way == 1:
            said.append("cancelled" if future.cancel() else "was there")
        try:
            if way == 2:
                future.result(0.0)
            elif way == 3:
                threading.Timer(0.02, future.cancel).start()
            while way == 4 and not future.done():
                threading.Event().wait(0.01)
            said.append("made" if future.result().makespan_ns > 0 else "none")
        except concurrent.futures.CancelledError:
            said.append("ended")
        except pipeweaver.LimitError:
            said.append("late")


def main():
    count, threads = map(int, sys.argv[1:])
    said = []
    with pipeweaver.Planner({**CONFIG, "threads": threads}, samples(random.Random(0))) as planner:
        shares = [count // 4 + (k < count % 4) for k in range(4)]
        workers = [threading.Thread(target=one_thread, args=(planner, k, share, said))
                   for k, share in enumerate(shares)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    print({word: said.count(word) for word in sorted(set(said))})
    if "made" not in said or "cancelled" not in said:
        sys.exit("no plan was made, or none was cancelled")


if __name__ == "__main__":
    main()
