#include "pipeweaver/launch/launch.hpp"

#include "pipeweaver/emulator/stages.hpp"
#include "pipeweaver/launch/spellings.hpp"
#include "pipeweaver/planner/launched_way.hpp"
#include "pipeweaver/planner/targets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace pipeweaver::launch {

using namespace emulator;
using partition::ModuleLayers;
using planner::LaunchedWay;

namespace {

Degrees degrees_of(const Setup& setup) {
    const Layout& layout = setup.layout;
    const Recipe& recipe = setup.recipe;
    return {.tp = layout.tp,
            .cp = layout.cp,
            .pp = layout.pp,
            .dp = layout.dp,
            .ep = layout.ep,
            .expert_tp = recipe.execution.experts.tensor_parallel,
            .zero = recipe.zero,
            .sequence_parallel = recipe.execution.sequence_parallel,
            .dispatches_by_node = recipe.execution.experts.dispatcher == Dispatcher::once_a_node,
            .ring = layout.context == ContextParallel::ring,
            .overlaps_gradients = recipe.bucket > Bytes{},
            .gathers_ahead = recipe.gathers_ahead};
}

bool is_dealt(const partition::Partition& partition, std::size_t module) {
    return !partition.layouts.empty() && partition.layouts[module].in_phases;
}

// Layers of every module by stage. Pre: the chains' stages lie in one row, chain after chain.
Split split_of(const workloads::Model& model, const LaunchedWay& way) {
    Split split{.ranks = way.setup->layout.pp};
    std::size_t stages = 0;
    for (const Chain& chain : way.partition.chains) stages += chain.stages.size();
    for (std::size_t m = 0; m < model.modules.size(); ++m) {
        if (is_dealt(way.partition, m)) continue;
        ModuleLayers one{model.modules[m].name, std::vector<std::int64_t>(stages)};
        std::size_t s = 0;
        for (const Chain& chain : way.partition.chains)
            for (const StageLayers& stage : chain.stages) {
                for (const LayerRange& part : stage.parts)
                    if (part.module == m) one.layers[s] += part.count;
                ++s;
            }
        if (m == model.backbone())
            split.layers = one.layers;
        else
            (m < model.backbone() ? split.encoders : split.generators).push_back(std::move(one));
    }
    return split;
}

// Projectors that are trained, and where states of the optimizer are.
void put_trained(const Setup& setup, Launch& launch) {
    for (const workloads::ModelEdge& edge : setup.model.edges)
        if (edge.projector_in > 0) {
            const bool trains = edge.projector_trainable.value_or(setup.model.modules[edge.from].trainable);
            (trains ? launch.trains_projectors : launch.freezes_projectors) = true;
        }
    if (setup.recipe.state.offloaded > 0) {
        launch.state_on_gpu = setup.recipe.state.optimizer;
        launch.state_on_host = setup.recipe.state.offloaded;
    }
}

}  // namespace

std::int64_t Launch::all_microbatches() const {
    return std::accumulate(microbatches.begin(), microbatches.end(), std::int64_t{0});
}

std::size_t Launch::fullest() const {
    return static_cast<std::size_t>(std::max_element(peak.begin(), peak.end()) - peak.begin());
}

bool Launch::has_experts() const {
    return std::any_of(letters.begin(), letters.end(),
                       [](const std::string& layer) { return layer.find('E') != std::string::npos; });
}

std::int64_t padded_tokens(const Launch& launch) {
    const Degrees& of = launch.degrees;
    const std::int64_t parts = of.cp > 1 ? 2 * of.cp * of.tp : of.tp;
    return (launch.most_tokens + parts - 1) / parts * parts;
}

Launch launch_of(const planner::Rung& rung) {
    const LaunchedWay& way = *rung.launched;
    const Setup& setup = *way.setup;
    const workloads::Module& language = setup.model.modules[setup.model.backbone()];
    Launch launch{.rung = rung.name,
                  .target = rung.target,
                  .way = rung.way,
                  .model = setup.model.name,
                  .device = setup.cluster.device,
                  .degrees = degrees_of(setup),
                  .language = language.name,
                  .split = split_of(setup.model, way),
                  .letters = hybrid_letters(language.architecture).value_or(std::vector<std::string>{}),
                  .fused_attention = setup.recipe.execution.fused_attention,
                  .bf16 = setup.recipe.state.weight == 2,
                  .fused_loss = setup.recipe.kept.logit <= 2,
                  .has_pipeline = way.has_pipeline && setup.layout.pp > 1,
                  .policy = way.policy,
                  .recompute = name_of(way.recompute->by_rank ? planner::recompute_by_rank : *way.recompute),
                  .microbatches = way.microbatches,
                  .most_tokens = way.most_tokens,
                  .shapes = static_cast<std::int64_t>(way.shapes),
                  .step = rung.step,
                  .makespan = way.makespan,
                  .peak = way.peak,
                  .usable = way.usable};
    if (const auto& built = setup.model.built) {
        if (built->lies.context == workloads::OnContextRanks::dealt) launch.deals = built->deals;
        launch.encoder_recompute = built->recompute;
        launch.encoder_switch = workloads::recompute_switch(*built);
    }
    for (const workloads::Module& module : setup.model.modules) {
        const workloads::Architecture& is = module.architecture;
        launch.kinds.emplace(module.name, name_of(is.kind));
        if (is.kind == workloads::ModuleKind::vision_encoder)
            launch.vision[module.name] = {is.layers, is.hidden, is.ffn, is.image_size == 0};
        if (module.adapters) launch.adapters.emplace(module.name, *module.adapters);
        if (!module.trains()) launch.frozen.push_back(module.name);
    }
    put_trained(setup, launch);
    for (const std::size_t m : phase_modules(way.partition)) launch.dealt.push_back(setup.model.modules[m].name);
    for (const Recompute one : way.by_rank) launch.recompute_of_ranks.push_back(name_of(one));
    return launch;
}

}  // namespace pipeweaver::launch
