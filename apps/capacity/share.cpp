// pipeweaver share: the GPUs of one cluster shared out among trainings, and the queue they stand in.
#include "apps/capacity/share_tables.hpp"
#include "apps/command_line.hpp"
#include "apps/commands.hpp"
#include "apps/console.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/text.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::apps {

namespace {

using capacity::QueuePolicy;

struct Share {
    explicit Share(CLI::App& app) : options(app) {
        add_required_operand(app, "jobs", jobs_file, "JOBS",
                             "cluster and jobs (JSON or YAML): pipeweaver-jobs/1 of docs/formats.md");
        options.group("The queue");
        options.text("policy", policies, "POLICY,...", "of fifo, loan, elastic (default: all three)");
        options.parsed("restart", "TIME",
                       "that a job loses when it is stopped or its GPUs change, up to a day (default 10min)",
                       [this](const std::string& text) { restart = restart_of(text); });
        options.group("Output");
        options.text("out", out, "DIR", "folder for shares.csv, queue.csv and jobs.json");
        options.writes();
        console.add_to(app);
    }

    void run() const {
        options.apply();
        std::vector<QueuePolicy> asked;
        for (const std::string& name : parts_of(policies)) add_policy(asked, name);
        std::optional<OutputFolder> folder;
        if (!out.empty()) folder.emplace(out);
        const auto cluster = capacity::read_jobs(jobs_file);
        SharedOut found{cluster, restart, capacity::share_out(cluster), {}};
        found.queues.reserve(asked.size());
        for (const QueuePolicy policy : asked) found.queues.push_back(capacity::play_queue(cluster, policy, restart));
        if (!out.empty()) write(found);
        if (console.json)
            print_json(shares_json(found));
        else
            print_text("{}", share_table(found) + queue_table(found));
    }

private:
    static Duration restart_of(const std::string& text) {
        const Duration time = parse_duration(text);
        if (time <= std::chrono::hours(24)) return time;
        fail(ErrorKind::input, "{}", must_be(text, "at most 24h"));
    }

    static void add_policy(std::vector<QueuePolicy>& asked, const std::string& name) {
        try {
            const QueuePolicy policy = capacity::queue_policy(name);
            if (std::find(asked.begin(), asked.end(), policy) == asked.end()) asked.push_back(policy);
        } catch (const Error& error) {
            throw error.in("--policy");
        }
    }

    void write(const SharedOut& found) const {
        const std::filesystem::path folder(out);
        const auto files = write_files({{folder / "shares.csv", shares_csv(found)},
                                        {folder / "queue.csv", queue_csv(found)},
                                        {folder / "jobs.json", jobs_document(found.cluster).dump(1) + "\n"}});
        console.say(fmt::format("{}: shares.csv, queue.csv, jobs.json", out));
    }

    Options options;
    Console console;
    std::string jobs_file, policies = "fifo,loan,elastic", out;
    Duration restart = std::chrono::minutes(10);
};

}  // namespace

void add_share(CLI::App& program) {
    add_command<Share>(
        program, "share", "the GPUs of one cluster shared out among several trainings",
        {.synopsis = "JOBS [--policy POLICY,...] [--restart TIME] [--out DIR] [OPTION...]",
         .description =
             "Who gets how many GPUs. Each job says what it is worth (weight), what it has to do (tokens) and how fast "
             "it is on how many GPUs, typed in or from a capacity study. First all jobs at once: the least sum of "
             "weight x completion time. Then the queue they stand in as they arrive, by policy.\n"
             "fifo: each job has the GPUs that it asks for, in the order of arrival, and nobody overtakes. loan: also "
             "on GPUs that are free at some hours only; at their end the jobs are shrunk or stopped that lose least. "
             "elastic: GPUs are shared out anew at every arrival, end and change of a loan, and how many jobs run at "
             "once is decided by playing each way to the end.\n"
             "After Aryl (arXiv 2202.07896). What is printed follows from the speeds: a job is as fast as it says on "
             "any GPUs of the cluster.",
         .examples =
             {{"Three trainings, and GPUs that are free by night", "pipeweaver share examples/three-trainings.yaml"},
              {"In turn against elastic where a restart takes an hour, as files",
               "pipeweaver share examples/three-trainings.yaml --policy fifo,elastic --restart 1h --out shared"}},
         .files = {{"shares.csv", "all jobs at once: GPUs, tokens/s, completion"},
                   {"queue.csv", "policy by policy: when each job starts and ends, and what it waited for"},
                   {"jobs.json", "cluster and jobs again, with the speeds of studies written out"}},
         .see_also = {"docs/studies/three-trainings.md", "docs/formats.md"}});
}

}  // namespace pipeweaver::apps
