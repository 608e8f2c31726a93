#include "pipeweaver/planner/input.hpp"

#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/loader/advice.hpp"
#include "pipeweaver/schedule/replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

namespace pipeweaver::planner {

namespace {

constexpr std::size_t most_input_replicas = 64;
constexpr std::int64_t usual_steps = 32, windows_replayed = 4;
// Of windows, which may take many; hours of work in so many steps can be added up.
constexpr std::int64_t most_window_steps = 16'384, most_window_packs = 1 << 19, most_window_pieces = 1 << 22;

std::vector<loader::Pack> packs_of(const loader::Loader& loader, const workloads::Model& model,
                                   const std::vector<workloads::Sample>& samples,
                                   const std::vector<workloads::Microbatch>& microbatches) {
    std::vector<loader::Pack> packs;
    packs.reserve(microbatches.size());
    for (const workloads::Microbatch& one : microbatches) packs.push_back(loader::pack_of(loader, one, samples, model));
    return packs;
}

// One step of a replica, as it takes its packs.
loader::Replica replica_of(const loader::Loader& loader, const workloads::Model& model,
                           const std::vector<workloads::Sample>& samples, const InputReplica& from) {
    std::vector<std::size_t> order(from.begins.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return from.begins[a] < from.begins[b]; });
    loader::Replica replica;
    loader::StepTimes times;
    const auto packs = packs_of(loader, model, samples, *from.microbatches);
    for (std::size_t i = 0; i < order.size(); ++i) {
        const Duration begin = from.begins[order[i]];
        const Duration next = i + 1 < order.size() ? from.begins[order[i + 1]] : from.step + from.begins[order[0]];
        times.push_back(next - begin);
        replica.packs.push_back(packs[order[i]]);
    }
    replica.steps.push_back(std::move(times));
    return replica;
}

Duration work_of(const std::vector<loader::Pack>& packs) {
    Duration sum{};
    for (const loader::Pack& pack : packs) {
        sum = loader::add_work(sum, pack.copy);
        for (const loader::Piece& piece : pack.pieces) sum = loader::add_work(sum, piece.time);
    }
    return sum;
}

Duration work_of_step(const loader::Replica& replica) { return work_of(replica.packs); }

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

// What the packs of a step are, of the replicas that are looked at.
struct StepSize {
    std::int64_t least_samples = std::numeric_limits<std::int64_t>::max();  // of a replica
    std::int64_t packs = 0, pieces = 0;

    void add(const std::vector<loader::Pack>& of_replica) {
        std::int64_t samples = 0;
        for (const loader::Pack& pack : of_replica) {
            samples += pack.samples;
            pieces += static_cast<std::int64_t>(pack.pieces.size());
        }
        packs += static_cast<std::int64_t>(of_replica.size());
        least_samples = std::min(least_samples, std::max<std::int64_t>(samples, 1));
    }
};

// Enough that windows of all workers come round some times.
std::int64_t steps_to_replay(const loader::Queue& queue, const StepSize& size) {
    if (!queue.window) return usual_steps;
    const std::int64_t gathered = windows_replayed * *queue.window * std::max<std::int64_t>(queue.workers, 1);
    return std::max(usual_steps, (gathered + size.least_samples - 1) / size.least_samples);
}

bool can_replay(std::int64_t steps, const StepSize& size) {
    return steps <= usual_steps ||
           (steps <= most_window_steps && steps <= most_window_packs / std::max<std::int64_t>(size.packs, 1) &&
            steps <= most_window_pieces / std::max<std::int64_t>(size.pieces, 1));
}

loader::Replica in_a_row(const loader::Replica& once, std::int64_t steps) {
    loader::Replica all;
    for (std::int64_t n = 0; n < steps; ++n) {
        all.steps.push_back(once.steps.front());
        all.packs.insert(all.packs.end(), once.packs.begin(), once.packs.end());
    }
    return all;
}

// Of replicas that are alike one: all of them wait when it does.
std::vector<loader::Replica> series_of(const std::vector<loader::Replica>& once, std::int64_t steps) {
    std::vector<loader::Replica> all;
    for (std::size_t r = 0; r < once.size(); ++r) {
        const auto end = once.begin() + static_cast<std::ptrdiff_t>(r);
        if (std::find(once.begin(), end, once[r]) == end) all.push_back(in_a_row(once[r], steps));
    }
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
        std::vector<loader::Replica> counted;
        for (const std::size_t r : looked_at(all)) {
            looked_at_.push_back(replicas[r]);
            if (std::find(counted.begin(), counted.end(), all[r]) != counted.end()) continue;
            size_.add(all[r].packs);
            counted.push_back(all[r]);
        }
        steps_ = steps_to_replay(loader.queue, size_);
        of_all_ = replicas.size();
    }

    Input run() const {
        const auto series = series_of(once(loader_, looked_at_), steps_);
        const auto steps = loader::replay(loader_.queue, loader_.taking, series);
        Input input;
        input.loader = loader_;
        input.steps = steps_;
        input.step = input.longest = lasting_step(steps, series);
        input.first = steps.front().end;
        for (std::size_t n = steps.size() / 2; n < steps.size(); ++n)
            input.longest = std::max(input.longest, steps[n].end - steps[n].begin);
        input.waits = input.step - without_all();
        for (std::size_t s = 0; s < loader_.stages.size(); ++s) input.stages.push_back(stage(s));
        if (input.waits > Duration{}) input.decides = deciding(input);
        look_for_enough(input);
        share_cores(input);
        input.left_out = loader::not_counted(loader_, samples_);
        if (input.most_tried < loader::most_workers_advised)
            input.left_out.push_back(fmt::format(
                "with windows of {} samples {} workers are tried at most: those of more come round too seldom "
                "to be replayed",
                *loader_.queue.window, input.most_tried));
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

    void look_for_enough(Input& input) const {
        const auto replicas = once(loader_, looked_at_);
        input.enough = loader::enough(loader_.queue, loader_.taking,
                                      [&](std::int64_t workers) -> std::optional<std::vector<loader::Replica>> {
                                          loader::Queue tried = loader_.queue;
                                          tried.workers = workers;
                                          const std::int64_t steps = steps_to_replay(tried, size_);
                                          if (!can_replay(steps, size_)) {
                                              input.most_tried = workers - 1;
                                              return std::nullopt;
                                          }
                                          return series_of(replicas, steps);
                                      });
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
    StepSize size_;
    std::size_t of_all_ = 0;
    std::int64_t steps_ = 0;
};

}  // namespace

std::vector<Duration> begins_of(const schedule::Problem& problem, const schedule::Schedule& schedule,
                                std::size_t microbatches) {
    const auto replay = schedule::replay(problem, schedule);
    std::vector<std::optional<Duration>> first(microbatches);
    for (std::size_t t = 0; t < replay.start.size(); ++t)
        if (const auto& m = problem.tasks[t].microbatch) {
            auto& begin = first[static_cast<std::size_t>(*m)];
            begin = std::min(begin.value_or(replay.start[t]), replay.start[t]);
        }
    std::vector<Duration> begins;
    begins.reserve(microbatches);
    for (const auto& begin : first) begins.push_back(begin.value_or(Duration{}));
    return begins;
}

std::optional<std::string> why_no_input(const loader::Loader& loader, const workloads::Model& model,
                                        const std::vector<workloads::Sample>& samples,
                                        const std::vector<std::vector<workloads::Microbatch>>& replicas) {
    StepSize size;
    std::vector<std::vector<loader::Pack>> counted;
    for (std::size_t r = 0; r < replicas.size(); ++r) {
        auto packs = packs_of(loader, model, samples, replicas[r]);
        if (work_of(packs) == loader::most_work)
            return fmt::format(
                "'{}' takes 100 hours or more for the samples that replica {} has in a step, allowed is less",
                loader.name, r);
        if (loader.taking.microbatches_together && packs.size() != replicas.front().size())
            return fmt::format(
                "has replicas wait for each other at each microbatch, and they have {} and {} "
                "microbatches",
                replicas.front().size(), packs.size());
        StepSize own;
        own.add(packs);
        size.least_samples = std::min(size.least_samples, own.least_samples);
        const bool is_alike = std::find(counted.begin(), counted.end(), packs) != counted.end();
        if (is_alike || counted.size() == most_input_replicas) continue;
        size.packs += own.packs;
        size.pieces += own.pieces;
        counted.push_back(std::move(packs));
    }
    const std::int64_t steps = steps_to_replay(loader.queue, size);
    if (can_replay(steps, size)) return std::nullopt;
    return fmt::format(
        "windows of {} samples on {} workers come round in {} steps, which are too many to replay; allowed are smaller "
        "windows, or none",
        *loader.queue.window, loader.queue.workers, steps / windows_replayed);
}

void check_input(const loader::Loader& loader, const workloads::Model& model,
                 const std::vector<workloads::Sample>& samples,
                 const std::vector<std::vector<workloads::Microbatch>>& replicas) {
    if (const auto why = why_no_input(loader, model, samples, replicas)) fail(ErrorKind::input, "--loader: {}", *why);
}

Input input_of(const loader::Loader& loader, const workloads::Model& model,
               const std::vector<workloads::Sample>& samples, const std::vector<InputReplica>& replicas) {
    PIPEWEAVER_ASSERT(!replicas.empty());
    return StepWithInput(loader, model, samples, replicas).run();
}

}  // namespace pipeweaver::planner
