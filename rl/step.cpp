#include "pipeweaver/rl/step.hpp"

#include "pipeweaver/base/assert.hpp"
#include "rl/in_flight.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>
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

// GPU time of inference and training of all answers.
Duration gpu_work(const Job& job) {
    return std::accumulate(job.training.begin(), job.training.end(),
                           std::accumulate(job.inference.begin(), job.inference.end(), Duration{}));
}

// Inference and training of a step take no less, whatever the layout.
Duration least_work(const Job& job, Duration gpu_time, std::int64_t training) {
    return gpu_time / training + job.overhead;
}

// The least that generation of a step takes in flight, on any number of instances. Those that have A answers in the
// mean decode no more tokens a nanosecond than the least concave function of A that is nowhere below A / token(A).
class LeastGeneration {
public:
    explicit LeastGeneration(const Job& job) : job_(job) {
        const Decoding& decoding = job.decoding;
        for (const std::int64_t own : job.answers) {
            const auto tokens = static_cast<double>(own);
            tokens_ += tokens;
            const double front = tokens * static_cast<double>(decoding.prompt_tokens) + tokens * (tokens - 1) / 2;
            rest_ +=
                static_cast<double>(decoding.prompt.count()) + front * static_cast<double>(decoding.front_ps) / 1000;
        }
        for (std::size_t i = 0; i < decoding.token.size(); ++i) {
            const auto answers = static_cast<double>(i + 1);
            add({answers, answers / ns(decoding.token[i])});
        }
    }

    Duration on(std::int64_t generating) const {
        const std::int64_t count = generating / job_.instance;
        const auto instances = static_cast<double>(count);
        const double running = static_cast<double>(job_.steps_off + 1) * static_cast<double>(job_.answers.size());
        const auto weights = static_cast<double>(job_.weights_apart.count());
        double low = rest_ / instances, high = low + tokens_ * ns(job_.decoding.token.front());
        for (int i = 0; i < 64; ++i) {
            const double middle = low + (high - low) / 2, decoding = instances * middle - rest_;
            const bool enough = decoding > 0 && decoding * speed(running * (middle + weights) / decoding) >= tokens_;
            (enough ? high : low) = middle;
        }
        constexpr double rounding = 1e-9;
        return Duration{static_cast<std::int64_t>(low * (1 - rounding))} + job_.weights_apart;
    }

private:
    using Corner = std::pair<double, double>;  // answers, tokens a nanosecond

    static double ns(Duration token) { return static_cast<double>(std::max(token, Duration{1}).count()); }
    static double slope(const Corner& a, const Corner& b) { return (b.second - a.second) / (b.first - a.first); }

    void add(const Corner& corner) {
        if (corner.second <= corners_.back().second) return;
        while (corners_.size() > 1 && slope(corners_.end()[-2], corners_.back()) <= slope(corners_.back(), corner))
            corners_.pop_back();
        corners_.push_back(corner);
    }

    double speed(double answers) const {
        const auto next = std::lower_bound(corners_.begin() + 1, corners_.end(), Corner{answers, 0});
        if (next == corners_.end()) return corners_.back().second;
        return next->second - (next->first - answers) * slope(next[-1], *next);
    }

    const Job& job_;
    double tokens_ = 0, rest_ = 0;  // rest: prompts, and what tokens in front take, of one instance
    std::vector<Corner> corners_{{0, 0}};
};

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

namespace {

// That are played in flight, and so many of them in the end are a step in the mean.
struct Steps {
    std::int64_t ahead = 1, last = 1, all = 1;
};
Steps steps_of(const Job& job) {
    const std::int64_t ahead = job.steps_off + 1, last = std::max<std::int64_t>(4, ahead);
    return {ahead, last, 2 * ahead + 3 + last};
}

}  // namespace

Step in_flight(const Job& job, std::int64_t generating, std::int64_t training) {
    const auto [ahead, last, steps] = steps_of(job);
    const Flight flight{.steps = static_cast<std::size_t>(steps),
                        .ahead = static_cast<std::size_t>(ahead),
                        .weights = job.weights_apart};
    Duration trained{};
    const Flown flown =
        fly(job.decoding, job.answers, generating / job.instance, flight, [&](const std::vector<Duration>& ends) {
            trained = streamed_end(job, trained, ends, training);
            return trained;
        });
    const auto in_the_last = [count = static_cast<std::size_t>(last)](const std::vector<Duration>& times) {
        return times.back() - times[times.size() - 1 - count];
    };
    // The last steps began with answers that were decoded before them: of all steps none takes less than `least`.
    const Duration least = std::max(LeastGeneration(job).on(generating), least_work(job, gpu_work(job), training));
    Step step{.layout = Layout::in_flight,
              .generating = generating,
              .training = training,
              .time = std::max(least, Duration{(in_the_last(flown.trained).count() + last - 1) / last}),
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

// The best step so far: of equal ones that which generates on fewer GPUs, then trains on fewer.
class BestSplit {
public:
    BestSplit(const Job& job, Objective objective) : job_(job), objective_(objective) {}

    bool is_beaten_by(const Step& step) const { return !step_ || rank(step) < rank(*step_); }

    void take(const Step& step) {
        if (is_beaten_by(step)) step_ = step;
    }

    // What is less is better.
    std::tuple<Wide, std::int64_t, std::int64_t> rank(const Step& step) const {
        return {value_of(job_, objective_, step.time, step.generating, step.training), step.generating, step.training};
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

std::optional<Step> best_split(const Job& job, Layout layout, Objective objective) {
    const Duration gpu_time = gpu_work(job);
    BestSplit best(job, objective);
    each_generating(job, objective, [&](std::int64_t generating, std::int64_t training, std::int64_t most) {
        const Generation generation = generate(job.decoding, job.answers, generating / job.instance);
        for (; training <= most; training += job.trainer) {
            const Duration least = std::max(generation.end + job.weights_apart, least_work(job, gpu_time, training));
            if (best.is_beaten_by({.generating = generating, .training = training, .time = least}))
                best.take(apart(job, layout, generation, generating, training));
        }
    });
    return best.step();
}

// A split in flight takes no less than its step's time.
template <class Visit>
void each_promise(const Job& job, Objective objective, const Visit& visit) {
    const Duration gpu_time = gpu_work(job);
    const LeastGeneration least_generation(job);
    each_generating(job, objective, [&](std::int64_t generating, std::int64_t training, std::int64_t most) {
        const Duration generation = least_generation.on(generating);
        for (; training <= most; training += job.trainer)
            visit(Step{.generating = generating,
                       .training = training,
                       .time = std::max(generation, least_work(job, gpu_time, training))});
    });
}

// Splits that are played in some seconds.
std::size_t most_plays(const Job& job) {
    constexpr std::size_t least = 8, most_answers = 20'000'000;
    return std::max(least, most_answers / (job.answers.size() * static_cast<std::size_t>(steps_of(job).all)));
}

void play(const Job& job, const Step& promise, BestSplit& best) {
    if (best.is_beaten_by(promise)) best.take(in_flight(job, promise.generating, promise.training));
}

// Some of the splits, evenly, then those around the best, ever nearer. Pre: they are in order, as best's is.
void play_some(const Job& job, const std::vector<Step>& splits, BestSplit& best) {
    const auto place = [](const Step& step) { return std::pair(step.generating, step.training); };
    std::size_t apart = (splits.size() + most_plays(job) - 1) / most_plays(job);
    for (std::size_t i = apart / 2; i < splits.size(); i += apart) play(job, splits[i], best);
    while (apart > 1) {
        apart = (apart + 1) / 2;
        const auto centre = static_cast<std::size_t>(
            std::count_if(splits.begin(), splits.end(),
                          [&, own = place(*best.step())](const Step& one) { return place(one) < own; }));
        if (centre >= apart) play(job, splits[centre - apart], best);
        if (centre + apart < splits.size()) play(job, splits[centre + apart], best);
    }
}

// Each split is played for long: those that promise most come first, until none is left that could be better. Where
// that were to take long, some of them are tried.
std::optional<Step> best_in_flight(const Job& job, Objective objective) {
    BestSplit first(job, objective), best(job, objective);
    each_promise(job, objective, [&](const Step& promise) { first.take(promise); });
    if (!first.step()) return {};
    play(job, *first.step(), best);
    std::vector<Step> others;
    each_promise(job, objective, [&](const Step& promise) {
        if (first.rank(promise) != first.rank(*first.step()) && best.is_beaten_by(promise)) others.push_back(promise);
    });
    if (others.size() > most_plays(job)) {
        play_some(job, others, best);
        return best.step();
    }
    std::sort(others.begin(), others.end(), [&](const Step& a, const Step& b) { return best.rank(a) < best.rank(b); });
    for (const Step& promise : others) play(job, promise, best);
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
