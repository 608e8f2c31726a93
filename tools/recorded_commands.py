#!/usr/bin/env python3
"""Proves that a change of the code changed no result: runs commands with two programs and compares what they write.

    tools/recorded_commands.py --binary OLD --against NEW           both now
    tools/recorded_commands.py --binary OLD --record DIR            writes DIR/recorded.json; needs up to 60 MB
    tools/recorded_commands.py --compare DIR/recorded.json --against NEW    without the old program

With --python-old and --python-new, interpreters that have the package installed, the Python package is compared, too;
when recording, --python-old is the one. With --runs FILE (any number) published runs are predicted as well. What is in
the record decides about --runs when comparing with it.

Compared      every file that a command writes, byte by byte (of a zipped file the difference is shown unzipped), the
              exit status, standard output, and of commands that fail standard error. To fail as before, for the reason
              before, is a result, too; but commands of the Python package must not fail.
Left out      what is measured while running: files named run.json, the keys "run" and "reuse" of an answer of --json
              (the answer is then compared value by value, in the order in which they stand, not by its spaces), and
              standard error of commands that succeed. Times are measured by `pipeweaver bench`, which is not run here.
Inputs        Some are copied from examples/, some are written here, some (plans, problems, solutions, databases) are
              made by the first program; they are kept beside the record. Both programs get the same ones.
Determinism   A search ends after --max-rounds, never by time; no result depends on threads or folders.
Differences   KNOWN lists those that are meant, with the reason; they are shown, and do not count. The exit status is 1
              if there is another one, also for a command that is recorded on one side alone.

A line for each command: its name, how many files were compared, and "equal" or the first difference.
"""

import argparse
import concurrent.futures
import csv
import fnmatch
import gzip
import hashlib
import json
import os
import pathlib
import shlex
import shutil
import string
import subprocess
import sys
import tempfile
import time
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[1]
SECONDS = 600  # that one command may take; none takes more than a few

MEASURED = {"run", "reuse"}  # keys of an answer of --json

# Differences that are meant: (name of a command, file) -> reason. Both may be patterns: ("emulate-*", "stdout").
# Files are named as in the answer: "stdout", "stderr", "status", "out/plan.json".
KNOWN = {
    ("plan-in-turn", "out/plan.json"): "commands of opponents say --assignment in-turn",
    ("plan-in-turn", "stdout"): "commands of opponents say --assignment in-turn",
    ("plan-hf", "out/report.html"): "an opponent beside the same policy on the same partition says its recomputation",
    ("plan-hf", "stdout"): "an opponent beside the same policy on the same partition says its recomputation",
    ("plan-split-always", "out/report.html"): "as plan-hf",
    ("plan-split-always", "stdout"): "as plan-hf",
    ("validate*", "out/predictions.csv"): "commands have the order of the option table, and no option at its default",
}

# Parts of command lines, as $name.
PARTS = {
    "vlm_s": "--model dip-vlm-s --cluster h100-sxm:16 --tp 4 --pp 4",
    "vlm_s_2": "--model dip-vlm-s --cluster h100-sxm:32 --tp 4 --pp 4 --dp 2",
    "vlm_m": "--model dip-vlm-m --cluster h100-sxm:32 --tp 8 --pp 4",
    "t2v_s": "--model dip-t2v-s --cluster h100-sxm:16 --tp 4 --pp 4",
    "llama": "--model llama3-8b --cluster h100-sxm:16 --tp 4 --pp 4 --batch in/text.jsonl",
    "small_there": "--model small-vlm.json --cluster h100-sxm:8 --tp 2 --pp 4 --batch small.jsonl",
    "small": "--model in/small-vlm.json --cluster h100-sxm:8 --tp 2 --pp 4",
    "vlm": "--dataset vlm-mix --microbatches",
    "t2v": "--dataset t2v-mix --microbatches",
    "problem": "in/plan-vlm-s/replica-000/problem.json.gz",
    "plan_found": "in/plan-vlm-s/replica-000/solution.json",
    "search": "--max-rounds 4 --threads 2",
}

# What every command of a kind has at its end; those that search have --max-rounds 4 before it, unless they say
# otherwise.
ENDINGS = {
    "plan": "--threads 2 --out out",
    "solve": "--threads 2 --out out/answer",
    "emulate": "--threads 2 --out out",
}

# Inputs that the first program makes, in their folder; a line each.
PREPARATIONS = """
plan $vlm_s --batch mixed.jsonl $search --out plan-vlm-s
plan $vlm_s_2 $vlm 4 --seed 3 $search --out plan-replicas
plan $vlm_s $vlm 6 --seed 5 --partition dip --split never $search --out plan-other
plan $small_there --target torch-csv $search --out plan-small
solve --stages chain.csv --microbatches 8 --link 50GB/s $search --out stages-chain
solve --stages stages.csv --microbatches 8 --capacity 73.6GiB --link 50GB/s $search --out stages-loop
solve --stages v.csv --microbatches 8 --link 50GB/s $search --out stages-v
solve plan-vlm-s/replica-000/problem.json.gz --policy dual-queue --out dual-queue.json
costdb import measured-gemm.csv --device h100_sxm --origin profiler --licence CC0 --out own.sqlite
costdb needs $small_there --out needs
"""

# NAME COMMAND; lines that begin with spaces go on, `&&` runs another command behind the first. Commands see the inputs
# as in/ and write to out/.
COMMANDS = """
# Plans of the nine presets
plan-vlm-s         plan $vlm_s $vlm 6
plan-vlm-m         plan $vlm_m $vlm 8 --seed 2
plan-vlm-l         plan --model dip-vlm-l --cluster h100-sxm:64 $vlm 6
plan-t2v-s         plan $t2v_s $t2v 8
plan-t2v-l         plan --model dip-t2v-l --cluster h100-sxm:64 $t2v 6
plan-vlm-xl-8k     plan --model dip-vlm-xl-8k --cluster h100-sxm:64 --tp 8 --pp 8 --dp 1 $vlm 4
plan-vlm-xl-16k    plan --model dip-vlm-xl-16k --cluster h100-sxm:128 --tp 8 --pp 16 --dp 1 $vlm 4
plan-t2v-xl-3k     plan --model dip-t2v-xl-3k --cluster h100-sxm:32 --tp 8 --pp 4 --dp 1 $t2v 6
plan-t2v-xl-6k     plan --model dip-t2v-xl-6k --cluster h100-sxm:64 --tp 8 --pp 8 --dp 1 $t2v 6

# Replicas, layouts, machines, models
plan-replicas-2    plan $vlm_s_2 $vlm 4
plan-replicas-4    plan --model dip-vlm-s --cluster h100-sxm:64 --dp 4 $vlm 3 --seed 7
plan-replicas-xl   plan --model dip-vlm-xl-8k --cluster h100-sxm:128 --tp 8 --pp 8 --dp 2 $vlm 3
plan-replicas-t2v  plan --model dip-t2v-xl-3k --cluster h100-sxm:64 --tp 8 --pp 4 --dp 2 $t2v 4
plan-in-turn       plan $vlm_s_2 --batch in/mixed.jsonl --assignment in-turn
plan-auto          plan --model dip-vlm-s --cluster h100-sxm:16 --tp auto --pp auto --dp auto $vlm 4
plan-auto-text     plan --model llama3-8b --cluster h100-sxm:8 --tp auto --pp auto --batch in/text.jsonl
plan-cp            plan --model dip-vlm-s --cluster h100-sxm:16 --tp 2 --cp 2 --pp 4 $vlm 4
plan-cp-ring       plan --model dip-vlm-s --cluster h100-sxm:16 --tp 2 --cp 2 --pp 4 --context ring $vlm 4
plan-experts       plan --model mixtral-8x7b --cluster h100-sxm:32 --tp 4 --pp 4 --dp 2 --ep 4 --batch in/text.jsonl
plan-experts-vlm   plan --model deepseek-vl2 --cluster h100-sxm:16 --tp 2 --pp 4 --ep 2 $vlm 4
plan-latent        plan --model deepseek-v3 --cluster h200-sxm:256 --tp 8 --pp 16 --ep 8 --batch in/text.jsonl
plan-audio         plan --model step-audio-2-mini --cluster h100-sxm:16 --tp 2 --pp 4 --dataset speech --microbatches 4
plan-mixed-a100    plan --model dip-vlm-s --cluster a100-sxm:16 --batch in/mixed.jsonl
plan-mixed-b200    plan --model dip-vlm-s --cluster b200-sxm:16 --batch in/mixed.jsonl
plan-small         plan $small --batch in/small.jsonl
plan-hf            plan --model hf:in/qwen2.5-vl-7b.json --cluster h100-sxm:16 --tp 4 --pp 4 $vlm 4
plan-cpu           plan --model in/cpu-vlm.json --cluster cpu:2 --tp 1 --pp 2 --batch in/cpu-batch.jsonl
plan-own-cluster   plan --model in/model.yaml --cluster in/cluster.yaml --tp 4 --pp 4 --batch in/mixed.jsonl

# What is asked of a plan
plan-batch         plan $vlm_s --batch in/mixed.jsonl --seed 9
plan-videos        plan $t2v_s --batch in/videos.jsonl
plan-split-never   plan $vlm_s $vlm 6 --split never
plan-split-always  plan $vlm_s $vlm 6 --split always
plan-dip           plan $vlm_s $vlm 6 --partition dip
plan-megatron      plan $vlm_s $vlm 6 --partition megatron
plan-balanced      plan $vlm_s $vlm 6 --partition balanced
plan-balanced-t2v  plan $t2v_s $t2v 6 --partition balanced --split always
plan-robust        plan $vlm_s $vlm 6 --robust
plan-robust-2      plan $vlm_s_2 $vlm 4 --robust
plan-torch         plan $vlm_s $vlm 4 --target torch-csv
plan-torch-small   plan $small --batch in/small.jsonl --target torch-csv --partition balanced
plan-torch-2       plan $vlm_s_2 $vlm 4 --target torch-csv
plan-costs         plan $vlm_s $vlm 4 --costs in/own.sqlite
plan-config        plan --config in/config.yaml --batch in/mixed.jsonl
plan-config-json   plan --config in/config.json --microbatches 5
plan-long          plan $vlm_s $vlm 16 --max-rounds 40
plan-long-2        plan $vlm_s_2 $vlm 8 --max-rounds 25 --robust --seed 11
plan-no-search     plan $t2v_s $t2v 6 --max-rounds 0
plan-json          plan $vlm_s $vlm 4 --json
plan-json-2        plan --model dip-t2v-s --cluster h100-sxm:32 --tp 4 --pp 4 --dp 2 $t2v 4 --json
plan-over          plan $vlm_m $vlm 2 --seed 4 && plan $vlm_s $vlm 3
plan-too-large     plan --model dip-vlm-l --cluster h100-sxm:8 --tp 2 --pp 4 $vlm 4
plan-bad-layout    plan --model dip-vlm-s --cluster h100-sxm:16 --tp 3 --pp 4 $vlm 4
plan-bad-model     plan --model dip-vlm-x --cluster h100-sxm:16 $vlm 4

# Problems: policies, strategies, warm starts, targets, objectives
solve-default      solve $problem
solve-seed         solve $problem --seed 2 --strategy default --log out/log.tsv --report out/report.html
solve-long         solve $problem --max-rounds 60 --log out/log.tsv
solve-long-dip     solve $problem --max-rounds 60 --strategy dip --log out/log.tsv
solve-dip          solve $problem --strategy dip --log out/log.tsv
solve-dip-split    solve in/plan-other/replica-000/problem.json.gz --strategy dip --seed 3
solve-replica      solve in/plan-replicas/replica-001/problem.json.gz --json
solve-warm         solve $problem --warm in/dual-queue.json --seed 2
solve-warm-other   solve $problem --warm in/plan-other/replica-000/solution.json
    --warm-problem in/plan-other/replica-000/problem.json.gz --seed 2
solve-memory       solve $problem --then memory
solve-memory-dip   solve $problem --then memory --strategy dip --json
solve-torch        solve in/plan-vlm-s/torch/problem.json.gz --target torch-csv
solve-torch-free   solve in/plan-vlm-s/torch/problem.json.gz --seed 4
solve-torch-loop   solve in/stages-loop/torch/problem.json.gz --target torch-csv --then memory
solve-report       solve in/stages-loop/problem.json.gz --report out/report.html --log out/log.tsv
solve-yaml         solve in/problem.yaml --log out/log.tsv
solve-yaml-memory  solve in/problem.yaml --then memory --strategy dip
policy-gpipe       solve $problem --policy gpipe
policy-1f1b        solve in/stages-chain/problem.json.gz --policy 1f1b
policy-interleaved solve in/stages-loop/problem.json.gz --policy interleaved
policy-dual-queue  solve $problem --policy dual-queue --json
policy-zb-h1       solve in/stages-chain/problem.json.gz --policy zb-h1
policy-zb-v        solve in/stages-v/problem.json.gz --policy zb-v
policy-filling     solve $problem --policy bubble-filling
policy-nesting     solve $problem --policy nesting
policy-path        solve $problem --policy critical-path
policy-loop-queue  solve in/stages-loop/problem.json.gz --policy dual-queue
policy-loop-path   solve in/stages-loop/problem.json.gz --policy critical-path --json
policy-torch       solve in/stages-loop/torch/problem.json.gz --policy interleaved --target torch-csv
policy-not         solve $problem --policy 1f1b
policy-no-report   solve $problem --policy gpipe --report out/report.html
policy-not-v       solve in/stages-loop/problem.json.gz --policy zb-v

# Measured stage times
stages             solve --stages in/stages.csv --microbatches 8
stages-capacity    solve --stages in/stages.csv --microbatches 16 --capacity 73.6GiB --link 50GB/s
stages-torch       solve --stages in/stages.csv --microbatches 8 --target torch-csv --link 50GB/s
stages-seed        solve --stages in/stages.csv --microbatches 12 --capacity 66GiB --seed 2
stages-dip         solve --stages in/chain.csv --microbatches 6 --strategy dip --json
stages-v           solve --stages in/v.csv --microbatches 8 --capacity 60GiB
stages-no-policy   solve --stages in/chain.csv --microbatches 8 --policy zb-h1
stages-no-memory   solve --stages in/chain.csv --microbatches 8 --then memory
stages-too-large   solve --stages in/stages.csv --microbatches 8 --capacity 20GiB

# Schedules again, and as files of frameworks
replay             replay $problem $plan_found
replay-json        replay $problem in/dual-queue.json --json
replay-stages      replay in/stages-loop/problem.json.gz in/stages-loop/solution.json
replay-torch       replay in/plan-vlm-s/torch/problem.json.gz in/plan-vlm-s/torch/solution.json --json
replay-other       replay in/plan-other/replica-000/problem.json.gz $plan_found
emit-csv           emit --plan in/plan-small --target torch-csv --out out
emit-csv-stages    emit --plan in/stages-loop/torch --target torch-csv --out out
emit-csv-plan      emit --plan in/plan-vlm-s --target torch-csv --out out
emit-actions       emit --plan in/plan-vlm-s --target torch-actions --out out
emit-actions-2     emit --plan in/plan-replicas --target torch-actions --out out
emit-actions-stages emit --plan in/stages-chain --target torch-actions --out out
emit-trace         emit --plan in/plan-vlm-s --target chrome-trace --out out
emit-trace-2       emit --plan in/plan-replicas --target chrome-trace --out out

# Emulated steps
emulate            emulate $vlm_m $vlm 8
emulate-batch      emulate $vlm_s --batch in/mixed.jsonl --seed 2
emulate-auto       emulate --model dip-vlm-s --cluster h100-sxm:16 --tp auto --pp auto $vlm 4
emulate-balanced   emulate $vlm_m $vlm 8 --partition balanced --chunks 2 --policy interleaved
emulate-megatron   emulate $vlm_m $vlm 8 --partition megatron --chunks 2 --policy gpipe
emulate-dip        emulate $vlm_m $vlm 8 --partition dip --policy dual-queue
emulate-filling    emulate $vlm_m $vlm 4 --partition dip --policy bubble-filling
emulate-nesting    emulate $vlm_m $vlm 4 --partition dip --policy nesting
emulate-path       emulate $vlm_m $vlm 4 --partition balanced --policy critical-path
emulate-zb-h1      emulate $llama --partition balanced --policy zb-h1
emulate-not-zb-v   emulate $vlm_m $vlm 4 --chunks 2 --policy zb-v
emulate-plan       emulate $vlm_s --batch in/mixed.jsonl --schedule in/plan-vlm-s
emulate-plan-2     emulate $vlm_s_2 $vlm 4 --seed 3
    --schedule in/plan-replicas
emulate-solution   emulate $vlm_s --batch in/mixed.jsonl
    --schedule in/plan-vlm-s/replica-000/solution.json
emulate-none       emulate $llama --recompute none
emulate-selective  emulate $llama --recompute selective
emulate-half       emulate $llama --recompute half
emulate-full       emulate $vlm_m $vlm 4 --recompute full
emulate-offload    emulate $vlm_m $vlm 4 --recompute offload --host-link 25GB/s
emulate-zero-0     emulate --model llama3-8b --cluster h100-sxm:32 --tp 4 --pp 4 --dp 2 --batch in/text.jsonl --zero 0
emulate-zero-1     emulate $vlm_s_2 $vlm 4 --zero 1
emulate-zero-2     emulate $vlm_s_2 $vlm 4 --zero 2
emulate-zero-3     emulate $vlm_s_2 $vlm 4 --zero 3
emulate-bucket     emulate $vlm_s_2 $vlm 4 --bucket 100MiB
    --overlap-slowdown 1.2
emulate-bucket-not emulate $vlm_s_2 $vlm 4 --zero 3 --bucket 50MiB
emulate-launch     emulate $vlm_s $vlm 4 --launch 8us
emulate-what-if    emulate $vlm_m $vlm 4 --what-if in/what-if.yaml --json
emulate-what-if-2  emulate $vlm_s_2 $vlm 4 --what-if in/what-if.json
emulate-trace      emulate $vlm_m $vlm 4 --trace 0,3
emulate-trace-all  emulate --model dip-vlm-s --cluster h100-sxm:32 --tp 2 --cp 2 --pp 4 --dp 2 $vlm 3
    --bucket 100MiB --launch 5us
    --recompute offload --trace 0,1,2,3
emulate-no-reuse   emulate $vlm_m $vlm 4 --no-reuse --trace 1
emulate-json       emulate $vlm_s $vlm 4 --json
emulate-repeat     emulate $vlm_s $vlm 4 --repeat 3
emulate-costs      emulate $vlm_s $vlm 4 --costs in/own.sqlite
emulate-config     emulate --config in/emulate.yaml --batch in/mixed.jsonl
emulate-cp         emulate --model dip-vlm-s --cluster h100-sxm:16 --tp 2 --cp 2 --pp 4 $vlm 4
emulate-cp-ring    emulate --model dip-vlm-s --cluster h100-sxm:16 --tp 2 --cp 2 --pp 4 --context ring $vlm 4 --trace 0
emulate-experts    emulate --model mixtral-8x7b --cluster h100-sxm:32 --tp 4 --pp 4 --ep 4 --batch in/text.jsonl
    --zero 2
emulate-t2v        emulate $t2v_s $t2v 6 --partition dip --policy dual-queue --zero 3
emulate-xl         emulate --model dip-t2v-xl-6k --cluster h100-sxm:128 --tp 8 --pp 8 --dp 2 $t2v 4 --bucket 200MiB
emulate-a100       emulate --model dip-vlm-s --cluster a100-sxm:16 --batch in/mixed.jsonl
emulate-too-large  emulate --model dip-vlm-l --cluster h100-sxm:16 --tp 4 --pp 4 $vlm 4
emulate-not-1f1b   emulate $vlm_m $vlm 4 --chunks 2 --policy 1f1b

# Published runs
validate           validate in/runs.csv --out out/predictions.csv
validate-more      validate in/more-runs.csv --out out/predictions.csv
validate-vtrain    validate in/single-node.csv --out out/predictions.csv
validate-json      validate in/more-runs.csv --json

# Costs of operators
query-gemm         costdb query --device h100_sxm --op gemm --input in/gemm.csv --output out/times.csv
query-gemm-own     costdb query --device h100_sxm --op gemm --input in/gemm.csv --database in/own.sqlite
    --output out/times.csv
query-attention    costdb query --device a100 --op attention --input in/attention.csv --output out/times.csv
query-collective   costdb query --device h100_sxm --op collective --input in/collective.csv --output out/times.csv
query-elementwise  costdb query --device b200 --op elementwise --input in/elementwise.csv --output out/times.csv
query-p2p          costdb query --device a100 --op p2p --input in/p2p.csv --output out/times.csv
query-moe          costdb query --device h100_sxm --op moe --input in/moe.csv --output out/times.csv
explain            costdb explain --device a100_sxm --m 3584 --n 2048 --k 1024
explain-json       costdb explain --device h100_sxm --m 4096 --n 4096 --k 4096 --dtype fp8 --json
explain-model      costdb explain --device a100_sxm --model llama3-8b --tp 4 --m 8192
query-other        costdb query --device h200_sxm --op gemm --input in/gemm.csv --output out/times.csv
    && costdb query --device cpu --op attention --input in/attention.csv --output out/cpu-times.csv
needs              costdb needs $vlm_s $vlm 4 --out out
needs-experts      costdb needs --model mixtral-8x7b --cluster b200-sxm:32 --tp 4 --pp 4 --ep 4
    --batch in/text.jsonl --out out
needs-partition    costdb needs $small --batch in/small.jsonl --partition balanced --out out
stats              costdb stats
stats-json         costdb stats --device b200 --json
stats-own          costdb stats --database in/own.sqlite --json
evaluate           costdb evaluate --device b200 --op gemm --threads 2 --out out
evaluate-attention costdb evaluate --device h100_sxm --op attention --folds 4 --seed 2 --threads 2 --json
evaluate-transfer  costdb evaluate --transfer h100_sxm:b200 --points 16 --threads 2
export-gemm        costdb export --device b200 --op gemm --out out/gemm.csv.gz
export-attention   costdb export --device h100_sxm --op attention --out out/attention.csv
export-collective  costdb export --device h100_sxm --op collective --out out/collective.csv
export-moe         costdb export --device h100_sxm --op moe --out out/moe.csv.gz
export-nodes       costdb export --device h100_sxm --op nodes --out out/nodes.csv
import             costdb import in/measured-gemm.csv --device h100_sxm --out out/own.sqlite
    && costdb import in/measured-h100-gemm.csv --device h100_sxm --origin b --into out/own.sqlite
import-folder      costdb import --default in/tables --out out/own
    && costdb stats --database out/own/h100_sxm.sqlite.gz --json
import-zipped      costdb import in/measured-gemm.csv --device h100_sxm --origin profiler --licence CC0
    --out out/own.sqlite.gz
import-trace       costdb import --trace in/trace.json --kernels out/kernels.csv --json out/trace-report.json
    --out out/own.sqlite
calibrate-shapes   costdb calibrate --donor a100_sxm --device h100_sxm --out-shapes out/measure.csv
calibrate-needs    costdb calibrate --donor a100_sxm --device h100_sxm --needs in/needs/gemm.csv --points 8
    --out-shapes out/measure.csv
calibrate-measured costdb calibrate --donor a100_sxm --device h100_sxm --measured in/measured-h100-gemm.csv
    --out out/own.sqlite
calibrate-steps    costdb calibrate --device h100_sxm --steps in/measured-steps.csv --out out/own.sqlite

# What is known
list               list models && list clusters && list devices && list datasets && list strategies && list policies
    && list targets
list-json          list models --json && list clusters --json && list devices --json && list datasets --json
    && list strategies --json && list policies --json && list targets --json
show               show dip-vlm-s && show dip-t2v-xl-6k && show deepseek-v3 && show step-audio-2-mini && show h100-sxm
show-hf            show hf:in/qwen2.5-vl-7b.json
"""

# What each Python command begins with; `out` is the folder of its results.
PYTHON_BEGIN = """
import csv, json, pathlib
import pipeweaver
out = pathlib.Path("out")
config = {"model": "dip-vlm-s", "cluster": "h100-sxm:16", "tp": 4, "pp": 4, "max_rounds": 4, "threads": 2}
drawn = {**config, "dataset": "vlm-mix", "microbatches": 4}
batch = [json.loads(line) for line in open("in/mixed.jsonl")]
other = [json.loads(line) for line in open("in/other.jsonl")]

def numbers(values):
    return [int(value) for value in values]
"""

PYTHON = {
    "python-plan": """
plan = pipeweaver.plan(drawn, out=out / "plan")
print(plan, plan.makespan_ns, plan.lower_bound_ns, plan.step_ns, plan.gap)
print(json.dumps(plan.summary), json.dumps(plan.assignment))
""",
    "python-plan-batch": """
plan = pipeweaver.plan({**config, "split": "never", "seed": 3}, batch, out=out / "plan")
replica = plan.replicas[0]
(out / "actions.json").write_text(json.dumps(replica.actions))
print(replica.problem, replica.problem.kinds, replica.solution)
for values in (replica.problem.rank, replica.problem.duration_ns, replica.problem.acquire_bytes,
               replica.problem.release_bytes, replica.solution.start_ns, replica.solution.mode,
               replica.solution.peak_bytes):
    print(numbers(values))
print(replica.problem.edges.tolist(), [numbers(rank) for rank in replica.solution.order])
""",
    "python-plan-replicas": """
plan = pipeweaver.plan({**config, "cluster": "h100-sxm:32", "dp": 2}, batch)
plan.write(out / "plan")
for replica in plan.replicas:
    print(replica.number, replica.problem, replica.solution, replica.solution.gap)
""",
    "python-plan-costs": """
plan = pipeweaver.plan({**drawn, "costs": pipeweaver.CostDatabase.open("in/own.sqlite")}, out=out / "plan")
""",
    "python-plan-config": """
plan = pipeweaver.plan("in/config.yaml", "in/mixed.jsonl", out=out / "plan")
""",
    "python-emulate": """
for policy in ("1f1b", "gpipe", "interleaved", "dual-queue", "critical-path", "zb-h1", "nesting"):
    try:
        print(pipeweaver.emulate(config, batch, policy=policy, out=out / policy))
    except pipeweaver.LimitError as error:
        print(policy, error)
print(pipeweaver.emulate({**config, "partition": "balanced"}, batch, policy="1f1b"))
""",
    "python-planner": """
planner = pipeweaver.Planner(config, sample=batch)
planner.first.write(out / "first")
print(json.dumps(planner.partition))
futures = [planner.submit(samples) for samples in (other, batch[: len(batch) // 2], batch)]
for number, future in enumerate(futures):
    future.result().write(out / f"next-{number}")
planner.close()
""",
    "python-planner-replicas": """
with pipeweaver.Planner({**config, "cluster": "h100-sxm:32", "dp": 2, "split": "always"}, sample=batch) as planner:
    planner.first.write(out / "first")
    planner.submit(other).result().write(out / "next")
""",
    "python-solve": """
problem = pipeweaver.Problem.from_file("in/plan-vlm-s/replica-000/problem.json.gz")
(out / "problem.json").write_text(problem.to_json())
for name, options in {"default": {}, "dip": {"strategy": "dip"}, "seed": {"seed": 5}, "memory": {"then": "memory"},
                      "warm": {"warm": "in/dual-queue.json"}}.items():
    found = pipeweaver.solve(problem, max_rounds=4, threads=2, **options)
    (out / f"{name}.json").write_text(found.to_json())
print(pipeweaver.replay(problem, found), pipeweaver.replay(problem, "in/dual-queue.json").makespan_ns)
""",
    "python-stages": """
problem = pipeweaver.Problem.from_stages("in/stages.csv", microbatches=8, capacity="73.6GiB", link="50GB/s")
(out / "problem.json").write_text(problem.to_json())
(out / "solution.json").write_text(pipeweaver.solve(problem, max_rounds=4, threads=2).to_json())
rows = [{key: value or None for key, value in row.items()} for row in csv.DictReader(open("in/stages.csv"))]
problem = pipeweaver.Problem.from_stages(rows, 8, for_torch=True)
(out / "torch.json").write_text(pipeweaver.solve(problem, max_rounds=4, threads=2, target="torch-csv").to_json())
""",
    "python-costs": """
for costs in (pipeweaver.CostDatabase.default(), pipeweaver.CostDatabase.open("in/own.sqlite")):
    for op in ("gemm", "attention", "collective"):
        rows = list(csv.DictReader(open(f"in/{op}.csv")))
        print(json.dumps(costs.query("h100_sxm", op, rows)))
""",
    "python-errors": """
for change in ({"model": "dip-vlm-x"}, {"tp": 3}, {"cluster": "h100-sxm:12"}, {"nonsense": 1},
               {"model": "dip-vlm-l", "cluster": "h100-sxm:8", "tp": 2}):
    try:
        pipeweaver.plan({**drawn, **change})
    except pipeweaver.PipeweaverError as error:
        print(type(error).__name__, error)
""",
}


# --- Inputs -----------------------------------------------------------------------------------------------------------


def mixed_samples(count, first=0):
    """Samples with texts and numbers of images of many sizes."""
    return [{"id": f"s{k}", "text_tokens": 300 + 397 * k % 3500, "loss_tokens": 200 + 97 * k % 300,
             "images": [{"width": 224 + 56 * ((k + i) % 9), "height": 336 + 112 * (i % 4)} for i in range(k * 5 % 8)]}
            for k in range(first, first + count)]


def video_samples(count):
    """Descriptions of clips that a model makes."""
    return [{"id": f"v{k}", "text_tokens": 20 + 31 * k % 180,
             "videos": [{"frames": 32 + 48 * (k % 5), "width": 640, "height": 360, "fps": 16, "role": "target"}]}
            for k in range(count)]


def text_samples(count):
    return [{"id": f"t{k}", "text_tokens": 500 + 613 * k % 3400} for k in range(count)]


def small_samples(count):
    """Samples for the model of examples/small-vlm.json, whose microbatches hold 512 tokens."""
    return [{"id": f"m{k}", "text_tokens": 60 + 53 * k % 300, "images": [{"width": 224, "height": 224}] * (k % 3)}
            for k in range(count)]


STAGE_COLUMNS = "stage,rank,forward_us,backward_us,weight_us,activation_bytes,weights_bytes,send_bytes".split(",")


def stage_rows(ranks):
    """Stages on these ranks; the later a stage, the longer it takes and the less it holds."""
    return [[k, rank, 9000 + 700 * k, 9400 + 600 * k, 8800 + 500 * k, (3 << 30) - (k << 27), 8 << 30, 64 << 20]
            for k, rank in enumerate(ranks)]


RUNS = """\
source,model,layers,hidden,ffn,heads,kv_heads,vocab,seq,gpu,gpus,tp,pp,vpp,dp,cp,ep,\
micro_batch,global_batch,recompute,dtype,tflops_per_gpu,step_time_s,mfu,memory_gib,note
made up,gpt-a,48,8192,32768,64,64,50257,2048,A100-SXM,256,8,4,,8,1,,2,768,full,fp16,,14.5,,,full
made up,gpt-b,96,12288,49152,96,96,51200,2048,A100-SXM,64,8,8,3,1,1,,1,64,\
selective+seq-parallel,fp16,,13.75,,,interleaved
made up,gpt-c,48,6144,24576,48,48,51200,2048,A100-SXM,8,8,1,,1,1,,4,4,none,bf16,,1.4,,,one node
made up,llama3-70b,80,8192,28672,64,8,128256,8192,H100,64,4,4,5,2,2,,1,128,,fp8,,11.3,,,context
made up,llama3-8b,32,4096,14336,32,8,128256,8192,H100,8,1,1,,8,1,,1,128,,bf16,,,,,nothing measured
made up,llama3-8b,32,4096,14336,32,8,128256,8192,B200,8,1,1,,8,1,1,1,128,none,bf16,,2.9,,120.5,one node
made up,llama3-70b,12,8192,28672,64,8,128256,4096,B200,8,4,2,,1,1,1,1,16,none,bf16,,0.8,,51.2,pipeline
made up,llama3-70b,12,8192,28672,64,8,128256,4096,B200,8,2,2,,1,2,1,1,16,full,bf16,,1.1,,40.0,context
made up,no-gpus,12,8192,28672,64,8,128256,4096,B200,,,2,,1,,1,1,16,none,bf16,,0.8,,,unknown layout
made up,no-microbatch,126,16384,53248,128,8,128256,8192,H100-80GB,16384,8,16,,128,1,,,2048,,bf16,400,,0.41,,refused
"""

SINGLE_NODE = """\
# GPUs,global batch,micro batch,hidden size,attention heads,# layers,sequence length,\
tensor parallelism,data parallelism,pipeline parallelism,iteration time (ms)
2,16,2,2048,16,24,1024,2,1,1,1460.5
4,16,1,1600,25,48,1024,2,2,1,1322.1
4,32,2,2560,32,32,2048,1,1,4,8312.0
8,16,1,4096,32,36,2048,8,1,1,5031.2
8,64,4,3072,24,30,2048,2,2,2,7412.4
"""

PROBLEM_YAML = """\
format: pipeweaver-problem/1
name: by-hand
ranks:
  - {capacity_bytes: 700, base_bytes: 100}
  - {capacity_bytes: 700, base_bytes: 100, tail_ns: 5}
tasks:
  - {id: 0, rank: 0, kind: F, duration_ns: 100, acquire_bytes: 300, release_bytes: 0, label: a0}
  - {id: 1, rank: 1, kind: F, duration_ns: 120, acquire_bytes: 200, release_bytes: 0, label: a1}
  - {id: 2, rank: 1, kind: B, duration_ns: 220, acquire_bytes: 0, release_bytes: 200, label: A1}
  - {id: 3, rank: 0, kind: B, duration_ns: 210, acquire_bytes: 0, release_bytes: 300, label: A0}
  - {id: 4, rank: 0, kind: F, duration_ns: 90, acquire_bytes: 280, release_bytes: 0, label: b0}
  - {id: 5, rank: 1, kind: F, duration_ns: 140, acquire_bytes: 200, release_bytes: 0, label: b1}
  - {id: 6, rank: 1, kind: B, duration_ns: 250, acquire_bytes: 0, release_bytes: 200, label: B1}
  - {id: 7, rank: 0, kind: B, duration_ns: 190, acquire_bytes: 0, release_bytes: 280, label: B0}
  - {id: 8, rank: 0, kind: X, duration_ns: 60, acquire_bytes: 0, release_bytes: 0, label: x}
edges: [[0, 1, 10], [1, 2, 0], [2, 3, 10], [4, 5, 10], [5, 6, 0], [6, 7, 10], [8, 6, 0]]
pairs:
  - forward: 0
    backward: 3
    modes:
      - {forward_ns: 100, backward_ns: 210, held_bytes: 300, transient_bytes: 0, kept_bytes: 0}
      - {forward_ns: 100, backward_ns: 300, held_bytes: 50, transient_bytes: 250, kept_bytes: 0}
"""

WRITTEN = {
    "problem.yaml": PROBLEM_YAML,
    "more-runs.csv": RUNS,
    "single-node.csv": SINGLE_NODE,
    "config.yaml": "model: dip-vlm-s\ncluster: h100-sxm:16\ntp: 4\npp: 4\npartition: dip\nseed: 6\nsplit: never\n"
                   "max-rounds: 5\n",
    "config.json": '{"model":"dip-t2v-s","cluster":"h100-sxm:16","dataset":"t2v-mix","microbatches":4,"robust":true,'
                   '"max-rounds":3}\n',
    "emulate.yaml": "model: dip-vlm-s\ncluster: h100-sxm:16\ntp: 4\npp: 4\nzero: 2\nlaunch: 4us\nrecompute: full\n",
    "what-if.json": '{"format":"pipeweaver-what-if/1","devices":[{"rank":1,"replica":0,"factor":1.5}],'
                    '"links":{"data":2,"pipeline":0.25},"operators":{"gemm":0.8,"qkv":1.1},"modules":{"vit":0.9}}\n',
    "cluster.yaml": "format: pipeweaver-cluster/1\nname: own\ndevice: h800_sxm\ngpus_per_node: 8\ngpus: 16\n"
                    "node_link_bytes_per_s: 180000000000\nnetwork_bytes_per_s: 100000000000\n",
    "collective.csv": "collective,dtype,gpus,message_bytes\nall_gather,bf16,4,67108864\nreduce_scatter,bf16,8,1000000\n"
                      "all_reduce,bf16,8,4096\n",
    "p2p.csv": "message_bytes,gpus_per_node\n1048576,8\n67108864,1\n",
    "moe.csv": "dtype,tokens,hidden,ffn,top_k,experts,moe_tp,moe_ep,routing\nbf16,4096,4096,14336,2,8,1,4,balanced\n"
               "bf16,1000,7168,2048,8,256,2,8,balanced\n",
    "elementwise.csv": "traffic_bytes\n1000000\n250000000\n",
}


def write_lines(path, samples):
    path.write_text("".join(json.dumps(sample) + "\n" for sample in samples))


def write_stages(path, ranks):
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([STAGE_COLUMNS, *stage_rows(ranks)])


def write_inputs(folder, runs):
    """All inputs that need no program; `runs` are files of published runs."""
    shutil.copytree(ROOT / "examples", folder, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    for name, text in WRITTEN.items():
        (folder / name).write_text(text)
    write_lines(folder / "mixed.jsonl", mixed_samples(24))
    write_lines(folder / "other.jsonl", mixed_samples(18, first=100))
    write_lines(folder / "videos.jsonl", video_samples(16))
    write_lines(folder / "text.jsonl", text_samples(32))
    write_lines(folder / "small.jsonl", small_samples(20))
    write_stages(folder / "chain.csv", [0, 1, 2, 3])
    write_stages(folder / "v.csv", [0, 1, 2, 3, 3, 2, 1, 0])
    (folder / "tables").mkdir()  # names of tables say the device
    shutil.copy(folder / "measured-gemm.csv", folder / "tables" / "b200_gemm.csv")
    shutil.copy(folder / "measured-h100-gemm.csv", folder / "tables" / "h100_sxm_gemm.csv")
    (folder / "published").mkdir()
    for path in runs:
        shutil.copy(path, folder / "published" / path.name)


def prepare(folder, binary, runs):
    """All inputs."""
    write_inputs(folder, runs)
    model = subprocess.run([binary, "show", "dip-vlm-s"], stdout=subprocess.PIPE, check=True).stdout
    (folder / "model.yaml").write_bytes(model)  # JSON is YAML
    for line in PREPARATIONS.strip().splitlines():
        done = subprocess.run([binary, *words(line)], cwd=folder, capture_output=True, text=True, timeout=SECONDS)
        if done.returncode != 0:
            sys.exit(f"preparing inputs: pipeweaver {line}\n{done.stderr}")


# --- Commands ---------------------------------------------------------------------------------------------------------


def words(line):
    """A command line's words, with PARTS in their places."""
    return shlex.split(string.Template(line).substitute(PARTS))


def ended(line):
    """The line with what every command of its kind has at its end."""
    kind = line.split()[0]
    rounds = kind in ("plan", "solve") and "--max-rounds" not in line and "--config" not in line
    return " ".join([line, *(["--max-rounds 4"] if rounds else []), ENDINGS.get(kind, "")]).strip()


def table(text):
    """{name: [command line, ...]} of COMMANDS."""
    found = {}
    for line in text.replace("\n    ", " ").splitlines():
        if line and not line.startswith("#"):
            name, rest = line.split(maxsplit=1)
            assert name not in found, name
            found[name] = [ended(part.strip()) for part in rest.split("&&")]
    return found


def published(inputs):
    """Commands that predict the files of --runs."""
    return {f"validate-{path.stem}": [f"validate in/published/{path.name} --out out/predictions.csv",
                                      f"validate in/published/{path.name} --json"]
            for path in sorted((inputs / "published").iterdir())}


class Program:
    """What runs commands: a binary, and perhaps an interpreter with the package."""

    def __init__(self, binary, python):
        self.binary, self.python = binary, python

    def commands(self, inputs):
        """{name: [words, ...]} of all that can be run."""
        lines = {**table(COMMANDS), **published(inputs)}
        found = {name: [[self.binary, *words(line)] for line in several] for name, several in lines.items()}
        if self.python:
            found |= {name: [[self.python, "-c", PYTHON_BEGIN + script]] for name, script in PYTHON.items()}
        return found


def answered(line):
    """The answer of --json, which is one line; None for other lines. Numbers stay texts, so that no digit is lost."""
    try:
        value = json.loads(line, parse_float=str, parse_int=str)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def without_measured(text):
    """Standard output without what was measured: answers of --json lose "run" and "reuse"."""
    lines = text.splitlines(keepends=True)
    for number, line in enumerate(lines):
        answer = answered(line)
        if answer and MEASURED & answer.keys():
            lines[number] = json.dumps({key: value for key, value in answer.items() if key not in MEASURED}) + "\n"
    return "".join(lines)


def one_run(command, folder):
    """Runs a command there; one that does not end is a result, too."""
    try:
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="backslashreplace",
                              timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, "timeout", "", f"not done in {SECONDS} s\n")


def run(several, folder, inputs):
    """Runs the commands one after the other in a new folder; what they print becomes files beside what they write."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "out").mkdir(parents=True)
    (folder / "in").symlink_to(inputs)
    done = [one_run(command, folder) for command in several]
    (folder / "stdout").write_text(without_measured("".join(each.stdout for each in done)))
    (folder / "stderr").write_text("".join(each.stderr for each in done if each.returncode))
    (folder / "status").write_text(" ".join(str(each.returncode) for each in done) + "\n")


def results(folder):
    """The files to compare, by their names in the folder."""
    written = [path for path in folder.glob("out/**/*") if path.is_file() and path.name != "run.json"]
    return {path.relative_to(folder).as_posix(): path
            for path in sorted([*written, folder / "stdout", folder / "stderr", folder / "status"])}


def digests(folder):
    return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in results(folder).items()}


def run_all(program, folder, inputs, only, jobs):
    """Runs each command in a folder of its name; yields (name, {file: SHA-256}) in the order of the table."""
    commands = {name: lines for name, lines in program.commands(inputs).items() if fnmatch.fnmatch(name, only)}

    def one(name):
        run(commands[name], folder / name, inputs)
        return name, digests(folder / name)

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(one, commands)


# --- Comparison -------------------------------------------------------------------------------------------------------


def unzipped(path):
    content = path.read_bytes()
    try:
        return gzip.decompress(content) if path.suffix == ".gz" else content
    except (OSError, EOFError, zlib.error):  # no gzip: shown as it is
        return content


def first_difference(old, new):
    """Where two files begin to differ, with what stands there."""
    if not old.is_file():
        return "other bytes (the recorded ones were not kept)"
    before, after = unzipped(old), unzipped(new)
    if before == after:
        return "unzipped the same, zipped other bytes"
    at = len(os.path.commonprefix([before, after]))
    shown = [content[max(0, at - 40):at + 40].decode(errors="replace") for content in (before, after)]
    return f"byte {at}: {shown[0]!r} became {shown[1]!r}"


def differences(recorded, found, old, new):
    """[(file, what differs)] of a command's results."""
    several = []
    for file in sorted({*recorded, *found}):
        if file not in found:
            several.append((file, "is not written any more"))
        elif file not in recorded:
            several.append((file, "was not written before"))
        elif recorded[file] != found[file]:
            several.append((file, first_difference(old / file, new / file)))
    return several


def reason(name, file):
    """Why a difference is meant; None where it is not."""
    for (names, files), why in KNOWN.items():
        if fnmatch.fnmatch(name, names) and fnmatch.fnmatch(file, files):
            return why
    return None


class Report:
    """Prints a line for each command and counts."""

    def __init__(self):
        self.commands = self.files = self.failing = 0
        self.known, self.unexplained = [], []

    def add(self, name, recorded, found, old, new):
        several = differences(recorded, found, old, new)
        status = (new / "status").read_text().split()
        if name in PYTHON and status != ["0"]:  # none is meant to; a package that is not installed is equal to another
            several.append(("stderr", (new / "stderr").read_text().strip().splitlines()[-1]))
        self.commands += 1
        self.files += len(found)
        self.failing += any(one != "0" for one in status)
        failed = f", exit status {' '.join(status)}" if set(status) != {"0"} else ""
        print(f"{name:24} {len(found):3} files{failed}  {self._outcome(name, several)}", flush=True)

    def missing(self, name, where):
        self.unexplained.append(name)
        print(f"{name:24} {where}", flush=True)

    def _outcome(self, name, several):
        if not several:
            return "equal"
        unexplained = [(file, what) for file, what in several if reason(name, file) is None]
        (self.unexplained if unexplained else self.known).append(name)
        if not unexplained:
            return "; ".join(f"{file}: {what} (known: {reason(name, file)})" for file, what in several)
        file, what = unexplained[0]
        return f"{len(unexplained)} DIFFER: {file}: {what}"

    def close(self, seconds):
        print(f"\n{self.commands} commands ({self.failing} end with an error), {self.files} files in {seconds:.0f} s")
        if self.known:
            print(f"differences with a reason in {len(self.known)}: {' '.join(self.known)}")
        if not self.commands:
            print("nothing was compared")
        elif self.unexplained:
            print(f"unexplained differences in {len(self.unexplained)}: {' '.join(self.unexplained)}")
        else:
            print("no unexplained difference")
        return 1 if self.unexplained or not self.commands else 0


def record(program, folder, options):
    """Runs all commands; folder/recorded.json has what they gave, inputs/ and results/ beside it the files."""
    if (folder / "inputs").exists():
        sys.exit(f"{folder}: holds a record already")
    folder.mkdir(parents=True, exist_ok=True)
    prepare(folder / "inputs", program.binary, options.runs)
    began = time.monotonic()
    found = dict(run_all(program, folder / "results", folder / "inputs", options.only, options.jobs))
    (folder / "recorded.json").write_text(json.dumps(found, indent=1) + "\n")
    files = sum(map(len, found.values()))
    print(f"recorded {len(found)} commands, {files} files in {time.monotonic() - began:.0f} s", flush=True)


def asked_for(recorded, program, only):
    """Of what record() wrote, the commands to compare: those of the pattern that the program can run."""
    found = {name: files for name, files in json.loads(recorded.read_text()).items() if fnmatch.fnmatch(name, only)}
    if program.python:
        return found
    left_out = [name for name in found if name in PYTHON]
    if left_out:
        print(f"left out without --python-new: {len(left_out)} recorded commands of the Python package")
    return {name: files for name, files in found.items() if name not in PYTHON}


def compare(recorded, program, folder, options):
    """Runs all commands again and compares with the file that record() wrote; the exit status."""
    home, report, began = recorded.parent, Report(), time.monotonic()
    before = asked_for(recorded, program, options.only)
    for name, found in run_all(program, folder, home / "inputs", options.only, options.jobs):
        if name in before:
            report.add(name, before.pop(name), found, home / "results" / name, folder / name)
        else:
            report.missing(name, "NOT RECORDED")
    for name in before:
        report.missing(name, "RECORDED, but no command any more")
    return report.close(time.monotonic() - began)


# --- Command line -----------------------------------------------------------------------------------------------------


def absolute(text):
    """A path that holds in every folder; links stay, since an environment's interpreter is one."""
    return pathlib.Path(text).absolute()


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=absolute, metavar="OLD", help="the program that results are held against")
    parser.add_argument("--against", type=absolute, metavar="NEW", help="the program that is compared")
    parser.add_argument("--python-old", type=absolute, metavar="PYTHON", help="an interpreter with the old package")
    parser.add_argument("--python-new", type=absolute, metavar="PYTHON", help="an interpreter with the new package")
    parser.add_argument("--record", type=absolute, metavar="DIR", help="write what --binary gives to DIR/recorded.json")
    parser.add_argument("--compare", type=absolute, metavar="FILE", help="recorded.json, in place of --binary")
    parser.add_argument("--runs", type=absolute, metavar="FILE", action="append", default=[],
                        help="published runs to predict")
    parser.add_argument("--only", default="*", metavar="NAME", help="only this command, or a pattern: 'plan-*'")
    parser.add_argument("--keep", type=absolute, metavar="DIR", help="keep what was written in this folder")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="commands at the same time (default: 1)")
    options = parser.parse_args()
    if bool(options.binary) == bool(options.compare):
        parser.error("either --binary or --compare is needed")
    if bool(options.record) == bool(options.against) or options.record and options.compare:
        parser.error("--against is needed, or with --binary --record in its place")
    if options.binary and options.against and bool(options.python_old) != bool(options.python_new):
        parser.error("--python-old and --python-new go together")
    return options


def main():
    options = parse()
    old = Program(options.binary, options.python_old)
    if options.record:
        record(old, options.record, options)
        return 0
    with tempfile.TemporaryDirectory(prefix="recorded-commands-") as temporary:
        folder = options.keep or pathlib.Path(temporary)
        recorded = options.compare or folder / "recorded.json"
        if options.binary:
            record(old, folder, options)
        return compare(recorded, Program(options.against, options.python_new), folder / "compared", options)


if __name__ == "__main__":
    sys.exit(main())
