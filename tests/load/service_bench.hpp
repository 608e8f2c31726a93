// The parts of `bench service`: each begins servers of its own, and says what it found.
//
// Threads      each part is called from the thread that stays: what it begins ends with that thread.
#pragma once

#include "tests/load/served_job.hpp"
#include "tests/load/verdict.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace pipeweaver::load {

/// What is asked of all parts, and what is allowed.
struct ServiceBench {
    ServedJob job;
    std::int64_t threads = 2;  ///< of the servers that plan
    std::int64_t seed = 1;

    std::int64_t sessions = 8, seconds = 180;
    Duration deadline = std::chrono::milliseconds(500);
    Duration past = std::chrono::milliseconds(20);  ///< a deadline: later is late
    std::int64_t least_plans = 0;                   ///< of the load; 0: 35 of 36
    double growth = 5;                              ///< percent
    std::int64_t offline = 60;                      ///< batches

    std::int64_t batches = 20, max_rounds = 20;

    std::int64_t kills = 20;

    std::int64_t tries = 1000;

    std::string python, example = "examples/train_with_server.py";
    std::int64_t steps = 300;
    Duration step_deadline = std::chrono::seconds(1);
    Duration step_noise = std::chrono::milliseconds(50);

    std::int64_t connections = 2000;

    /// Options of `serve` that all servers have.
    [[nodiscard]] std::vector<std::string> served_with(const std::vector<std::string>& more = {}) const;
};

/// Several jobs, a batch a second each: plans in time, each checked, memory that stays.
void bench_load(const ServiceBench& bench, const OnVerdict& on);

/// Served plans beside those that `plan` and a session in process make in equal rounds.
void bench_equal(const ServiceBench& bench, const OnVerdict& on);

/// Servers killed under load: what was acknowledged is there, what was collected is given again.
void bench_kill(const ServiceBench& bench, const OnVerdict& on);

/// Who may listen to others, and how long an answer takes with a right token and with a wrong one.
void bench_token(const ServiceBench& bench, const OnVerdict& on);

/// A job of PyTorch whose server is killed twice. Without a Python it is left out, and said so.
void bench_training(const ServiceBench& bench, const OnVerdict& on);

/// Plans in time beside connections that say nothing, or half of it.
void bench_idle(const ServiceBench& bench, const OnVerdict& on);

}  // namespace pipeweaver::load
