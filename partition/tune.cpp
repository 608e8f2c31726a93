#include "pipeweaver/partition/tune.hpp"

#include "partition/one_chain.hpp"
#include "pipeweaver/workloads/built_model.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace pipeweaver::partition {

using namespace emulator;

namespace {

constexpr std::size_t stages_moved_freely = 8;

// Where the stages of a chain of all modules end (exclusive), in layers.
using Ends = std::vector<std::size_t>;

struct Move {
    std::size_t from = 0, to = 0;
};

Ends ends_of(const Chain& chain) {
    Ends ends;
    std::size_t end = 0;
    for (const StageLayers& stage : chain.stages) {
        for (const LayerRange& part : stage.parts) end += static_cast<std::size_t>(part.count);
        ends.push_back(end);
    }
    return ends;
}

// None: a stage would be empty, or the first have fewer than `least` layers.
std::optional<Ends> moved(Ends ends, const Move& move, std::size_t least) {
    for (std::size_t s = move.from; s < move.to; ++s) --ends[s];
    for (std::size_t s = move.to; s < move.from; ++s) ++ends[s];
    std::size_t begin = 0;
    for (const std::size_t end : ends) {
        if (end <= begin) return std::nullopt;
        begin = end;
    }
    if (ends.front() < least) return std::nullopt;
    return ends;
}

std::vector<Move> moves_of(const Ends& ends, std::size_t least) {
    const std::size_t stages = ends.size(), farthest = stages <= stages_moved_freely ? stages : 1;
    std::vector<Move> all;
    for (std::size_t from = 0; from < stages; ++from)
        for (std::size_t to = 0; to < stages; ++to) {
            const std::size_t distance = from < to ? to - from : from - to;
            if (distance > 0 && distance <= farthest && moved(ends, {from, to}, least)) all.push_back({from, to});
        }
    return all;
}

// Those of the encoders and what must lie beside them.
std::size_t least_in_front(const workloads::Model& model) {
    std::int64_t least = workloads::first_layers(model);
    if (least == 0) return 0;
    for (std::size_t m = 0; m < model.backbone(); ++m) least += model.modules[m].architecture.layers;
    return static_cast<std::size_t>(least);
}

class Rounds {
public:
    Rounds(const Setup& setup, const Partition& chain, const Tuning& tuning, const Executor& execute)
        : setup_(setup),
          chain_(chain),
          tuning_(tuning),
          execute_(execute),
          least_(least_in_front(setup.model)),
          layers_(layers_of(setup.model, modules_between(0, setup.model.modules.size()))) {}

    std::optional<Tuned> run() {
        const Ends first = ends_of(chain_.chains.front());
        const auto given = ask(first);
        if (!given) return std::nullopt;
        best_ = first;
        step_ = *given;
        while (!(tuning_.is_over && tuning_.is_over()) && improve()) {
        }
        if (best_ == first) return std::nullopt;
        return Tuned{cut(best_), step_};
    }

private:
    Partition cut(const Ends& ends) const {
        Partition one = one_chain(setup_, "tuned", chain_.chunks_per_rank, layers_, ends);
        one.modes = chain_.modes;
        return one;
    }

    std::optional<Duration> ask(const Ends& ends) {
        ++asked_;
        return tuning_.step_of(cut(ends));
    }

    bool improve() {
        const auto moves = moves_of(best_, least_);
        if (asked_ + moves.size() + 1 > tuning_.most_steps) return false;
        asked_ += moves.size();
        std::vector<std::optional<Duration>> steps(moves.size());
        run_jobs(execute_, moves.size(),
                 [&](std::size_t i) { steps[i] = tuning_.step_of(cut(*moved(best_, moves[i], least_))); });
        std::vector<std::size_t> gain;
        for (std::size_t i = 0; i < moves.size(); ++i)
            if (steps[i] && *steps[i] < step_) gain.push_back(i);
        if (gain.empty()) return false;
        std::stable_sort(gain.begin(), gain.end(), [&](std::size_t a, std::size_t b) { return *steps[a] < *steps[b]; });
        Ends all = best_;
        for (const std::size_t i : gain)
            if (auto next = moved(all, moves[i], least_)) all = std::move(*next);
        best_ = *moved(best_, moves[gain.front()], least_);
        step_ = *steps[gain.front()];
        if (all == best_) return true;
        if (const auto together = ask(all); together && *together < step_) {
            best_ = std::move(all);
            step_ = *together;
        }
        return true;
    }

    const Setup& setup_;
    const Partition& chain_;
    const Tuning& tuning_;
    const Executor& execute_;
    const std::size_t least_;
    const std::vector<LayerRange> layers_;
    Ends best_;
    Duration step_{};
    std::size_t asked_ = 0;
};

}  // namespace

std::optional<Tuned> tune(const Setup& setup, const Partition& chain, const Tuning& tuning, const Executor& execute) {
    return Rounds(setup, chain, tuning, execute).run();
}

}  // namespace pipeweaver::partition
