#include "pipeweaver/planner/input.hpp"

#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/loader/advice.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

namespace pipeweaver::planner {

namespace {

constexpr std::size_t most_input_replicas = 64;
constexpr std::int64_t usual_steps = 32, most_steps_replayed = 1'024, windows_replayed = 4;

// One step of a replica, as it takes its packs.
loader::Replica replica_of(const loader::Loader& loader, const workloads::Model& model,
                           const std::vector<workloads::Sample>& samples, const InputReplica& from) {
    std::vector<std::size_t> order(from.begins.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return from.begins[a] < from.begins[b]; });
    loader::Replica replica;
    loader::StepTimes times;
    for (std::size_t i = 0; i < order.size(); ++i) {
        const Duration begin = from.begins[order[i]];
        const Duration next = i + 1 < order.size() ? from.begins[order[i + 1]] : from.step + from.begins[order[0]];
        times.push_back(next - begin);
        replica.packs.push_back(loader::pack_of(loader, (*from.microbatches)[order[i]], samples, model));
    }
    replica.steps.push_back(std::move(times));
    return replica;
}

Duration work_of_step(const loader::Replica& replica) {
    Duration sum{};
    for (const loader::Pack& pack : replica.packs) {
        sum += pack.copy;
        for (const loader::Piece& piece : pack.pieces) sum += piece.time;
    }
    return sum;
}

Duration length_of_step(const loader::Replica& replica) {
    const auto& times = replica.steps.front();
    return std::accumulate(times.begin(), times.end(), Duration{});
}

// Those that decide when a step ends: with the longest steps, and with most to load.
std::vector<std::size_t> looked_at(const std::vector<loader::Replica>& replicas) {
    std::vector<std::size_t> all(replicas.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    if (all.size() <= most_input_replicas) return all;
    std::set<std::size_t> chosen;
    for (const auto measure : {length_of_step, work_of_step}) {
        std::stable_sort(all.begin(), all.end(),
                         [&](std::size_t a, std::size_t b) { return measure(replicas[a]) > measure(replicas[b]); });
        chosen.insert(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(most_input_replicas / 2));
    }
    return {chosen.begin(), chosen.end()};
}

// Enough that windows of all workers come round some times.
std::int64_t steps_to_replay(const loader::Loader& loader, const loader::Replica& replica) {
    if (!loader.queue.window) return usual_steps;
    std::int64_t samples = 0;
    for (const loader::Pack& pack : replica.packs) samples += pack.samples;
    const std::int64_t gathered =
        windows_replayed * *loader.queue.window * std::max<std::int64_t>(loader.queue.workers, 1);
    return std::clamp(gathered / std::max<std::int64_t>(samples, 1) + 1, usual_steps, most_steps_replayed);
}

loader::Replica in_a_row(const loader::Replica& once, std::int64_t steps) {
    loader::Replica all;
    for (std::int64_t n = 0; n < steps; ++n) {
        all.steps.push_back(once.steps.front());
        all.packs.insert(all.packs.end(), once.packs.begin(), once.packs.end());
    }
    return all;
}

std::vector<loader::Replica> series_of(const std::vector<loader::Replica>& once, std::int64_t steps) {
    std::vector<loader::Replica> all;
    all.reserve(once.size());
    for (const loader::Replica& one : once) all.push_back(in_a_row(one, steps));
    return all;
}

Duration mean_of_second_half(const std::vector<loader::Step>& steps) {
    const std::size_t first = steps.size() / 2;
    const auto count = static_cast<std::int64_t>(steps.size() - first);
    return (steps.back().end - steps[first].begin) / count;
}

class StepWithInput {
public:
    StepWithInput(const loader::Loader& loader, const workloads::Model& model,
                  const std::vector<workloads::Sample>& samples, const std::vector<InputReplica>& replicas)
        : loader_(loader), model_(model), samples_(samples) {
        const auto all = once(loader, replicas);
        require_equal_counts(all);
        for (const std::size_t r : looked_at(all)) looked_at_.push_back(replicas[r]);
        steps_ = steps_to_replay(loader, all.front());
        of_all_ = replicas.size();
    }

    Input run() const {
        const auto series = series_of(once(loader_, looked_at_), steps_);
        const auto steps = loader::replay(loader_.queue, loader_.taking, series);
        Input input;
        input.loader = loader_;
        input.steps = steps_;
        input.step = lasting_step(steps, series);
        input.first = steps.front().end;
        for (std::size_t n = steps.size() / 2; n < steps.size(); ++n)
            input.longest = std::max(input.longest, steps[n].end - steps[n].begin);
        input.waits = input.step - without_all();
        for (std::size_t s = 0; s < loader_.stages.size(); ++s) input.stages.push_back(stage(s));
        if (input.waits > Duration{}) input.decides = deciding(input);
        input.enough = loader::enough(loader_.queue, loader_.taking, series);
        share_cores(input);
        input.left_out = loader::not_counted(loader_, samples_);
        if (looked_at_.size() < of_all_)
            input.left_out.push_back(
                fmt::format("of {} replicas the {} with the longest steps and the most to load are replayed", of_all_,
                            looked_at_.size()));
        return input;
    }

private:
    std::vector<loader::Replica> once(const loader::Loader& loader, const std::vector<InputReplica>& replicas) const {
        std::vector<loader::Replica> all;
        all.reserve(replicas.size());
        for (const InputReplica& one : replicas) all.push_back(replica_of(loader, model_, samples_, one));
        return all;
    }

    void require_equal_counts(const std::vector<loader::Replica>& all) const {
        if (!loader_.taking.microbatches_together) return;
        for (const loader::Replica& one : all)
            if (one.packs.size() != all.front().packs.size())
                fail(ErrorKind::input,
                     "--loader: has replicas wait for each other at each microbatch, and they have {} and {}",
                     all.front().packs.size(), one.packs.size());
    }

    // The same step, its stages as they are in `other`.
    Duration step_with(const loader::Loader& other) const {
        const auto series = series_of(once(other, looked_at_), steps_);
        return lasting_step(loader::replay(loader_.queue, loader_.taking, series), series);
    }

    // What was made before the first step hides a small want of workers for a long time, but not for ever.
    Duration lasting_step(const std::vector<loader::Step>& steps, const std::vector<loader::Replica>& series) const {
        const Duration least = loader::least_time(loader_.queue, series);
        return std::max(mean_of_second_half(steps), (least + Duration{steps_ - 1}) / steps_);
    }

    Duration without_all() const {
        loader::Loader nothing = loader_;
        for (loader::Stage& stage : nothing.stages) stage.rates = {};
        return step_with(nothing);
    }

    InputStage stage(std::size_t s) const {
        loader::Loader without = loader_, alone = loader_;
        without.stages[s].rates = {};
        alone.stages = {loader_.stages[s]};
        InputStage found{loader_.stages[s].name, Duration{}, step_with(without), {}};
        for (const loader::Replica& one : once(alone, looked_at_)) found.work = std::max(found.work, work_of_step(one));
        return found;
    }

    // Stages that need none get none.
    void share_cores(Input& input) const {
        if (!input.enough) return;
        std::vector<Duration> loads;
        for (std::size_t s = 0; s < input.stages.size(); ++s)
            loads.push_back(loader_.stages[s].on == loader::On::core ? input.stages[s].work : Duration{});
        const auto cores = loader::share_cores(loads, *input.enough->cores);
        if (!cores) return;
        for (std::size_t s = 0; s < input.stages.size(); ++s)
            if (loads[s] > Duration{}) input.stages[s].cores = (*cores)[s];
    }

    // Of stages that gain the same, as where two are in each other's way, the one with most work.
    static std::size_t deciding(const Input& input) {
        const auto best = std::min_element(input.stages.begin(), input.stages.end(), [](const auto& a, const auto& b) {
            return std::pair(a.step_without, -a.work) < std::pair(b.step_without, -b.work);
        });
        return static_cast<std::size_t>(best - input.stages.begin());
    }

    const loader::Loader& loader_;
    const workloads::Model& model_;
    const std::vector<workloads::Sample>& samples_;
    std::vector<InputReplica> looked_at_;
    std::size_t of_all_ = 0;
    std::int64_t steps_ = 0;
};

}  // namespace

Input input_of(const loader::Loader& loader, const workloads::Model& model,
               const std::vector<workloads::Sample>& samples, const std::vector<InputReplica>& replicas) {
    PIPEWEAVER_ASSERT(!replicas.empty());
    return StepWithInput(loader, model, samples, replicas).run();
}

}  // namespace pipeweaver::planner
