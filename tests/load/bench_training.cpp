// A training job of PyTorch whose server is killed and begun again: forked workers submit, ranks collect.
#include "pipeweaver/base/deadline.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/random.hpp"
#include "pipeweaver/base/text.hpp"
#include "tests/load/served_process.hpp"
#include "tests/load/service_bench.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <map>
#include <memory>
#include <regex>
#include <set>
#include <thread>

namespace pipeweaver::load {

namespace {

constexpr std::size_t ranks_of_training = 4;
constexpr std::size_t times_killed = 2;
constexpr Duration away = std::chrono::seconds(2);  // from a kill until the server begins again
constexpr Duration between_looks_at_training = std::chrono::milliseconds(50);
constexpr Duration longest_training = std::chrono::minutes(8);
constexpr const char* training_line =
    R"((?:^|\n)step (\d+) rank (\d): loss ([0-9.]+), (served|by policy), waited (\d+) ms)";

struct TrainedStep {
    std::size_t ranks = 0, by_policy = 0;
    std::set<std::string> losses;  // one, where all ranks ran the same plan
    std::int64_t waited_ms = 0;    // the longest

    bool is_one_plan() const { return losses.size() == 1 && (by_policy == 0 || by_policy == ranks); }
};

std::map<std::int64_t, TrainedStep> steps_in(const std::string& said) {
    static const std::regex line(training_line);
    std::map<std::int64_t, TrainedStep> steps;
    for (auto one = std::sregex_iterator(said.begin(), said.end(), line); one != std::sregex_iterator(); ++one) {
        TrainedStep& step = steps[std::stoll((*one)[1])];
        ++step.ranks;
        step.losses.insert((*one)[3]);
        step.by_policy += (*one)[4] == "by policy" ? 1 : 0;
        step.waited_ms = std::max<std::int64_t>(step.waited_ms, std::stoll((*one)[5]));
    }
    return steps;
}

// That was said last; none: -1.
std::int64_t latest_step(const std::string& said) {
    constexpr std::string_view begin = "\nstep ";
    const std::size_t found = said.rfind(begin);
    return found == std::string::npos ? -1 : std::strtoll(said.c_str() + found + begin.size(), nullptr, 10);
}

class TrainingBench {
public:
    TrainingBench(const ServiceBench& bench, const OnVerdict& on) : bench_(bench), on_(on) {}

    void run() {
        if (!std::filesystem::exists(bench_.example))
            fail(ErrorKind::io, "{}: is not there; it is part of a checkout (--example)", bench_.example);
        begin_server("127.0.0.1:0");
        const std::string address = url_.substr(url_.rfind('/') + 1);
        ChildProcess job(bench_.python,
                         {"-m", "torch.distributed.run", "--standalone", "--nproc-per-node",
                          std::to_string(ranks_of_training), bench_.example, "--server", url_, "--steps",
                          std::to_string(bench_.steps), "--deadline", fmt::format("{:g}", seconds_of_a_step())},
                         folder_ / "training");
        const auto kills = steps_before_kills();
        std::size_t killed = 0;
        for (const Stopwatch watch; job.is_running() && watch.elapsed() < longest_training;) {
            if (killed < kills.size() && latest_step(job.output()) >= kills[killed]) {
                ++killed;
                server_->process().end_by(SIGKILL);
                std::this_thread::sleep_for(away);
                begin_server(address);
            }
            std::this_thread::sleep_for(between_looks_at_training);
        }
        const int status = job.wait({});
        say(job.output(), status, killed);
    }

private:
    double seconds_of_a_step() const { return 1e-9 * static_cast<double>(bench_.step_deadline.count()); }

    void begin_server(const std::string& address) {
        server_ = std::make_unique<ServedProcess>(bench_.served_with({"--state", folder_ / "state"}), folder_ / "log",
                                                  address);
        url_ = server_->url();
    }

    // In the middle three fifths, in order.
    std::array<std::int64_t, times_killed> steps_before_kills() const {
        Random draw(static_cast<std::uint64_t>(bench_.seed));
        std::array<std::int64_t, times_killed> steps{};
        const auto span = static_cast<std::uint64_t>(std::max<std::int64_t>(1, 3 * bench_.steps / 10));
        for (std::size_t k = 0; k < steps.size(); ++k)
            steps[k] = bench_.steps / 5 + static_cast<std::int64_t>(k * span + draw.below(span));
        return steps;
    }

    void say(const std::string& said, int status, std::size_t killed) const {
        const auto steps = steps_in(said);
        std::size_t whole = 0, by_policy = 0, late = 0, apart = 0;
        std::int64_t most = 0;
        const std::int64_t allowed =
            std::chrono::duration_cast<std::chrono::milliseconds>(bench_.step_deadline + bench_.step_noise).count();
        for (const auto& [number, step] : steps) {
            whole += step.ranks == ranks_of_training ? 1 : 0;
            by_policy += step.by_policy > 0 ? 1 : 0;
            apart += step.is_one_plan() ? 0 : 1;
            late += step.waited_ms > allowed ? 1 : 0;
            most = std::max(most, step.waited_ms);
        }
        const std::string why =
            status == 0 ? std::string() : ": " + said.substr(said.size() - std::min<std::size_t>(said.size(), 500));
        on_({"training",
             fmt::format("steps trained, server killed {} times", killed),
             fmt::format("{} of {}, exit status {}{}", whole, bench_.steps, status, why),
             "all, exit status 0",
             status == 0 && static_cast<std::int64_t>(whole) == bench_.steps && killed == times_killed,
             {{"steps", whole}, {"killed", killed}, {"status", status}}});
        on_({"training",
             "steps whose ranks differ in plan or loss",
             std::to_string(apart),
             "0",
             !steps.empty() && apart == 0,
             {{"apart", apart}}});
        on_({"training",
             "steps that waited longer for their plan",
             fmt::format("{} (longest {} ms; {} steps by policy)", late, most, by_policy),
             fmt::format("0, than {} and {}", human(bench_.step_deadline), human(bench_.step_noise)),
             !steps.empty() && late == 0,
             {{"late", late}, {"longest_ms", most}, {"by_policy", by_policy}}});
        if (steps.empty()) return;
        const std::string first = *steps.begin()->second.losses.begin(), last = *steps.rbegin()->second.losses.begin();
        on_({"training",
             "loss of the first step, and of the last",
             fmt::format("{}, {}", first, last),
             {},
             {},
             {{"first", std::stod(first)}, {"last", std::stod(last)}}});
    }

    const ServiceBench& bench_;
    const OnVerdict& on_;
    TemporaryFolder folder_;
    std::unique_ptr<ServedProcess> server_;
    std::string url_;
};

}  // namespace

void bench_training(const ServiceBench& bench, const OnVerdict& on) {
    if (bench.python.empty())
        return on({"training", "left out: --python, a Python with torch and pipeweaver", {}, {}, {}});
    TrainingBench(bench, on).run();
}

}  // namespace pipeweaver::load
