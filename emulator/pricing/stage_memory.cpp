#include "emulator/pricing/stage_memory.hpp"

#include "emulator/pricing/data_traffic.hpp"
#include "emulator/pricing/kept_memory.hpp"
#include "emulator/pricing/stage_walk.hpp"
#include "pipeweaver/emulator/product_format.hpp"
#include "pipeweaver/emulator/shares.hpp"
#include "pipeweaver/workloads/activations.hpp"
#include "pipeweaver/workloads/counts.hpp"
#include "pipeweaver/workloads/module_roles.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace pipeweaver::emulator {

using namespace workloads;

namespace {

// Bytes of a value over those of bf16, for which activations are counted.
std::int64_t wide(const Setup& setup, const Module& module) {
    return setup.recipe.execution_of(module).value_bytes() / 2;
}

// What a block, or what stands around the blocks, holds before I has passed it, while I is at it, and after.
struct Held {
    Bytes before, at, after;
};

// What the weight gradients of output head, embedding and projector need, where the part has them.
WeightGradientNeeds needs_around(const StepInput& input, const LayerRange& part, const PassShape& shape,
                                 const Layout& layout) {
    const Architecture& network = input.setup->model.modules[part.module].architecture;
    const std::int64_t m = block_positions_of_group(network, shape, layout), tp = layout.tp;
    WeightGradientNeeds needs;
    if (part.first == 0 && network.vocab > 0) needs.gradients += layer_input(network, m, tp);
    if (part.first == 0) needs.inputs += head_input(network, m, tp);
    if (part.first + part.count < network.layers) return needs;
    if (has_head(input.setup->model, part.module)) {
        const std::int64_t times = 1 + network.predicted_layers;
        needs.inputs += times * layer_input(network, m, tp);
        needs.gradients += times * head_activations(network, m, tp);
        // Of the projections of multi-token prediction.
        needs.inputs += 2 * network.predicted_layers * layer_input(network, m, tp);
        needs.gradients += network.predicted_layers * layer_input(network, m, tp);
    }
    for (const ModelEdge& edge : input.setup->model.edges) {
        if (edge.from != part.module || edge.projector_in == 0 || !trains_projector(input.setup->model, edge)) continue;
        const std::int64_t rows = 2 * rows_of_group(shape, layout, edge.token_reduction);
        needs.inputs += Bytes{rows * (edge.projector_in + edge.projector_hidden / tp)};
        needs.gradients += Bytes{rows * (edge.projector_out + edge.projector_hidden / tp)};
    }
    return needs;
}

// All-to-alls leave the attention's output in parts of the heads and in parts of the sequence; both are kept. Linear
// attention takes them beside a ring, too. Sequences that lie whole on a group are not exchanged.
Bytes kept_for_exchange(const Layout& layout, const Architecture& network, std::int64_t layer, const PassShape& shape) {
    const bool ring = layout.exchanging() == 1 && !block_parts(network, layer).linear;
    if (layout.cp == 1 || ring) return {};
    return attention_outputs(network, layer, block_positions_of_group(network, divided_of(shape), layout), layout.tp);
}

// Of the tokens that the GPUs of an expert gathered each keeps the others', too: inputs of experts. As large are the
// gradients of what the experts gave.
Bytes kept_of_others(const Layout& layout, const ExpertParallel& experts, const Architecture& network,
                     std::int64_t layer, std::int64_t m) {
    if (experts.tensor_parallel == 1 || !block_parts(network, layer).experts) return {};
    return {(experts.tensor_parallel - 1) * 2 * m * network.moe->top_k * expert_width(network) / layout.tp};
}

// Bytes of a block by `of` on the GPU that most tokens reach: what grows with the experts that a token chooses is more
// there than the mean of all.
template <class BytesOf>
Bytes on_the_fullest(const Layout& layout, const ExpertParallel& experts, const Architecture& network,
                     std::int64_t layer, BytesOf of) {
    const Bytes mean = of(network);
    if (layout.ep == 1 || experts.imbalance == 1 || !block_parts(network, layer).experts) return mean;
    Architecture without = network;
    without.moe->top_k = 0;
    const Bytes routed = mean - of(without);
    return mean + Bytes{std::llround((experts.imbalance - 1) * static_cast<double>(routed.count))};
}

// Most that I adds to what the forward left, as it goes from the last block to the first.
Bytes most_above(const std::vector<Held>& blocks) {
    Bytes above, most;
    for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) {
        most = std::max(most, above + block->at - block->before);
        above += block->after - block->before;
        most = std::max(most, above);
    }
    return most;
}

}  // namespace

Bytes block_activations(const Architecture& network, std::int64_t layer, const PassShape& shape, const Layout& layout,
                        const Recipe& recipe) {
    const std::int64_t m = block_positions_of_group(network, shape, layout);
    const std::int64_t context = context_of_group(shape, layout);
    return on_the_fullest(layout, recipe.execution.experts, network, layer, [&](const Architecture& one) {
        return layer_activations(one, layer, m, context, layout.tp) + kept_for_exchange(layout, one, layer, shape) +
               kept_besides(one, layer, m, layout, recipe) +
               kept_of_others(layout, recipe.execution.experts, one, layer, m);
    });
}

namespace {

// Adds up what a pass of one microbatch holds, part by part of its stage.
class PassMemorySum {
public:
    PassMemorySum(const StepInput& input, const std::vector<PassShape>& shapes, Recompute recompute)
        : input_(input),
          setup_(*input.setup),
          modules_(input.placed()),
          shapes_(shapes),
          recompute_(recompute),
          reached_(gradient_reaches(setup_.model)) {}

    void add(const LayerRange& part) {
        const PlacedModule& placed = modules_[part.module];
        const OnCopy copy(module_of(part).architecture, shapes_[part.module], placed.own, Fullest::by_positions);
        const PassShape& shape = copy.shape();
        if (rows_of(part, shape).own == 0) return;
        if (reached_[part.module]) {
            add_blocks(part, shape);
            add_around(part, shape);
        } else {
            add_forward_alone(part, shape);
        }
        if (!setup_.model.teacher.empty()) add_teacher(setup_.model.teacher.front(), part, shape);
    }

    PassMemory sum(bool gradient) && {
        if (!gradient) {
            memory_.forward_transient = std::max(largest_block_, passing_);
            return std::move(memory_);
        }
        for (const Held& block : blocks_) {
            memory_.held += block.before;
            memory_.kept += block.after;
        }
        // What a block did not keep is there while its own forward and backward run; what is copied, a block longer.
        Bytes absent = recompute_ == Recompute::offload ? 2 * absent_ : absent_;
        if (again_somewhere_) absent = largest_block_;
        memory_.forward_transient = std::max(absent, passing_);
        memory_.transient = workspace_ + absent;
        memory_.input_transient = std::max(memory_.transient, workspace_ + most_above(blocks_));
        return std::move(memory_);
    }

private:
    // Positions that a GPU has of a module's sequences, and of what they attend to.
    struct Rows {
        std::int64_t own, context;
    };

    Rows rows_of(const LayerRange& part, const PassShape& shape) const {
        return {block_positions_of_group(module_of(part).architecture, shape, layout_of(part)),
                context_of_group(shape, layout_of(part))};
    }

    const Layout& layout_of(const LayerRange& part) const { return modules_[part.module].layout; }

    // Tensor-parallel GPUs among which positions are divided.
    std::int64_t split_among(const Layout& layout) const {
        return setup_.recipe.execution.sequence_parallel && !layout.all_positions ? layout.tp : 1;
    }

    const Module& module_of(const LayerRange& part) const { return setup_.model.modules[part.module]; }

    // One block after the other: only the one at work holds anything. A trained projector keeps its inputs.
    void add_forward_alone(const LayerRange& part, const PassShape& shape) {
        const std::int64_t width = wide(setup_, module_of(part));
        for (std::int64_t i = part.first; i < part.first + part.count; ++i) {
            const Bytes block =
                block_activations(module_of(part).architecture, i, shape, layout_of(part), setup_.recipe);
            passing_ = std::max(passing_, width * block);
        }
        memory_.held_by_block.resize(memory_.held_by_block.size() + static_cast<std::size_t>(part.count));
        const Bytes inputs = width * needs_around(input_, part, shape, layout_of(part)).inputs;
        if (trains(setup_.model, part)) blocks_.push_back({inputs, inputs, {}});
    }

    // One of its blocks after the other, and its logits until the loss has been taken of both.
    void add_teacher(const workloads::Model& teacher, const LayerRange& part, const PassShape& shape) {
        const LayerRange own = range_beside(setup_.model, teacher, part);
        const Architecture& network = teacher.modules[own.module].architecture;
        const Layout& layout = layout_of(part);
        const std::int64_t width = wide(setup_, module_of(part));
        for (std::int64_t i = own.first; i < own.first + own.count; ++i)
            passing_ = std::max(passing_, width * block_activations(network, i, shape, layout, setup_.recipe));
        if (own.count == 0 || own.first + own.count < network.layers || !has_head(teacher, own.module)) return;
        const std::int64_t m = block_positions_of_group(network, shape, layout);
        const Bytes logits = width * kept_logits(network, m, layout.tp, setup_.recipe);
        if (reached_[part.module])
            blocks_.push_back({logits, logits, {}});
        else
            passing_ += logits;
    }

    // Of a block, each value as wide as the module's.
    struct BlockBytes {
        Bytes kept, recomputable, second_products, workspace;
        WeightGradientNeeds needs;
    };

    BlockBytes bytes_of(const LayerRange& part, const PassShape& shape, std::int64_t layer) const {
        const Module& module = module_of(part);
        const Architecture& network = module.architecture;
        const Layout& layout = layout_of(part);
        const Rows rows = rows_of(part, shape);
        const std::int64_t m = rows.own, tp = layout.tp, width = wide(setup_, module);
        const auto fullest = [&](auto of) { return width * on_the_fullest(layout, experts_, network, layer, of); };
        const auto needs = [&](const Architecture& one) {
            const Bytes others = kept_of_others(layout, experts_, one, layer, m);
            const WeightGradientNeeds own = weight_gradient_needs(one, layer, m, rows.context, tp);
            return WeightGradientNeeds{own.inputs + others, own.gradients + others};
        };
        BlockBytes bytes;
        bytes.kept = width * block_activations(network, layer, shape, layout, setup_.recipe);
        bytes.needs.inputs = fullest([&](const Architecture& one) { return needs(one).inputs; });
        bytes.needs.gradients = fullest([&](const Architecture& one) { return needs(one).gradients; });
        bytes.workspace = fullest([&](const Architecture& one) { return layer_backward_workspace(one, layer, m, tp); });
        bytes.recomputable = fullest([&](const Architecture& one) {
            return recomputable_activations(one, layer, m, tp) + kept_gate(one, layer, m, tp, setup_.recipe);
        });
        bytes.second_products =
            fullest([&](const Architecture& one) { return second_product_activations(one, layer, m, tp); });
        keep_narrow(part, shape, layer, bytes);
        // Of frozen weights no gradients need what norms and activation functions gave.
        if (!module.trains()) bytes.kept -= std::exchange(bytes.recomputable, Bytes{});
        // What is between the two of each pair.
        if (module.adapters)
            bytes.kept += fullest(
                [&](const Architecture& one) { return adapter_activations(one, layer, *module.adapters, m, tp); });
        return bytes;
    }

    // Inputs of products in fewer than 16 bits are kept in their format for weight gradients. What an attention gave
    // and a router reads is needed in 16 bits, too.
    void keep_narrow(const LayerRange& part, const PassShape& shape, std::int64_t layer, BlockBytes& bytes) const {
        const Module& module = module_of(part);
        const costdb::Dtype products = setup_.recipe.products_of(module, layer);
        if (!is_narrow(products) || !setup_.recipe.kept.narrow_inputs || !module.trainable) return;
        const Layout& layout = layout_of(part);
        const std::int64_t m = rows_of(part, shape).own;
        Bytes twice = attention_outputs(module.architecture, layer, m, layout.tp);
        if (block_parts(module.architecture, layer).experts) twice += layer_input(module.architecture, m, layout.tp);
        const double format = bytes_with_scale(products) / 2;
        const auto as_narrow = [&](Bytes wide) {
            return Bytes{std::llround(format * static_cast<double>(wide.count))};
        };
        const Bytes inputs = bytes.needs.inputs, own = std::max(Bytes{}, inputs - twice);
        bytes.kept += as_narrow(inputs) - own;
        bytes.needs.inputs = as_narrow(inputs);
        bytes.recomputable = as_narrow(bytes.recomputable);
    }

    void add_blocks(const LayerRange& part, const PassShape& shape) {
        const Module& module = module_of(part);
        const Architecture& network = module.architecture;
        const std::int64_t m = rows_of(part, shape).own, width = wide(setup_, module);
        const Recompute own = recompute_in(setup_.model, part.module, recompute_);
        const std::int64_t again = own.repeats_parts() ? 0 : recomputed_layers(setup_.model, part, own);
        again_somewhere_ = again_somewhere_ || again > 0;
        BlockBytes bytes;
        std::optional<std::tuple<BlockKind, bool, costdb::Dtype>> known;  // what they were worked out for
        for (std::int64_t i = 0; i < part.count; ++i) {
            const std::int64_t layer = part.first + i;
            const std::tuple kind(block_kind(network, layer), is_moe_layer(network, layer),
                                  setup_.recipe.products_of(module, layer));
            if (known != kind) {
                known = kind;
                bytes = bytes_of(part, shape, layer);
                workspace_ = std::max(workspace_, bytes.workspace);
            }
            const Bytes block = bytes.kept;
            Held held{i < again ? width * layer_input(network, m, split_among(layout_of(part))) : block, block, {}};
            if (own == Recompute::selective) held.before = block - bytes.recomputable;
            if (own == Recompute::second_products) held.before = block - bytes.recomputable - bytes.second_products;
            if (own == Recompute::offload) held.before = {};
            held.after = after(module.trains(), held, bytes.needs);
            blocks_.push_back(held);
            absent_ = std::max(absent_, held.at - held.before);
            memory_.held_by_block.push_back(held.before);
            largest_block_ = std::max(largest_block_, block);
        }
    }

    // What stands in front of the part's blocks and after them.
    void add_around(const LayerRange& part, const PassShape& shape) {
        const Module& module = module_of(part);
        const Architecture& network = module.architecture;
        const auto [m, context] = rows_of(part, shape);
        const std::int64_t tp = layout_of(part).tp, width = wide(setup_, module);
        const Bytes context_bytes = width * context_input(network, context, tp);
        Held around{width * layer_input(network, m, split_among(layout_of(part))) + context_bytes, {}, {}};
        if (part.first == 0) around.before += width * head_input(network, m, tp);
        if (part.first + part.count == network.layers && has_head(setup_.model, part.module)) {
            around.before += width * (1 + network.predicted_layers) * kept_logits(network, m, tp, setup_.recipe);
            around.before += width * prediction_activations(network, m, split_among(layout_of(part)));
            workspace_ = std::max(workspace_, width * head_backward_workspace(network, m));
        }
        around.at = around.before;
        const auto beside = needs_around(input_, part, shape, layout_of(part));
        around.after =
            after(module.trainable, around, {width * beside.inputs + context_bytes, width * beside.gradients});
        blocks_.push_back(around);
    }

    // What W still needs once I has passed. PyTorch's I frees nothing.
    Bytes after(bool trained, const Held& held, const WeightGradientNeeds& needs) const {
        if (!trained) return {};
        return needs.gradients + (input_.input_gradient_frees ? needs.inputs : held.before);
    }

    const StepInput& input_;
    const Setup& setup_;
    const std::vector<PlacedModule> modules_;
    const ExpertParallel& experts_ = setup_.recipe.execution.experts;
    const std::vector<PassShape>& shapes_;
    const Recompute recompute_;
    const std::vector<bool> reached_;  // by gradients, per module
    PassMemory memory_;
    std::vector<Held> blocks_;
    Bytes largest_block_, workspace_;
    Bytes absent_;   // most of a block that it does not keep
    Bytes passing_;  // most of a block through which no gradient comes
    bool again_somewhere_ = false;
};

}  // namespace

PassMemory pass_memory(const StepInput& input, const StageLayers& stage, const std::vector<PassShape>& shapes,
                       Recompute recompute, bool gradient) {
    PassMemorySum memory(input, shapes, recompute);
    for (const LayerRange& part : stage.parts) memory.add(part);
    return std::move(memory).sum(gradient);
}

namespace {

// What is known of the blocks of a module on a rank.
struct Seen {
    bool dense = false, experts = false;
    std::int64_t largest = 0, of_teacher = 0;  // parameters of one, on a GPU; of one of the teacher's beside them
};

// One of each shape of weight that the part adds to those of its module that were seen before.
std::int64_t new_weight_shapes(const Architecture& network, const LayerRange& part, const Setup& setup, std::int64_t tp,
                               Seen& seen, bool first_part) {
    if (!network.moe) {
        std::int64_t largest = 0;
        for (std::int64_t i = part.first; i < part.first + part.count && first_part; ++i)
            largest = std::max(largest, layer_parameter_parts(network, i).common(tp));
        return largest;
    }
    const auto count = [&] {
        const auto shapes = weight_shapes(network, seen.dense, seen.experts);
        return shapes.common(tp) + shapes.experts / setup.recipe.execution.experts.tensor_parallel;
    };
    const std::int64_t before = first_part ? 0 : count();
    for (std::int64_t i = part.first; i < part.first + part.count; ++i)
        (is_moe_layer(network, i) ? seen.experts : seen.dense) = true;
    return count() - before;
}

// Those that as many GPUs hold as hold the module's.
WeightGroup& group_of(RankParameters& rank, const PlacedModule& module) {
    const std::int64_t copies = module.layout.weight_copies(), stride = module.layout.stride();
    for (WeightGroup& group : rank.groups)
        if (!group.experts && group.copies == copies && group.stride == stride &&
            group.in_phases == module.own.in_phases)
            return group;
    return rank.groups.emplace_back(WeightGroup{copies, stride, false, module.own.in_phases});
}

// Of the output head, and of multi-token prediction, whose blocks read the embedding. What is elsewhere is copied.
std::int64_t last_parameters(const Architecture& network, bool has_embedding) {
    const bool copies = !has_embedding && (network.tied_embeddings || network.predicted_layers > 0);
    return head_parameters(network) + prediction_parameters(network) +
           (copies ? token_embedding_parameters(network) : 0);
}

void add_trained(const Model& model, const PlacedModule& placed, std::int64_t own, std::int64_t& trained,
                 RankParameters& rank) {
    trained += own;
    if (model.built && model.built->averages_gradients && placed.layout.alike_tensor > 1) rank.averaged += own;
}

// Parameters of a part on a GPU, before ZeRO.
struct PartParameters {
    std::int64_t own = 0, experts = 0;  // with embedding and head, where it has them
    std::int64_t largest = 0;           // of a block
    // Of the two, those of products in fewer than 16 bits, and the bytes of a copy of them.
    std::int64_t narrow = 0, narrow_experts = 0;
    double bytes = 0, bytes_of_experts = 0;
};

void add_narrow(std::int64_t common, std::int64_t experts, costdb::Dtype products, PartParameters& sum) {
    if (!is_narrow(products)) return;
    const double each = bytes_with_scale(products);
    sum.narrow += common;
    sum.narrow_experts += experts;
    sum.bytes += each * static_cast<double>(common);
    sum.bytes_of_experts += each * static_cast<double>(experts);
}

PartParameters parameters_of(const Model& model, const LayerRange& part, std::int64_t tp, const Setup& setup) {
    const Architecture& network = model.modules[part.module].architecture;
    PartParameters sum;
    for (std::int64_t i = part.first; i < part.first + part.count; ++i) {
        const auto parts = layer_parameter_parts(network, i);
        const std::int64_t common = parts.common(tp);
        const std::int64_t experts = parts.experts / (setup.layout.ep * setup.recipe.execution.experts.tensor_parallel);
        sum.own += common;
        sum.experts += experts;
        add_narrow(common, experts, setup.recipe.products_of(model.modules[part.module], i), sum);
        sum.largest = std::max(sum.largest, common + experts);
    }
    const bool first = part.first == 0, last = part.first + part.count == network.layers;
    if (first) sum.own += embedding_parameters(network) / tp;
    if (last && has_head(model, part.module)) sum.own += last_parameters(network, first) / tp;
    return sum;
}

// Transposed, too, where a gradient passes: only its product reads them so.
void take_narrow(const PartParameters& all, bool gradient, WeightGroup& group, WeightGroup& of_experts) {
    const double copies = gradient ? 2 : 1;
    group.narrow += all.narrow;
    group.narrow_bytes += copies * all.bytes;
    of_experts.narrow += all.narrow_experts;
    of_experts.narrow_bytes += copies * all.bytes_of_experts;
}

void add_teacher(const Setup& setup, const LayerRange& part, std::int64_t tp, WeightGroup& group, Seen& blocks,
                 RankParameters& rank) {
    const Model& teacher = setup.model.teacher.front();
    const LayerRange own = range_beside(setup.model, teacher, part);
    if (own.count == 0) return;
    const PartParameters all = parameters_of(teacher, own, tp, setup);
    group.frozen += all.own;
    rank.groups[1].frozen += all.experts;
    take_narrow(all, false, group, rank.groups[1]);
    rank.teacher_layers += std::max<std::int64_t>(0, all.largest - blocks.of_teacher);
    blocks.of_teacher = std::max(blocks.of_teacher, all.largest);
    const Architecture& network = teacher.modules[own.module].architecture;
    if (own.first + own.count < network.layers) return;
    if (has_head(teacher, own.module)) rank.teacher_layers += head_parameters(network) / tp;
    for (const auto& edge : teacher.edges)
        if (edge.from == own.module) group.frozen += projector_parameters(edge) / tp;
}

void add_projectors(const Model& model, std::size_t behind, std::int64_t tp, WeightGroup& group) {
    for (const auto& edge : model.edges) {
        if (edge.from != behind) continue;
        const std::int64_t own = projector_parameters(edge) / tp;
        const bool trains = trains_projector(model, edge);
        if (trains) group.trained += own;
        if (!trains || model.reference) group.frozen += own;
    }
}

// Where weights are shared out, of a frozen module the block at work and the one on its way are gathered, and the
// embedding or the head.
void add_gathered(const Architecture& network, std::int64_t largest, std::int64_t tp, RankParameters& rank) {
    const std::int64_t around = std::max(embedding_parameters(network), head_parameters(network)) / tp;
    rank.frozen_layers = std::max(rank.frozen_layers, 2 * largest + around);
}

void add_part(const StepInput& input, const LayerRange& part, const PlacedModule& placed, RankParameters& rank,
              std::map<std::size_t, Seen>& seen) {
    const Model& model = input.setup->model;
    const Module& module = model.modules[part.module];
    const Architecture& network = module.architecture;
    const Layout& job = input.setup->layout;
    const std::int64_t tp = placed.layout.tp;
    auto& group = group_of(rank, placed);
    const ExpertParallel& how = input.setup->recipe.execution.experts;
    const PartParameters all = parameters_of(model, part, tp, *input.setup);
    const std::int64_t own = all.own, experts = all.experts, largest = all.largest;
    take_narrow(all, gradient_reaches(model)[part.module], group, rank.groups[1]);
    if (module.trainable && model.reference) take_narrow(all, false, group, rank.groups[1]);
    std::int64_t adapters = 0;
    for (std::int64_t i = part.first; i < part.first + part.count && module.adapters; ++i) {
        adapters += adapter_parameters(network, i, *module.adapters).common(tp);
        rank.groups[1].trained += adapters_of_experts(network, i, *module.adapters, job, how).parameters;
    }
    const bool first = part.first == 0, last = part.first + part.count == network.layers;
    const bool head = has_head(model, part.module);
    if (head && (network.tied_embeddings || network.predicted_layers > 0) && first != last) {
        rank.shares_embedding = true;
        rank.tied = token_embedding_parameters(network) / tp;
    }
    if (last) add_projectors(model, part.module, tp, group);
    const auto [place, first_part] = seen.try_emplace(part.module);
    Seen& blocks = place->second;
    if (!model.teacher.empty()) add_teacher(*input.setup, part, tp, group, blocks, rank);
    if (!module.trainable || model.reference) {
        group.frozen += own;
        rank.groups[1].frozen += experts;
    }
    if (!module.trainable) {
        group.trained += adapters;
        add_gathered(network, largest, tp, rank);
        return;
    }
    add_trained(model, placed, own, group.trained, rank);
    rank.groups[1].trained += experts;
    rank.largest_layers += new_weight_shapes(network, part, *input.setup, tp, blocks, first_part);
    if (first_part || network.moe) {
        rank.whole_layers += std::max<std::int64_t>(0, largest - blocks.largest);
        blocks.largest = std::max(blocks.largest, largest);
    }
    if (!last || !head) return;
    for (std::int64_t* layers : {&rank.largest_layers, &rank.whole_layers}) *layers += head_parameters(network) / tp;
}

}  // namespace

std::vector<RankParameters> rank_parameters(const StepInput& input) {
    const Layout& layout = input.setup->layout;
    const auto placed = input.placed();
    const OwnParameters experts = own_experts(0, layout, input.setup->recipe.execution.experts);
    RankParameters none{{{layout.weight_copies(), layout.tp}, {experts.copies, experts.stride, true}}};
    std::vector<RankParameters> ranks(static_cast<std::size_t>(layout.pp), none);
    std::vector<std::map<std::size_t, Seen>> seen(ranks.size());
    const auto add = [&](std::size_t rank, const LayerRange& part) {
        add_part(input, part, placed[part.module], ranks[rank], seen[rank]);
    };
    for (const Chain& chain : input.chains)
        for (const StageLayers& stage : chain.stages)
            for (const LayerRange& part : stage.parts) add(index(stage.rank), part);
    for (const std::size_t m : phase_modules(input.layouts))
        for (std::size_t r = 0; r < ranks.size(); ++r)
            add(r, {m, 0, input.setup->model.modules[m].architecture.layers});
    return ranks;
}

namespace {

// Gradients that are added up whole, of how many microbatches of a GPU are known.
std::int64_t whole_gradients(const Recipe& recipe, bool is_pipeline, std::size_t microbatches) {
    const StateBytes& each = recipe.state;
    if (recipe.zero < 2) return each.whole;
    if (is_pipeline && each.pipelined > 0) return each.pipelined;
    return each.summed > 0 && microbatches > 1 ? each.summed : each.whole;
}

// Of all weights of a group, before they are shared out.
std::int64_t weight_bytes(const WeightGroup& group, const StateBytes& each) {
    const std::int64_t all = each.weight * (group.trained + group.frozen);
    if (each.narrow == NarrowWeights::cast_again || group.narrow == 0) return all;
    const std::int64_t replaced = each.narrow == NarrowWeights::alone ? each.weight * group.narrow : 0;
    return all - replaced + std::llround(group.narrow_bytes);
}

StaticMemory memory_of(const RankParameters& rank, const Recipe& recipe, bool is_pipeline, std::size_t microbatches) {
    const StateBytes& each = recipe.state;
    StaticMemory memory;
    std::int64_t summed = 0;  // of which gradients are added up whole
    Bytes bare_gradients;
    Bytes all_weights;  // of shards that are as long as each other
    for (const WeightGroup& group : rank.groups) {
        const auto part = [&](std::int64_t bytes, int from_stage) {
            const std::int64_t parts = recipe.zero >= from_stage ? group.copies : 1;
            return Bytes{(bytes + parts - 1) / parts};
        };
        const bool bare = each.bare && group.copies == 1;
        if (!bare) summed += group.trained;
        const Bytes weights = part(weight_bytes(group, each), 3);
        memory.weights += weights;
        all_weights += Bytes{weights.count * group.copies};
        if (recipe.zero == 2 && !bare) memory.apart += part(each.apart * (group.trained + group.frozen), 2);
        const Bytes gradients = part(each.gradient * group.trained, 2);
        (bare ? bare_gradients : memory.gradients) += gradients;
        memory.optimizer += part(each.optimizer * group.trained, 1);
    }
    memory.weights += memory.apart;
    const Bytes whole{whole_gradients(recipe, is_pipeline, microbatches) * summed};
    const bool summed_whole = whole > Bytes{} && recipe.zero >= 2;  // shares come of what is freed
    memory.gradients = (summed_whole ? whole : memory.gradients + whole) + bare_gradients;
    memory.workspace = recipe.beside + Bytes{2 * rank.largest_layers};
    // The weights of the layer that runs and of the one that is gathered ahead, and gradients before they are reduced.
    if (recipe.zero >= 3) memory.workspace += Bytes{2 * each.weight * std::max(rank.whole_layers, rank.teacher_layers)};
    if (recipe.zero >= 3) memory.workspace += Bytes{each.weight * rank.frozen_layers};
    if (recipe.zero >= 2 && !summed_whole) memory.workspace += Bytes{each.gradient * rank.whole_layers};
    const Bytes gathered = recipe.zero >= 3 ? std::min(recipe.gathered, all_weights) : Bytes{};
    memory.workspace += gathered;
    if (each.update > 0 && each.optimizer > 0)
        memory.at_update = memory.weights + memory.gradients + memory.optimizer + recipe.beside + gathered +
                           Bytes{memory.optimizer.count / each.optimizer * each.update};
    return memory;
}

}  // namespace

std::vector<StaticMemory> static_memory(const StepInput& input) {
    std::vector<StaticMemory> all;
    const emulator::Setup& setup = *input.setup;
    for (const RankParameters& rank : rank_parameters(input))
        all.push_back(memory_of(rank, setup.recipe, setup.layout.pp > 1, input.units.size()));
    return all;
}

}  // namespace pipeweaver::emulator
