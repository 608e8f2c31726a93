// What a pass through a stage consists of, in the order in which it is priced and listed.
#pragma once

#include "emulator/operators/head_network.hpp"
#include "pipeweaver/emulator/shares.hpp"
#include "pipeweaver/emulator/stages.hpp"
#include "pipeweaver/workloads/counts.hpp"
#include "pipeweaver/workloads/module_roles.hpp"

#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace pipeweaver::emulator {

/// Calls `alike(first layer, how many)` for each row of like blocks of the range; `by`: their products are in one
/// format there, too.
template <class Alike>
void walk_layers(const workloads::Model& model, const LayerRange& range, const Alike& alike,
                 const Recipe* by = nullptr) {
    const auto& module = model.modules[range.module];
    const bool formats = by != nullptr && by->tells_layers_apart(module);
    const auto are_alike = [&](std::int64_t a, std::int64_t b) {
        return workloads::block_kind(module.architecture, a) == workloads::block_kind(module.architecture, b) &&
               workloads::sparsity_of(module.architecture, a) == workloads::sparsity_of(module.architecture, b) &&
               (!formats || by->products_of(module, a) == by->products_of(module, b));
    };
    for (std::int64_t i = 0; i < range.count;) {
        std::int64_t count = 1;
        while (i + count < range.count && are_alike(range.first + i, range.first + i + count)) ++count;
        alike(range.first + i, count);
        i += count;
    }
}

/// The layers of the model beside (workloads::model_beside()) that lie where these of the model do: in proportion, so
/// that ranges that make up a module make up the other's; of a copy the same.
inline LayerRange range_beside(const workloads::Model& model, const workloads::Model& beside, const LayerRange& range) {
    const std::int64_t own = model.modules[range.module].architecture.layers,
                       all = beside.modules[range.module].architecture.layers;
    const std::int64_t first = range.first * all / own, end = (range.first + range.count) * all / own;
    return {range.module, first, end - first};
}

/// The same of a stage, where it has some.
inline StageLayers stage_beside(const workloads::Model& model, const workloads::Model& beside,
                                const StageLayers& stage) {
    StageLayers others{stage.rank, {}};
    for (const LayerRange& part : stage.parts)
        if (const LayerRange range = range_beside(model, beside, part); range.count > 0) others.parts.push_back(range);
    return others;
}

/// What a pass does with weights that may be frozen; none: nothing at all.
inline std::optional<PassKind> pass_with(bool trained, bool gradient, PassKind pass) {
    if (pass == PassKind::forward) return pass;
    if (!gradient || (pass == PassKind::weight_gradient && !trained)) return std::nullopt;
    if (pass == PassKind::backward && !trained) return PassKind::input_gradient;
    return pass;
}

/// What a pass does in the blocks of a module; where adapters alone are trained, the pass is theirs.
inline std::optional<PassKind> pass_in(const workloads::Module& module, bool gradient, PassKind pass) {
    return pass_with(module.trains(), gradient, pass);
}

/// The same of a projector, which may be trained after a frozen module and the other way round.
inline std::optional<PassKind> pass_in_projector(bool trained, bool gradient, PassKind pass) {
    if (pass == PassKind::forward) return pass;
    const bool input = gradient && pass != PassKind::weight_gradient;
    const bool weight = trained && pass != PassKind::input_gradient;
    if (input && weight) return PassKind::backward;
    if (input) return PassKind::input_gradient;
    return weight ? std::optional(PassKind::weight_gradient) : std::nullopt;
}

/// What stands in front of a module's blocks or after them.
struct AroundBlocks {
    std::function<std::vector<Operator>()> operators;  ///< makes them, while they are visited; there may be none
    std::size_t number = 0;                            ///< tells those of a module apart
    std::size_t module = 0;
    PassKind pass = PassKind::forward;  ///< what the module does in it
    std::int64_t parameters = 0;        ///< of their weights, on one GPU
    bool in_front = false;
    bool loss = false;  ///< the output head
    bool trained = true;
    const PassShape* shape = nullptr;  ///< that they depend on: of the module's fullest copy, what is gathered for an
                                       ///< edge on the whole unit's; while they are visited
};

/// Width of what goes over an edge.
inline std::int64_t columns_of(const workloads::Model& model, const workloads::ModelEdge& edge) {
    return edge.projector_out > 0 ? edge.projector_out : model.modules[edge.from].architecture.hidden;
}

/// What stands around a part's blocks in a pass, told to `others(AroundBlocks)`. Keeps references to its arguments.
template <class Others>
class AroundPart {
public:
    AroundPart(const workloads::Model& model, const PlacedModule& placed, bool gradient, const Recipe& recipe,
               const LayerRange& part, const PassShape& unit, PassKind pass, const Others& others)
        : model_(model),
          placed_(placed),
          part_(part),
          unit_(unit),
          copy_(network(), unit, placed.own),
          execution_(recipe.execution_of(module())),
          recipe_(recipe),
          pass_(pass),
          gradient_(gradient),
          others_(others) {}

    const PassShape& shape() const { return copy_.shape(); }

    /// What the module does in its blocks.
    std::optional<PassKind> in_blocks() const { return pass_in(module(), gradient_, pass_); }

    /// What copies gather to read, in front of the first block.
    void add_edges_in_front(PassKind here) const {
        for (std::size_t e = 0; is_shared() && e < model_.edges.size() && is_first(); ++e)
            if (model_.edges[e].to == part_.module)
                add(of_edges + edge_parts * e + 2,
                    [&, e] {
                        return gathered_edge(columns_of(model_, model_.edges[e]),
                                             layout().part(unit_.context_positions()), layout(), pass_, execution_);
                    },
                    {.own = here, .trained = false, .in_front = true, .shape = &unit_});
    }

    /// Embedding and heads, of which adapters have none.
    void add_ends() const {
        const auto outside = pass_with(module().trainable, gradient_, pass_);
        if (!outside) return;
        const As in_front{.own = *outside, .trained = module().trainable, .in_front = true, .shape = &shape()};
        As behind = in_front;
        behind.in_front = false;
        if (is_first() && network().vocab > 0)
            add(
                embedding, [&] { return embedding_operators(network(), shape(), layout(), *outside, execution_); },
                in_front, embedding_parameters(network()));
        const bool head = network().kind == workloads::ModuleKind::head;
        if (head && is_first())
            add(
                inputs, [&] { return head_inputs(network(), shape(), layout(), *outside); }, in_front);
        if (head && is_last())
            add(
                outputs, [&] { return head_outputs(network(), shape(), layout(), *outside); }, behind);
        if (is_last() && has_head(model_, part_.module))
            add(
                loss, [&] { return head_operators(network(), shape(), layout(), *outside, execution_); }, behind,
                head_parameters(network()) + prediction_parameters(network()));
    }

    /// Projectors behind the last block, and what copies give.
    void add_edges_behind() const {
        for (std::size_t e = 0; e < model_.edges.size() && is_last(); ++e) {
            const auto& edge = model_.edges[e];
            if (edge.from != part_.module) continue;
            const bool trained = edge.projector_in > 0 && workloads::trains_projector(model_, edge);
            const auto own = pass_in_projector(trained, gradient_, pass_);
            if (!own) continue;
            const auto rows_of = [&](const PassShape& of) { return rows_of_group(of, layout(), edge.token_reduction); };
            if (edge.projector_in > 0)
                add(
                    of_edges + edge_parts * e,
                    [&] { return projector_operators(edge, rows_of(shape()), layout(), *own, execution_); },
                    {.own = *own, .trained = trained, .in_front = false, .shape = &shape()},
                    projector_parameters(edge));
            add_cast(e, *own, rows_of(shape()));
            if (!is_shared()) continue;
            add(of_edges + edge_parts * e + 1,
                [&] {
                    const OnCopy most(network(), unit_, placed_.own, Fullest::by_positions);
                    return gathered_edge(columns_of(model_, edge), rows_of(most.shape()), layout(), pass_, execution_);
                },
                {.own = *own, .trained = false, .in_front = false, .shape = &unit_});
        }
    }

private:
    enum : std::size_t { embedding, inputs, outputs, loss, of_edges };  // the first of the module's first edge
    static constexpr std::size_t edge_parts = 4;

    // To what the module behind the edge reads.
    void add_cast(std::size_t e, PassKind own, std::int64_t rows) const {
        const auto& edge = model_.edges[e];
        const std::int64_t from = execution_.value_bytes();
        const std::int64_t to = recipe_.execution_of(model_.modules[edge.to]).value_bytes();
        if (from == to) return;
        add(of_edges + edge_parts * e + 3,
            [&, own, rows, from, to] { return cast_edge(columns_of(model_, edge), rows, layout(), own, from, to); },
            {.own = own, .trained = false, .in_front = false, .shape = &shape()});
    }

    struct As {
        PassKind own;
        bool trained, in_front;
        const PassShape* shape;
    };

    void add(std::size_t number, std::function<std::vector<Operator>()> operators, const As& as,
             std::int64_t parameters = 0) const {
        others_(AroundBlocks{std::move(operators), number, part_.module, as.own, parameters / layout().tp, as.in_front,
                             number == loss, as.trained, as.shape});
    }

    const workloads::Module& module() const { return model_.modules[part_.module]; }
    const workloads::Architecture& network() const { return module().architecture; }
    const Layout& layout() const { return placed_.layout; }
    bool is_first() const { return part_.first == 0; }
    bool is_last() const { return part_.first + part_.count == network().layers; }
    bool is_shared() const { return placed_.own.copies > 1 && !placed_.own.in_phases; }

    const workloads::Model& model_;
    const PlacedModule& placed_;
    const LayerRange& part_;
    const PassShape& unit_;
    const OnCopy copy_;
    const Execution execution_;
    const Recipe& recipe_;
    PassKind pass_;
    bool gradient_;
    const Others& others_;
};

/// Calls `layers(range, pass, shape)` for the blocks of each part that has work, then `others(AroundBlocks)` for its
/// embedding, head, projectors and the edges at its ends. `modules` are those of the model, `gradient` says which of
/// them gradients reach (workloads::gradient_reaches()), `shapes` are of the whole unit;
/// `shape` is that of the module's fullest copy.
template <class Layers, class Others>
void walk_stage(const workloads::Model& model, const std::vector<PlacedModule>& modules,
                const std::vector<bool>& gradient, const Recipe& recipe, const StageLayers& stage,
                const std::vector<PassShape>& shapes, PassKind pass, const Layers& layers, const Others& others) {
    for (const LayerRange& part : stage.parts) {
        if (shapes[part.module].lengths.empty()) continue;
        const AroundPart around(model, modules[part.module], gradient[part.module], recipe, part, shapes[part.module],
                                pass, others);
        if (const auto here = around.in_blocks()) {
            layers(part, *here, around.shape());
            around.add_edges_in_front(*here);
            around.add_ends();
        }
        around.add_edges_behind();
    }
}

}  // namespace pipeweaver::emulator
