#include "apps/stages.hpp"

#include "apps/interrupt.hpp"
#include "apps/next_steps.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emit/plan_files.hpp"
#include "pipeweaver/emit/plan_folder.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>

namespace pipeweaver::apps {

namespace {

// No rank of a training step is through with a microbatch so soon: the table may be in milliseconds.
bool may_be_milliseconds(const schedule::StageTable& table) {
    constexpr Duration short_time = std::chrono::milliseconds(1);
    return std::all_of(table.stages.begin(), table.stages.end(), [&](const schedule::StageTimes& stage) {
        return stage.forward < short_time && stage.backward < short_time &&
               stage.weight.value_or(Duration{}) < short_time;
    });
}

}  // namespace

void StageOptions::add_to(Options& options) {
    options.group("Measured stage times instead of a problem");
    options.text("stages", table, "FILE",
                 "measured stage times (CSV; docs/your-own-stage-times.md) in place of a problem file");
    options.integer("microbatches", microbatches, 1, 1'000'000, "with --stages: microbatches of a step");
    options.parsed(
        "capacity", "SIZE",
        "with --stages: memory of every rank that tensors may take, all of it: `plan` keeps 8 % of a GPU back, so "
        "73.6GiB of 80GiB (default: not limited)",
        [this](const std::string& text) { capacity = schedule::parse_capacity(text); });
    options.parsed("link", "SPEED", "with --stages: speed between ranks, like 50GB/s (default: transfers take no time)",
                   [this](const std::string& text) { link = parse_bandwidth(text); });
    options.parsed(
        "split-slowdown", "FACTOR",
        "with --stages: time of a backward in two parts over backward_us and weight_us, which whole backwards "
        "take (default: 1)",
        [this](const std::string& text) { split_slowdown = parse_number("--split-slowdown", text, 1, 10); });
}

void StageOptions::check(const std::string& problem) const {
    if (given()) {
        if (!problem.empty()) fail(ErrorKind::input, "--stages: takes the place of the problem file '{}'", problem);
        return;
    }
    const char* alone = microbatches     ? "microbatches"
                        : capacity       ? "capacity"
                        : link           ? "link"
                        : split_slowdown ? "split-slowdown"
                                         : nullptr;
    if (alone != nullptr) fail(ErrorKind::input, "--{}: is for --stages, a problem file has its own", alone);
}

void StageOptions::solve(const StagesWanted& wanted, const Limits& limits, const Console& console) const {
    const Stopwatch start;
    const Interrupt interrupt(console.quiet);
    const OutputFolder folder(wanted.out);
    planner::StageRequest request;
    request.table = schedule::read_stage_table(table);
    request.options = {*microbatches, capacity, link};
    request.options.split_slowdown = split_slowdown.value_or(1);
    request.target = wanted.target;
    if (!wanted.strategy.empty()) request.strategy = wanted.strategy;
    request.seed = static_cast<std::uint64_t>(limits.seed);
    request.max_rounds = limits.rounds();
    const auto plan = planner::plan_stages(request, limits.executor(), limits.begin(console));
    console.clear();
    const auto measured = limits.run(start);
    const auto files = emit::write_plan_folder(request, plan, wanted.out, measured);
    if (may_be_milliseconds(request.table))
        console.say(
            fmt::format("{}: every time is below 1 ms; forward_us, backward_us and weight_us are microseconds", table));
    if (console.json) {
        auto answer = emit::stage_json(plan);
        answer["run"] = measured;
        print_json(answer);
    } else {
        print_text("{}", emit::stage_table(plan));
        std::fflush(stdout);  // the remark on stderr comes after the table, also in a file
        console.say(next_steps(files, wanted.out, {wanted.target, static_cast<std::size_t>(*microbatches)}));
    }
    say_if_interrupted(console, left_out_by(plan.best.found));
}

}  // namespace pipeweaver::apps
