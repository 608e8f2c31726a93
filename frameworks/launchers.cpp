#include "pipeweaver/frameworks/launcher.hpp"

#include <array>

namespace pipeweaver::frameworks {

std::span<const Launcher> launchers() {
    static constexpr std::array all{
        Launcher{.name = "torchrun",
                 .a_node = "nproc_per_node",
                 .nodes = "nnodes",
                 .source = "pytorch v2.9: torch/distributed/run.py"},
        Launcher{.name = "deepspeed",
                 .a_node = "num_gpus",
                 .nodes = "num_nodes",
                 .source = "DeepSpeed 0.18: deepspeed/launcher/runner.py"},
        Launcher{.name = "accelerate", .all = "num_processes", .source = "accelerate 1.11: commands/launch.py"},
        Launcher{.name = "srun, train.sh",
                 .a_node = "gpus_per_node",
                 .nodes = "nodes",
                 .only_both = true,
                 .source = "Slurm 24.05: srun(1); Megatron-Bridge v0.6.0: scripts/training/setup_experiment.py"},
        Launcher{.name = "the environment",
                 .by_variables = true,
                 .a_node = "NPROC_PER_NODE",
                 .nodes = "NNODES",
                 .source = "modelscope/ms-swift 3602360: swift/cli/main.py; LLaMA-Factory 0.9: cli.py"},
        Launcher{.name = "Slurm",
                 .by_variables = true,
                 .a_node = "SLURM_GPUS_ON_NODE",
                 .nodes = "SLURM_NNODES",
                 .source = "Slurm 24.05: sbatch(1), output environment variables"},
    };
    return all;
}

}  // namespace pipeweaver::frameworks
