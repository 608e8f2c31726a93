"""A check's document, for what shows it."""

from pipeweaver.selfcheck.compare import LIMITS


def measured_document():
    """A check of a GPU as measured and compared, made up: much of it beyond its limits."""
    step = {"stack": "vlm", "how": "eager", "recompute": "none", "seconds": 1.0, "issued_s": 0.1,
            "allocated_bytes": 2**30, "reserved_bytes": 2**30,
            "shipped": {"seconds": 2.0, "error": 1.0, "peak_bytes": 2**31, "memory_error": 1.0}}
    within = {**step, "how": "compiled",
              "own": {"seconds": 1.1, "error": 0.1, "peak_bytes": 2**30, "memory_error": 0.0}}
    return {"scale": "gpu", "gpu": "GPU <1>", "machine": [{"what": "copy", "why": "no <memory>"}],
            "limits": LIMITS, "parts": [{"part": "ranks", "state": "failed", "why": "x", "left": ["a", "b", "c", "d"]}],
            "steps": [step, within, {**step, "stack": "moe", "seconds": 1.0, "why": ""}],
            "operators": [{"operator": "gemm", "pass": "forward", "basis": "exact", "count": 9, "middle_error": 0.2,
                           "nine_of_ten": 0.3}],
            "ranks": [{"check": "gradients", "rank": 0, "holds": False, "worst": 1.0, "limit": 1e-4}],
            "schedule": {"planned_s": 1.0, "with_own_times_s": 1.2, "measured_s": 1.0, "error": 0.2,
                         "own_devices": True}}
