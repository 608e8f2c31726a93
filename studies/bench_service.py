#!/usr/bin/env python3
"""A server under the load of several jobs: whether every plan is there in time, and right.

    studies/bench_service.py [--sessions 8] [--seconds 600] [--deadline 0.5] [--kill 0] [--referee verify_schedule.py]

Each session submits a batch of dip-vlm-m a second (16 microbatches, drawn from vlm-mix) and collects its plan and the
list of one rank; server and load share the machine. Printed is how many plans were late, absent or refused by the
referee, by how much collects passed their deadline, how the server's memory grew, the mean gap beside that of the same
batches planned alone, whether plans come again from their records byte for byte, and with --kill how often the server
was killed (SIGKILL, at random moments) and what was missing or changed afterwards.
"""

import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

import pipeweaver

CONFIG = {"model": "dip-vlm-m", "cluster": "h100-sxm:32", "tp": 8, "pp": 4, "dataset": "vlm-mix", "microbatches": 16}
LATE_BY = 0.02  # seconds beyond the deadline that still count as in time


class Server:
    """`pipeweaver serve`, killed and begun again on the same port and state."""

    def __init__(self, binary, state, threads):
        self.command = [binary, "serve", "--state", state, "--threads", str(threads), "--quiet", "--keep-plans",
                        "100000"]
        self.port = 0
        self.begin()

    def begin(self):
        self.process = subprocess.Popen([*self.command, "--http", f"127.0.0.1:{self.port}"], stderr=subprocess.PIPE)
        for line in self.process.stderr:
            said = json.loads(line)
            if said["event"] == "listening":
                self.port = int(said["url"].rsplit(":", 1)[1])
                break
        else:
            sys.exit("the server did not begin")
        threading.Thread(target=self.process.stderr.read, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.port}"

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        self.process.terminate()
        return self.process.wait(60)

    def memory_mib(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=30) as answer:
            return answer.read()


class Job(threading.Thread):
    """A session that submits a batch a second."""

    def __init__(self, number, server, batches, asked, begin):
        super().__init__(daemon=True)
        self.number, self.batches, self.asked, self.begin = number, batches, asked, begin
        config = {**CONFIG, "seed": 1 + number, "budget": 1}
        self.planner = pipeweaver.Planner(config, url=server.url, session=f"job-{number}")
        self.beyond, self.gaps, self.missing, self.planned, self.served = [], [], [], [], {}

    def run(self):
        draw = random.Random(self.number)
        for step in range(self.asked.seconds):
            time.sleep(max(0.0, self.begin + step + self.number / self.asked.sessions - time.monotonic()))
            began = time.monotonic()
            batch = draw.choice(self.batches)
            try:
                future = self.planner.submit(batch, step=step, deadline=self.asked.deadline)
                plan = future.result(deadline=self.asked.deadline + 1.0 if self.asked.kill else None)
            except pipeweaver.PipeweaverError as error:
                self.missing.append(f"{self.number}/{step}: {error}")
                continue
            self.beyond.append(time.monotonic() - began - self.asked.deadline)
            self.gaps.append(plan.gap)
            self.planned.append((step, batch))
            # Only what a rank needs; and the plan's text, to be the same later.
            try:
                plan.replicas[0].rank_actions(step % 4)
                self.served[step] = plan._get("replicas/0/solution")
            except pipeweaver.PipeweaverError as error:
                self.missing.append(f"{self.number}/{step}: {error}")


def refused(referee, server, jobs, most):
    """Plans that the referee refuses, of up to `most`."""
    sample = random.Random(1).sample([(job, step) for job in jobs for step in job.served],
                                     min(most, sum(len(job.served) for job in jobs)))
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        problem, solution = pathlib.Path(folder, "problem.json"), pathlib.Path(folder, "solution.json")
        for job, step in sample:
            path = f"/v1/sessions/job-{job.number}/steps/{step}/replicas/0/"
            problem.write_bytes(server.get(path + "problem"))
            solution.write_bytes(server.get(path + "solution"))
            verdict = subprocess.run([sys.executable, referee, problem, solution], capture_output=True, text=True)
            if verdict.returncode != 0:
                wrong.append(f"job-{job.number}/{step}: {verdict.stdout}{verdict.stderr}")
    return len(sample), wrong


def changed(server, jobs):
    """Served plans that are not what they were."""
    return [f"job-{job.number}/{step}" for job in jobs for step, content in job.served.items()
            if server.get(f"/v1/sessions/job-{job.number}/steps/{step}/replicas/0/solution") != content]


def again(binary, server, jobs, count):
    """Of so many plans, those that do not come again from their records."""
    differ = []
    chosen = random.Random(2).sample([(job, step) for job in jobs for step in job.served], count)
    with tempfile.TemporaryDirectory() as folder:
        for job, step in chosen:
            path = f"/v1/sessions/job-{job.number}/steps/{step}/"
            record, out = pathlib.Path(folder, "record.json"), pathlib.Path(folder, "out")
            record.write_bytes(server.get(path + "record"))
            subprocess.run([binary, "plan", "--served", record, "--out", out, "--quiet"], check=True,
                           stdout=subprocess.DEVNULL)
            for part, file in (("plan", "plan.json"), ("assignment", "assignment.json"),
                               ("replicas/0/solution", "replica-000/solution.json"),
                               ("replicas/0/actions", "replica-000/actions.json")):
                if server.get(path + part) != (out / file).read_bytes():
                    differ.append(f"job-{job.number}/{step}/{part}")
    return differ


def offline_gap(jobs, asked):
    """Mean gap of some of the same batches, each planned alone in process for the whole deadline."""
    gaps = []
    planner = pipeweaver.Planner({**CONFIG, "budget": 1})
    for job in jobs:
        for _, batch in job.planned[: asked.offline]:
            gaps.append(planner.submit(batch).result(asked.deadline).gap)
    return statistics.mean(gaps)


def killer(server, asked, begin, killed):
    """Kills the server at random moments of the run, and begins it again."""
    draw = random.Random(5)
    for moment in sorted(draw.uniform(1, asked.seconds - 1) for _ in range(asked.kill)):
        time.sleep(max(0.0, begin + moment - time.monotonic()))
        server.kill()
        server.begin()
        known = {one["session"] for one in json.loads(server.get("/v1/sessions"))["sessions"]}
        killed.append(asked.sessions - len(known))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="build/release/bin/pipeweaver")
    parser.add_argument("--sessions", type=int, default=8)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--deadline", type=float, default=0.5)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--batches", type=int, default=200, help="different ones")
    parser.add_argument("--kill", type=int, default=0, help="times")
    parser.add_argument("--referee", help="verify_schedule.py")
    parser.add_argument("--checked", type=int, default=200, help="plans for the referee")
    parser.add_argument("--again", type=int, default=8, help="plans that are made again from their records")
    parser.add_argument("--offline", type=int, default=2, help="batches of each session planned alone")
    asked = parser.parse_args()
    batches = [pipeweaver.batch_of({**CONFIG, "seed": 1000 + seed}) for seed in range(asked.batches)]
    with tempfile.TemporaryDirectory() as state:
        server = Server(asked.binary, state, asked.threads)
        begin = time.monotonic() + 3.0 + asked.sessions
        jobs = [Job(number, server, batches, asked, begin) for number in range(asked.sessions)]
        begin = max(begin, time.monotonic() + 0.5)
        for job in jobs:
            job.begin = begin
            job.start()
        lost = []
        kills = threading.Thread(target=killer, args=(server, asked, begin, lost)) if asked.kill else None
        if kills:
            kills.start()
        memory = {}
        for minute in range(asked.seconds // 60):
            time.sleep(max(0.0, begin + 60 * (minute + 1) - 1 - time.monotonic()))
            memory[minute + 1] = round(server.memory_mib(), 1)
        for job in jobs:
            job.join()
        if kills:
            kills.join()
        report(server, jobs, memory, lost, asked)
        print(f"ended by SIGTERM with status {server.end()}")


def report(server, jobs, memory, lost, asked):
    """Prints what was measured."""
    beyond = sorted(1e3 * one for job in jobs for one in job.beyond)
    missing = [one for job in jobs for one in job.missing]
    late = sum(one > 1e3 * LATE_BY for one in beyond)
    wanted = asked.sessions * asked.seconds
    print(f"{wanted} batches of {asked.sessions} sessions, deadline {1e3 * asked.deadline:g} ms, {asked.threads} "
          "threads")
    print(f"plans there: {len(beyond)}; absent: {len(missing)}; later than {1e3 * LATE_BY:g} ms beyond: {late}")
    if beyond:
        at = lambda part: beyond[min(len(beyond) - 1, int(part * len(beyond)))]
        print(f"collect beyond its deadline: median {at(0.5):.1f} ms, p99 {at(0.99):.1f} ms, most {beyond[-1]:.1f} ms")
    counted = {line.split()[0]: line.split()[1]
               for line in server.get("/metrics").decode().splitlines() if line[:1] != "#"}
    print(f"late by the server's own count: {counted['pipeweaver_late_total']}")
    quick, all_ = (int(counted[f"pipeweaver_first_plan_seconds_{which}"]) for which in ('bucket{le="0.03"}', "count"))
    print(f"first plan, by policy, within 30 ms of submission: {quick} of {all_}")
    for one in missing[:10]:
        print("  absent:", one)
    print("memory of the server, MiB by minute:", memory)
    if asked.kill:
        print(f"killed {len(lost)} times; acknowledged sessions missing afterwards: {sum(lost)}")
    print(f"served plans that changed: {len(changed(server, jobs))} of {sum(len(job.served) for job in jobs)}")
    if asked.referee:
        count, wrong = refused(asked.referee, server, jobs, asked.checked)
        print(f"refused by the referee: {len(wrong)} of {count}", *wrong[:3])
    if asked.again:
        print(f"planned again from {asked.again} records, parts that differ: "
              f"{again(asked.binary, server, jobs, asked.again)}")
    gaps = [gap for job in jobs for gap in job.gaps]
    print(f"mean gap: {100 * statistics.mean(gaps):.2f} %; each batch alone, in process: "
          f"{100 * offline_gap(jobs, asked):.2f} %")


if __name__ == "__main__":
    main()
