// Steps of reinforcement learning by hand, played step by step, and their best split against all of them.
#include "pipeweaver/rl/step.hpp"

#include "pipeweaver/base/random.hpp"
#include "tests/rl/slow_generation.hpp"

#include <doctest/doctest.h>

#include <map>

using namespace pipeweaver;
using namespace pipeweaver::rl;

namespace {

using namespace std::chrono_literals;

// Two instances of a GPU; answers of 2 and 6 tokens of 10 ns, each judged in 12 ns and trained on in 30 ns of a GPU.
Job small_job() {
    Job job;
    job.gpus = 4;
    job.decoding.token = {10ns};
    job.answers = {2, 6};
    job.groups = {0, 1};
    job.inference = {12ns, 12ns};
    job.training = {30ns, 30ns};
    return job;
}

Job drawn_job(std::uint64_t seed) {
    Random random(seed);
    const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random.below(n)); };
    Job job;
    job.instance = 1 + below(2);
    job.trainer = 1 + below(2);
    job.gpus = job.instance + job.trainer + below(6);
    job.decoding = {.token = {}, .front_ps = 1000 * below(2), .prompt = Duration{below(9)}, .prompt_tokens = below(3)};
    Duration token{1 + below(20)};
    for (std::int64_t slots = 1 + below(3); slots > 0; --slots)
        job.decoding.token.push_back(token += Duration{below(5)});
    const auto group = static_cast<std::size_t>(1 + below(2));
    for (std::size_t i = 0, answers = static_cast<std::size_t>(2 + below(7)); i < answers; ++i) {
        job.answers.push_back(1 + below(9));
        job.groups.push_back(i / group);
        job.inference.emplace_back(below(40));
        job.training.emplace_back(1 + below(200));
    }
    job.switching = Duration{below(50)};
    job.weights = job.weights_apart = Duration{below(50)};
    job.move = Duration{below(20)};
    job.steps_off = below(3);
    return job;
}

// Plays so many steps and says what as many as may be ahead, and one, take in the end: rounded up, of one.
Duration played(const Job& job, bool streamed, std::int64_t generating, std::int64_t training) {
    constexpr std::size_t steps = 300;
    const auto ahead = static_cast<std::size_t>(job.steps_off) + 1;
    const Generation generation =
        SlowGeneration(job.decoding, job.answers, generating / job.instance, std::nullopt).run();
    std::map<std::size_t, Duration> group_end;
    for (std::size_t i = 0; i < job.answers.size(); ++i)
        group_end[job.groups[i]] = std::max(group_end[job.groups[i]], generation.ends[i]);
    std::multimap<Duration, Duration> queue;  // when an answer is there, and what it takes
    for (std::size_t i = 0; i < job.answers.size(); ++i) {
        const auto part = [&](Duration work) { return Duration{(work.count() + training - 1) / training}; };
        queue.emplace(streamed ? group_end[job.groups[i]] : generation.end,
                      part(job.inference[i]) + part(job.training[i]));
    }
    std::vector<Duration> trained;
    Duration generated{};
    for (std::size_t n = 0; n < steps; ++n) {
        const Duration begin = std::max(generated, n < ahead ? Duration{} : trained[n - ahead]) + job.weights;
        Duration now = n == 0 ? Duration{} : trained.back();
        for (const auto& [there, takes] : queue) now = std::max(now, begin + there) + takes;
        trained.push_back(now);
        generated = begin + generation.end;
    }
    const auto in_the_end = (trained[steps - 1] - trained[steps - 1 - ahead]).count();
    const auto of_one = static_cast<std::int64_t>(ahead);
    return Duration{(in_the_end + of_one - 1) / of_one};
}

Generation generated_by(const Job& job, std::int64_t gpus) {
    return generate(job.decoding, job.answers, gpus / job.instance);
}

TEST_CASE("on the same GPUs all is done in turn") {
    Job job = small_job();
    job.gpus = 2;
    job.switching = 7ns;
    job.weights = 3ns;
    // 60 ns of generation, 2 x 15 of training, 2 x 6 of inference, 7 and 3; one of two GPUs waits for 40 of the 60.
    const Step step = colocated(job, 2);
    CHECK(step.time == 112ns);
    CHECK(step.bubbles == Bubbles{.tail = 20ns, .samples = {}, .training = {}, .weights = 3ns, .switching = 7ns});
}

TEST_CASE("on GPUs of their own streams begin with the first answer") {
    const Job job = small_job();
    const Generation generation = generated_by(job, 2);
    // The second answer comes after 60 ns and takes 6 + 15 on two GPUs, the first was done long before.
    CHECK(apart(job, Layout::split, generation, 2, 2).time == 102ns);
    const Step streamed = apart(job, Layout::streamed, generation, 2, 2);
    CHECK(streamed.time == 81ns);
    // Of four GPUs: one waits for 40 ns, two for 21 ns of training, two for all but 42 ns.
    CHECK(streamed.bubbles == Bubbles{.tail = 10ns, .samples = 19ns, .training = 10ns, .weights = {}, .switching = {}});
}

TEST_CASE("a group is judged when its last answer is there") {
    Job job = small_job();
    job.groups = {0, 0};
    CHECK(apart(job, Layout::streamed, generated_by(job, 2), 2, 2).time == 102ns);
}

TEST_CASE("steps ahead of training hide the shorter part") {
    Job job = small_job();
    job.steps_off = 1;
    job.weights_apart = 1ns;
    CHECK(apart(job, Layout::split, generated_by(job, 2), 2, 2).time == 61ns);
    job.training = {90ns, 90ns};
    CHECK(apart(job, Layout::split, generated_by(job, 2), 2, 2).time == 102ns);
}

TEST_CASE("what a step takes beside its answers is training's") {
    Job job = small_job();
    job.overhead = 9ns;
    job.gpus = 2;
    CHECK(colocated(job, 2).time == 111ns);  // 60 + 2 x 6 + 2 x 15
    CHECK(apart(job, Layout::split, generated_by(job, 2), 2, 2).time == 111ns);
    CHECK(apart(job, Layout::streamed, generated_by(job, 2), 2, 2).time == 90ns);
}

// An instance of two slots, answers of 2 and 6 tokens of 10 ns, each trained on in 1 ns. From the end of the first step
// every other one ends 50 and 40 ns later: two tokens of the short answer, six of the long one, and one or none until
// the token step that was under way is over. Waiting for a step's last answer, each takes 60 ns.
TEST_CASE("in flight a step's answers begin where those before it leave room") {
    Job job = small_job();
    job.gpus = 2;
    job.decoding.token = {10ns, 10ns};
    job.inference = {0ns, 0ns};
    job.training = {1ns, 1ns};
    job.steps_off = 1;
    const Step step = in_flight(job, 1, 1);
    CHECK(step.time == 45ns);
    CHECK(step.generation == 45ns);  // it always decodes
    CHECK(apart(job, Layout::streamed, generated_by(job, 1), 1, 1).time == 60ns);
    job.training = {90ns, 90ns};
    CHECK(in_flight(job, 1, 1).time == 180ns);
}

TEST_CASE("on policy nothing is in flight: steps are streamed") {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        CAPTURE(seed);
        Job job = drawn_job(seed);
        job.steps_off = 0;
        const Duration streamed =
            apart(job, Layout::streamed, generated_by(job, job.instance), job.instance, job.trainer).time;
        CHECK(in_flight(job, job.instance, job.trainer).time == streamed);
    }
}

TEST_CASE("in flight an instance of one slot takes no less than all tokens one after the other") {
    for (std::uint64_t seed = 0; seed < 1'000; ++seed) {
        CAPTURE(seed);
        Job job = drawn_job(seed);
        job.decoding.token.resize(1);
        const Duration all = generated_by(job, job.instance).end + job.weights_apart;
        CHECK(in_flight(job, job.instance, job.trainer).time + 1ns >= all);  // rounded
    }
}

TEST_CASE("the best split in flight is the best of all") {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        CAPTURE(seed);
        const Job job = drawn_job(seed);
        std::optional<Duration> least;
        for (std::int64_t g = job.instance; g + job.trainer <= job.gpus; g += job.instance) {
            const std::int64_t t = (job.gpus - g) / job.trainer * job.trainer;
            const Duration time = in_flight(job, g, t).time;
            if (!least || time < *least) least = time;
        }
        const auto best = best_step(job, Layout::in_flight, Objective::time);
        REQUIRE(best.has_value() == least.has_value());
        CHECK(best->time == *least);
    }
}

TEST_CASE("inference begins on the GPUs that the tail leaves") {
    Job job = small_job();
    job.inference = {40ns, 40ns};
    // Unmoved 60 + 2 x 20 + 2 x 15 on two GPUs. The tail's GPU goes on, the other judges the first answer meanwhile.
    CHECK(colocated(job, 2).time == 130ns);
    const auto moved = with_moved_tail(job, 2);
    REQUIRE(moved);
    CHECK(moved->time == 110ns);
    CHECK(moved->bubbles.tail == 0ns);
    job.trainer = 2;  // one free GPU is too few to judge on
    CHECK_FALSE(with_moved_tail(job, 2));
    job.trainer = 1;
    job.inference = {0ns, 0ns};
    CHECK_FALSE(with_moved_tail(job, 2));
}

TEST_CASE("steps that are played one after the other take as long") {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        CAPTURE(seed);
        const Job job = drawn_job(seed);
        for (const Layout layout : {Layout::split, Layout::streamed})
            CHECK(apart(job, layout, generated_by(job, job.instance), job.instance, job.trainer).time ==
                  played(job, layout == Layout::streamed, job.instance, job.trainer));
    }
}

TEST_CASE("streams are never slower than batches") {
    std::int64_t faster = 0;
    for (std::uint64_t seed = 0; seed < 1'000; ++seed) {
        CAPTURE(seed);
        const Job job = drawn_job(seed);
        const Generation generation = generated_by(job, job.instance);
        const Duration split = apart(job, Layout::split, generation, job.instance, job.trainer).time;
        const Duration streamed = apart(job, Layout::streamed, generation, job.instance, job.trainer).time;
        CHECK(streamed <= split);
        if (streamed < split) ++faster;
    }
    CHECK(faster > 200);
}

TEST_CASE("the best split is the best of all that are played") {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        CAPTURE(seed);
        Job job = drawn_job(seed);
        if (seed % 2 == 1) {  // others generate, for other prices
            job.generators = job.instance * static_cast<std::int64_t>(1 + seed % 3);
            job.generator_price = static_cast<std::int64_t>(1 + seed % 5);
            job.trainer_price = 3;
        }
        const auto usd = [&](std::int64_t g, std::int64_t t) {
            return g * job.generator_price + t * job.trainer_price;
        };
        for (const Layout layout : {Layout::split, Layout::streamed})
            for (const Objective objective : {Objective::time, Objective::usd}) {
                std::optional<std::int64_t> least;
                const std::int64_t most = job.generators.value_or(job.gpus);
                for (std::int64_t g = job.instance; g <= most; g += job.instance)
                    for (std::int64_t t = job.trainer; t <= job.gpus && (job.generators || g + t <= job.gpus);
                         t += job.trainer) {
                        const auto time = played(job, layout == Layout::streamed, g, t).count();
                        const std::int64_t value = objective == Objective::usd ? time * usd(g, t) : time;
                        if (!least || value < *least) least = value;
                    }
                const auto best = best_step(job, layout, objective);
                REQUIRE(best.has_value() == least.has_value());
                const std::int64_t price = objective == Objective::usd ? usd(best->generating, best->training) : 1;
                CHECK(best->time.count() * price == *least);
            }
    }
}

TEST_CASE("all GPU time is work or idle for a reason") {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        CAPTURE(seed);
        const Job job = drawn_job(seed);
        const Generation generation = generated_by(job, job.instance);
        const Step step = apart(job, Layout::streamed, generation, job.instance, job.trainer);
        Duration decoding{};
        for (const Duration busy : generation.busy) decoding += job.instance * busy;
        const Bubbles& idle = step.bubbles;
        const Duration all = step.gpus() * (idle.tail + idle.samples + idle.training + idle.weights) + decoding +
                             step.training * step.work;
        const Duration missing = step.gpus() * step.time - all;
        CHECK(missing >= 0ns);
        CHECK(missing < 4 * step.gpus() * 1ns);  // each mean is rounded down
    }
}

TEST_CASE("too few GPUs have no best step") {
    Job job = small_job();
    job.gpus = 1;
    CHECK_FALSE(best_step(job, Layout::split, Objective::time));
    job.instance = 2;
    CHECK_FALSE(best_step(job, Layout::colocated, Objective::time));
}

}  // namespace
