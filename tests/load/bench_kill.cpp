// A server that is killed under load, and begun again on its state.
#include "apps/interrupt.hpp"
#include "pipeweaver/base/deadline.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/random.hpp"
#include "pipeweaver/base/text.hpp"
#include "tests/load/acknowledged.hpp"
#include "tests/load/load.hpp"
#include "tests/load/served_process.hpp"
#include "tests/load/service_bench.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <thread>

namespace pipeweaver::load {

namespace {

constexpr std::size_t sessions_under_kill = 3;
constexpr std::size_t batches_under_kill = 64;  // different ones, in turn
constexpr Duration deadline_under_kill = std::chrono::milliseconds(100);
constexpr Duration pause_under_kill = std::chrono::milliseconds(150);   // of a session, so that others are opened, too
constexpr Duration longest_life = std::chrono::milliseconds(2500);      // under load
constexpr Duration longest_beginning = std::chrono::milliseconds(150);  // where it is killed as it begins
constexpr double killed_as_it_begins = 0.2;                             // of all
constexpr std::int64_t most_others = 6;                                 // sessions that come and go, open at once
constexpr Duration to_close = std::chrono::minutes(1), to_answer_late = std::chrono::minutes(1);
constexpr std::array parts_collected{"plan", "assignment", "replicas/0/solution", "replicas/0/actions"};

class KillBench {
public:
    KillBench(const ServiceBench& bench, const OnVerdict& on)
        : bench_(bench),
          on_(on),
          draw_(static_cast<std::uint64_t>(bench.seed)),
          batches_(bench.job.batches(9000 + static_cast<std::uint64_t>(bench.seed), batches_under_kill)),
          steps_(sessions_under_kill, 0) {}

    void run() {
        for (std::int64_t killed = 0; killed < bench_.kills && !apps::Interrupt::came(); ++killed) {
            if (killed > 0 && killed + 1 < bench_.kills && draw_.uniform() < killed_as_it_begins) {
                ServedProcess server(served(), folder_ / "log");
                std::this_thread::sleep_for(moment(longest_beginning));
                server.process().end_by(SIGKILL);
                ++killed;
            }
            ServedProcess server(served(), folder_ / "log");
            look(server.url());
            live(server, killed == 0);
        }
        ServedProcess server(served(), folder_ / "log");
        look(server.url());
        say();
    }

private:
    std::vector<std::string> served() const { return bench_.served_with({"--state", folder_ / "state"}); }

    Duration moment(Duration longest) {
        return Duration{static_cast<std::int64_t>(draw_.uniform() * static_cast<double>(longest.count()))};
    }

    // Whether all that was acknowledged so far is there.
    void look(const std::string& url) {
        service::Client client({url, {}, {}});
        const Stopwatch watch;
        wait_until_ready(client);
        slowest_ = std::max(slowest_, Duration{watch.elapsed()});
        for (std::string& one : acknowledged_.lost(client)) lost_.push_back(std::move(one));
    }

    // Jobs at work until the server is killed.
    void live(ServedProcess& server, bool first) {
        const service::ServerAddress address{server.url(), {}, {}};
        if (first) {
            service::Client client(address);
            for (std::size_t k = 0; k < sessions_under_kill; ++k) {
                open_session_of(
                    client, session_of(k),
                    bench_.job.session({{"seed", bench_.seed + static_cast<std::int64_t>(k)}, {"max-rounds", 2}}));
                acknowledged_.opened(session_of(k));
            }
        }
        std::vector<std::jthread> jobs;
        jobs.reserve(sessions_under_kill + 1);
        for (std::size_t k = 0; k < sessions_under_kill; ++k)
            jobs.emplace_back([this, address, k] { submit(address, k); });
        jobs.emplace_back([this, address] { open_others(address); });
        std::this_thread::sleep_for(moment(longest_life));
        server.process().end_by(SIGKILL);
    }

    // Submits and collects until the server is gone.
    void submit(const service::ServerAddress& address, std::size_t session) {
        service::Client client(address);
        try {
            for (;;) {
                const std::int64_t step = steps_[session]++;
                const std::string path = path_of(session_of(session), step);
                const auto batch = (static_cast<std::size_t>(step) + 7 * session) % batches_.size();
                static_cast<void>(asked(client, "PUT", path, submission(batches_[batch], deadline_under_kill)));
                // Where there are too many others a plan is late.
                while (client.ask("GET", path, {}, to_answer_late).status == 202) {
                }
                for (const char* part : parts_collected) {
                    const std::string its = fmt::format("{}/{}", path, part);
                    acknowledged_.part(its, asked(client, "GET", its));
                }
                std::this_thread::sleep_for(pause_under_kill);
            }
        } catch (const Error& error) {
            note(error);
        }
    }

    // Small sessions, one after the other, until the server is gone; of many the oldest is closed.
    void open_others(const service::ServerAddress& address) {
        service::Client client(address);
        const auto another = [](std::int64_t number) { return fmt::format("another-{}", number); };
        try {
            for (;;) {
                const std::int64_t number = others_++;
                open_session_of(client, another(number),
                                bench_.job.session({{"seed", 100 + number}, {"partition", "dip"}, {"max-rounds", 0}}));
                acknowledged_.opened(another(number));
                if (number < most_others) continue;
                const std::string oldest = another(number - most_others);
                acknowledged_.closing(oldest);
                const int status = client.ask("DELETE", path_of(oldest), {}, to_close).status;
                if (status == 204) acknowledged_.closed(oldest);
            }
        } catch (const Error& error) {
            note(error);
        }
    }

    // No answer is what a kill leaves; an answer that is none of these is not.
    void note(const Error& error) {
        const std::string why = error.what();
        if (why.find("gives no answer") != std::string::npos) return;
        const std::lock_guard lock(mutex_);
        refused_.push_back(why);
    }

    void say() const {
        const auto& count = acknowledged_.looked_at();
        const auto first = [](const std::vector<std::string>& all) {
            return all.empty() ? std::string() : ": " + all.front();
        };
        on_({"kill",
             "acknowledged or collected, and then lost",
             fmt::format("{} of {} looks at sessions, {} at parts of plans{}", lost_.size(), count.sessions,
                         count.parts, first(lost_)),
             "0",
             lost_.empty(),
             {{"kills", bench_.kills}, {"lost", lost_.size()}, {"sessions", count.sessions}, {"parts", count.parts}}});
        on_({"kill",
             fmt::format("refused between {} kills", bench_.kills),
             fmt::format("{}{}", refused_.size(), first(refused_)),
             "0",
             refused_.empty(),
             {{"refused", refused_.size()}}});
        on_({"kill", "longest until all sessions plan again", human(slowest_), {}, {}, {{"ns", slowest_.count()}}});
    }

    const ServiceBench& bench_;
    const OnVerdict& on_;
    TemporaryFolder folder_;
    Random draw_;
    std::vector<std::string> batches_;
    std::vector<std::int64_t> steps_;  // that each session submits next
    std::int64_t others_ = 0;
    Acknowledged acknowledged_;
    std::mutex mutex_;
    std::vector<std::string> lost_, refused_;
    Duration slowest_{};
};

}  // namespace

void bench_kill(const ServiceBench& bench, const OnVerdict& on) { KillBench(bench, on).run(); }

}  // namespace pipeweaver::load
