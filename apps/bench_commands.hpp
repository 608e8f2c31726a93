// What `pipeweaver bench` measures, and by which programs: they lie beside pipeweaver where they were built.
#pragma once

#include <array>
#include <string_view>

namespace pipeweaver::apps {

struct BenchCommand {
    const char *name, *program, *about;
};

inline constexpr std::array bench_commands{
    BenchCommand{"plan", "pipeweaver-bench", "the plan of a job against what engineers run, on drawn batches"},
    BenchCommand{"replay", "pipeweaver-bench", "how fast the search times an order"},
    BenchCommand{"search", "pipeweaver-bench", "the search beside every policy on a folder of problems"},
    BenchCommand{"dip", "pipeweaver-bench", "the published search against the default on drawn batches"},
    BenchCommand{"draft", "pipeweaver-bench", "how soon a running job has a first plan of a batch"},
    BenchCommand{"costdb", "pipeweaver-bench", "how fast operator costs are looked up"},
    BenchCommand{"emulator", "pipeweaver-bench", "how fast a step is emulated"},
    BenchCommand{"service", "pipeweaver-load", "whether the planning service holds what it promises"},
    BenchCommand{"accuracy", "pipeweaver-bench", "how right predictions are, and whether another build's were better"}};

/// What help says of the one of that name. Pre: there is one.
[[nodiscard]] constexpr const char* about_bench(std::string_view name) {
    for (const BenchCommand& one : bench_commands)
        if (name == one.name) return one.about;
    return nullptr;
}

}  // namespace pipeweaver::apps
