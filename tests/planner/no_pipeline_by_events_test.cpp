// Steps without a pipeline, held to a simulation of a GPU's two streams that shares no code with the step builder.
#include "pipeweaver/emulator/layer_costs.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/random_job.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::emulator;
using namespace pipeweaver::testing;

namespace {

// A pass of one replica without a pipeline, as pieces that are computed one after the other. With ZeRO 3 the weights of
// each are gathered on a stream of their own as soon as the piece before begins, and its gradients scattered there when
// it has ended; that stream, too, does one thing after the other.
class WithoutPipeline {
public:
    WithoutPipeline(const Case& one, std::int64_t replica)
        : case_(one),
          setup_(one.setup()),
          microbatches_(of_replica(one, replica)),
          usual_(with_recipe(setup_, Recipe{.zero = 1})),
          costs_(usual_),
          after_(setup_) {}

    std::int64_t step() {
        for (const Microbatch& microbatch : microbatches_) {
            const auto shapes = shapes_of(microbatch);
            auto forward = pieces(shapes, false);
            run(forward);
            auto backward = pieces(shapes, true);
            std::reverse(backward.begin(), backward.end());
            run(backward);
        }
        std::int64_t parameters = 0;
        for (const std::size_t m : {vit, llm}) parameters += after_.parameters({m, 0, layers_of(m)}, setup_.layout.tp);
        return now_ + after_.reduce(parameters, setup_.layout.dp, setup_.layout.tp) +
               after_.update(parameters, setup_.layout.dp);
    }

private:
    // One piece: gathered, computed, scattered; and in a backward before it, what is computed again.
    struct Piece {
        std::int64_t gather = 0, compute = 0, scatter = 0;
        std::int64_t again = 0;
        bool goes_again = false;
    };

    std::int64_t layers_of(std::size_t module) const { return setup_.model.modules[module].architecture.layers; }

    std::int64_t blocks(const LayerRange& range, const std::vector<PassShape>& shapes, PassKind pass) {
        return costs_.layers(range, shapes[range.module], pass).time.count();
    }

    // What stands around the first block, or the last, in a stage of that block alone. Nothing goes back through the
    // blocks of a frozen encoder.
    std::int64_t around(const LayerRange& layer, const std::vector<PassShape>& shapes, PassKind pass) {
        const bool passes_block = pass == PassKind::forward || setup_.model.modules[layer.module].trainable;
        return costs_.stage({RankId{0}, {layer}}, shapes, pass).time.count() -
               (passes_block ? blocks(layer, shapes, pass) : 0);
    }

    void exchange(Piece& piece, std::int64_t parameters, bool gathers, bool scatters) const {
        if (setup_.recipe.zero < 3 || setup_.layout.dp == 1) return;
        const std::int64_t copies = setup_.layout.dp, stride = setup_.layout.tp;
        if (gathers) piece.gather = after_.exchange(CollectiveKind::all_gather, copies, stride, 2 * parameters);
        if (scatters) piece.scatter = after_.exchange(CollectiveKind::reduce_scatter, copies, stride, 4 * parameters);
    }

    std::int64_t recomputed(std::int64_t layers) const {
        if (case_.recompute() == Recompute::none) return 0;
        return case_.recompute() == Recompute::half ? (layers + 1) / 2 : layers;
    }

    // In the order of the forward.
    std::vector<Piece> pieces(const std::vector<PassShape>& shapes, bool backward) {
        std::vector<Piece> all;
        const std::int64_t tp = setup_.layout.tp;
        const PassKind pass = backward ? PassKind::backward : PassKind::forward;
        for (const std::size_t m : {vit, llm}) {
            if (shapes[m].lengths.empty()) continue;
            const auto& module = setup_.model.modules[m];
            const auto add = [&](std::int64_t compute, std::int64_t parameters, bool trained) {
                auto& piece = all.emplace_back();
                piece.compute = compute;
                // A projector's weight gradient alone needs no weights.
                exchange(piece, parameters, !backward || module.trainable, backward && trained);
            };
            const std::int64_t last = layers_of(m) - 1;
            if (m == llm)
                add(around({m, 0, 1}, shapes, pass), workloads::embedding_parameters(module.architecture) / tp, true);
            for (std::int64_t i = 0; i <= last && (!backward || m == llm || module.trainable); ++i) {
                add(blocks({m, i, 1}, shapes, pass), after_.layer_parameters(m, i, tp), module.trainable);
                if (!backward || i >= recomputed(last + 1)) continue;
                all.back().goes_again = true;
                all.back().again = blocks({m, i, 1}, shapes, PassKind::forward);
            }
            if (m == llm)
                add(around({m, last, 1}, shapes, pass), workloads::head_parameters(module.architecture) / tp, true);
            if (m == vit && (!backward || goes_back(setup_.model, {vit, 0, last + 1})))
                add(around({m, last, 1}, shapes, pass), after_.projector(tp), trains_projector(setup_.model));
        }
        return all;
    }

    // What a list of kernels does; its gather goes as soon as the list before has begun.
    void run_list(std::int64_t gather, std::int64_t compute, std::int64_t scatter) {
        std::int64_t ready = ended_;
        if (gather > 0) {
            data_ = std::max(data_, before_began_) + gather;
            ready = std::max(ready, data_);
        }
        before_began_ = ended_;
        ended_ = ready + compute;
        if (scatter > 0) data_ = std::max(data_, ended_) + scatter;
    }

    // The host's work for the task comes first: the first gather runs beside it.
    void run(const std::vector<Piece>& pieces) {
        ended_ = before_began_ = data_ = now_;
        if (setup_.recipe.action > Duration{0}) run_list(0, setup_.recipe.action.count(), 0);
        for (const Piece& piece : pieces) {
            if (piece.goes_again) run_list(piece.gather, piece.again, 0);
            run_list(piece.gather, piece.compute, piece.scatter);
        }
        now_ = std::max(ended_, data_);
    }

    const Case& case_;
    const Setup& setup_;
    std::vector<Microbatch> microbatches_;
    Setup usual_;
    LayerCosts costs_;
    AfterTasks after_;
    std::int64_t now_ = 0, ended_ = 0, before_began_ = 0, data_ = 0;
};

}  // namespace

TEST_CASE("a step without a pipeline takes what an event-driven simulation of it takes") {
    for (std::uint64_t number = 0; number < pipeweaver::testing::cases(200).count; ++number) {
        CAPTURE(number);
        Random random(number, 18);
        const Layout layout{.tp = 1 << random.below(3), .pp = 1, .dp = 1 << random.below(4)};
        constexpr std::array stages_of_zero{0, 1, 3};
        const Recipe recipe{.zero = stages_of_zero[random.below(3)]};
        const auto one = random_case(random, "balanced", layout, recipe);
        CAPTURE(recipe.zero);
        const auto emulated = planner::emulate(one.request, in_order);
        for (std::int64_t r = 0; r < layout.dp; ++r)
            CHECK(emulated.replicas[static_cast<std::size_t>(r)].step.count() == WithoutPipeline(one, r).step());
    }
}
