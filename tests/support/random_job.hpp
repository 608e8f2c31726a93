// Random small jobs, and what a test knows of their steps without the step builder: shapes, parameters, exchanges
// between replicas, updates. It asks for nothing but the time of one operator.
#pragma once

#include "pipeweaver/base/random.hpp"
#include "pipeweaver/costdb/database.hpp"
#include "pipeweaver/emulator/in_situ.hpp"
#include "pipeweaver/planner/emulate.hpp"
#include "pipeweaver/workloads/counts.hpp"
#include "tests/support/small_workload.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

namespace pipeweaver::testing {

using costdb::CollectiveKind;
using emulator::Layout;
using emulator::PassShape;
using emulator::Recipe;
using emulator::Recompute;
using emulator::Setup;
using workloads::Microbatch;

constexpr std::size_t vit = 0, llm = 1;

inline std::int64_t between(Random& random, std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(most - least + 1)));
}

inline workloads::Model random_model(Random& random) {
    auto model = small_model();
    auto& encoder = model.modules[vit].architecture;
    auto& decoder = model.modules[llm].architecture;
    encoder = small_network(workloads::ModuleKind::vision_encoder, between(random, 4, 9), 512 * between(random, 1, 2));
    decoder =
        small_network(workloads::ModuleKind::language_model, between(random, 8, 20), 1024 * between(random, 1, 2));
    auto& edge = model.edges.front();
    edge.projector_in = 4 * encoder.hidden;
    edge.projector_out = decoder.hidden;
    model.modules[vit].trainable = random.below(4) > 0;
    if (random.below(2) == 0) edge.projector_trainable = random.below(2) == 0;
    return model;
}

// Every replica's first microbatch has an image: a stage without a task has no place in a chain.
inline std::vector<Microbatch> random_batch(Random& random, std::int64_t count, std::int64_t replicas) {
    std::vector<Microbatch> batch;
    for (std::int64_t m = 0; m < count; ++m) {
        Microbatch one;
        const auto sample = static_cast<std::size_t>(m);
        one.samples = {sample};
        one.tokens = 8 * between(random, 16, 128);
        const std::int64_t images = between(random, m < replicas ? 1 : 0, 5);
        for (std::int64_t i = 0; i < images; ++i) {
            const std::int64_t tokens = 8 * between(random, 2, 40);
            one.items.push_back(
                {sample, static_cast<std::size_t>(i), {workloads::Modality::image, tokens, 4 * tokens, 0, false}});
            one.tokens += tokens;
        }
        one.lengths = {one.tokens};
        batch.push_back(one);
    }
    return batch;
}

struct Case {
    planner::EmulationRequest request;
    const Setup& setup() const { return *request.job.setup; }
    Recompute recompute() const { return request.recompute->everywhere; }
};

inline Case random_case(Random& random, const std::string& partition, const Layout& layout, Recipe recipe) {
    Case one;
    planner::EmulationRequest& workload = one.request;
    recipe.action = Duration{20'000 * between(random, 0, 1)};
    const auto model = random_model(random);
    workload.job.setup =
        std::make_shared<Setup>(Setup{model, small_cluster(layout.gpus()), layout, small_costs(), recipe});
    workload.batch.microbatches = random_batch(random, layout.dp * between(random, 1, 9), layout.dp);
    workload.job.sharing = partition::Sharing::in_turn;
    workload.job.partition = partition;
    constexpr std::array recomputes{Recompute::none, Recompute::half, Recompute::full};
    one.request.recompute = {.everywhere = recomputes[random.below(recomputes.size())]};
    one.request.chunks_per_rank = 1;
    one.request.any_memory = true;
    return one;
}

inline Layout random_layout(Random& random) {
    return {.tp = 1 << random.below(3), .pp = between(random, 1, 4), .dp = between(random, 1, 2)};
}

inline std::vector<Microbatch> of_replica(const Case& one, std::int64_t replica) {
    std::vector<Microbatch> mine;
    for (auto m = static_cast<std::size_t>(replica); m < one.request.batch.microbatches.size();
         m += static_cast<std::size_t>(one.setup().layout.dp))
        mine.push_back(one.request.batch.microbatches[m]);
    return mine;
}

inline std::vector<PassShape> shapes_of(const Microbatch& microbatch) {
    std::vector<PassShape> shapes(2);
    for (const auto& item : microbatch.items) shapes[vit].lengths.push_back(item.size.patches);
    shapes[llm].lengths = microbatch.lengths;
    return shapes;
}

inline bool trains_projector(const workloads::Model& model) {
    return model.edges.front().projector_trainable.value_or(model.modules[vit].trainable);
}

// Whether a backward of these layers computes anything.
inline bool goes_back(const workloads::Model& model, const emulator::LayerRange& part) {
    if (part.module == llm) return true;
    const bool last = part.first + part.count == model.modules[vit].architecture.layers;
    return model.modules[vit].trainable || (last && trains_projector(model));
}

// What GPUs exchange and update once their last task is done.
class AfterTasks {
public:
    explicit AfterTasks(const Setup& setup) : setup_(setup) {}

    std::int64_t parameters(const emulator::LayerRange& part, std::int64_t tp) const {
        const auto& module = setup_.model.modules[part.module];
        const auto& network = module.architecture;
        std::int64_t sum = 0;
        if (module.trainable)
            for (std::int64_t i = 0; i < part.count; ++i) sum += layer_parameters(part.module, part.first + i, tp);
        const bool last = part.first + part.count == network.layers;
        if (part.module == llm && part.first == 0) sum += workloads::embedding_parameters(network) / tp;
        if (part.module == llm && last) sum += workloads::head_parameters(network) / tp;
        if (part.module == vit && last && trains_projector(setup_.model)) sum += projector(tp);
        return sum;
    }

    std::int64_t layer_parameters(std::size_t module, std::int64_t layer, std::int64_t tp) const {
        return workloads::layer_parameter_parts(setup_.model.modules[module].architecture, layer).common(tp);
    }

    std::int64_t projector(std::int64_t tp) const {
        return workloads::projector_parameters(setup_.model.edges.front()) / tp;
    }

    // Of the copies of weights, `stride` GPUs apart.
    std::int64_t exchange(CollectiveKind kind, std::int64_t copies, std::int64_t stride, std::int64_t bytes) const {
        const std::int64_t per_node = std::clamp<std::int64_t>(8 / stride, 1, copies);
        costdb::Collective asked;
        asked.kind = kind;
        asked.dtype = kind == CollectiveKind::all_reduce ? costdb::Dtype::fp32 : costdb::Dtype::bf16;
        asked.gpus = copies;
        asked.gpus_per_node = per_node;
        asked.message = Bytes{bytes};
        asked.network = {setup_.cluster.network.bytes_per_second * per_node / 8};
        asked.node_link = setup_.cluster.node_link;
        const double factor = emulator::in_situ_factors(*setup_.costs, setup_.cluster.device).factors.traffic;
        return std::llround(static_cast<double>(setup_.costs->cost(asked).duration.count()) * factor);
    }

    std::int64_t reduce(std::int64_t parameters, std::int64_t copies, std::int64_t stride) const {
        if (copies == 1 || parameters == 0 || setup_.recipe.zero == 3) return 0;
        if (setup_.recipe.zero == 0) return exchange(CollectiveKind::all_reduce, copies, stride, 4 * parameters);
        return exchange(CollectiveKind::reduce_scatter, copies, stride, 4 * parameters) +
               exchange(CollectiveKind::all_gather, copies, stride, 2 * parameters);
    }

    std::int64_t update(std::int64_t parameters, std::int64_t copies) const {
        if (parameters == 0) return 0;
        const std::int64_t own = setup_.recipe.zero == 0 ? parameters : (parameters + copies - 1) / copies;
        const costdb::Elementwise asked{Bytes{34 * own + 8 * parameters}, costdb::ElementwiseKind::optimizer};
        return setup_.costs->cost(asked).duration.count();
    }

private:
    const Setup& setup_;
};

}  // namespace pipeweaver::testing
