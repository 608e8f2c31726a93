"""Parsers of released frameworks, of those that are installed: whether they take the flags that a plan wrote."""

import contextlib
import dataclasses
import io
import subprocess
import threading
import warnings
from collections.abc import Callable
from pathlib import Path

# Of an array of flags, with the pipeline ranks: what the framework says against it; empty: nothing.
Parser = Callable[[list[str], int], str]


def array_of(script: Path, name: str) -> list[str]:
    """The words of an array that the script sets."""
    done = subprocess.run(["bash", "-c", f'source "$1"; printf "%s\\0" "${{{name}[@]}}"', "-", str(script)],
                          capture_output=True, text=True, check=True)
    return done.stdout.split("\0")[:-1]


def titan() -> Parser:
    """torchtitan 0.3.0's command line. Throws ImportError."""
    import tyro
    from torchtitan.config import CompileConfig, ParallelismConfig, TrainingConfig
    from torchtitan.config.manager import ConfigManager, custom_registry
    from torchtitan.distributed.activation_checkpoint import ActivationCheckpointingConfig, SelectiveAC
    ConfigManager()
    config = dataclasses.make_dataclass("Job", [
        ("training", TrainingConfig, dataclasses.field(default_factory=TrainingConfig)),
        ("parallelism", ParallelismConfig, dataclasses.field(default_factory=ParallelismConfig)),
        ("compile", CompileConfig, dataclasses.field(default_factory=CompileConfig)),
        ("activation_checkpoint", ActivationCheckpointingConfig,
         dataclasses.field(default_factory=SelectiveAC.Config))])

    def why_not(flags: list[str], ranks: int) -> str:
        said = io.StringIO()
        try:
            with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
                job = tyro.cli(config, args=flags, default=config(), registry=custom_registry)
        except SystemExit:
            return " ".join(said.getvalue().split())
        degree = job.parallelism.pipeline_parallel_degree
        return "" if degree == ranks else f"reads {degree} pipeline ranks"
    return why_not


def megatron() -> Parser:
    """Megatron Core 0.16.1's layout strings; its package has no parser of flags. Throws ImportError."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from megatron.core.transformer.pipeline_parallel_layer_layout import PipelineParallelLayerLayout

    def why_not(flags: list[str], ranks: int) -> str:
        flag = "--pipeline-model-parallel-layout"
        if flag not in flags:
            return ""
        try:
            PipelineParallelLayerLayout.from_str(flags[flags.index(flag) + 1], ranks)
        except (AssertionError, ValueError) as error:
            return str(error)
        return ""
    return why_not


class Parsers:
    """By the name of what a launch is read as; `missing` are those whose package is not there, `uncalled` the
    frameworks whose parser nothing here calls."""

    known: dict[str, tuple[Callable[[], Parser], str, str]] = {
        "torchtitan": (titan, "torchtitan/torchtitan.sh", "PIPEWEAVER_FLAGS"),
        "PIPEWEAVER_SPLIT": (megatron, "megatron/megatron.sh", "PIPEWEAVER_SPLIT")}
    uncalled = ("accelerate", "DeepSpeed", "ms-swift", "LLaMA-Factory", "Megatron-Bridge")

    def __init__(self) -> None:
        self.missing: list[str] = []
        self.found: dict[str, Parser] = {}
        self.lock = threading.Lock()
        for name, (make, _, _) in self.known.items():
            try:
                self.found[name] = make()
            except ImportError:
                self.missing.append(name)

    def why_not(self, name: str, plan: Path, ranks: int) -> str:
        if name not in self.found:
            return ""
        _, file, array = self.known[name]
        with self.lock:
            return self.found[name](array_of(plan / file, array), ranks)
