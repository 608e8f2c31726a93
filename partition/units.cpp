// What passes the stages: microbatches whole, cut by items, or padded.
#include "pipeweaver/partition/partition.hpp"
#include "pipeweaver/workloads/counts.hpp"

#include <algorithm>

namespace pipeweaver::partition {

using namespace emulator;
using namespace workloads;

namespace {

std::vector<std::size_t> items_of(const Module& module, const Microbatch& microbatch) {
    std::vector<std::size_t> items;
    for (std::size_t i = 0; i < microbatch.items.size(); ++i)
        if (takes(module, microbatch.items[i].size)) items.push_back(i);
    return items;
}

bool reads_context(const Architecture& network) { return network.mmdit || network.cross_attention_dim > 0; }

// A generator reads its sample's tokens in the backbone; without any, as many as are usual for it.
PassShape shape_of(const Module& module, const Microbatch& microbatch, const std::vector<std::size_t>& items) {
    const Architecture& network = module.architecture;
    PassShape shape;
    for (const std::size_t i : items) {
        const auto& item = microbatch.items[i];
        const bool conditioned = item.size.target && item.sample_tokens > 0;
        for (std::int64_t span = 0; span < item.size.spans; ++span) {
            shape.lengths.push_back((item.size.patches + span) / item.size.spans);
            if (reads_context(network)) shape.context.push_back(conditioned ? item.sample_tokens : network.text_tokens);
        }
    }
    return shape;
}

// What added cross attention reads: each sample's images; without any, as many positions as are usual. Padding behind
// the samples reads nothing.
std::vector<std::int64_t> images_of(const Architecture& network, const Microbatch& microbatch) {
    std::vector<std::int64_t> positions(microbatch.lengths.size());
    const std::size_t samples = std::min(positions.size(), microbatch.samples.size());
    for (std::size_t s = 0; s < samples; ++s) {
        for (const auto& item : microbatch.items)
            if (item.sample == microbatch.samples[s] && item.size.modality == Modality::image && !item.size.target)
                positions[s] += item.size.tokens;
        if (positions[s] == 0) positions[s] = network.text_tokens;
    }
    return positions;
}

// All of a microbatch, in a module that takes it whole.
PassShape whole_shape(const Module& module, const Microbatch& microbatch) {
    PassShape shape{microbatch.lengths};
    if (module.architecture.cross_attention_layers > 0) {
        shape.context = images_of(module.architecture, microbatch);
        return shape;
    }
    if (reads_context(module.architecture)) shape.context.assign(shape.lengths.size(), module.architecture.text_tokens);
    return shape;
}

std::vector<std::size_t> modules_of(const Chain& chain) {
    std::vector<std::size_t> modules;
    for (const StageLayers& stage : chain.stages)
        for (const LayerRange& part : stage.parts)
            if (modules.empty() || modules.back() != part.module) modules.push_back(part.module);
    return modules;
}

// The microbatch as one unit: every module of the chain with all that is there for it.
Unit whole(const std::vector<std::size_t>& modules, const Model& model, const Microbatch& microbatch) {
    Unit unit;
    unit.shapes.resize(model.modules.size());
    for (const std::size_t m : modules) {
        const Module& module = model.modules[m];
        if (module.unit == PassUnit::microbatch) {
            unit.shapes[m] = whole_shape(module, microbatch);
            continue;
        }
        const auto items = items_of(module, microbatch);
        unit.shapes[m] = shape_of(module, microbatch, items);
        unit.items.insert(unit.items.end(), items.begin(), items.end());
    }
    return unit;
}

std::vector<Unit> sliced(std::size_t m, const Model& model, const Microbatch& microbatch, std::int64_t most) {
    const auto items = items_of(model.modules[m], microbatch);
    const std::size_t size = static_cast<std::size_t>(most);
    const std::size_t count = (items.size() + size - 1) / size;
    std::vector<Unit> units;
    auto next = items.begin();
    for (std::size_t u = 0; u < count; ++u) {
        const std::size_t share = items.size() / count + (u < items.size() % count ? 1 : 0);
        Unit unit;
        unit.shapes.resize(model.modules.size());
        unit.items.assign(next, next + static_cast<std::ptrdiff_t>(share));
        next += static_cast<std::ptrdiff_t>(share);
        unit.shapes[m] = shape_of(model.modules[m], microbatch, unit.items);
        units.push_back(std::move(unit));
    }
    return units;
}

}  // namespace

PassShape shape_in(const Module& module, const Microbatch& microbatch, std::size_t first_item, std::size_t items) {
    if (module.unit == PassUnit::microbatch) return whole_shape(module, microbatch);
    auto mine = items_of(module, microbatch);
    mine.resize(std::min(mine.size(), first_item + items));
    mine.erase(mine.begin(), mine.begin() + static_cast<std::ptrdiff_t>(std::min(first_item, mine.size())));
    return shape_of(module, microbatch, mine);
}

std::vector<std::vector<std::vector<Unit>>> units(const Partition& partition, const Model& model,
                                                  const std::vector<Microbatch>& microbatches) {
    std::vector<std::vector<std::vector<Unit>>> all;
    for (const Microbatch& microbatch : microbatches) {
        auto& row = all.emplace_back();
        for (std::size_t c = 0; c < partition.chains.size(); ++c) {
            const auto modules = modules_of(partition.chains[c]);
            if (partition.unit_items[c] > 0)
                row.push_back(sliced(modules.front(), model, microbatch, partition.unit_items[c]));
            else
                row.push_back({whole(modules, model, microbatch)});
        }
        for (const std::size_t m : phase_modules(partition)) row.push_back(sliced(m, model, microbatch, 1));
    }
    return all;
}

StepInput step_input(const Setup& setup, const Partition& partition,
                     std::vector<std::vector<std::vector<Unit>>> units) {
    StepInput input;
    input.setup = &setup;
    input.chains = partition.chains;
    input.layouts = partition.layouts;
    input.units = std::move(units);
    input.modes = partition.modes;
    return input;
}

Padded pad(const std::vector<Microbatch>& microbatches) {
    Padded padded;
    std::int64_t sample_tokens = 0, spans = 1;  // the latter of the item with the most patches
    for (const Microbatch& microbatch : microbatches) {
        padded.tokens = std::max(padded.tokens, microbatch.tokens);
        padded.items = std::max(padded.items, static_cast<std::int64_t>(microbatch.items.size()));
        padded.real_tokens += microbatch.tokens;
        for (const auto& item : microbatch.items) {
            const bool is_larger = item.size.patches > padded.item_patches;
            if (is_larger || (item.size.patches == padded.item_patches && item.size.spans < spans))
                spans = item.size.spans;
            padded.item_patches = std::max(padded.item_patches, item.size.patches);
            padded.real_patches += item.size.patches;
            sample_tokens = std::max(sample_tokens, item.sample_tokens);
        }
    }
    const auto largest =
        std::max_element(microbatches.begin(), microbatches.end(),
                         [](const Microbatch& a, const Microbatch& b) { return a.items.size() < b.items.size(); });
    for (Microbatch microbatch : microbatches) {
        // Padding attends to itself alone.
        if (microbatch.tokens < padded.tokens) microbatch.lengths.push_back(padded.tokens - microbatch.tokens);
        microbatch.tokens = padded.tokens;
        for (std::size_t i = microbatch.items.size(); i < largest->items.size(); ++i)
            microbatch.items.push_back(largest->items[i]);
        for (auto& item : microbatch.items) {
            item.size.patches = padded.item_patches;
            item.size.spans = spans;
            item.sample_tokens = sample_tokens;
        }
        padded.padded_tokens += padded.tokens;
        padded.padded_patches += padded.items * padded.item_patches;
        padded.microbatches.push_back(std::move(microbatch));
    }
    return padded;
}

}  // namespace pipeweaver::partition
