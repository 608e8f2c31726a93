#include "tests/load/load.hpp"

#include "apps/interrupt.hpp"
#include "pipeweaver/base/error.hpp"
#include "tests/load/served_job.hpp"

#include <atomic>
#include <thread>

namespace pipeweaver::load {

namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

constexpr Duration to_be_taken = std::chrono::seconds(10);
constexpr Duration after_the_deadline = std::chrono::seconds(5);
constexpr std::int64_t ranks_asked_for = 4;  // in turn

void collect(const LoadShape& shape, service::Client& client, const std::string& body, Collected& one) {
    const std::string path = path_of(session_of(one.session), one.step);
    try {
        const auto began = std::chrono::steady_clock::now();
        const auto taken = client.ask("PUT", path, body, to_be_taken);
        if (taken.status >= 300) {
            one.why = fmt::format("status {} when it was submitted: {}", taken.status, taken.body);
            return;
        }
        const auto list = client.ask("GET", fmt::format("{}/replicas/0/ranks/{}", path, one.step % ranks_asked_for), {},
                                     shape.deadline + after_the_deadline);
        one.past = std::chrono::steady_clock::now() - began - shape.deadline;
        one.status = list.status;
        if (!one.planned()) one.why = fmt::format("status {} when it was collected: {}", list.status, list.body);
    } catch (const Error& error) {
        one.why = error.what();
    }
}

void run_session(const LoadShape& shape, SteadyTime begin, const std::string* bodies, Collected* steps) {
    service::Client client(shape.address);
    for (std::size_t step = 0; step < shape.steps; ++step) {
        std::this_thread::sleep_until(begin + step * shape.between);
        if (apps::Interrupt::came()) return;
        collect(shape, client, bodies[step], steps[step]);
    }
}

}  // namespace

std::string session_of(std::size_t number) { return fmt::format("job-{}", number); }

std::vector<Collected> put_under_load(const LoadShape& shape, const std::vector<std::string>& batches,
                                      const std::function<void()>& each_second) {
    std::vector<Collected> all(shape.sessions * shape.steps);
    std::vector<std::string> bodies;
    bodies.reserve(all.size());
    for (std::size_t k = 0; k < all.size(); ++k) {
        all[k].session = k / shape.steps;
        all[k].step = static_cast<std::int64_t>(k % shape.steps);
        bodies.push_back(submission(batches[k], shape.deadline));
    }
    const SteadyTime begin = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
    std::atomic<std::size_t> left = shape.sessions;
    {
        std::vector<std::jthread> threads;
        threads.reserve(shape.sessions);
        for (std::size_t k = 0; k < shape.sessions; ++k)
            threads.emplace_back([&, k] {
                const auto own = begin + k * shape.between / shape.sessions;
                run_session(shape, own, &bodies[k * shape.steps], &all[k * shape.steps]);
                --left;
            });
        for (SteadyTime next = begin; left > 0;) {
            next += std::chrono::seconds(1);
            std::this_thread::sleep_until(next);
            if (left > 0 && each_second) each_second();
        }
    }
    return all;
}

std::string lines_of(const std::string& samples) {
    std::string lines;
    for (const auto& one : nlohmann::ordered_json::parse(samples)) lines += one.dump() + "\n";
    return lines;
}

}  // namespace pipeweaver::load
