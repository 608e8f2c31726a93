// A server under the load of several jobs.
#include "pipeweaver/base/deadline.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/planner/plan.hpp"
#include "pipeweaver/planner/record.hpp"
#include "pipeweaver/schedule/gap.hpp"
#include "tests/load/check_served.hpp"
#include "tests/load/load.hpp"
#include "tests/load/served_process.hpp"
#include "tests/load/service_bench.hpp"

#include <algorithm>
#include <csignal>
#include <numeric>
#include <thread>

namespace pipeweaver::load {

namespace {

constexpr std::size_t longest_window = 60;  // seconds of memory that are held against those before

double mean_of(const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) /
           static_cast<double>(std::max<std::size_t>(1, values.size()));
}

// Megabytes of the last minute and of the one before; of a short run the last third and the one before.
struct Memory {
    double before = 0, last = 0;

    explicit Memory(const std::vector<double>& by_second) {
        const std::size_t window = std::min(longest_window, std::max<std::size_t>(1, by_second.size() / 3));
        if (by_second.size() < 2 * window) return;
        const auto end = by_second.end();
        const auto length = static_cast<std::ptrdiff_t>(window);
        last = mean_of({end - length, end});
        before = mean_of({end - 2 * length, end - length});
    }

    double growth() const { return before > 0 ? 100 * (last / before - 1) : 0; }
};

// A number of the server's own count; none of that name: 0.
std::int64_t counted_as(const std::string& name, const std::string& metrics) {
    const std::size_t found = metrics.find("\n" + name + " ");
    return found == std::string::npos ? 0 : std::strtoll(metrics.c_str() + found + name.size() + 2, nullptr, 10);
}

class LoadBench {
public:
    LoadBench(const ServiceBench& bench, const OnVerdict& on)
        : bench_(bench),
          on_(on),
          server_(bench.served_with({"--state", folder_ / "state", "--keep-plans",
                                     std::to_string(std::max<std::int64_t>(1000, bench.seconds))}),
                  folder_ / "log") {}

    void run() {
        LoadShape shape{.address = {server_.url(), {}, {}},
                        .sessions = static_cast<std::size_t>(bench_.sessions),
                        .steps = static_cast<std::size_t>(bench_.seconds),
                        .deadline = bench_.deadline};
        batches_ = bench_.job.batches(1000 + static_cast<std::uint64_t>(bench_.seed), shape.sessions * shape.steps);
        service::Client client(shape.address);
        for (std::size_t k = 0; k < shape.sessions; ++k)
            open_session_of(
                client, session_of(k),
                bench_.job.session({{"seed", bench_.seed + static_cast<std::int64_t>(k)}, {"budget", "1s"}}));
        std::vector<double> memory;
        collected_ = put_under_load(
            shape, batches_, [&] { memory.push_back(static_cast<double>(server_.process().memory()) / (1 << 20)); });
        const std::string metrics = asked(client, "GET", "/metrics");
        check(shape.address);
        say_counts();
        say_past();
        say_memory(Memory(memory));
        say_beside(metrics);
        const auto sample = sample_of_planned();
        std::vector<std::string> kept;
        for (std::size_t k = 0; k < shape.sessions; ++k)
            kept.push_back(asked(client, "GET", path_of(session_of(k)) + "/kept"));
        const int status = server_.process().end_by(SIGTERM);
        say({"server ended by SIGTERM", fmt::format("exit status {}", status), "0", status == 0});
        say_gap(sample, kept);
    }

private:
    struct Said {
        std::string what, measured, allowed;
        std::optional<bool> held;
        nlohmann::ordered_json figures = nullptr;
    };

    void say(const Said& said) const { on_({"load", said.what, said.measured, said.allowed, said.held, said.figures}); }

    // Each on one of a few connections, after the load.
    void check(const service::ServerAddress& address) {
        const auto threads = static_cast<std::size_t>(bench_.threads);
        checked_.resize(collected_.size());
        run_jobs(on_threads(static_cast<int>(threads)), threads, [&](std::size_t first) {
            service::Client client(address);
            for (std::size_t k = first; k < collected_.size(); k += threads)
                if (collected_[k].planned())
                    checked_[k] = check_served(client, path_of(session_of(collected_[k].session), collected_[k].step));
        });
    }

    std::vector<std::size_t> planned() const {
        std::vector<std::size_t> all;
        for (std::size_t k = 0; k < collected_.size(); ++k)
            if (collected_[k].planned()) all.push_back(k);
        return all;
    }

    void say_counts() const {
        const auto there = planned();
        const std::size_t absent = collected_.size() - there.size();
        const auto late =
            std::count_if(there.begin(), there.end(), [&](std::size_t k) { return collected_[k].past > bench_.past; });
        std::size_t wrong = 0;
        std::string first, why_absent;
        for (const std::size_t k : there)
            if (!checked_[k].wrong.empty() && wrong++ == 0) first = fmt::format(": {}", checked_[k].wrong);
        for (const Collected& one : collected_)
            if (!one.planned() && why_absent.empty()) why_absent = fmt::format(": {}", one.why);
        const auto all = static_cast<std::int64_t>(collected_.size());
        const std::int64_t least = bench_.least_plans > 0 ? bench_.least_plans : all * 35 / 36;
        say({"plans there, of those submitted",
             fmt::format("{} of {}", there.size(), all),
             fmt::format("at least {}", least),
             static_cast<std::int64_t>(there.size()) >= least,
             {{"there", there.size()}, {"submitted", all}}});
        say({"plans absent", fmt::format("{}{}", absent, why_absent), "0", absent == 0, {{"absent", absent}}});
        say({fmt::format("plans late, by more than {}", human(bench_.past)),
             std::to_string(late),
             "0",
             late == 0,
             {{"late", late}}});
        say({"plans refused by the second replay",
             fmt::format("{} of {}{}", wrong, there.size(), first),
             "0",
             wrong == 0,
             {{"refused", wrong}, {"checked", there.size()}}});
    }

    void say_past() const {
        std::vector<double> past;
        for (const std::size_t k : planned()) past.push_back(1e-6 * static_cast<double>(collected_[k].past.count()));
        std::sort(past.begin(), past.end());
        const auto at = [&](double part) {
            return past.empty() ? 0.0
                                : past[std::min(past.size() - 1,
                                                static_cast<std::size_t>(part * static_cast<double>(past.size())))];
        };
        const double most = 1e-6 * static_cast<double>(bench_.past.count());
        say({"collect past its deadline, p99",
             fmt::format("{:.1f} ms (median {:.1f}, most {:.1f})", at(0.99), at(0.5), at(1)),
             fmt::format("under {}", human(bench_.past)),
             !past.empty() && at(0.99) < most,
             {{"p99_ms", at(0.99)}, {"median_ms", at(0.5)}, {"most_ms", at(1)}}});
    }

    void say_memory(const Memory& memory) const {
        const std::string window = bench_.seconds >= 3 * static_cast<std::int64_t>(longest_window) ? "minute" : "third";
        say({fmt::format("memory of the last {}, and before", window),
             fmt::format("{:.1f} MiB, {:.1f} MiB: {:+.1f} %", memory.last, memory.before, memory.growth()),
             fmt::format("within {:g} %", bench_.growth),
             std::abs(memory.growth()) <= bench_.growth,
             {{"last_mib", memory.last}, {"before_mib", memory.before}}});
    }

    void say_beside(const std::string& metrics) const {
        const std::int64_t soon = counted_as(R"(pipeweaver_first_plan_seconds_bucket{le="0.03"})", metrics);
        const std::int64_t all = counted_as("pipeweaver_first_plan_seconds_count", metrics);
        const std::int64_t late = counted_as("pipeweaver_late_total", metrics);
        say({"first plan within 30 ms of submission",
             fmt::format("{} of {}", soon, all),
             {},
             {},
             {{"soon", soon}, {"all", all}}});
        say({"late by the server's own clock", std::to_string(late), {}, {}, {{"late", late}}});
    }

    // So many of the planned ones, spread over all.
    std::vector<std::size_t> sample_of_planned() const {
        const auto there = planned();
        const std::size_t count = std::min(there.size(), static_cast<std::size_t>(bench_.offline));
        std::vector<std::size_t> sample;
        sample.reserve(count);
        for (std::size_t k = 0; k < count; ++k) sample.push_back(there[k * there.size() / count]);
        return sample;
    }

    // The same batches in the same sessions, each alone in this process for the whole deadline.
    void say_gap(const std::vector<std::size_t>& sample, const std::vector<std::string>& kept) const {
        const Executor execute = on_threads(static_cast<int>(bench_.threads));
        std::vector<planner::KeptSession> sessions;
        sessions.reserve(kept.size());
        for (const std::string& one : kept) sessions.push_back(planner::read_session("session", one, execute));
        std::vector<double> all, served, alone;
        for (const std::size_t k : planned()) all.push_back(checked_[k].gap);
        for (const std::size_t k : sample) {
            const auto& session = sessions[collected_[k].session];
            const auto batch = session.batch(collected_[k].step, lines_of(batches_[k]));
            const auto plan = session.session.plan(batch, execute, planner::Time::until(time_left(bench_.deadline)));
            served.push_back(checked_[k].gap);
            alone.push_back(schedule::relative_gap(plan.makespan, plan.lower_bound));
        }
        say({"mean gap", fmt::format("{:.2f} %", 100 * mean_of(all)), {}, {}, {{"gap", mean_of(all)}}});
        if (sample.empty()) return;
        say({fmt::format("of {} of them, and each of those alone", sample.size()),
             fmt::format("{:.2f} %, {:.2f} %", 100 * mean_of(served), 100 * mean_of(alone)),
             {},
             {},
             {{"served", mean_of(served)}, {"alone", mean_of(alone)}, {"batches", sample.size()}}});
    }

    const ServiceBench& bench_;
    const OnVerdict& on_;
    TemporaryFolder folder_;
    ServedProcess server_;
    std::vector<std::string> batches_;  // of each step of the load
    std::vector<Collected> collected_;  // session after session
    std::vector<CheckedPlan> checked_;  // of each
};

}  // namespace

void bench_load(const ServiceBench& bench, const OnVerdict& on) { LoadBench(bench, on).run(); }

}  // namespace pipeweaver::load
