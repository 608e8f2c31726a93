#include "pipeweaver/rl/step.hpp"

#include "pipeweaver/base/assert.hpp"
#include "rl/in_flight.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace pipeweaver::rl {

namespace {

__extension__ using Wide = __int128;

// What is shared out to GPUs takes each.
Duration on(std::int64_t gpus, Duration gpu_time) { return Duration{(gpu_time.count() + gpus - 1) / gpus}; }

// GPU time of several groups of GPUs, as that of one of all.
class GpuTime {
public:
    void add(std::int64_t gpus, Duration each) { sum_ += static_cast<Wide>(gpus) * each.count(); }
    Duration of_each(std::int64_t gpus) const { return Duration{static_cast<std::int64_t>(sum_ / gpus)}; }

private:
    Wide sum_ = 0;
};

GpuTime tail_of(const Job& job, const Generation& generation) {
    GpuTime tail;
    for (const Duration busy : generation.busy) tail.add(job.instance, generation.end - busy);
    return tail;
}

Duration sum_on(std::int64_t gpus, const std::vector<Duration>& works) {
    Duration sum{};
    for (const Duration one : works) sum += on(gpus, one);
    return sum;
}

// When each answer can be judged, from when each ends: its group is there.
std::vector<Duration> ready(const Job& job, const std::vector<Duration>& ends) {
    std::vector<Duration> of_group;
    for (std::size_t i = 0; i < job.answers.size(); ++i) {
        of_group.resize(std::max(of_group.size(), job.groups[i] + 1));
        of_group[job.groups[i]] = std::max(of_group[job.groups[i]], ends[i]);
    }
    std::vector<Duration> times;
    for (const std::size_t group : job.groups) times.push_back(of_group[group]);
    return times;
}

std::vector<std::size_t> in_order_of(const std::vector<Duration>& times) {
    std::vector<std::size_t> order(times.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return times[a] < times[b]; });
    return order;
}

Duration work_of(const Job& job, std::size_t answer, std::int64_t gpus) {
    return on(gpus, job.inference[answer]) + on(gpus, job.training[answer]);
}

// To the end of the last training from then on, one answer after the other as they come.
Duration streamed_end(const Job& job, Duration now, const std::vector<Duration>& ends, std::int64_t training) {
    const auto times = ready(job, ends);
    for (const std::size_t answer : in_order_of(times))
        now = std::max(now, times[answer]) + work_of(job, answer, training);
    return now + job.overhead;
}

// Inference of the answers in the order of their ends, on GPUs that the tail leaves free until it is over: how many are
// done then.
struct OnFreeGpus {
    std::vector<std::size_t> order;
    std::size_t done = 0;
    Duration took{};
};
OnFreeGpus judged_beside_tail(const Job& job, const Generation& generation, std::int64_t free_gpus) {
    const auto times = ready(job, generation.ends);
    OnFreeGpus judged{.order = in_order_of(times)};
    if (free_gpus == 0) return judged;
    Duration now = *generation.tail_moves;
    for (const std::size_t answer : judged.order) {
        const Duration takes = on(free_gpus, job.inference[answer]);
        now = std::max(now, times[answer]) + takes;
        if (now > generation.end) break;
        judged.took += takes;
        ++judged.done;
    }
    return judged;
}

// Pre: as colocated(); the tail leaves an instance free.
Step in_turn(const Job& job, std::int64_t gpus, const std::optional<Tail>& tail) {
    const std::int64_t instances = gpus / job.instance;
    const Generation generation = generate(job.decoding, job.answers, instances, tail);
    Step step{.layout = tail ? Layout::moved_tail : Layout::colocated,
              .generating = instances * job.instance,
              .training = gpus,
              .generation = generation.end,
              .work = sum_on(gpus, job.training) + job.overhead,
              .tail = tail};
    GpuTime idle = tail_of(job, generation);
    idle.add(gpus - step.generating, generation.end);
    if (tail && generation.tail_moves) {
        const std::int64_t free_gpus = (instances - tail->instances) * job.instance / job.trainer * job.trainer;
        const OnFreeGpus judged = judged_beside_tail(job, generation, free_gpus);
        idle.add(free_gpus, -judged.took);
        for (std::size_t i = judged.done; i < judged.order.size(); ++i)
            step.work += on(gpus, job.inference[judged.order[i]]);
    } else {
        step.work += sum_on(gpus, job.inference);
    }
    step.time = generation.end + step.work + job.switching + job.weights;
    step.bubbles = {.tail = idle.of_each(gpus), .weights = job.weights, .switching = job.switching};
    return step;
}

}  // namespace

std::string_view name_of(Layout layout) {
    constexpr std::array<std::string_view, 5> names{"colocated", "moved tail", "split", "streamed", "in flight"};
    return names[static_cast<std::size_t>(layout)];
}

Step colocated(const Job& job, std::int64_t gpus) { return in_turn(job, gpus, {}); }

std::optional<Step> with_moved_tail(const Job& job, std::int64_t gpus) {
    constexpr std::int64_t most_sizes = 32;
    const std::int64_t instances = gpus / job.instance;
    const auto answers = static_cast<std::int64_t>(job.answers.size());
    const Duration unmoved = colocated(job, gpus).time;
    std::optional<Step> best;
    for (std::int64_t i = 1; i <= std::min(most_sizes, answers); ++i)
        for (std::int64_t on_instances = 1; on_instances < instances; on_instances *= 2) {
            const Tail tail{i * answers / std::min(most_sizes, answers), on_instances, job.move};
            Step step = in_turn(job, gpus, tail);
            if (step.time < (best ? best->time : unmoved)) best = std::move(step);
        }
    return best;
}

namespace {

// Of inference and training of all answers, without waiting.
Duration all_work_on(const Job& job, std::int64_t training) {
    Duration work = job.overhead;
    for (std::size_t i = 0; i < job.answers.size(); ++i) work += work_of(job, i, training);
    return work;
}

// Times of some of a step's GPUs as those of one of all in the mean.
Duration in_the_mean(const Step& step, std::int64_t gpus, Duration each) {
    GpuTime time;
    time.add(gpus, each);
    return time.of_each(step.gpus());
}

}  // namespace

Step apart(const Job& job, Layout layout, const Generation& generation, std::int64_t generating,
           std::int64_t training) {
    PIPEWEAVER_ASSERT(layout == Layout::split || layout == Layout::streamed);
    const Duration work = all_work_on(job, training), weights = job.weights_apart;
    const Duration one_step =
        layout == Layout::streamed ? streamed_end(job, {}, generation.ends, training) : generation.end + work;
    const std::int64_t ahead = job.steps_off + 1;
    const Duration in_circle{((one_step + weights).count() + ahead - 1) / ahead};
    Step step{.layout = layout,
              .generating = generating,
              .training = training,
              .time = std::max({generation.end + weights, work, in_circle}),
              .generation = generation.end,
              .work = work};
    step.bubbles = {.tail = tail_of(job, generation).of_each(step.gpus()),
                    .samples = in_the_mean(step, training, step.time - work),
                    .training = in_the_mean(step, generating, step.time - generation.end - weights),
                    .weights = in_the_mean(step, generating, weights)};
    return step;
}

Step in_flight(const Job& job, std::int64_t generating, std::int64_t training) {
    const std::int64_t ahead = job.steps_off + 1, last = std::max<std::int64_t>(4, ahead);
    const auto steps = static_cast<std::size_t>(2 * ahead + 3 + last);
    Duration trained{};
    const Flown flown = fly(job.decoding, job.answers, generating / job.instance,
                            {.steps = steps, .ahead = static_cast<std::size_t>(ahead), .weights = job.weights_apart},
                            [&](const std::vector<Duration>& ends) {
                                trained = streamed_end(job, trained, ends, training);
                                return trained;
                            });
    const auto in_the_last = [&](const std::vector<Duration>& times) {
        return times.back() - times[times.size() - 1 - static_cast<std::size_t>(last)];
    };
    Step step{.layout = Layout::in_flight,
              .generating = generating,
              .training = training,
              .time = Duration{(in_the_last(flown.trained).count() + last - 1) / last},
              .generation = in_the_last(flown.decoding) / (last * (generating / job.instance)),
              .work = all_work_on(job, training)};
    const Duration waits = std::max(Duration{}, step.time - step.generation - job.weights_apart);
    step.bubbles = {.samples = in_the_mean(step, training, step.time - step.work),
                    .training = in_the_mean(step, generating, waits),
                    .weights = in_the_mean(step, generating, job.weights_apart)};
    return step;
}

namespace {

// What the objective compares. Pre: a step on so many GPUs of each.
Wide value_of(const Job& job, Objective objective, Duration time, std::int64_t generating, std::int64_t training) {
    const Wide price =
        static_cast<Wide>(generating) * job.generator_price + static_cast<Wide>(training) * job.trainer_price;
    return static_cast<Wide>(time.count()) * (objective == Objective::usd ? price : 1);
}

// No step in flight takes less: as if all slots that are best were always taken.
Duration fullest(const Job& job, std::int64_t generating) {
    const Wide tokens = std::accumulate(job.answers.begin(), job.answers.end(), std::int64_t{0});
    const Wide instances = generating / job.instance;
    const auto& token = job.decoding.token;
    Wide least = tokens * token.front().count() / instances;
    for (std::size_t i = 1; i < token.size(); ++i)
        least = std::min(least, tokens * token[i].count() / (instances * static_cast<Wide>(i + 1)));
    return Duration{static_cast<std::int64_t>(least)};
}

// The best step so far: of equal ones that which generates on fewer GPUs, then trains on fewer.
class BestSplit {
public:
    BestSplit(const Job& job, Objective objective) : job_(job), objective_(objective) {}

    bool is_beaten_by(Duration time, std::int64_t generating, std::int64_t training) const {
        if (!step_) return true;
        const Wide value = value_of(job_, objective_, time, generating, training);
        const Wide best = value_of(job_, objective_, step_->time, step_->generating, step_->training);
        return value < best ||
               (value == best && std::pair(generating, training) < std::pair(step_->generating, step_->training));
    }

    void take(const Step& step) {
        if (is_beaten_by(step.time, step.generating, step.training)) step_ = step;
    }

    const std::optional<Step>& step() const { return step_; }

private:
    const Job& job_;
    Objective objective_;
    std::optional<Step> step_;
};

// Every number of GPUs that may generate, with the first and the last that may train then.
template <class Visit>
void each_generating(const Job& job, Objective objective, const Visit& visit) {
    const std::int64_t generators = job.generators.value_or(job.gpus);
    for (std::int64_t generating = job.instance; generating <= generators; generating += job.instance) {
        const std::int64_t most = (job.generators ? job.gpus : job.gpus - generating) / job.trainer * job.trainer;
        if (most == 0) break;
        if (job.generating && generating != *job.generating) continue;
        visit(generating, objective == Objective::time ? most : job.trainer, most);
    }
}

// No less than this, whatever the layout.
Duration least_work(const Job& job, std::int64_t training) {
    const std::int64_t all = std::accumulate(job.inference.begin(), job.inference.end(), Duration{}).count() +
                             std::accumulate(job.training.begin(), job.training.end(), Duration{}).count();
    return Duration{all / training} + job.overhead;
}

std::optional<Step> best_split(const Job& job, Layout layout, Objective objective) {
    BestSplit best(job, objective);
    each_generating(job, objective, [&](std::int64_t generating, std::int64_t training, std::int64_t most) {
        const Generation generation = generate(job.decoding, job.answers, generating / job.instance);
        for (; training <= most; training += job.trainer) {
            const Duration least = std::max(generation.end + job.weights_apart, least_work(job, training));
            if (best.is_beaten_by(least, generating, training))
                best.take(apart(job, layout, generation, generating, training));
        }
    });
    return best.step();
}

// Begins with the split that promises most, since each is played for long.
std::optional<Step> best_in_flight(const Job& job, Objective objective) {
    const auto promised = [&](const auto& visit) {
        each_generating(job, objective, [&](std::int64_t generating, std::int64_t training, std::int64_t most) {
            const Duration generated = fullest(job, generating) + job.weights_apart;
            for (; training <= most; training += job.trainer)
                visit(std::max(generated, least_work(job, training)), generating, training);
        });
    };
    BestSplit most_promising(job, objective), best(job, objective);
    promised([&](Duration least, std::int64_t generating, std::int64_t training) {
        most_promising.take(
            {.layout = Layout::in_flight, .generating = generating, .training = training, .time = least});
    });
    if (!most_promising.step()) return {};
    best.take(in_flight(job, most_promising.step()->generating, most_promising.step()->training));
    promised([&](Duration least, std::int64_t generating, std::int64_t training) {
        if (best.is_beaten_by(least, generating, training)) best.take(in_flight(job, generating, training));
    });
    return best.step();
}

}  // namespace

std::optional<Step> best_step(const Job& job, Layout layout, Objective objective) {
    PIPEWEAVER_ASSERT(is_apart(layout) || !job.generators);
    if (layout == Layout::in_flight) return best_in_flight(job, objective);
    if (is_apart(layout)) return best_split(job, layout, objective);
    const std::int64_t most = job.gpus / job.trainer * job.trainer;
    if (most == 0 || most < job.instance) return {};
    std::optional<Step> best;
    const std::int64_t least = objective == Objective::time ? most : job.trainer;
    for (std::int64_t gpus = least; gpus <= most; gpus += job.trainer) {
        if (gpus < job.instance) continue;
        const Step step = colocated(job, gpus);
        if (!best ||
            value_of(job, objective, step.time, 0, gpus) < value_of(job, objective, best->time, 0, best->training))
            best = step;
    }
    return layout == Layout::colocated ? best : with_moved_tail(job, best->training);
}

}  // namespace pipeweaver::rl
