#include "emulator/step/stage_prices.hpp"

#include "pipeweaver/workloads/counts.hpp"

namespace pipeweaver::emulator {

namespace {

using Words = std::vector<std::int64_t>;

Words words_of(const ModuleLayouts& layouts) {
    Words words{-1};  // no unit begins so
    for (const ModuleLayout& one : layouts)
        words.insert(words.end(), {one.tp, one.copies, static_cast<std::int64_t>(one.sharing), one.in_phases ? 1 : 0});
    return words;
}

Words words_of(const Unit& unit) {
    Words words;
    const auto add = [&](const std::vector<std::int64_t>& all) {
        words.push_back(static_cast<std::int64_t>(all.size()));
        words.insert(words.end(), all.begin(), all.end());
    };
    for (const PassShape& shape : unit.shapes) {
        add(shape.lengths);
        add(shape.context);
        words.push_back(static_cast<std::int64_t>(shape.whole));
    }
    return words;
}

bool are_alike(const workloads::Architecture& network) {
    for (std::int64_t layer = 1; layer < network.layers; ++layer)
        if (workloads::block_kind(network, layer) != workloads::block_kind(network, 0) ||
            workloads::is_moe_layer(network, layer) != workloads::is_moe_layer(network, 0) ||
            workloads::sparsity_of(network, layer) != workloads::sparsity_of(network, 0))
            return false;
    return true;
}

enum class What : std::uint8_t { task, part, blocks_forward, memory };

// What is asked, as one number.
std::int64_t asked(What what, PassKind pass, Recompute recompute, std::int64_t more = 0) {
    constexpr std::int64_t kinds = 16, layers = 1 << 16;
    std::int64_t number = static_cast<std::int64_t>(what);
    number = kinds * number + static_cast<std::int64_t>(pass);
    number = kinds * number + static_cast<std::int64_t>(recompute.kind);
    number = layers * number + std::min(recompute.layers, layers - 1);  // more than all blocks is all
    return layers * number + more;
}

}  // namespace

// A what-if tells ranks and replicas apart: it is emulated once, and nothing of it kept.
StagePrices::StagePrices(const StepInput& input)
    : in_(input),
      costs_(*input.setup, input.layouts, input.replica),
      store_(input.setup->store && input.setup->what_if.empty() ? &input.setup->store->stages() : nullptr) {
    if (store_ == nullptr) return;
    modules_ = store_->number_of(words_of(input.layouts));
    // How many of a teacher's layers lie beside them depends on where they stand.
    const workloads::Model& model = input.setup->model;
    for (const workloads::Module& module : model.modules)
        alike_.push_back(model.teacher.empty() && are_alike(module.architecture) &&
                         !input.setup->recipe.tells_layers_apart(module));
}

// Of like blocks only the first and the last are anywhere else than the others.
std::int64_t StagePrices::place_of(const LayerRange& part) const {
    if (!alike_[part.module]) return part.first;
    const bool reaches_end = part.first + part.count == in_.setup->model.modules[part.module].architecture.layers;
    return -1 - (part.first == 0 ? 1 : 0) - (reaches_end ? 2 : 0);
}

void StagePrices::begin(const Unit& unit) {
    unit_ = &unit;
    if (store_ != nullptr) unit_number_ = store_->number_of(words_of(unit));
}

// A stage of many parts is known to itself alone.
void StagePrices::begin(const StageLayers& stage) {
    stage_ = &stage;
    constexpr std::size_t of_part = 3;
    StageStore::Name name;
    name.add(unit_number_);
    name.add(modules_);
    if (store_ == nullptr || !name.has_room(of_part * stage.parts.size())) {
        known_ = std::make_shared<KnownStage>();
        return;
    }
    for (const LayerRange& part : stage.parts) {
        name.add(static_cast<std::int64_t>(part.module));
        name.add(part.count);
        name.add(place_of(part));
    }
    known_ = store_->stage(name);
}

PassCost StagePrices::task(PassKind pass, Recompute recompute) {
    return known_->of(&KnownStage::costs, asked(What::task, pass, recompute),
                      [&] { return costs_.task(*stage_, unit_->shapes, pass, recompute); });
}

Duration StagePrices::task_time(PassKind pass, Recompute recompute) {
    return known_->of(&KnownStage::times, asked(What::task, pass, recompute),
                      [&] { return costs_.task(*stage_, unit_->shapes, pass, recompute).time; });
}

Duration StagePrices::part_time(std::size_t part, PassKind pass) {
    return known_->of(&KnownStage::times, asked(What::part, pass, {}, static_cast<std::int64_t>(part)), [&] {
        return costs_.stage({stage_->rank, {stage_->parts[part]}}, unit_->shapes, pass).time;
    });
}

PassCost StagePrices::blocks_forward(Recompute recompute) {
    return known_->of(&KnownStage::costs, asked(What::blocks_forward, PassKind::forward, recompute),
                      [&] { return costs_.blocks_forward(*stage_, unit_->shapes, recompute); });
}

PassMemory StagePrices::memory(Recompute recompute, bool gradient) {
    const int more = (gradient ? 1 : 0) + (in_.input_gradient_frees ? 2 : 0);
    const auto held = known_->of(&KnownStage::memory, asked(What::memory, PassKind::forward, recompute, more), [&] {
        const PassMemory all = pass_memory(in_, *stage_, unit_->shapes, recompute, gradient);
        return KnownStage::Held{all.held, all.forward_transient, all.transient, all.input_transient, all.kept};
    });
    return {held[0], held[1], held[2], held[3], {}, held[4]};
}

}  // namespace pipeweaver::emulator
