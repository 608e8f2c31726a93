"""Uses an installed package as its users do: the command, `python -m`, Planner, a server that is told to end.

Run by the Python of the environment in which it is installed, in an empty folder. Prints one line of JSON: what the
plan says, for a comparison with other systems."""

import hashlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import urllib.request

COMMAND = str(pathlib.Path(sys.executable).with_name("pipeweaver"))
JOB = ["--model", "dip-vlm-s", "--cluster", "h100-sxm:16", "--tp", "4", "--pp", "4"]
CONFIG = {"model": "dip-vlm-s", "cluster": "h100-sxm:16", "tp": 4, "pp": 4, "max_rounds": 3}
BATCH = [{"id": f"s{k}", "text_tokens": 900, "images": [{"width": 640, "height": 480}] * (k % 4)} for k in range(12)]


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def use_command():
    """The version, the plan's step, and a digest of its schedule."""
    version = output(COMMAND, "--version")
    assert version.startswith("pipeweaver "), version
    assert output(sys.executable, "-m", "pipeweaver", "--version") == version
    output(COMMAND, "plan", *JOB, "--dataset", "vlm-mix", "--microbatches", "4", "--seed", "1", "--max-rounds", "3",
           "--out", "plan")
    assert pathlib.Path("plan/report.html").stat().st_size > 10_000
    solution = pathlib.Path("plan/replica-000/solution.json").read_bytes()
    step = json.loads(pathlib.Path("plan/plan.json").read_text())["step_ns"]
    return {"version": version.split()[1], "step_ns": step, "solution": hashlib.sha256(solution).hexdigest()}


def use_planner():
    """The step that the package plans."""
    import pipeweaver

    with pipeweaver.Planner(CONFIG, sample=BATCH) as planner:
        plan = planner.submit(BATCH).result()
    assert plan.replicas[0].solution.start_ns.min() == 0
    return {"planner_step_ns": plan.summary["step_ns"]}


def use_server():
    server = subprocess.Popen([COMMAND, "serve", "--http", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True)
    try:
        url = next(event["url"] for event in map(json.loads, server.stderr) if event["event"] == "listening")
        with urllib.request.urlopen(f"{url}/metrics", timeout=60) as answer:
            assert b"pipeweaver" in answer.read()
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0
    finally:
        server.kill()
        server.wait()


def bundled():
    """The names of the libraries that came with the package."""
    import pipeweaver

    package = pathlib.Path(pipeweaver.__file__).parent
    folder = package.parent / "pipeweaver.libs"
    return sorted(name.split("-")[0] for name in os.listdir(folder)) if folder.is_dir() else []


def main():
    found = use_command()
    found.update(use_planner(), libraries=bundled())
    use_server()
    found["python"] = ".".join(map(str, sys.version_info[:2]))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
