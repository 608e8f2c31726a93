#!/usr/bin/env python3
"""Asks the referee about many pairs in one process.

    referee.py REFEREE.py QUESTIONS     REFEREE.py is verify_schedule.py; it shares no code with this repository

QUESTIONS holds one JSON object a line: {"problem": text, "solution": text, "replay": bool}. Prints one line for each:
the SHA-256 of the problem's canonical bytes, then what the referee's own main() would print.
"""

import hashlib
import importlib.util
import json
import sys


def load(path):
    """The referee as a module."""
    spec = importlib.util.spec_from_file_location("referee", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def verdict(referee, problem, solution, replay):
    """The referee's line for one pair; main() there does the same with files."""
    try:
        makespan, bound, peaks = referee.verify(problem, solution, replay)
    except referee.Violation as violation:
        return f"violation: {violation}"
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        return f"violation: malformed file: {type(error).__name__}: {error}"
    gap = f"{100 * (makespan - bound) / bound:.3f}%" if bound else "unknown"
    return f"ok makespan_ns={makespan} gap={gap} peak={','.join(map(str, peaks))}"


def main():
    referee = load(sys.argv[1])
    with open(sys.argv[2], encoding="utf-8") as questions:
        for line in questions:
            question = json.loads(line)
            problem, solution = json.loads(question["problem"]), json.loads(question["solution"])
            canonical = json.dumps(problem, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
            answer = verdict(referee, problem, solution, question["replay"])
            print(hashlib.sha256(canonical).hexdigest(), answer.replace("\n", " "))


if __name__ == "__main__":
    main()
