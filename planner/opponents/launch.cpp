// What a target launches of what is known, and the command that prints its step.
#include "pipeweaver/planner/layout_choice.hpp"
#include "pipeweaver/planner/opponents.hpp"
#include "pipeweaver/planner/targets.hpp"
#include "pipeweaver/planner/way.hpp"
#include "pipeweaver/workloads/built_model.hpp"

#include <fmt/ranges.h>

#include <algorithm>

namespace pipeweaver::planner {

using namespace emulator;

namespace {

constexpr std::string_view no_pipeline = "no-pipeline";

// Encoders whole on the first stage, and what follows the backbone whole on the last.
bool has_whole_encoders(const Way& way) {
    const std::size_t backbone = way.setup->model.backbone();
    if (way.partition.chains.size() != 1 || !phase_modules(way.partition).empty()) return false;
    const auto& stages = way.partition.chains.front().stages;
    for (std::size_t s = 0; s < stages.size(); ++s)
        for (const LayerRange& part : stages[s].parts)
            if ((part.module < backbone && s > 0) || (part.module > backbone && s + 1 < stages.size())) return false;
    return true;
}

// What a framework asks of the stage of its encoders.
bool has_first_layers(const Way& way) {
    const workloads::Model& model = way.setup->model;
    std::int64_t layers = 0;
    for (const LayerRange& part : way.partition.chains.front().stages.front().parts)
        if (part.module == model.backbone()) layers += part.count;
    return layers >= workloads::first_layers(model);
}

bool is_launched_here(const Way& way, const Job& job) {
    return way.setup == job.setup && launches(target(job.target), way);
}

}  // namespace

std::string name_without_pipeline(const Setup& setup) {
    const int zero = setup.recipe.zero;
    return fmt::format("{} tp {}{}", no_pipeline, setup.layout.tp, zero == 1 ? "" : fmt::format(" zero {}", zero));
}

bool is_in_layout_of(const Way& way, const Job& job) {
    const Setup &own = *way.setup, &of = *job.setup;
    return are_equal({own.layout, own.recipe.zero}, {of.layout, of.recipe.zero});
}

const OpponentWay* first_launched(const Opponents& all, const Job& job) {
    const auto first = std::find_if(all.ways.begin(), all.ways.end(),
                                    [&](const OpponentWay& way) { return is_launched_here(way, job); });
    return first == all.ways.end() ? nullptr : &*first;
}

Opponents launched_here(const Opponents& all, const Job& job) {
    Opponents some = all;
    std::erase_if(some.ways, [&](const OpponentWay& way) { return !is_launched_here(way, job); });
    const std::string own = job.setup->layout.pp == 1 ? name_without_pipeline(*job.setup) : std::string();
    std::erase_if(some.not_applicable, [&](const NotApplicable& one) {
        return one.partition.starts_with(no_pipeline) && one.partition != own;
    });
    return some;
}

OptionValues words_in(const Setup& setup, const Job& job, const Batch& batch) {
    const Layout& layout = setup.layout;
    OptionValues values = *job.words;
    const bool says_bucket = values.find("bucket") != nullptr;
    for (const char* own : {"cp", "context", "ep", "packing", "bucket"}) values.erase(own);
    if (job.packing != workloads::Packing::given) values.set("packing", std::string(name_of(job.packing)));
    values.set("tp", std::to_string(layout.tp));
    values.set("pp", std::to_string(layout.pp));
    values.set("dp", std::to_string(layout.dp));
    if (layout.cp > 1) values.set("cp", std::to_string(layout.cp));
    if (layout.cp > 1 && layout.context == ContextParallel::ring) values.set("context", "ring");
    if (layout.ep != default_ep(layout, setup.model, setup.recipe.execution.experts.tensor_parallel))
        values.set("ep", std::to_string(layout.ep));
    if (batch.drawn_microbatches > 0) {
        const std::int64_t all = batch.drawn_microbatches * job.setup->layout.dp;
        values.erase("microbatches");
        if (all % layout.dp == 0)
            values.set("microbatches", std::to_string(all / layout.dp));
        else
            values.set("global-batch", fmt::format("{}mb", all));
        values.set("seed", std::to_string(job.seed));
    }
    values.set("zero", std::to_string(setup.recipe.zero));
    if (workloads::deals_images(setup.model)) values.set_flag("deal-images");
    if (const auto& built = setup.model.built; built && built->recompute_turned)
        values.set("encoder-recompute", workloads::name_of(built->recompute));
    if (says_bucket || job.setup->recipe.bucket > Bytes{})
        values.set("bucket", fmt::format("{}B", setup.recipe.bucket.count));
    return values;
}

std::string command_of(const OpponentWay& way, const Job& job, const Batch& batch) {
    if (!job.words) return {};
    OptionValues values = words_in(*way.setup, job, batch);
    if (way.layers.empty())
        values.set("partition", way.partition.name);
    else
        values.set("layers", way.layers);
    if (way.has_pipeline && way.layers.empty()) {
        values.set("chunks", std::to_string(way.partition.chunks_per_rank));
        values.erase("sample");
        auto sample = job.sample.name.option();
        if (!sample.empty() && !way.cut_on_batch) values.set("sample", std::move(sample));
    }
    if (way.has_pipeline && way.layers.empty() && way.cut_packing.value_or(job.packing) != job.packing)
        values.set("sample-packing", std::string(name_of(*way.cut_packing)));
    values.set("policy", way.policy);
    values.set("recompute", name_of(*way.recompute));
    if (const Target& of = target(job.target); of.fixed_shapes && launches(of, way)) values.set("target", of.option);
    return values.command("pipeweaver emulate");
}

// Which target launches a way.

bool launches(const Target& target, const Way& way) {
    const auto has = [](const std::vector<std::string>& all, const std::string& one) {
        return std::find(all.begin(), all.end(), one) != all.end();
    };
    if (!launches_zero(target.launch, way.setup->recipe.zero, way.setup->layout)) return false;
    if (!launches_in(target, way.setup->layout, way.setup->model)) return false;
    // Sharded trainers take gradients to the host, too, unless weights are shared out as well.
    const Recipe& recipe = way.setup->recipe;
    if (target.launch.replicas_alone && recipe.state.offloaded > 0 && recipe.zero < 3) return false;
    if (!way.has_pipeline) return true;
    if (!target.launch.spreads_encoders && !(has_whole_encoders(way) && has_first_layers(way))) return false;
    const bool cuts_so = !way.layers.empty() || has(target.launch.partitions, way.partition.name);
    return cuts_so && has(target.launch.policies, way.policy);
}

}  // namespace pipeweaver::planner
