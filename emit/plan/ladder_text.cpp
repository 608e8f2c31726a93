// The plan for a terminal: its ladder.
#include "emit/plan/ladder_facts.hpp"
#include "emit/plan/parts.hpp"
#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/emit/plan_files.hpp"
#include "pipeweaver/emulator/memory.hpp"
#include "pipeweaver/planner/launched_way.hpp"
#include "pipeweaver/planner/targets.hpp"
#include "pipeweaver/workloads/built_model.hpp"
#include "pipeweaver/workloads/counts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

namespace pipeweaver::emit {

using namespace planner;

namespace {

// Behind a name, in lines of at most 100 columns.
std::string wrapped(std::string_view name, const std::string& text) {
    constexpr std::size_t columns = 90;
    std::string all, line;
    const auto end_line = [&] {
        all += fmt::format("{:<9} {}\n", all.empty() ? name : "", line);
        line.clear();
    };
    std::size_t at = 0;
    while (at < text.size()) {
        const std::size_t end = std::min(text.find(' ', at), text.size());
        const std::string word = text.substr(at, end - at);
        if (!line.empty() && line.size() + 1 + word.size() > columns) end_line();
        line += (line.empty() ? "" : " ") + word;
        at = end + 1;
    }
    end_line();
    return all;
}

// "llm layers of each rank: 5,23x3", where other modules share the first rank of a pipeline or its last; else nothing.
std::string layers_of_ranks(const Rung& rung) {
    if (!rung.launched || !rung.launched->has_pipeline || rung.launched->partition.chains.size() != 1) return {};
    const auto& stages = rung.launched->partition.chains.front().stages;
    const auto& model = rung.launched->setup->model;
    std::map<RankId, std::int64_t> layers;
    bool is_shared = false;
    for (const auto& stage : stages)
        for (const auto& part : stage.parts) {
            layers[stage.rank] += part.module == model.backbone() ? part.count : 0;
            is_shared = is_shared || (part.module != model.backbone() && part.count > 0);
        }
    if (!is_shared || layers.size() < 2) return {};
    std::string text;
    for (auto one = layers.begin(); one != layers.end();) {
        const auto next =
            std::find_if(one, layers.end(), [&](const auto& other) { return other.second != one->second; });
        const auto ranks = std::distance(one, next);
        text += fmt::format("{}{}{}", text.empty() ? "" : ",", one->second, ranks > 1 ? fmt::format("x{}", ranks) : "");
        one = next;
    }
    return fmt::format("{} layers of each rank: {}", model.modules[model.backbone()].name, text);
}

std::string row(const Ladder& ladder, std::string_view name, const Rung& rung, std::int64_t gpus) {
    if (!rung.why_nothing.empty()) return fmt::format("{:<9} nothing: {}\n", name, rung.why_nothing);
    constexpr std::size_t columns = 42;
    const std::string way = named_way(ladder, rung);
    const std::size_t end = way.size() <= columns ? way.size() : way.rfind(' ', columns);
    auto text = fmt::format("{:<9} {:<42.42} {:>9} {:>8} {:>9.0f}  {:>4.1f} of {:.1f} GiB\n", name, way.substr(0, end),
                            seconds(rung.step), over_now_text(ladder, rung),
                            tokens_per_second(rung) / static_cast<double>(gpus), gib(rung.peak), gib(rung.usable));
    if (end < way.size()) text += wrapped("", way.substr(end + 1));
    for (const std::string& more : {layers_of_ranks(rung), rung_padding_text(rung), rung.remark})
        if (!more.empty()) text += wrapped("", more);
    return text;
}

std::string input_of(const Plan& plan) {
    std::string text;
    for (const std::string& line : fed_lines(plan)) text += wrapped(text.empty() ? "input" : "", line);
    return text;
}

std::string training_of(const Job& job, const Ladder& ladder) {
    std::string text;
    for (const std::string& line : training_lines(job, ladder)) text += wrapped(text.empty() ? "training" : "", line);
    return text;
}

// The steps of the advised rung, numbered, and below them what is no step.
std::string to_do(const Job& job, const Ladder& ladder) {
    const Rung& best = ladder.best();
    if (ladder.is_now(best)) {
        std::string text = wrapped("do", "now: " + keep_text(ladder));
        for (const std::string& hint : rung_hints(job, ladder, best)) text += wrapped("", hint);
        return text;
    }
    const auto lines = what_to_do(job, ladder, best);
    const bool is_one = rung_steps(job, ladder, best).size() == 1;
    std::string text = wrapped("do", best.name + ":" + (is_one ? " " + lines.front() : ""));
    for (std::size_t i = is_one ? 1 : 0; i < lines.size(); ++i) text += wrapped("", lines[i]);
    return text;
}

// What the tables below the ladder are of, where that is not the advised rung.
std::string what_follows(const Plan& plan) {
    const Rung& best = plan.ladder.best();
    if (best.step == plan.step) return {};
    return fmt::format("what follows is of the plan in the folder, which takes {}, not of the advised rung, {}\n\n",
                       seconds(plan.step), best.name);
}

std::string ladder_text(const Job& job, const Batch& batch, const Plan& plan) {
    const Ladder& ladder = plan.ladder;
    const std::int64_t gpus = job.setup->cluster.gpus;
    std::string text = fmt::format("{}, for {}; {}, {}\n", setup_text(*job.setup), planner::target(job.target).option,
                                   batch_text(batch), batch.name);
    text += workloads::parameters_by_module(job.setup->model) + "\n";
    if (const std::string tokens = workloads::tokens_by_modality(batch.samples, job.setup->model); !tokens.empty())
        text += tokens + "\n";
    for (const std::string& line : job.setup->model.assumed) text += wrapped("assumed", line);
    text += fmt::format("\n{:<9} {:<42} {:>9} {:>8} {:>9}  {}\n", "rung", "way", "step", "over now", "tok/s/GPU",
                        "fullest rank");
    if (!ladder.has_now()) text += wrapped("now", ladder.why_none);
    for (const Rung& rung : ladder.rungs) text += row(ladder, rung.name, rung, gpus);
    for (const Rung& rung : ladder.beyond)
        text += row(ladder, rung.name == groups_rung ? groups_rung : "beyond", rung, gpus);
    const Rung& best = ladder.best();
    text += to_do(job, ladder);
    for (const std::string& line : not_worth_lines(ladder)) text += wrapped("", line);
    if (const auto host = host_text(ladder); !host.empty()) text += wrapped("host", host);
    for (const std::string& line : workloads::resized(batch.samples, job.setup->model)) text += wrapped("sizes", line);
    const auto built = workloads::how_built(setup_of(job, best).model);
    if (!built.empty() && best.name != groups_rung) text += wrapped("encoders", built);
    if (const auto room = room_text(room_of(job, batch, best)); !room.empty()) text += wrapped("memory", room);
    text += input_of(plan) + training_of(job, ladder);
    text += wrapped("trust", trust_text(job, plan));
    const auto missing = left_out_text(plan);
    const auto left = missing.empty() ? std::string("nothing") : missing;
    return text + wrapped("left out", left) + wrapped("", search_text(plan));
}

}  // namespace

std::string plan_text(const Job& job, const Batch& batch, const Plan& plan, bool verbose) {
    if (plan.ladder.rungs.empty()) {
        const std::string& why = plan.ladder.why_none;
        const auto missing = left_out_text(plan);
        return (why.empty() ? std::string() : fmt::format("no ladder: {}\n\n", why)) + plan_table(job, batch, plan) +
               input_of(plan) + (missing.empty() ? std::string() : wrapped("left out", missing));
    }
    const auto text = ladder_text(job, batch, plan);
    return verbose ? text + "\n" + what_follows(plan) + plan_table(job, batch, plan) : text;
}

}  // namespace pipeweaver::emit
