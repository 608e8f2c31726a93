// pipeweaver bench search: what the search makes of a folder of problems, beside every policy and strategy.
#include "apps/bench_commands.hpp"
#include "apps/command_line.hpp"
#include "apps/console.hpp"
#include "bench/benches.hpp"
#include "bench/measure.hpp"
#include "bench/search_tables.hpp"

#include <nlohmann/json.hpp>

namespace pipeweaver::bench {

using namespace apps;

namespace {

struct BenchSearch {
    explicit BenchSearch(CLI::App& app) : options(app) {
        add_operand(app, "folder", folder, "DIR", "folder with problem files (pipeweaver-problem/1), gzip allowed");
        console.add_to(app);
        limits.add_to(options);
    }

    void run() {
        const Stopwatch start;
        options.apply();
        if (folder.empty()) fail_missing("FOLDER", "a folder with problem files (pipeweaver-problem/1)");
        const auto known = references(folder);
        std::vector<SearchedProblem> problems;
        for (const auto& path : problem_files(folder))
            problems.push_back(search_in_every_way(path, known, limits, console));
        console.clear();
        if (!console.json) return print_tables(problems);
        auto json = tables_json(problems);
        limits.add_run(json, start);
        fmt::print("{}\n", json.dump());
    }

    Options options;
    Console console;
    Limits limits;
    std::string folder;
};

}  // namespace

void add_search(CLI::App& program) {
    add_command<BenchSearch>(
        program, "search", about_bench("search"),
        {.synopsis = "FOLDER [OPTION...]",
         .description =
             "Searches every problem in the folder with every strategy, each with the whole budget, and applies every "
             "policy. Prints makespan, bound and gap, how much longer the policies and the strategy dip take, and when "
             "the search first was within 1 % of its end; medians and worsts by class at the end. Each schedule is "
             "checked by a second replay that shares no code with the search.\n"
             "Where the folder has a reference_values.json, its best known makespan, bound and greedy makespan are "
             "compared: 'best %' and 'dual-q %' say how far the search is above the one and below the other.",
         .examples = {{"The problem of a plan, two rounds", "pipeweaver bench search plan/replica-000 --max-rounds 2"},
                      {"For a program to read", "pipeweaver bench search plan/replica-000 --budget 100ms --json"}},
         .files = {{"FOLDER/*.json, *.json.gz", "pipeweaver-problem/1; files of other formats are passed over"},
                   {"FOLDER/reference_values.json", "what is known of the problems, by name"}},
         .see_also = {"pipeweaver solve", "pipeweaver list strategies", "pipeweaver list policies"}});
}

}  // namespace pipeweaver::bench
