// pipeweaver costdb needs: which operators a plan asks for, so that they can be measured.
#include "apps/command_line.hpp"
#include "apps/console.hpp"
#include "apps/costdb/costdb_commands.hpp"
#include "pipeweaver/emit/plan_files.hpp"
#include "pipeweaver/planner/job_options.hpp"

namespace pipeweaver::apps {

namespace {

struct CostdbNeeds {
    explicit CostdbNeeds(CLI::App& app) : options(app) {
        workload.add_to(options);
        options.group("The needs");
        options.with_configuration();
        job.add_to(options);
        options.integer("seed", limits.seed, 0, 9'007'199'254'740'991, "seed of the drawn batch (default 1)");
        options.text("out", out, "DIR", "folder of the tables (required)");
        options.writes();
    }

    void run() {
        options.apply();
        auto needed = workload.needed();
        needed.push_back({!out.empty(), "--out DIR", "a folder for the tables"});
        require_given(needed);
        auto request = workload.request(static_cast<std::uint64_t>(limits.seed), limits.executor());
        job.fill(request.job, workload);
        const auto needs = planner::needs(request.job, request.batch, limits.executor());
        write_files(emit::needs_files(needs, out));
        print_text("{} operators of {} on {} x {}: {}\n", needs.size(), request.job.setup->model.name,
                   request.job.setup->cluster.gpus, request.job.setup->cluster.device, shares(needs));
    }

    static std::string shares(const std::vector<planner::Need>& needs) {
        std::string text;
        for (const auto basis : {costdb::Basis::exact, costdb::Basis::interpolated, costdb::Basis::extrapolated,
                                 costdb::Basis::modelled}) {
            double share = 0;
            for (const auto& need : needs)
                if (need.cost.basis == basis) share += need.share;
            text += fmt::format("{}{:.1f} % {}", text.empty() ? "" : ", ", 100 * share, name_of(basis));
        }
        return text;
    }

    Options options;
    Limits limits;
    planner::WorkloadOptions workload;
    planner::JobOptions job;
    std::string out;
};

}  // namespace

void add_costdb_needs(CLI::App& parent) {
    add_command<CostdbNeeds>(
        parent, "needs", "the operators that a plan asks for",
        {.synopsis = "--model MODEL --cluster CLUSTER (--batch FILE | --dataset DATASET) --out DIR [OPTION...]",
         .description =
             "Lists the operators whose times planning such a step asks for, on every partition that a plan compares: "
             "each once, with how often it runs in a step, its share of the operators' time, the time that is "
             "answered now and what that rests on. Most important first: what to measure on a machine of your own.\n"
             "Attention over packed sequences is listed as the batch of equal sequences that is asked for in its "
             "place, the backward of a matrix product as its two halves.",
         .examples = {{"What a small model asks for on two processes of this machine",
                       "pipeweaver costdb needs --model examples/cpu-vlm.json --cluster cpu:2 --tp 1 --pp 2 "
                       "--batch examples/cpu-batch.jsonl --out needs"},
                      {"What of it the database knows no better than by a model",
                       "pipeweaver costdb needs --model dip-vlm-s --cluster b200-sxm:16 --dataset vlm-mix "
                       "--microbatches 2 --out needs-b200"}},
         .files = {{"gemm.csv", "matrix products by pass"},
                   {"attention.csv", "attention, forward and backward"},
                   {"elementwise.csv", "memory-bound work, with what its kernels work on"},
                   {"collectives.csv", "collectives and transfers, of 16-bit values: for nccl-tests"},
                   {"moe.csv", "layers of experts, where the model has any"}},
         .see_also = {"pipeweaver costdb import", "pipeweaver plan", "docs/your-own-measurements.md"}});
}

}  // namespace pipeweaver::apps
