// Which samples of a batch are left for a later step.
#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/workloads/batch.hpp"
#include "workloads/packing/padded.hpp"

#include <algorithm>
#include <set>

namespace pipeweaver::workloads {

namespace {

constexpr double least_kept = 0.75;      // of a step's FLOPs
constexpr double clearly_less = 0.95;    // padded FLOPs over the samples' own, against deferring nothing
constexpr std::size_t most_limits = 16;  // numbers of items beyond which samples are deferred

class Deferring {
public:
    Deferring(const std::vector<Sample>& samples, const Model& model, std::int64_t most_steps)
        : samples_(samples), model_(model), work_(model) {
        std::set<std::size_t> counts;
        for (const Sample& sample : samples) {
            counts.insert(sample.items.size());
            if (sample.deferred >= most_steps) due_ = std::max(due_, sample.items.size());
        }
        for (auto one = counts.rbegin(); one != counts.rend() && limits_.size() <= most_limits; ++one)
            limits_.push_back(*one);
    }

    // The most items that a sample of this step has.
    std::size_t limit() const {
        std::size_t best = limits_.front();
        const Padding all = padding(best);
        double least = clearly_less * all.ratio;
        for (std::size_t k = 1; k < limits_.size() && limits_[k] >= due_; ++k) {
            const Padding one = padding(limits_[k]);
            if (one.work < least_kept * all.work) break;
            if (one.ratio >= least) continue;
            least = one.ratio;
            best = limits_[k];
        }
        return best;
    }

private:
    struct Padding {
        double work = 0, ratio = 0;  // FLOPs of the samples; those of the padded microbatches over them
    };

    // Of the samples with at most so many items.
    Padding padding(std::size_t most_items) const {
        std::vector<Sample> kept;
        std::vector<Load> loads;
        Padding padding;
        for (const Sample& sample : samples_) {
            if (sample.items.size() > most_items) continue;
            kept.push_back(sample);
            loads.push_back(load_of(sample));
            for (std::size_t m = 0; m < model_.modules.size(); ++m) padding.work += work_.of(sample, m);
        }
        const PaddedPacking packing(kept, loads, model_);
        if (padding.work > 0) padding.ratio = packing.cost(packing.run()) / padding.work;
        return padding;
    }

    const std::vector<Sample>& samples_;
    const Model& model_;
    SampleWork work_;
    std::vector<std::size_t> limits_;  // of items, the largest first
    std::size_t due_ = 0;              // items of the largest sample that cannot be left again
};

}  // namespace

Deferral defer(std::vector<Sample> samples, const Model& model, std::int64_t most_steps) {
    PIPEWEAVER_ASSERT(most_steps >= 1);
    Deferral all;
    if (samples.empty()) return all;
    const std::size_t limit = Deferring(samples, model, most_steps).limit();
    for (Sample& sample : samples) {
        const bool later = sample.items.size() > limit;
        if (later) ++sample.deferred;
        (later ? all.later : all.now).push_back(std::move(sample));
    }
    return all;
}

}  // namespace pipeweaver::workloads
