// Costs of passes through layers and stages.
#include "pipeweaver/emulator/layer_costs.hpp"

#include "emulator/operators/operator_builder.hpp"
#include "emulator/pricing/data_traffic.hpp"
#include "emulator/pricing/pass_graph.hpp"
#include "emulator/pricing/price.hpp"
#include "emulator/pricing/stage_memory.hpp"
#include "emulator/pricing/stage_walk.hpp"
#include "pipeweaver/workloads/activations.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

namespace pipeweaver::emulator {

namespace {

// Whether activations must be there: what is computed again comes in front.
bool runs_backwards(PassKind pass) { return has_input_gradient(pass); }

std::vector<std::array<double, 2>> measured_factors(const costdb::CostDatabase& costs, const workloads::Model& model) {
    std::vector<std::array<double, 2>> factors(model.modules.size(), {1.0, 1.0});
    for (const costdb::PassFactor& one : costs.measurements().pass_factors)
        for (std::size_t m = 0; one.model == model.name && m < model.modules.size(); ++m)
            if (model.modules[m].name == one.module)
                factors[m][one.backward ? 1 : 0] = static_cast<double>(one.factor_ppm) / 1e6;
    return factors;
}

Setup with_model(Setup setup, workloads::Model model) {
    setup.model = std::move(model);
    return setup;
}

// What a pass's own time is made of: not the traffic of replicas, copies and the host, which run beside it.
bool is_of_pass(Stream stream) {
    return stream == Stream::compute || stream == Stream::tensor || stream == Stream::context;
}

}  // namespace

// Its own forward, of which nothing is kept and nothing runs again.
struct LayerCosts::Beside {
    Beside(Setup with, const ModuleLayouts& modules, const Recipe& recipe, const WhatIf* what_if, std::int64_t replica,
           LayerStore* store)
        : setup(std::move(with)), costs(setup, modules, recipe, what_if, replica, store) {}

    Setup setup;
    LayerCosts costs;
};

LayerCosts::~LayerCosts() = default;

LayerCosts::LayerCosts(const Setup& setup, const ModuleLayouts& modules, std::int64_t replica, Store store)
    : LayerCosts(setup, modules, setup.recipe, setup.what_if.empty() ? nullptr : &setup.what_if, replica,
                 store == Store::shared ? setup.store.get() : nullptr) {}

LayerCosts LayerCosts::usual(const Setup& setup, const ModuleLayouts& modules) {
    LayerStore* store = setup.store.get();
    if (store != nullptr && !setup.is_usual()) store = &store->judging();
    return {setup, modules, judging(setup.recipe), nullptr, 0, store};
}

LayerCosts::LayerCosts(const Setup& setup, const ModuleLayouts& modules, const Recipe& recipe, const WhatIf* what_if,
                       std::int64_t replica, LayerStore* store)
    : model_(setup.model),
      cluster_(setup.cluster),
      modules_(placed_modules(setup.layout.on(setup.cluster), modules, setup.model)),
      costs_(*setup.costs),
      factors_{in_stack(in_situ_factors(costs_, cluster_.device, Precision::sixteen_bit), recipe),
               in_stack(in_situ_factors(costs_, cluster_.device, Precision::eight_bit), recipe)},
      measured_(measured_factors(costs_, model_)),
      gradient_(workloads::gradient_reaches(model_)),
      recipe_(recipe),
      what_if_(what_if),
      replica_(replica),
      store_(store) {
    auto beside = workloads::model_beside(model_);
    if (!beside) return;
    // Keys of a store say nothing of adapters, which the copy has not, nor of the model.
    const bool is_as_trained =
        model_.reference && std::none_of(model_.modules.begin(), model_.modules.end(),
                                         [](const auto& module) { return module.adapters.has_value(); });
    beside_ = std::make_unique<Beside>(with_model(setup, std::move(*beside)), modules, recipe, what_if, replica,
                                       is_as_trained ? store : nullptr);
}

PricedOperators LayerCosts::priced(std::vector<Operator> operators, const Place& place) const {
    const bool in_every_pass = recipe_.zero >= 3 || (recipe_.zero == 2 && place.pass != PassKind::forward);
    const bool slow = (in_every_pass || place.beside_data) && layout_of(place.module).weight_copies() > 1;
    const double slowed = slow ? recipe_.overlap_slowdown : 1.0;
    const auto precision = precision_of(recipe_.products_of(model_.modules[place.module], place.layer));
    const InSituFactors& factors = factors_[static_cast<std::size_t>(precision)];
    const double of_pass = factor_of_pass(place);
    if (what_if_ == nullptr && slowed == 1.0 && of_pass == 1.0)
        return price(std::move(operators), costs_, factors, recipe_);
    const double factor = device(place.rank);
    return price(std::move(operators), costs_, factors, recipe_, [&](const Operator& op) {
        const double changed = what_if_ == nullptr ? 1.0 : factor_of(*what_if_, op, model_.modules[place.module].name);
        const double own = is_of_pass(op.stream) ? of_pass : 1.0;
        return (op.stream == Stream::compute ? factor * changed * slowed : factor * changed) * own;
    });
}

double LayerCosts::factor_of_pass(const Place& place) const {
    const bool backward = place.pass != PassKind::forward;
    const double measured = measured_[place.module][backward ? 1 : 0];
    return what_if_ == nullptr ? measured
                               : measured * pass_factor(*what_if_, model_.modules[place.module].name, backward);
}

namespace {

// Of a layer's forward.
double layers_of_host(PassKind pass) {
    constexpr double backward = 1.3;
    if (pass == PassKind::forward) return 1;
    return pass == PassKind::backward ? backward : backward / 2;
}

// Where both take about as long, neither hides the other whole.
double longer_of(double one, double other) { return std::sqrt(std::sqrt(std::pow(one, 4) + std::pow(other, 4))); }

}  // namespace

PricedOperators LayerCosts::priced_layer(std::int64_t layer, const PassShape& shape, Place place) const {
    place.layer = layer;
    const auto& module = model_.modules[place.module];
    const Layout& layout = layout_of(place.module);
    auto operators =
        layer_operators(module.architecture, shape, layout, place.pass, layer, recipe_.execution_of(module, layer));
    for (const OwnParameters& own : {layer_weights(module.architecture, layer, layout),
                                     layer_experts(module.architecture, layer, layout, recipe_.execution.experts)}) {
        add_accumulation(operators, own.parameters, place.pass, module.trainable, recipe_);
        add_data_traffic(operators, own, place.pass, module.trainable, recipe_, layout);
    }
    if (module.adapters) {
        const auto parts = adapter_parameters(module.architecture, layer, *module.adapters);
        for (const OwnParameters& thin :
             {OwnParameters{parts.common(layout.tp), layout.weight_copies(), layout.stride()},
              adapters_of_experts(module.architecture, layer, *module.adapters, layout, recipe_.execution.experts)}) {
            add_accumulation(operators, thin.parameters, place.pass, true, recipe_);
            add_data_traffic(operators, thin, place.pass, true, recipe_, layout);
        }
    }
    // A layer of one part launches half as much.
    const bool half = workloads::block_parts(module.architecture, layer).norms() == 1;
    HostWork host{.passes = passes_of_host(module.architecture, shape, place) / (half ? 2 : 1)};
    if (workloads::is_moe_layer(module.architecture, layer)) {
        // Dispatchers that send a token once have routing in kernels of their own.
        const bool fused = recipe_.execution.experts.dispatcher == Dispatcher::once_a_node;
        if (const auto fitted = fitted_constants(cluster_.device); fitted && !fused)
            host.routing_us = fitted->expert_layer_us;
        host.waits = recipe_.expert_layer;
    }
    return with_host(priced(std::move(operators), place), host, place);
}

// Half a pass more where Megatron-LM's fused softmax does not take the shape: it needs a multiple of four sequences
// times heads on a GPU.
double LayerCosts::passes_of_host(const workloads::Architecture& network, const PassShape& shape,
                                  const Place& place) const {
    const Layout& layout = layout_of(place.module);
    const auto squares = static_cast<std::int64_t>(shape.lengths.size()) * network.heads / layout.tp;
    const bool fallback = !recipe_.execution.fused_attention && squares % 4 != 0;
    // A ring launches its steps one by one: an attention and its sends each.
    constexpr double of_a_step = 0.2;
    const std::int64_t groups = layout.cp / layout.exchanging();
    const double steps = of_a_step * static_cast<double>(groups - 1);
    return layers_of_host(place.pass) * (1 + steps) + (fallback ? 0.5 : 0);
}

PricedOperators LayerCosts::with_host(PricedOperators list, const HostWork& host, const Place& place) const {
    const Duration layer = recipe_.host_of(model_.modules[place.module]);
    const bool none = layer == Duration{0} && host.waits == Duration{0} && host.routing_us == 0;
    if (none || list.operators.empty()) return list;
    const double of_pass = layers_of_host(place.pass) / (1 + layers_of_host(PassKind::backward));
    const double own = static_cast<double>(list.cost.time.count()) + 1e3 * host.routing_us * of_pass;
    const double launches = host.passes * static_cast<double>(layer.count());
    const double waits = of_pass * static_cast<double>(host.waits.count());
    const double time = waits > 0 ? std::hypot(own, launches + waits) : longer_of(own, launches);
    Operator wait{"host", HostWait{Duration{std::llround(time)} - list.cost.time}};
    wait.stream = Stream::host;
    for (std::uint32_t i = 0; i < list.operators.size(); ++i) wait.after.push_back(i);
    auto operators = std::move(list.operators);
    operators.push_back(std::move(wait));
    return priced(std::move(operators), place);
}

namespace {

// Under selective recomputation: norms and activation functions; where scores go through memory, core attention, that
// is, scores and their use (Korthikanti et al., arXiv 2205.05198, section 5).
bool runs_again(const Operator& op, bool core_attention) {
    if (core_attention) return op.kind() == OperatorClass::attention;
    const auto* memory_bound = std::get_if<costdb::Elementwise>(&op.query);
    return memory_bound != nullptr && memory_bound->kind == costdb::ElementwiseKind::norm_activation;
}

// Of a product, the columns that every second product makes: keys of queries, keys and values, the attention's output,
// and of a gated feed-forward the half that no activation follows. Nothing: none.
std::optional<std::int64_t> second_columns(const Operator& op, const workloads::Architecture& network,
                                           const Layout& layout) {
    const auto* product = std::get_if<costdb::Gemm>(&op.query);
    if (product == nullptr) return std::nullopt;
    if (op.name == "qkv") return std::max(network.kv_heads, layout.tp) * network.head_dim / layout.tp;
    if (op.name == "attention output") return product->n;
    if (op.name == "up" && network.gated) return product->n / 2;
    return std::nullopt;
}

// What runs again of a block's forward where every second product does.
void keep_second_products(std::vector<Operator>& operators, const workloads::Architecture& network,
                          const Layout& layout) {
    std::erase_if(operators,
                  [&](const Operator& op) { return !second_columns(op, network, layout) && !runs_again(op, false); });
    for (Operator& op : operators)
        if (const auto columns = second_columns(op, network, layout)) std::get<costdb::Gemm>(op.query).n = *columns;
}

}  // namespace

PricedOperators LayerCosts::priced_again(std::int64_t layer, const PassShape& shape, Place place,
                                         Recompute recompute) const {
    place.pass = PassKind::forward;
    place.layer = layer;
    if (!recompute.repeats_parts()) return priced_layer(layer, shape, place);
    const auto& module = model_.modules[place.module];
    const Layout& layout = layout_of(place.module);
    auto operators =
        layer_operators(module.architecture, shape, layout, place.pass, layer, recipe_.execution_of(module, layer));
    const bool core = recompute == Recompute::core_attention || !recipe_.execution.fused_attention;
    if (recompute == Recompute::second_products && workloads::has_second_products(module.architecture, layer))
        keep_second_products(operators, module.architecture, layout);
    else
        std::erase_if(operators, [core](const Operator& op) { return !runs_again(op, core); });
    for (Operator& op : operators) op.after.clear();
    return priced(std::move(operators), place);
}

PricedOperators LayerCosts::priced_around(const AroundBlocks& around, std::vector<Operator> operators, RankId rank,
                                          bool beside_data) const {
    const Layout& layout = layout_of(around.module);
    const OwnParameters own{around.parameters, layout.weight_copies(), layout.tp};
    add_accumulation(operators, around.parameters, around.pass, around.trained, recipe_);
    add_data_traffic(operators, own, around.pass, around.trained, recipe_, layout);
    const Place place{around.module, rank, around.pass, beside_data};
    auto list = priced(std::move(operators), place);
    // As many kernels as two layers.
    return around.loss ? with_host(std::move(list), {.passes = 2 * layers_of_host(place.pass)}, place) : list;
}

double LayerCosts::device(RankId rank) const {
    return what_if_ == nullptr ? 1.0 : device_factor(*what_if_, replica_, rank);
}

LayerCosts::OfShape& LayerCosts::of(const PassShape& shape) {
    if (last_ != nullptr && shape.whole == last_shape_.whole && shape.lengths == last_shape_.lengths &&
        shape.context == last_shape_.context)
        return last_->second;
    Sequences sequences{{}, shape.whole};
    sequences.all.reserve(shape.lengths.size());
    for (std::size_t i = 0; i < shape.lengths.size(); ++i)
        sequences.all.emplace_back(shape.lengths[i], shape.context.empty() ? 0 : shape.context[i]);
    const auto divided = sequences.all.begin() + static_cast<std::ptrdiff_t>(shape.whole);
    std::sort(sequences.all.begin(), divided);
    std::sort(divided, sequences.all.end());
    last_ = &*known_.try_emplace(std::move(sequences)).first;
    last_shape_ = shape;
    return last_->second;
}

std::pair<PassCost*, bool> LayerCosts::OfShape::find(const Asked& asked) {
    for (auto& [known, cost] : costs)
        if (known == asked) return {&cost, false};
    return {&costs.emplace_back(asked, PassCost{}).second, true};
}

const PassCost& LayerCosts::layer(std::size_t module, std::int64_t layer, const PassShape& shape, PassKind pass,
                                  RankId rank) {
    const OnCopy copy(model_.modules[module].architecture, shape, modules_[module].own);
    return layer_on_copy(module, layer, copy.shape(), pass, rank);
}

namespace {

// What is known of a shape: its kinds of blocks in their formats, beside them what stands around them, and what of them
// runs again.
constexpr std::size_t most_kinds = 16, after_kinds = 256, again_kinds = 1024;

std::size_t kind_in(workloads::BlockKind kind, costdb::Dtype products) {
    return static_cast<std::size_t>(kind) + most_kinds * static_cast<std::size_t>(products);
}

}  // namespace

const PassCost& LayerCosts::layer_on_copy(std::size_t module, std::int64_t layer, const PassShape& shape, PassKind pass,
                                          RankId rank) {
    const auto kind = workloads::block_kind(model_.modules[module].architecture, layer);
    const double factor = device(rank);
    OfShape& known = of(shape);
    const costdb::Dtype products = recipe_.products_of(model_.modules[module], layer);
    const double sparsity = workloads::sparsity_of(model_.modules[module].architecture, layer);
    const auto [cost, added] = known.find({module, kind_in(kind, products), pass, factor, sparsity});
    if (!added) return *cost;
    if (store_ == nullptr) return *cost = priced_layer(layer, shape, {module, rank, pass}).cost;
    const Layout& layout = layout_of(module);
    const bool ring = layout.context == ContextParallel::ring;
    const LayerKey key{module, kind, pass, factor, layout.tp, layout.cp, ring, last_->first, products, sparsity};
    if (const auto found = store_->find(key)) return *cost = *found;
    *cost = priced_layer(layer, shape, {module, rank, pass}).cost;
    store_->insert(key, *cost);
    return *cost;
}

PassCost LayerCosts::layers(const LayerRange& range, const PassShape& shape, PassKind pass, RankId rank) {
    const OnCopy copy(model_.modules[range.module].architecture, shape, modules_[range.module].own);
    PassCost sum = layers_on_copy(range, copy.shape(), pass, rank);
    if (beside_ && pass == PassKind::forward)
        sum += beside_->costs.layers(range_beside(model_, beside_->setup.model, range), shape, pass, rank);
    return sum;
}

PassCost LayerCosts::layers_on_copy(const LayerRange& range, const PassShape& shape, PassKind pass, RankId rank) {
    PassCost sum;
    walk_layers(
        model_, range,
        [&](std::int64_t first, std::int64_t alike) {
            sum += alike * layer_on_copy(range.module, first, shape, pass, rank);
        },
        &recipe_);
    return sum;
}

namespace {

bool runs_nothing(const std::vector<PassPiece>& pieces) {
    for (const PassPiece& piece : pieces)
        for (const PricedOperators& list : piece.lists)
            if (list.cost.kernels > 0) return false;
    return true;
}

}  // namespace

PassCost LayerCosts::stage(const StageLayers& stage, const std::vector<PassShape>& shapes, PassKind pass,
                           Recompute recompute) {
    if (reach_into_each_other(recompute)) {
        const auto all = pieces(stage, shapes, pass, recompute);
        return runs_nothing(all) ? PassCost{} : cost_of(all, recipe_);
    }
    PassCost sum;
    walk_stage(
        model_, modules_, gradient_, recipe_, stage, shapes, pass,
        [&](const LayerRange& part, PassKind here, const PassShape& shape) {
            sum += layers_on_copy(part, shape, here, stage.rank);
        },
        [&](const AroundBlocks& around) {
            const auto [cost, added] =
                of(*around.shape).find({around.module, after_kinds + around.number, around.pass, device(stage.rank)});
            if (added)
                if (auto operators = around.operators(); !operators.empty())
                    *cost = priced_around(around, std::move(operators), stage.rank).cost;
            sum += *cost;
        });
    if (runs_backwards(pass)) sum += blocks_forward(stage, shapes, recompute);
    if (beside_ && pass == PassKind::forward)
        sum += beside_->costs.stage(stage_beside(model_, beside_->setup.model, stage), shapes, pass);
    return sum;
}

// Then a pass is no sum of its layers.
bool LayerCosts::reach_into_each_other(Recompute recompute) const {
    return !recipe_.is_serial() || recompute == Recompute::offload;
}

PassCost LayerCosts::blocks_forward(const StageLayers& stage, const std::vector<PassShape>& shapes, Recompute asked) {
    PassCost sum;
    for (const LayerRange& part : stage.parts) {
        const Recompute recompute = recompute_in(model_, part.module, asked);
        const LayerRange again{part.module, part.first, recomputed_layers(model_, part, recompute)};
        if (shapes[part.module].lengths.empty() || again.count == 0 || !gradient_[part.module]) continue;
        const OnCopy copy(model_.modules[part.module].architecture, shapes[part.module], modules_[part.module].own);
        const PassShape& shape = copy.shape();
        if (!recompute.repeats_parts()) {
            sum += layers_on_copy(again, shape, PassKind::forward, stage.rank);
            continue;
        }
        walk_layers(
            model_, again,
            [&](std::int64_t first, std::int64_t alike) {
                const auto& module = model_.modules[part.module];
                const auto kind = workloads::block_kind(module.architecture, first);
                const std::size_t what = again_kinds + kind_in(kind, recipe_.products_of(module, first)) +
                                         (recompute == Recompute::core_attention    ? after_kinds
                                          : recompute == Recompute::second_products ? 2 * after_kinds
                                                                                    : 0);
                const double sparsity = workloads::sparsity_of(module.architecture, first);
                const auto [cost, added] =
                    of(shape).find({part.module, what, PassKind::forward, device(stage.rank), sparsity});
                if (added) *cost = priced_again(first, shape, {part.module, stage.rank}, recompute).cost;
                sum += alike * *cost;
            },
            &recipe_);
    }
    return sum;
}

// Rows of like blocks: those that are computed again, and the others.
void LayerCosts::add_blocks(const LayerRange& part, const PassShape& shape, const Place& place, Recompute asked,
                            std::vector<PassPiece>& pieces) const {
    const Recompute recompute = recompute_in(model_, part.module, asked);
    const auto& network = model_.modules[place.module].architecture;
    const std::int64_t again = runs_backwards(place.pass) ? recomputed_layers(model_, part, recompute) : 0;
    const bool copies = recompute == Recompute::offload && gradient_[place.module];
    const auto add = [&](std::int64_t first, std::int64_t count, bool twice) {
        if (count == 0) return;
        PassPiece piece{{}, part.module, first, count, true, 0};
        piece.parameters = layer_weights(network, first, layout_of(part.module)).parameters;
        piece.trained = model_.modules[place.module].trainable;
        if (twice) {
            // Of a layer without attention nothing runs again where core attention alone does.
            auto once_more = priced_again(first, shape, place, recompute);
            if (!once_more.operators.empty()) piece.lists.push_back(std::move(once_more));
        }
        auto list = priced_layer(first, shape, place);
        Place at = place;
        at.layer = first;
        if (copies) list = with_copy(std::move(list), first, shape, at);
        piece.lists.push_back(std::move(list));
        pieces.push_back(std::move(piece));
    };
    walk_layers(
        model_, part,
        [&](std::int64_t first, std::int64_t alike) {
            const std::int64_t twice = std::clamp<std::int64_t>(part.first + again - first, 0, alike);
            add(first, twice, true);
            add(first + twice, alike - twice, false);
        },
        &recipe_);
}

// A block's activations go to the host after its forward, and come back in front of its backward. One that no gradient
// reaches keeps none.
PricedOperators LayerCosts::with_copy(PricedOperators list, std::int64_t layer, const PassShape& shape,
                                      const Place& place) const {
    const bool forward = place.pass == PassKind::forward;
    const Bytes held =
        block_activations(model_.modules[place.module].architecture, layer, shape, layout_of(place.module), recipe_);
    if ((!forward && !runs_backwards(place.pass)) || held == Bytes{}) return list;
    Operator copy{forward ? "offload" : "fetch", costdb::PointToPoint{2, held}};
    copy.stream = Stream::copy;
    auto operators = std::move(list.operators);
    if (forward) {
        copy.after = {static_cast<std::uint32_t>(operators.size() - 1)};
        operators.push_back(std::move(copy));
    } else {
        put_first(operators, std::move(copy));
    }
    return priced(std::move(operators), place);
}

std::vector<PassPiece> LayerCosts::pieces(const StageLayers& stage, const std::vector<PassShape>& shapes, PassKind pass,
                                          Recompute recompute, bool beside_data) const {
    std::vector<PassPiece> pieces;
    std::size_t blocks = 0;  // where those of the part begin
    walk_stage(
        model_, modules_, gradient_, recipe_, stage, shapes, pass,
        [&](const LayerRange& part, PassKind here, const PassShape& shape) {
            blocks = pieces.size();
            add_blocks(part, shape, {part.module, stage.rank, here, beside_data}, recompute, pieces);
        },
        [&](const AroundBlocks& around) {
            auto operators = around.operators();
            if (operators.empty()) return;
            const auto place = around.in_front ? pieces.begin() + static_cast<std::ptrdiff_t>(blocks) : pieces.end();
            const std::size_t module = around.module;
            const std::int64_t parameters = around.parameters;
            const bool trained = around.trained;
            auto priced = priced_around(around, std::move(operators), stage.rank, beside_data);
            pieces.insert(place, {{std::move(priced)}, module, 0, 1, false, parameters, trained});
        });
    if (pass != PassKind::forward) std::reverse(pieces.begin(), pieces.end());
    if (beside_ && pass == PassKind::forward) {
        const StageLayers others = stage_beside(model_, beside_->setup.model, stage);
        auto first = beside_->costs.pieces(others, shapes, pass, Recompute::none, beside_data);
        pieces.insert(pieces.begin(), std::make_move_iterator(first.begin()), std::make_move_iterator(first.end()));
    }
    return pieces;
}

PassPiece LayerCosts::action_of(const StageLayers& stage) const {
    Operator action{"action", HostWait{recipe_.action}};
    action.stream = Stream::host;
    return {
        {price({std::move(action)}, costs_, factors_.front(), recipe_)}, stage.parts.front().module, 0, 1, false, 0};
}

PassCost LayerCosts::task(const StageLayers& stage, const std::vector<PassShape>& shapes, PassKind pass,
                          Recompute recompute) {
    if (recipe_.action == Duration{0}) return this->stage(stage, shapes, pass, recompute);
    if (reach_into_each_other(recompute)) return cost_of(task_pieces(stage, shapes, pass, recompute), recipe_);
    return this->stage(stage, shapes, pass, recompute) += action_of(stage).lists.front().cost;
}

std::vector<PassPiece> LayerCosts::task_pieces(const StageLayers& stage, const std::vector<PassShape>& shapes,
                                               PassKind pass, Recompute recompute, bool beside_data) const {
    auto all = pieces(stage, shapes, pass, recompute, beside_data);
    if (recipe_.action > Duration{0}) all.insert(all.begin(), action_of(stage));
    return all;
}

PassCost cost_of(const std::vector<PassPiece>& pieces, const Recipe& recipe) {
    PassCost sum;
    for (const PassPiece& piece : pieces)
        for (const PricedOperators& list : piece.lists) sum += piece.times * list.cost;
    if (!is_closed(pieces, recipe) && !pieces.empty()) set_times(pass_graph(pieces, recipe), sum);
    return sum;
}

}  // namespace pipeweaver::emulator
