#include "emit/plan/ladder_text.hpp"

#include "emit/plan/parts.hpp"
#include "emit/plan/room.hpp"
#include "emit/plan/rung_steps.hpp"
#include "emit/report/report_parts.hpp"
#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emit/plan_files.hpp"
#include "pipeweaver/emulator/emulation.hpp"
#include "pipeweaver/emulator/memory.hpp"
#include "pipeweaver/planner/launched_way.hpp"
#include "pipeweaver/planner/plan.hpp"
#include "pipeweaver/planner/targets.hpp"
#include "pipeweaver/planner/training_cost.hpp"
#include "pipeweaver/planner/tuning.hpp"
#include "pipeweaver/schedule/gap.hpp"
#include "pipeweaver/workloads/built_model.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

namespace pipeweaver::emit {

using namespace planner;

double tokens_per_second(const Rung& rung) {
    return static_cast<double>(rung.tokens) / (static_cast<double>(rung.step.count()) * 1e-9);
}

std::string left_out_text(const Plan& plan) {
    std::vector<std::string> all;
    for (const LeftOut& one : planner::left_out(plan)) all.push_back(one.what);
    if (all.empty()) return {};
    const auto text = fmt::format("{}", fmt::join(all, ", "));
    return all.front() == "interrupted" ? text : fmt::format("for lack of time: {}; without --budget nothing is", text);
}

namespace {

std::string_view ended_by(schedule::StopReason reason) {
    switch (reason) {
        case schedule::StopReason::optimal:
            return "a proof";
        case schedule::StopReason::rounds:
            return "its rounds";
        case schedule::StopReason::budget:
            return "the budget";
        case schedule::StopReason::stopped:
            return "who asked for it";
        case schedule::StopReason::no_gain:
            return "itself, as little was left to gain";
    }
    return {};
}

}  // namespace

std::string search_text(const Plan& plan) {
    std::set<std::string> reasons;
    std::uint64_t fewest = UINT64_MAX, most = 0;
    for (const ReplicaPlan& replica : plan.replicas) {
        reasons.emplace(ended_by(replica.found.stop_reason));
        fewest = std::min(fewest, replica.found.rounds);
        most = std::max(most, replica.found.rounds);
    }
    const auto gap = percent(schedule::relative_gap(plan.makespan, plan.lower_bound));
    if (!plan.is_searched) return fmt::format("no order was searched; a bound of this cut leaves {}", gap);
    if (plan.is_opponents) return fmt::format("no order that was found is faster than a known one; gap {}", gap);
    return fmt::format("search: {} rounds, ended by {}; gap {}",
                       fewest == most ? std::to_string(most) : fmt::format("{} to {}", fewest, most),
                       fmt::join(reasons, ", "), gap);
}

std::vector<std::string> training_lines(const Job& job, const Ladder& ladder) {
    std::vector<std::string> lines;
    if (job.training_tokens == 0) return lines;
    const auto add = [&](const Rung& rung) {
        const auto cost = training_cost(job.training_tokens, rung.step, rung.tokens, job.setup->cluster);
        lines.push_back(fmt::format("{} tokens, {}: {}", tokens_text(cost.tokens), rung.name,
                                    training_text(cost, job.setup->cluster)));
    };
    if (ladder.has_now()) add(ladder.now());
    if (!ladder.is_now(ladder.best())) add(ladder.best());
    return lines;
}

namespace {

const Rung& rung_called(const Ladder& ladder, std::string_view name) {
    return *std::find_if(ladder.rungs.begin(), ladder.rungs.end(), [&](const Rung& one) { return one.name == name; });
}

}  // namespace

std::string over_now_text(const Ladder& ladder, const Rung& rung) {
    return ladder.is_over_now(rung) ? times(ratio(ladder.now().step, rung.step)) : "-";
}

std::string named_way(const Ladder& ladder, const Rung& rung) {
    const bool is_best_known = ladder.is_now(rung) && !ladder.now_is_said;
    return is_best_known ? "best known today: " + rung.way : rung.way;
}

std::string rung_padding_text(const Rung& rung) {
    if (!rung.padding) return {};
    const Padding& padding = *rung.padding;
    const auto tokens =
        fmt::format("padded to {} tokens, {} of them padding", padding.tokens, percent(padding.of_tokens));
    if (padding.of_items == 0) return tokens;
    return fmt::format("{}, and to {}, {} of their positions padding", tokens,
                       plural(static_cast<std::size_t>(padding.items), "item"), percent(padding.of_items));
}

std::string trust_text(const Job& job, const Plan& plan) {
    std::string text;
    for (const costdb::Basis basis :
         {costdb::Basis::exact, costdb::Basis::interpolated, costdb::Basis::extrapolated, costdb::Basis::modelled})
        text +=
            fmt::format("{}{} {}", text.empty() ? "" : ", ", percent(plan.shares.of(basis)), costdb::name_of(basis));
    text += fmt::format("; in-situ factors {}",
                        name_of(footing(plan.in_situ, job.setup->recipe, job.setup->cluster.device)));
    if (const std::string modelled = emulator::modelled_text(*job.setup); !modelled.empty()) text += "; " + modelled;
    if (const std::string anchored = emulator::anchored_text(*job.setup); !anchored.empty())
        text += "; anchored: " + anchored;
    const auto& worth = plan.ladder.best().worth;
    if (!worth) return text;
    const bool alike = are_comparable(plan.ladder.best(), rung_called(plan.ladder, worth->over));
    return text + fmt::format("; wins {} of {} draws of wrong costs against {}{}", worth->wins, worth->draws,
                              worth->over, alike ? "" : ", of which one is padded");
}

std::vector<std::string> not_worth_lines(const Ladder& ladder) {
    std::vector<std::string> lines;
    for (std::size_t i = ladder.headline + 1; i < ladder.rungs.size(); ++i) {
        const Rung& rung = ladder.rungs[i];
        if (!rung.worth) continue;
        const auto gains =
            are_comparable(rung, rung_called(ladder, rung.worth->over))
                ? fmt::format("{} would bring {} more than {}", rung.name, percent(rung.worth->gain - 1),
                              rung.worth->over)
                : fmt::format("{} would be faster than {}, of which one is padded", rung.name, rung.worth->over);
        const auto needed = static_cast<int>(std::ceil(margins.worth_draws * rung.worth->draws));
        lines.push_back(rung.worth->draws == 0
                            ? fmt::format("{}, and a change is worth {}", gains, percent(margins.worth - 1))
                            : fmt::format("{}, but is faster in {} of {} draws of wrong costs alone, and a change is "
                                          "worth {} of them",
                                          gains, rung.worth->wins, rung.worth->draws, needed));
    }
    return lines;
}

std::string keep_text(const Ladder& ladder) {
    const bool any = std::any_of(ladder.rungs.begin(), ladder.rungs.end(), [](const Rung& one) { return one.worth; });
    const auto why = any ? "no other rung is worth the change" : "no other rung is shorter";
    return fmt::format("{}, {}", ladder.now_is_said ? "keep what you run" : "stay with the best known today", why);
}

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
    if (end < way.size()) text += fmt::format("{:<9} {}\n", "", way.substr(end + 1));
    for (const std::string& more : {layers_of_ranks(rung), rung_padding_text(rung), rung.remark})
        if (!more.empty()) text += wrapped("", more);
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
    if (ladder.is_now(best)) return wrapped("do", "now: " + keep_text(ladder));
    const auto steps = rung_steps(job, ladder, best);
    std::string text = steps.size() == 1 ? wrapped("do", fmt::format("{}: {}", best.name, steps.front()))
                                         : wrapped("do", best.name + ":");
    for (std::size_t i = 0; i < steps.size() && steps.size() > 1; ++i)
        text += wrapped("", fmt::format("{}. {}", i + 1, steps[i]));
    for (const std::string& hint : rung_hints(job, ladder, best)) text += wrapped("", hint);
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
    std::string text = fmt::format("{} on {} x {}, {}, for {}; {}{} in {}, {}\n", job.setup->model.name, gpus,
                                   job.setup->cluster.device, name_of(job.setup->layout),
                                   planner::target(job.target).option, plural(batch.samples.size(), "sample"),
                                   not_taken(batch), plural(batch.microbatches.size(), "microbatch"), batch.name);
    text += parameters_text(job.setup->model) + "\n";
    for (const std::string& line : job.setup->model.assumed) text += wrapped("assumed", line);
    text += fmt::format("\n{:<9} {:<42} {:>9} {:>8} {:>9}  {}\n", "rung", "way", "step", "over now", "tok/s/GPU",
                        "fullest rank");
    if (!ladder.has_now()) text += wrapped("now", ladder.why_none);
    for (const Rung& rung : ladder.rungs) text += row(ladder, rung.name, rung, gpus);
    for (const Rung& rung : ladder.beyond) text += row(ladder, "beyond", rung, gpus);
    const Rung& best = ladder.best();
    text += to_do(job, ladder);
    for (const std::string& line : not_worth_lines(ladder)) text += wrapped("", line);
    for (const std::string& line : workloads::resized(batch.samples, job.setup->model)) text += wrapped("sizes", line);
    if (const auto built = workloads::how_built(job.setup->model); !built.empty()) text += wrapped("encoders", built);
    if (const auto room = room_text(room_of(job, batch, best)); !room.empty()) text += wrapped("memory", room);
    text += training_of(job, ladder);
    const bool is_plans = best.name == "schedule";
    text += wrapped("trust", (is_plans || !plan.is_searched ? "" : "of the searched plan: ") + trust_text(job, plan));
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
               (missing.empty() ? std::string() : wrapped("left out", missing));
    }
    const auto text = ladder_text(job, batch, plan);
    return verbose ? text + "\n" + what_follows(plan) + plan_table(job, batch, plan) : text;
}

}  // namespace pipeweaver::emit
