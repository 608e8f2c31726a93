"""pipeweaver validate: the step of an A100 run, worked out again from docs/accuracy.md."""

import csv

import pytest
from conftest import ROOT

BANDWIDTH = 0.8 * 2.039e6  # bytes a microsecond
PEAK = 0.6 * 312e6  # FLOP a microsecond
NETWORK = 0.75 * 100e3  # bytes a microsecond and node
NVLINK = 200e3
COMPUTE, HOST = 1.02, 925


@pytest.fixture()
def ask(pipeweaver, tmp_path):
    """Latencies of A100 operators, in microseconds."""

    def run(op, header, queries):
        (tmp_path / "q.csv").write_text("\n".join([header, *(",".join(map(str, query)) for query in queries)]) + "\n")
        pipeweaver("costdb", "query", "--device", "a100_sxm", "--op", op, "--input", tmp_path / "q.csv", "--output",
                   tmp_path / "a.csv")
        with open(tmp_path / "a.csv", newline="", encoding="utf-8") as file:
            return [float(row["latency_us"]) for row in csv.DictReader(file)]

    return run


def longer_of(one, other):
    return (one ** 4 + other ** 4) ** 0.25


def step_seconds(row, ask):
    """One step of a GPT whose replicas lie on different nodes, with tensor parallelism of 2 to 8."""
    layers, h, ffn, heads, seq, t, p, d, b = (int(row[name]) for name in (
        "layers", "hidden", "ffn", "heads", "seq", "tp", "pp", "dp", "micro_batch"))
    v, m = int(row["vpp"] or 1), b * seq
    vocab = -(-int(row["vocab"]) // (128 * t)) * 128 * t
    shapes = [(m, 3 * h // t, h), (m, h, h // t), (m, ffn // t, h), (m, h, ffn // t), (m, vocab // t, h)]
    gemms = {name: ask("gemm", "dtype,m,n,k,pass", [("bf16", *shape, name) for shape in shapes])
             for name in ("forward", "backward")}
    inside = min(8 // t, d)
    parameters = (layers // p * (4 * h * h + 2 * h * ffn) + vocab * h) / t
    messages = [(t, 2 * m * h), (t, 4 * m), (max(2, inside), int(4 * parameters))]
    asked = [("all_reduce", "fp32", *message) for message in messages]
    asked += [(kind, "bf16", t, 2 * m * h) for kind in ("all_gather", "reduce_scatter")]
    reduced = ask("collective", "collective,dtype,gpus,message_bytes", asked)
    exchange = sum(reduced[3:]) if "seq-parallel" in row["recompute"] else reduced[0]

    scores = b * (heads // t) * seq * seq
    product = max(2 * scores * (h // heads) / PEAK, 2 * scores / BANDWIDTH)
    norms = 22 * m * h / (t if "seq-parallel" in row["recompute"] else 1)
    traffic = (norms + 12 * m * h / t + 4 * m * ffn / t) / BANDWIDTH
    attention = 2 * product + 9 * scores / BANDWIDTH
    forward = COMPUTE * (sum(gemms["forward"][:4]) + attention + traffic) + 2 * exchange
    backward = COMPUTE * (sum(gemms["backward"][:4]) + 4 * product + 12 * scores / BANDWIDTH + 1.5 * traffic)
    backward += 2 * exchange
    full = row["recompute"] == "full"
    again = forward if full else COMPUTE * attention if row["recompute"].startswith("selective") else 0
    launches = 2.3 + full + (0.5 * (2 + full) if b * heads // t % 4 else 0)
    layer = longer_of(forward + backward + again, HOST * launches)

    head = gemms["forward"][4] + gemms["backward"][4] + 32 * m * vocab / t / BANDWIDTH + 3 * reduced[1]
    ranks = [layers // p * layer] * p
    ranks[0] += 12 * m * h / BANDWIDTH + exchange
    ranks[-1] += longer_of(COMPUTE * head, 2 * HOST * launches)
    link = NVLINK if t * d < 8 else NETWORK / 8
    transfer = 2 * (2 * m * h / t / link + 2 * m * h * (t - 1) / t / NVLINK) if p > 1 else 0
    count = int(row["global_batch"]) // (d * b)
    time = count * max(ranks) + (sum(ranks) - max(ranks)) / v + (count + p - 1) * v * transfer

    nodes = d / inside
    across = 2 * (nodes - 1) / nodes * 4 * parameters * (8 / inside) / NETWORK
    return 1e-6 * (time + max(across, reduced[2] if inside > 1 else 0) + 32 * parameters / BANDWIDTH)


@pytest.mark.parametrize("change", [
    {},
    {"tp": "4", "pp": "8", "recompute": "selective+seq-parallel"},
    {"tp": "2", "pp": "2", "dp": "128", "micro_batch": "3", "recompute": "none"},
    {"pp": "8", "dp": "1", "gpus": "64", "vpp": "3", "global_batch": "64", "recompute": "selective"},
    {"layers": "2", "hidden": "1024", "ffn": "4096", "heads": "8", "kv_heads": "8", "pp": "1", "dp": "64",
     "micro_batch": "1", "global_batch": "64"},
])
def test_the_step_of_an_a100_run_is_what_the_page_says(pipeweaver, ask, tmp_path, change):
    with open(ROOT / "examples" / "runs.csv", newline="", encoding="utf-8") as file:
        row = {**next(csv.DictReader(file)), **change}
    with open(tmp_path / "run.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, row.keys())
        writer.writeheader()
        writer.writerow(row)
    pipeweaver("validate", tmp_path / "run.csv", "--out", tmp_path / "out.csv")
    with open(tmp_path / "out.csv", newline="", encoding="utf-8") as file:
        answer = next(csv.DictReader(file))
    assert answer["status"] == "predicted", answer["reason"]
    assert float(answer["predicted_step_time_s"]) == pytest.approx(step_seconds(row, ask), rel=1e-5)
