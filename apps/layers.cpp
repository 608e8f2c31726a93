// pipeweaver layers: what each layer takes on its own.
#include "apps/command_line.hpp"
#include "apps/commands.hpp"
#include "apps/console.hpp"
#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/base/text_table.hpp"
#include "pipeweaver/planner/job.hpp"
#include "pipeweaver/planner/workload_options.hpp"

#include <nlohmann/json.hpp>

namespace pipeweaver::apps {

namespace {

bool takes_as_long(const emulator::LayerTime& one, const emulator::LayerTime& other) {
    return one.module == other.module && one.forward == other.forward && one.backward == other.backward &&
           one.exposed_traffic == other.exposed_traffic && one.kept == other.kept;
}

std::string table(const planner::Job& job, const planner::Batch& batch,
                  const std::vector<emulator::LayerTime>& layers) {
    std::string text =
        fmt::format("{} on {} x {}, {}, recipe {}; the mean of {}, of a GPU\n", job.setup->model.name,
                    job.setup->cluster.gpus, job.setup->cluster.device, emulator::name_of(job.setup->layout),
                    job.setup->recipe.name, plural(batch.microbatches.size(), "microbatch"));
    TextTable rows({{"module", true, 12},
                    {"layers", false, 9},
                    {"forward", false, 10},
                    {"backward", false, 10},
                    {"exposed traffic", false, 16},
                    {"kept", false, 11}},
                   1);
    for (std::size_t i = 0; i < layers.size();) {
        std::size_t end = i + 1;
        while (end < layers.size() && takes_as_long(layers[i], layers[end])) ++end;
        const emulator::LayerTime& layer = layers[i];
        const std::string which =
            end == i + 1 ? fmt::format("{}", layer.layer) : fmt::format("{}-{}", layer.layer, layers[end - 1].layer);
        rows.add({layer.module, which, human(layer.forward), human(layer.backward), human(layer.exposed_traffic),
                  human(layer.kept)});
        i = end;
    }
    return text + rows.text();
}

nlohmann::ordered_json as_json(const std::vector<emulator::LayerTime>& layers) {
    auto rows = nlohmann::ordered_json::array();
    for (const emulator::LayerTime& layer : layers)
        rows.push_back({{"module", layer.module},
                        {"layer", layer.layer},
                        {"forward_ns", layer.forward.count()},
                        {"backward_ns", layer.backward.count()},
                        {"exposed_traffic_ns", layer.exposed_traffic.count()},
                        {"kept_bytes", layer.kept.count}});
    return {{"layers", std::move(rows)}};
}

struct Layers {
    explicit Layers(CLI::App& app) : options(app) {
        console.add_to(app);
        workload.add_to(options);
        options.with_configuration();
        options.group("The answer");
        options.integer("seed", limits.seed, 0, 9'007'199'254'740'991, "seed of the drawn batch (default 1)");
    }

    void run() {
        options.apply();
        const auto request = workload.request(static_cast<std::uint64_t>(limits.seed), limits.executor());
        const auto layers = planner::layers_of(*request.job.setup, request.batch);
        if (console.json)
            print_json(as_json(layers));
        else
            print_text("{}", table(request.job, request.batch, layers));
    }

    Options options;
    Console console;
    Limits limits;
    planner::WorkloadOptions workload;
};

}  // namespace

void add_layers(CLI::App& program) {
    add_command<Layers>(
        program, "layers", "what each layer of a model takes: forward, backward, exposed traffic, kept memory",
        {.synopsis = "--model MODEL --cluster CLUSTER (--batch FILE | --dataset DATASET) [OPTION...]",
         .description = "Prices every repeated block of a model on one GPU of its layout: what a profile of a training "
                        "run can be held against. Embeddings, output heads and projectors are left out.",
         .examples = {{"The layers of a vision-language model on eight GPUs a rank",
                       "pipeweaver layers --model dip-vlm-m --cluster h800-sxm:32 --tp 8 --pp 4 --dataset vlm-mix "
                       "--microbatches 1"},
                      {"The same without what hides tensor-parallel traffic, in JSON",
                       "pipeweaver layers --model dip-vlm-m --cluster h800-sxm:32 --tp 8 --pp 4 --dataset vlm-mix "
                       "--microbatches 1 --recipe torch-fsdp2 --json"}},
         .see_also = {"pipeweaver emulate", "pipeweaver costdb needs", "docs/accuracy.md"}});
}

}  // namespace pipeweaver::apps
