#include "partition/level_chains.hpp"

#include "partition/one_chain.hpp"
#include "pipeweaver/emulator/least_memory.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace pipeweaver::partition {

using namespace emulator;
using namespace workloads;

namespace {

constexpr std::int64_t worth_a_part = 1000;  // of the fullest rank's load

std::vector<PassShape> shapes_of(const Model& model, const Microbatch& microbatch) {
    std::vector<PassShape> shapes;
    shapes.reserve(model.modules.size());
    for (const Module& module : model.modules)
        shapes.push_back(shape_in(module, microbatch, 0, microbatch.items.size()));
    return shapes;
}

// The last module, and all whose output it needs: a microbatch has passed them when that module is at work.
std::vector<bool> held_together(const Model& model) {
    std::vector<bool> together(model.modules.size());
    together.back() = true;
    for (std::size_t m = together.size(); m-- > 0;)
        for (const ModelEdge& edge : model.edges)
            if (edge.to == m && together[m]) together[edge.from] = true;
    return together;
}

Bytes held_by(const Setup& setup, const LayerRange& layers, const std::vector<PassShape>& shapes) {
    return least_pass(setup, {RankId{0}, {layers}}, shapes, setup.modules).held;
}

// Of the microbatches the one whose pass through all these modules holds most.
std::vector<PassShape> largest_pass(const Setup& setup, const Sample& sample, const std::vector<bool>& together) {
    std::vector<PassShape> largest;
    Bytes most{-1};
    for (const Microbatch& microbatch : sample) {
        auto shapes = shapes_of(setup.model, microbatch);
        Bytes held;
        for (std::size_t m = 0; m < shapes.size(); ++m)
            if (together[m]) held += held_by(setup, {m, 0, setup.model.modules[m].architecture.layers}, shapes);
        if (held <= most) continue;
        most = held;
        largest = std::move(shapes);
    }
    return largest;
}

std::int64_t time_of(const std::vector<RowLayer>& layers, const LayerRange& part) {
    std::int64_t time = 0;
    for (std::int64_t i = part.first; i < part.first + part.count; ++i)
        time += layers[static_cast<std::size_t>(i)].time;
    return time;
}

// Loads and memory of ranks while chains are cut one by one.
class Levelling {
public:
    Levelling(const Setup& setup, const std::vector<ModuleRow>& rows, std::vector<Chain> chains)
        : setup_(setup), rows_(rows), chains_(std::move(chains)), counted_(chains_.size(), false) {}

    // Coarse layers first: fine ones fill what is left.
    std::optional<std::vector<Chain>> run() {
        std::vector<std::size_t> order(chains_.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        const auto longest = [&](std::size_t m) {
            const auto& layers = rows_[m].layers;
            return time_of(layers, {m, 0, static_cast<std::int64_t>(layers.size())}) /
                   static_cast<std::int64_t>(layers.size());
        };
        std::stable_sort(order.begin(), order.end(),
                         [&](std::size_t a, std::size_t b) { return longest(a) > longest(b); });
        for (const bool again : {false, true})
            for (const std::size_t m : order) {
                if (!again || order.size() > 1)
                    if (!cut(m)) return std::nullopt;
                counted_[m] = true;
            }
        return std::move(chains_);
    }

private:
    // Chain `m` beside the loads of those that are cut and the memory of all; false: it does not fit.
    bool cut(std::size_t m) {
        Chain& chain = chains_[m];
        if (chain.stages.size() > rows_[m].layers.size()) return true;
        Row row{rows_[m].layers, std::vector<RowRank>(static_cast<std::size_t>(setup_.layout.pp)), 1, {}};
        row.chunks = static_cast<std::int64_t>(chain.stages.size() / row.ranks.size());
        for (RowRank& rank : row.ranks) rank.room = capacity_of(setup_) - row.chunks * rows_[m].around;
        for (std::size_t other = 0; other < chains_.size(); ++other)
            if (other != m) take(other, row.ranks);
        const ExactCut found = exact_cut(row);
        if (!found.fits()) return false;
        std::int64_t first = 0;
        for (std::size_t s = 0; s < chain.stages.size(); ++s) {
            chain.stages[s].parts = {{m, first, found.counts[s]}};
            first += found.counts[s];
        }
        return true;
    }

    void take(std::size_t m, std::vector<RowRank>& ranks) const {
        for (const StageLayers& stage : chains_[m].stages) {
            RowRank& rank = ranks[index(stage.rank)];
            rank.room -= rows_[m].around;
            const LayerRange& part = stage.parts.front();
            if (counted_[m]) rank.load += time_of(rows_[m].layers, part);
            for (std::int64_t i = part.first; i < part.first + part.count; ++i) {
                const RowLayer& layer = rows_[m].layers[static_cast<std::size_t>(i)];
                rank.room -= layer.always + layer.held;
            }
        }
    }

    const Setup& setup_;
    const std::vector<ModuleRow>& rows_;
    std::vector<Chain> chains_;
    std::vector<bool> counted_;
};

std::int64_t fullest(const std::vector<ModuleRow>& rows, const std::vector<Chain>& chains, std::int64_t ranks) {
    std::vector<std::int64_t> load(static_cast<std::size_t>(ranks));
    for (std::size_t m = 0; m < chains.size(); ++m)
        for (const StageLayers& stage : chains[m].stages)
            load[index(stage.rank)] += time_of(rows[m].layers, stage.parts.front());
    return *std::max_element(load.begin(), load.end());
}

}  // namespace

std::vector<ModuleRow> module_rows(const Setup& setup, const Sample& sample) {
    const auto together = held_together(setup.model);
    const auto shapes = largest_pass(setup, sample, together);
    std::vector<ModuleRow> rows(together.size());
    for (std::size_t m = 0; m < rows.size(); ++m) {
        const auto layers = layers_of(setup.model, {m});
        const auto times = times_of(setup, sample, layers, setup.modules);
        // What two layers hold together, once less than each alone: it is held in a stage, however many it has.
        if (together[m] && layers.size() > 1)
            rows[m].around = held_by(setup, layers[0], shapes) + held_by(setup, layers[1], shapes) -
                             held_by(setup, {m, 0, 2}, shapes);
        for (std::size_t i = 0; i < layers.size(); ++i) {
            const StaticMemory held =
                held_always(setup, {Chain{"", {{RankId{0}, {layers[i]}}}}}, setup.modules).front();
            rows[m].layers.push_back({times[i], held.weights + held.gradients + held.optimizer,
                                      together[m] ? held_by(setup, layers[i], shapes) - rows[m].around : Bytes{}});
        }
    }
    return rows;
}

std::optional<LevelChains> level_chains(const Setup& setup, const std::vector<ModuleRow>& rows,
                                        const std::vector<Chain>& chains) {
    auto cut = Levelling(setup, rows, chains).run();
    if (!cut) return std::nullopt;
    LevelChains level{std::move(*cut), 0, fullest(rows, chains, setup.layout.pp)};
    level.load = fullest(rows, level.chains, setup.layout.pp);
    if ((level.load_before - level.load) * worth_a_part <= level.load_before) return std::nullopt;
    return level;
}

}  // namespace pipeweaver::partition
