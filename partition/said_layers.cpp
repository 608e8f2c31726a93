#include "pipeweaver/partition/said_layers.hpp"

#include "partition/one_chain.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/options.hpp"
#include "pipeweaver/workloads/built_model.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

namespace pipeweaver::partition {

using namespace emulator;
using namespace workloads;

namespace {

constexpr std::int64_t most_layers = 100'000;

std::size_t module_called(const Model& model, const std::string& name) {
    if (name.empty()) return model.backbone();
    std::vector<std::string> names;
    for (std::size_t m = 0; m < model.modules.size(); ++m) {
        if (model.modules[m].name == name) return m;
        names.push_back(model.modules[m].name);
    }
    fail(ErrorKind::input, "--layers: {} has no module '{}', allowed are {}", model.name, name, fmt::join(names, ", "));
}

// Layers of each stage, module by module, where nothing is said of encoders and generators.
std::vector<std::vector<std::int64_t>> usual(const Model& model, std::size_t stages) {
    std::vector<std::vector<std::int64_t>> counts;
    for (std::size_t m = 0; m < model.modules.size(); ++m) {
        counts.emplace_back(stages);
        const std::int64_t all = model.modules[m].architecture.layers;
        if (m < model.backbone()) counts.back().front() = all;
        if (m > model.backbone()) counts.back().back() = all;
    }
    return counts;
}

void require_all(const Module& module, const std::vector<std::int64_t>& layers) {
    const std::int64_t sum = std::accumulate(layers.begin(), layers.end(), std::int64_t{0});
    if (sum != module.architecture.layers)
        fail(ErrorKind::input, "--layers: adds up to {}, but {} has {} layers", sum, module.name,
             module.architecture.layers);
}

// What the framework that builds the encoders asks of their stage.
void require_in_front(const Model& model, std::int64_t layers) {
    if (layers >= first_layers(model)) return;
    fail(ErrorKind::input,
         "--layers: the first stage has {} layers of {}, {} needs {} beside its encoder ({}); allowed with --encoders "
         "split is any",
         layers, model.modules[model.backbone()].name, model.built->framework, model.built->first_layers,
         model.built->source);
}

// Of the chain, stage by stage: no module begins before the one in front of it has ended.
void require_order(const Model& model, const std::vector<std::vector<std::int64_t>>& counts, std::size_t stages) {
    std::size_t reached = 0;
    for (std::size_t s = 0; s < stages; ++s)
        for (std::size_t m = 0; m < counts.size(); ++m) {
            if (counts[m][s] == 0) continue;
            if (m < reached)
                fail(ErrorKind::input, "--layers: stage {} has layers of {} behind others of {}; allowed is one chain",
                     s, model.modules[m].name, model.modules[reached].name);
            reached = m;
        }
}

std::int64_t whole_number(const std::string& text, std::int64_t least) {
    return parse_integers("--layers", text, least, most_layers, 1).front();
}

// "7", or "7x9": 7 in each of 9 stages.
void append_run(std::vector<std::int64_t>& layers, const std::string& run) {
    const std::size_t times = run.find('x');
    if (times == std::string::npos) return layers.push_back(whole_number(run, 0));
    const auto stages = static_cast<std::size_t>(whole_number(run.substr(times + 1), 1));
    layers.insert(layers.end(), stages, whole_number(run.substr(0, times), 0));
}

// Three or more that are equal as one.
std::vector<std::string> runs_of(const std::vector<std::int64_t>& layers) {
    constexpr std::ptrdiff_t enough = 3;
    std::vector<std::string> runs;
    for (auto at = layers.begin(); at != layers.end();) {
        auto end = std::find_if(at, layers.end(), [at](std::int64_t other) { return other != *at; });
        if (end - at < enough) end = at + 1;
        runs.push_back(end - at == 1 ? std::to_string(*at) : fmt::format("{}x{}", *at, end - at));
        at = end;
    }
    return runs;
}

}  // namespace

SaidLayers parse_layers(const std::string& text) {
    SaidLayers said;
    std::size_t at = 0;
    while (at <= text.size()) {
        const std::size_t end = std::min(text.find('/', at), text.size());
        const std::string part = text.substr(at, end - at);
        const std::size_t colon = part.rfind(':');
        ModuleLayers one{colon == std::string::npos ? std::string() : part.substr(0, colon), {}};
        for (const std::string& run : parts_of(colon == std::string::npos ? part : part.substr(colon + 1)))
            append_run(one.layers, run);
        said.push_back(std::move(one));
        at = end + 1;
    }
    return said;
}

std::string text_of(const SaidLayers& said) {
    std::vector<std::string> parts;
    for (const ModuleLayers& one : said)
        parts.push_back((one.module.empty() ? "" : one.module + ":") +
                        fmt::format("{}", fmt::join(runs_of(one.layers), ",")));
    return fmt::format("{}", fmt::join(parts, "/"));
}

Partition cut_by_layers(const Setup& setup, const SaidLayers& said) {
    const Model& model = setup.model;
    const std::size_t stages = said.empty() ? 0 : said.front().layers.size();
    if (stages == 0 || stages % static_cast<std::size_t>(setup.layout.pp) != 0)
        fail(ErrorKind::input, "--layers: has {} stages, allowed are {} for each chunk of a rank", stages,
             setup.layout.pp);
    auto counts = usual(model, stages);
    for (const ModuleLayers& one : said) {
        const std::size_t m = module_called(model, one.module);
        if (one.layers.size() != stages)
            fail(ErrorKind::input, "--layers: {} has {} stages, others have {}", model.modules[m].name,
                 one.layers.size(), stages);
        counts[m] = one.layers;
    }
    for (std::size_t m = 0; m < counts.size(); ++m) require_all(model.modules[m], counts[m]);
    require_order(model, counts, stages);
    require_in_front(model, counts[model.backbone()].front());
    std::vector<std::size_t> ends;
    ends.reserve(stages);
    std::size_t end = 0;
    for (std::size_t s = 0; s < stages; ++s) {
        const std::size_t begin = end;
        for (const auto& of_module : counts) end += static_cast<std::size_t>(of_module[s]);
        if (end == begin)
            fail(ErrorKind::input, "--layers: a stage has no layer, and nothing else; allowed is 0 beside an encoder");
        ends.push_back(end);
    }
    return one_chain(setup, "layers", static_cast<std::int64_t>(stages) / setup.layout.pp,
                     layers_of(model, modules_between(0, model.modules.size())), ends);
}

SaidLayers said_layers(const Model& model, const Partition& partition) {
    const auto& stages = partition.chains.front().stages;
    std::vector<std::vector<std::int64_t>> counts(model.modules.size(), std::vector<std::int64_t>(stages.size()));
    for (std::size_t s = 0; s < stages.size(); ++s)
        for (const LayerRange& part : stages[s].parts) counts[part.module][s] += part.count;
    auto others = usual(model, stages.size());
    others[model.backbone()] = counts[model.backbone()];
    if (others == counts) return {{{}, counts[model.backbone()]}};
    SaidLayers said;
    for (std::size_t m = 0; m < counts.size(); ++m) said.push_back({model.modules[m].name, counts[m]});
    return said;
}

}  // namespace pipeweaver::partition
