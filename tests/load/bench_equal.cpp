// Served plans beside those that others make in equal rounds: `pipeweaver plan` from the record; the session in this
// process, which is handed nothing but the batch; `pipeweaver plan` of the batch, which knows nothing of the session
// but its partition, so that its search begins with other schedules: what does not come of a search is the same.
#include "apps/programs.hpp"
#include "bench/measure.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/emit/plan_files.hpp"
#include "pipeweaver/emit/plan_folder.hpp"
#include "pipeweaver/planner/plan.hpp"
#include "pipeweaver/planner/record.hpp"
#include "tests/load/load.hpp"
#include "tests/load/served_process.hpp"
#include "tests/load/service_bench.hpp"

#include <array>
#include <span>

namespace pipeweaver::load {

namespace {

// A part of a served plan, and the file of a plan's folder that has it.
struct PartAndFile {
    const char *part, *file;
};
constexpr std::array parts_compared{PartAndFile{"plan", "plan.json"}, PartAndFile{"assignment", "assignment.json"},
                                    PartAndFile{"replicas/0/problem", "replica-000/problem.json.gz"},
                                    PartAndFile{"replicas/0/solution", "replica-000/solution.json"},
                                    PartAndFile{"replicas/0/actions", "replica-000/actions.json"}};
constexpr std::array parts_not_searched{PartAndFile{"assignment", "assignment.json"}};
constexpr Duration time_enough = std::chrono::minutes(5);  // that rounds end a search and no deadline does
constexpr const char* equal_session = "equal";

class EqualBench {
public:
    EqualBench(const ServiceBench& bench, const OnVerdict& on)
        : bench_(bench), on_(on), server_(bench.served_with(), folder_ / "log"), client_({server_.url(), {}, {}}) {}

    void run() {
        open_session_of(client_, equal_session,
                        bench_.job.session({{"seed", bench_.seed}, {"max-rounds", bench_.max_rounds}}));
        const Executor execute = on_threads(static_cast<int>(bench_.threads));
        const auto kept = asked(client_, "GET", path_of(equal_session) + "/kept");
        const auto session = planner::read_session("session", kept, execute);
        write_files({{folder_ / "partition.json", session.partition}});
        const auto batches = bench_.job.batches(5000 + static_cast<std::uint64_t>(bench_.seed),
                                                static_cast<std::size_t>(bench_.batches));
        Differences by_record, in_process, by_plan;
        std::vector<double> over_plan;
        for (std::size_t k = 0; k < batches.size(); ++k) {
            const auto step = static_cast<std::int64_t>(k);
            const std::string path = path_of(equal_session, step);
            static_cast<void>(asked(client_, "PUT", path, submission(batches[k], time_enough)));
            static_cast<void>(asked(client_, "GET", path));
            plan_from_record(path, folder_ / "again");
            compare(path, folder_ / "again", parts_compared, by_record);
            const std::string lines = lines_of(batches[k]);
            over_plan.push_back(served_makespan(path) / plan_of_batch(lines, folder_ / "plan"));
            compare(path, folder_ / "plan", parts_not_searched, by_plan);
            const auto batch = session.batch(step, lines);
            const auto plan = session.session.plan(batch, execute, {});
            emit::write_plan_folder(session.session.job(), batch, plan, folder_ / "here", nullptr, execute);
            compare(path, folder_ / "here", parts_compared, in_process);
        }
        say("served plans and `plan --served` of each", by_record);
        say("served plans and its session in process", in_process);
        say("their assignments and those of `plan`", by_plan);
        on_({"equal",
             "served makespans over those of `plan`",
             fmt::format("{:.4f}, median", bench::median(over_plan)),
             {},
             {},
             {{"served_over_plan", bench::median(over_plan)}}});
    }

private:
    struct Differences {
        std::size_t parts = 0, differ = 0;
        std::string first;
    };

    void plan_from_record(const std::string& path, const std::filesystem::path& out) {
        write_files({{folder_ / "record.json", asked(client_, "GET", path + "/record")}});
        run_plan({"--served", folder_ / "record.json"}, out);
    }

    // Nanoseconds.
    double served_makespan(const std::string& path) {
        return nlohmann::json::parse(asked(client_, "GET", path)).at("found").at("makespan_ns");
    }

    // The makespan, in nanoseconds. A plan of some replicas leaves out what the plan is held against.
    double plan_of_batch(const std::string& lines, const std::filesystem::path& out) {
        write_files({{folder_ / "batch.jsonl", lines}});
        const ServedJob& job = bench_.job;
        run_plan({"--model",      job.model,
                  "--cluster",    job.cluster,
                  "--tp",         std::to_string(job.tp),
                  "--pp",         std::to_string(job.pp),
                  "--batch",      folder_ / "batch.jsonl",
                  "--packing",    "given",
                  "--partition",  folder_ / "partition.json",
                  "--replicas",   "0",
                  "--seed",       std::to_string(bench_.seed),
                  "--max-rounds", std::to_string(bench_.max_rounds)},
                 out);
        return nlohmann::json::parse(read_file(out / "plan.json")).at("makespan_ns");
    }

    void run_plan(const std::vector<std::string>& options, const std::filesystem::path& out) const {
        std::vector<std::string> all{"plan", "--out", out, "--quiet", "--threads", std::to_string(bench_.threads)};
        all.insert(all.end(), options.begin(), options.end());
        ChildProcess plan(apps::program_beside("pipeweaver"), all, folder_ / "said");
        if (plan.wait(time_enough) != 0) fail(ErrorKind::io, "plan: {}", plan.output());
    }

    // What the server gives of it: plan.json without the hashes of the files beside it.
    static std::string as_part(const std::filesystem::path& file) {
        std::string text = read_file(file);
        if (file.filename() != emit::plan_file) return text;
        auto plan = nlohmann::ordered_json::parse(text);
        plan.erase("files");
        return plan.dump(1) + "\n";
    }

    void compare(const std::string& path, const std::filesystem::path& folder, std::span<const PartAndFile> parts,
                 Differences& differences) {
        for (const auto& [part, file] : parts) {
            ++differences.parts;
            if (asked(client_, "GET", fmt::format("{}/{}", path, part)) == as_part(folder / file)) continue;
            if (differences.differ++ == 0) differences.first = fmt::format(": {}/{}", path, part);
        }
    }

    void say(const std::string& what, const Differences& found) const {
        on_({"equal",
             what,
             fmt::format("{} of {} parts of {} plans differ{}", found.differ, found.parts, bench_.batches, found.first),
             "none, in bytes",
             found.differ == 0,
             {{"differ", found.differ}, {"parts", found.parts}}});
    }

    const ServiceBench& bench_;
    const OnVerdict& on_;
    TemporaryFolder folder_;
    ServedProcess server_;
    service::Client client_;
};

}  // namespace

void bench_equal(const ServiceBench& bench, const OnVerdict& on) { EqualBench(bench, on).run(); }

}  // namespace pipeweaver::load
