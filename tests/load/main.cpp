// pipeweaver-load: what the planning service promises, held against servers on this machine of the pipeweaver beside
// it. `pipeweaver bench service` becomes it.
#include "apps/bench_commands.hpp"
#include "apps/command_line.hpp"
#include "apps/console.hpp"
#include "apps/interrupt.hpp"
#include "pipeweaver/base/deadline.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/host.hpp"
#include "pipeweaver/base/text.hpp"
#include "tests/load/service_bench.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <sched.h>

namespace pipeweaver::load {

using namespace apps;

std::vector<std::string> ServiceBench::served_with(const std::vector<std::string>& more) const {
    std::vector<std::string> all{"--threads", std::to_string(threads)};
    all.insert(all.end(), more.begin(), more.end());
    return all;
}

namespace {

struct ServicePart {
    const char* name;
    void (*run)(const ServiceBench&, const OnVerdict&);
};

constexpr std::array service_parts{ServicePart{"load", bench_load}, ServicePart{"equal", bench_equal},
                                   ServicePart{"kill", bench_kill}, ServicePart{"token", bench_token},
                                   ServicePart{"idle", bench_idle}, ServicePart{"training", bench_training}};

std::vector<std::string> names_of_parts() {
    std::vector<std::string> names;
    names.reserve(service_parts.size());
    for (const ServicePart& part : service_parts) names.emplace_back(part.name);
    return names;
}

// This process and those that it begins, on so many cores of those that it may use.
void stay_on(std::int64_t cores) {
    cpu_set_t allowed, taken;
    CPU_ZERO(&taken);
    if (::sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
    std::int64_t left = cores;
    for (int core = 0; core < CPU_SETSIZE && left > 0; ++core)
        if (CPU_ISSET(core, &allowed)) {
            CPU_SET(core, &taken);
            --left;
        }
    static_cast<void>(::sched_setaffinity(0, sizeof(taken), &taken));
}

struct BenchService {
    explicit BenchService(CLI::App& app) : options(app) {
        console.add_to(app);
        options.group("The benchmark");
        options.parsed("only", "PART,...", fmt::format("some of {} (default: all)", fmt::join(names_of_parts(), ", ")),
                       [this](const std::string& given) { take_parts(given); });
        options.integer("cores", cores, 1, 1024, "for servers and load together (default 2)");
        options.integer("threads", bench.threads, 1, 1024, "of each server that plan (default 2)");
        options.integer("seed", bench.seed, 1, 1'000'000, "of what is drawn: batches, moments (default 1)");
        add_load();
        add_others();
        add_training();
    }

    void add_load() {
        options.group("load");
        options.integer("sessions", bench.sessions, 1, 64, "jobs, of a batch a second each (default 8)");
        options.integer("seconds", bench.seconds, 1, 100'000, "that they last (default 180)");
        options.integer("microbatches", bench.job.microbatches, 1, 1000, "of a batch (default 16)");
        options.parsed("deadline", "TIME", "of each batch (default 500ms)",
                       [this](const std::string& given) { bench.deadline = parse_duration(given); });
        options.parsed("past", "TIME", "beyond its deadline a plan is late (default 20ms)",
                       [this](const std::string& given) { bench.past = parse_duration(given); });
        options.integer("least-plans", bench.least_plans, 0, 100'000'000,
                        "that must be there (default 35 of 36: 1400 of 1440)");
        options.number("growth", bench.growth, 0, 100, "of the server's memory, percent (default 5)");
        options.integer("offline", bench.offline, 0, 100'000,
                        "batches that are planned alone, too, beside whose gap that of the load is told (default 60)");
    }

    void add_others() {
        options.group("equal, kill, token, idle");
        options.integer("batches", bench.batches, 1, 10'000, "planned again (default 20)");
        options.integer("max-rounds", bench.max_rounds, 0, 10'000, "of each search of theirs (default 20)");
        options.integer("kills", bench.kills, 1, 10'000, "of servers under load (default 20)");
        options.integer("tries", bench.tries, 10, 1'000'000, "of right tokens, and of wrong ones (default 1000)");
        options.integer("connections", bench.connections, 1, 100'000, "that are silent or slow (default 2000)");
    }

    void add_training() {
        options.group("training");
        options.text("python", bench.python, "PYTHON",
                     "an interpreter that has torch and pipeweaver (default: the part is left out)");
        options.text("example", bench.example, "FILE", "the job (default examples/train_with_server.py)");
        options.integer("steps", bench.steps, 10, 100'000, "of it (default 300)");
        options.parsed("step-deadline", "TIME", "that a step waits for its plan at most (default 1s)",
                       [this](const std::string& given) { bench.step_deadline = parse_duration(given); });
        options.parsed("step-noise", "TIME", "beyond that it is late (default 50ms)",
                       [this](const std::string& given) { bench.step_noise = parse_duration(given); });
    }

    void take_parts(const std::string& given) {
        const auto known = names_of_parts();
        only = parts_of(given);
        for (const std::string& one : only)
            if (std::find(known.begin(), known.end(), one) == known.end())
                fail(ErrorKind::input, "{}", unknown("part", one, known));
    }

    void run() {
        const Stopwatch start;
        options.apply();
        stay_on(cores);
        const Interrupt interrupt;
        for (const ServicePart& part : service_parts)
            if (!Interrupt::came() && is_wanted(part.name)) run_part(part);
        if (console.json) fmt::print("{}\n", answer(start).dump());
        std::fflush(stdout);
        require_held();
    }

    bool is_wanted(const std::string& part) const {
        return only.empty() || std::find(only.begin(), only.end(), part) != only.end();
    }

    // A part that cannot go on has held nothing.
    void run_part(const ServicePart& part) {
        const Stopwatch watch;
        const OnVerdict take = [this](const Verdict& verdict) { add(verdict); };
        try {
            part.run(bench, take);
        } catch (const Error& error) {
            if (error.kind() == ErrorKind::input) throw;
            add({part.name, "could not go on", error.what(), "to its end", false});
        }
        console.say(fmt::format("{}: {:.0f} s", part.name, watch.seconds()));
    }

    void add(const Verdict& verdict) {
        verdicts.push_back(verdict);
        if (!console.json) fmt::print("{}\n", line_of(verdict));
        std::fflush(stdout);
        if (console.json) console.say(line_of(verdict));
    }

    nlohmann::ordered_json answer(const Stopwatch& start) const {
        auto all = nlohmann::ordered_json::array();
        for (const Verdict& verdict : verdicts) all.push_back(to_json(verdict));
        return {{"held", not_held() == 0}, {"promises", std::move(all)}, {"seconds", start.seconds()},
                {"cores", cores},          {"threads", bench.threads},   {"host", host_name()}};
    }

    std::ptrdiff_t not_held() const {
        return std::count_if(verdicts.begin(), verdicts.end(),
                             [](const Verdict& verdict) { return verdict.held && !*verdict.held; });
    }

    void require_held() const {
        const auto promises = std::count_if(verdicts.begin(), verdicts.end(),
                                            [](const Verdict& verdict) { return verdict.held.has_value(); });
        if (Interrupt::came()) fail(ErrorKind::limit, "interrupted: not all was measured");
        if (not_held() > 0) fail(ErrorKind::limit, "{} of {} promises are not held", not_held(), promises);
    }

    Options options;
    Console console;
    ServiceBench bench;
    std::vector<std::string> only;
    std::int64_t cores = 2;
    std::vector<Verdict> verdicts;
};

void add_service(CLI::App& program) {
    add_command<BenchService>(
        program, "service", about_bench("service"),
        {.synopsis = "[--only PART,...] [--python PYTHON] [OPTION...]",
         .description =
             "Begins servers of this program (`pipeweaver serve`) on this machine, lets clients use them on the same "
             "cores, and says of each promise what was measured, what is allowed, and whether it is held; where one is "
             "not, the exit status is 4. With all parts it takes about ten minutes; nothing else should run "
             "meanwhile.\n"
             "load: jobs of dip-vlm-m on 32 H100, tp 8, pp 4, a batch of vlm-mix a second each, on time; every plan is "
             "checked after the load by a second replay that shares no code with the search. A plan is late where its "
             "collect is answered more than --past beyond its deadline; absent where it is refused or never comes.\n"
             "equal: plans in equal rounds, byte for byte those of `plan --served` and of the session in this "
             "process; and their assignments those of `plan` of the batch on the session's partition, whose searches "
             "begin with other schedules.\n"
             "kill: servers killed at drawn moments under load, some while they begin; after each kill all sessions "
             "that were acknowledged and all parts of plans that were collected must be there as they were.\n"
             "token: who is refused; and of right and wrong tokens, by turns in a drawn order on one connection with "
             "TLS, the medians. They may differ by the distance of the quartiles of either, which is what tries of "
             "one kind differ by among themselves, or by 10 %, as the two answers are different texts; tokens that are "
             "wrong in the first letter and in the last, which get the same answer, by that distance or 2 %.\n"
             "idle: plans on time beside connections that say nothing, half of a question, or a letter a second.\n"
             "training: a job of PyTorch with forked workers, its server killed twice; only with --python.",
         .examples = {{"Whether served plans are those of plan", "pipeweaver bench service --only equal --batches 2"},
                      {"For a program to read",
                       "pipeweaver bench service --only equal,kill --batches 1 --kills 1 --json"}},
         .files = {},
         .see_also = {"pipeweaver serve --help", "docs/service.md"}});
}

Program program() {
    return {.name = "pipeweaver bench",
            .about = "whether the planning service holds what it promises",
            .version = PIPEWEAVER_VERSION,
            .manual = {.synopsis = "service [OPTION...]",
                       .description = "Puts servers under load. `pipeweaver bench service` runs it.",
                       .examples = {},
                       .files = {},
                       .see_also = {"pipeweaver bench --help"}},
            .commands = {add_service}};
}

}  // namespace

}  // namespace pipeweaver::load

int main(int argc, char** argv) {
    return pipeweaver::apps::run_to_exit_status(pipeweaver::load::program(), argc, argv);
}
