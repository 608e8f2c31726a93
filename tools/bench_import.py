"""Imports a large trace, and reads it with nlohmann's document tree: seconds and peak memory of both.

    cmake --preset release -DPIPEWEAVER_BUILD_BENCHMARKS=ON && cmake --build --preset release
    python3 tools/bench_import.py [--megabytes 1024] [--gzip]

The trace is like those of PyTorch: operators with shapes, launches, kernels, flow arrows, every id once.
"""

import argparse
import gzip
import os
import pathlib
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
SHAPES = [(4096, 5120, 5120), (4096, 5120, 13824), (4096, 13824, 5120), (8192, 5120, 6400)]


def events(number):
    """The events of one launched product of matrices and one memory-bound kernel, as lines."""
    m, k, n = SHAPES[number % len(SHAPES)]
    start = 1712195495519689000 + 900_125 * number
    us = f"{start // 1000}.{start % 1000:03d}"
    return f"""{{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1102, "tid": 1262, "ts": {us}, "dur": 63.813, "args": {{"External id": {2 * number}, "Record function id": {number}, "Input Strides": [[{k}, 1], [1, {k}]], "Input Dims": [[{m}, {k}], [{k}, {n}]], "Input type": ["c10::BFloat16", "c10::BFloat16"], "Concrete Inputs": ["", ""], "Sequence number": {number}, "Fwd thread id": 1, "Ev Idx": {number}}}}},
{{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1102, "tid": 1262, "ts": {us}, "dur": 6.8, "args": {{"External id": {2 * number}, "cbid": 211, "correlation": {2 * number + 1}}}}},
{{"ph": "s", "id": {2 * number + 1}, "pid": 1102, "tid": 1262, "ts": {us}, "cat": "ac2g", "name": "ac2g"}},
{{"ph": "X", "cat": "kernel", "name": "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize2x1x1_execute_segment_k_off_kernel__5x_cublas", "pid": 0, "tid": 7, "ts": {us}, "dur": {700 + number % 17}.{number % 1000:03d}, "args": {{"External id": {2 * number}, "queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": {2 * number + 1}, "registers per thread": 168, "shared memory": 213248, "blocks per SM": 0.969697, "warps per SM": 11.636364, "grid": [2, 64, 1], "block": [384, 1, 1], "est. achieved occupancy %": 18}}}},
{{"ph": "X", "cat": "kernel", "name": "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, at::detail::Array<char*, 3> >(int, at::native::CUDAFunctor_add<c10::BFloat16>, at::detail::Array<char*, 3>)", "pid": 0, "tid": 7, "ts": {us}, "dur": 41.{number % 1000:03d}, "args": {{"External id": {2 * number + 1}, "queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": {2 * number}, "registers per thread": 32, "shared memory": 0, "grid": [16384, 1, 1], "block": [128, 1, 1], "est. achieved occupancy %": 100}}}},
"""


def write_trace(path, megabytes, zipped):
    opened = gzip.open(path, "wt", compresslevel=1) if zipped else open(path, "w")
    with opened as file:
        file.write('{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}],\n"traceEvents": [\n')
        size = number = 0
        while size < megabytes << 20:
            text = events(number)
            size += len(text)
            number += 1
            file.write(text)
        file.write('{"name": "end", "ph": "i", "ts": 0}]}\n')
    return number


def measure(arguments):
    """Seconds, peak resident bytes and output of a command, in a process whose peak is its own."""
    began = time.monotonic()
    running = subprocess.Popen(list(map(str, arguments)), stdout=subprocess.PIPE, text=True)
    peak = 0
    while running.poll() is None:
        with open(f"/proc/{running.pid}/status") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    peak = max(peak, int(line.split()[1]) << 10)
        time.sleep(0.01)
    output = running.stdout.read()
    if running.returncode != 0:
        raise SystemExit(f"{arguments[0]}: exit status {running.returncode}")
    return time.monotonic() - began, peak, output


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--gzip", action="store_true", help="import it zipped; the document tree still reads it plain")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--no-dom", action="store_true", help="leave out the document tree, which needs several times the file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/tmp")) as folder:
        plain, zipped = pathlib.Path(folder, "trace.json"), pathlib.Path(folder, "trace.json.gz")
        count = write_trace(plain, options.megabytes, False)
        imported = plain
        if options.gzip:
            write_trace(zipped, options.megabytes, True)
            imported = zipped
        print(f"{plain.stat().st_size / 2**20:.0f} MB, {5 * count + 1} events, {2 * count} kernels")
        print(f"{'':44}{'seconds':>9}{'peak MB':>10}")
        seconds, peak, output = measure([options.bin / "pipeweaver", "costdb", "import", "--trace", imported, "--out",
                                         pathlib.Path(folder, "own.sqlite"), "--kernels", pathlib.Path(folder, "kernels.csv")])
        assert f"{5 * count + 1} events" in output and f"to {len(SHAPES)} points" in output, output
        print(f"{'costdb import --trace --kernels --out':44}{seconds:9.1f}{peak / 2**20:10.1f}")
        if not options.no_dom:
            seconds, peak, output = measure([options.bin / "bench_json_dom", plain])
            assert f"{5 * count + 1} events" in output
            print(f"{'nlohmann document tree, parse only':44}{seconds:9.1f}{peak / 2**20:10.1f}")


if __name__ == "__main__":
    main()
