"""costdb calibrate, evaluate, stats and export from the command line: formats, determinism, bad input."""

import csv
import gzip
import json

from checkout import ROOT

MEASURED = ROOT / "examples/measured-h100-gemm.csv"


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def ask(pipeweaver, tmp_path, database, device, rows):
    (tmp_path / "q.csv").write_text("dtype,m,n,k\n" + "".join(f"{row}\n" for row in rows))
    pipeweaver("costdb", "query", "--device", device, "--op", "gemm", "--database", database,
               "--input", tmp_path / "q.csv", "--output", tmp_path / "a.csv")
    return rows_of(tmp_path / "a.csv")


def test_a_transfer_measures_what_it_chose_and_calls_nothing_else_exact(pipeweaver, tmp_path):
    shapes, database = tmp_path / "measure.csv", tmp_path / "new.sqlite"
    pipeweaver("costdb", "calibrate", "--donor", "a100_sxm", "--device", "h100_sxm", "--out-shapes", shapes)
    chosen = rows_of(shapes)
    assert list(chosen[0]) == ["dtype", "m", "n", "k", "pass"] and len(chosen) == 32

    said = pipeweaver("costdb", "calibrate", "--donor", "a100_sxm", "--device", "h100_sxm", "--measured", MEASURED,
                      "--out", database)
    again = tmp_path / "again.sqlite"
    pipeweaver("costdb", "calibrate", "--donor", "a100_sxm", "--device", "h100_sxm", "--measured", MEASURED,
               "--out", again)

    assert "by the ratio of the peaks" in said and "each point left out" in said
    assert database.read_bytes() == again.read_bytes()
    measured = rows_of(MEASURED)
    own, other = ask(pipeweaver, tmp_path, database, "h100_sxm",
                     ["{dtype},{m},{n},{k}".format(**measured[0]), "bf16,4096,4096,4096"])
    assert own["basis"] == "exact" and own["latency_us"] == measured[0]["latency_us"]
    assert other["basis"] == "interpolated" and float(other["error_percent"]) > 10


def test_needs_are_chosen_from_what_is_needed(pipeweaver, tmp_path):
    needs = tmp_path / "needs.csv"
    needs.write_text("dtype,m,n,k,times\n" + "".join(f"bf16,{512 * i},4096,4096,{i}\n" for i in range(1, 41)))
    pipeweaver("costdb", "calibrate", "--donor", "a100_sxm", "--device", "b200", "--needs", needs, "--points", "9",
               "--out-shapes", tmp_path / "measure.csv")
    chosen = rows_of(tmp_path / "measure.csv")
    assert len(chosen) == 9
    assert all(row["n"] == "4096" and int(row["m"]) % 512 == 0 for row in chosen)


def test_steps_give_factors_that_the_database_keeps(pipeweaver, tmp_path):
    steps = tmp_path / "steps.csv"
    steps.write_text("compute_s,tp_exposed_s,other_s,measured_s\n1,0.5,0.1,1.55\n2,0.2,0,2.5\n3,2,0.3,4.9\n")
    said = pipeweaver("costdb", "calibrate", "--device", "h200_sxm", "--steps", steps, "--out", tmp_path / "own.sqlite")
    assert "kernels in a step over kernels alone 1.200" in said
    assert "not hidden 0.500" in said
    held = pipeweaver("costdb", "stats", "--device", "h200_sxm", "--database", tmp_path / "own.sqlite", "--quiet")
    assert "in a step: compute 1.200, tensor-parallel communication 0.500, fitted to 3 measured steps" in held


def test_evaluate_prints_the_same_on_any_number_of_threads(pipeweaver, tmp_path):
    answers = []
    for threads in ("1", "2"):
        out = tmp_path / threads
        answer = json.loads(pipeweaver("costdb", "evaluate", "--device", "a100_pcie", "--op", "gemm", "--threads",
                                       threads, "--json", "--out", out))
        assert answer.pop("run")["threads"] == int(threads)
        assert answer == json.loads((out / "evaluation.json").read_text())
        answers.append((answer, (out / "points.csv").read_bytes()))
    assert answers[0] == answers[1]
    assert answers[0][0]["format"] == "pipeweaver-costdb-evaluation/1"
    assert {row["left_out"] for row in answers[0][0]["rows"]} == {"points", "planes"}


def test_a_transfer_trial_is_within_fifteen_percent_and_better_than_the_peaks(pipeweaver):
    for pair in ("a100_sxm:h100_sxm", "h100_sxm:b200"):
        trial = json.loads(pipeweaver("costdb", "evaluate", "--transfer", pair, "--points", "32", "--json"))
        big, plain = (next(row for row in rows if (row["size"], row["basis"]) == ("big", "any"))
                      for rows in (trial["rows"], trial["by_peak"]))
        assert big["median_percent"] <= 15
        assert big["median_percent"] < plain["median_percent"] and big["p90_percent"] < plain["p90_percent"]


def test_an_export_imports_as_it_was(pipeweaver, tmp_path):
    first, second, database = tmp_path / "first.csv.gz", tmp_path / "second.csv.gz", tmp_path / "again.sqlite"
    pipeweaver("costdb", "export", "--device", "a100_pcie", "--op", "gemm", "--out", first)
    pipeweaver("costdb", "import", first, "--device", "a100_pcie", "--out", database)
    pipeweaver("costdb", "export", "--device", "a100_pcie", "--op", "gemm", "--database", database, "--out", second)
    assert gzip.decompress(first.read_bytes()) == gzip.decompress(second.read_bytes())
    assert b"SimuMax" in gzip.decompress(first.read_bytes())


def test_stats_count_what_export_writes(pipeweaver, tmp_path):
    answer = json.loads(pipeweaver("costdb", "stats", "--device", "a100_sxm", "--json", "--quiet"))
    gemms = sum(row["points"] for row in answer["rows"] if row["op"] == "gemm")
    pipeweaver("costdb", "export", "--device", "a100_sxm", "--op", "gemm", "--out", tmp_path / "g.csv")
    assert gemms == len(rows_of(tmp_path / "g.csv")) > 10_000


def test_bad_input_is_one_line_that_says_what_is_allowed(pipeweaver, tmp_path):
    short = tmp_path / "short.csv"
    short.write_text("dtype,m,n,k,latency_us\nbf16,512,4096,4096,30\n")
    calibrate = ["costdb", "calibrate", "--device", "h100_sxm"]
    transfer = [*calibrate, "--donor", "a100_sxm"]
    out = ["--out", tmp_path / "x.sqlite"]
    for arguments, words in [
            (calibrate, "give --donor DEVICE (a transfer) or --steps FILE"),
            (transfer, "give either --out-shapes FILE (what to measure) or --measured FILE"),
            ([*transfer, "--measured", short], "missing --out FILE: a database"),
            ([*transfer, "--measured", short, *out], "short.csv: 1 forward GEMMs in bf16 are measured, at least 8"),
            ([*transfer, "--measured", MEASURED, "--points", "4", *out], "--points: is '4', must be"),
            ([*calibrate, "--steps", short, *out], "unknown column 'dtype'"),
            (["costdb", "evaluate", "--transfer", "a100_sxm"], "--transfer: is 'a100_sxm', must be DONOR:DEVICE"),
            (["costdb", "evaluate", "--op", "gem"], "unknown operator 'gem'; did you mean 'gemm'?"),
            (["costdb", "export", "--device", "b200", "--op", "gems", "--out", "x"], "unknown table 'gems'"),
            (["costdb", "stats", "--device", "h100_sxn"], "did you mean 'h100_sxm'?")]:
        status, line = pipeweaver.fails(*arguments)
        assert status == 2 and words in line, line
    assert not (tmp_path / "x.sqlite").exists()
