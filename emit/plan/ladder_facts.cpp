#include "emit/plan/ladder_facts.hpp"

#include "emit/emulation/input_parts.hpp"
#include "emit/plan/launch_files.hpp"
#include "emit/plan/parts.hpp"
#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/base/joined.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emulator/emulation.hpp"
#include "pipeweaver/emulator/reserve.hpp"
#include "pipeweaver/planner/job.hpp"
#include "pipeweaver/planner/launched_way.hpp"
#include "pipeweaver/planner/plan.hpp"
#include "pipeweaver/planner/targets.hpp"
#include "pipeweaver/planner/training_cost.hpp"
#include "pipeweaver/planner/tuning.hpp"
#include "pipeweaver/schedule/gap.hpp"
#include "pipeweaver/workloads/cluster.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string_view>

namespace pipeweaver::emit {

using namespace planner;

double tokens_per_second(const Rung& rung) {
    return static_cast<double>(rung.tokens) / (static_cast<double>(rung.step.count()) * 1e-9);
}

std::string left_out_text(const Plan& plan) {
    const auto all = planner::left_out(plan);
    if (all.empty()) return {};
    const auto text = joined(all, ", ", [](const LeftOut& one) { return one.what; });
    return all.front().what == "interrupted" ? text
                                             : fmt::format("for lack of time: {}; without --budget nothing is", text);
}

namespace {

// What ended a search, in the order of StopReason.
constexpr std::array<std::string_view, 5> ended_by{"a proof", "itself, as little was left to gain", "its rounds",
                                                   "the budget", "who asked for it"};

}  // namespace

std::string search_text(const Plan& plan) {
    std::set<std::string> reasons;
    std::uint64_t fewest = UINT64_MAX, most = 0;
    for (const ReplicaPlan& replica : plan.replicas) {
        reasons.emplace(ended_by[static_cast<std::size_t>(replica.found.stop_reason)]);
        fewest = std::min(fewest, replica.found.rounds);
        most = std::max(most, replica.found.rounds);
    }
    const auto gap = percent(schedule::relative_gap(plan.makespan, plan.lower_bound));
    const bool is_advised = plan.ladder.rungs.empty() || plan.ladder.best().step == plan.step;
    if (!plan.is_searched)
        return fmt::format("no order was searched; a bound of {} cut leaves {}", is_advised ? "this" : "the folder's",
                           gap);
    if (plan.is_opponents) return fmt::format("no order that was found is faster than a known one; gap {}", gap);
    return fmt::format("search: {}, ended by {}; gap {}",
                       fewest == most ? plural(most, "round") : fmt::format("{} to {} rounds", fewest, most),
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

std::vector<std::string> fed_lines(const Plan& plan) {
    if (!plan.input) return {};
    std::vector<std::string> lines = lines_of(*plan.input);
    if (plan.input->waits > Duration{})
        lines.insert(lines.begin() + 1, fmt::format("other steps of this plan, rates and what training takes are "
                                                    "without that wait of {}, in a step of {}",
                                                    human(plan.input->waits), human(plan.input->step)));
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
    auto tokens = fmt::format("padded to {} tokens, {} of them padding", padding.tokens, percent(padding.of_tokens));
    if (padding.of_items == 0) return tokens;
    return fmt::format("{}, and to {}, {} of their positions padding", tokens,
                       plural(static_cast<std::size_t>(padding.items), "item"), percent(padding.of_items));
}

namespace {

// What costs are known of, where that is not the advised rung.
std::string_view of_which(const Plan& plan) {
    const Rung& best = plan.ladder.best();
    if (plan.is_searched) return best.name == "schedule" ? "" : "of the searched plan: ";
    return best.step == plan.step ? "" : "of the plan in the folder: ";
}

}  // namespace

std::string trust_text(const Job& job, const Plan& plan) {
    std::string text = joined(bases, ", ", [&](costdb::Basis basis) {
        return fmt::format("{} {}", percent(plan.shares.of(basis)), costdb::name_of(basis));
    });
    text += fmt::format("; in-situ factors {}",
                        name_of(footing(plan.in_situ, job.setup->recipe, job.setup->cluster.device)));
    if (const std::string modelled = emulator::modelled_text(*job.setup); !modelled.empty()) text += "; " + modelled;
    if (const std::string anchored = emulator::anchored_text(*job.setup); !anchored.empty())
        text += "; anchored: " + anchored;
    text.insert(0, of_which(plan));
    const auto& worth = plan.ladder.best().worth;
    if (!worth) return text;
    const bool alike = are_comparable(plan.ladder.best(), rung_called(plan.ladder, worth->over));
    return text + fmt::format("; {} wins {} of {} draws of wrong costs against {}{}", plan.ladder.best().name,
                              worth->wins, worth->draws, worth->over, alike ? "" : ", of which one is padded");
}

namespace {

// Where the advised rung is the faster one only as long as no GPU waits for its host.
std::string turned_by_host(const Ladder& ladder) {
    const auto& far = ladder.best().host;
    const bool turns = ladder.has_now() && far && ladder.now().host && far->most() > ladder.now().host->most();
    return turns ? fmt::format("; kernel by kernel {} is the faster", ladder.now().name) : "";
}

}  // namespace

std::string host_text(const Ladder& ladder) {
    std::string text;
    std::vector<const Rung*> rungs;
    for (const Rung& rung : ladder.rungs) rungs.push_back(&rung);
    if (ladder.on_groups) rungs.push_back(&ladder.best());
    for (const Rung* const rung : rungs)
        if (rung->host)
            text += fmt::format("{}{} takes {} to {}", text.empty() ? "" : ", ", rung->name, seconds(rung->step),
                                seconds(rung->host->most()));
    if (text.empty()) return text;
    return text +
           ", from layers in CUDA graphs or few kernels, as steps above are, to kernel by kernel; --launched takes "
           "one" +
           turned_by_host(ladder);
}

namespace {

std::string not_worth_line(const Ladder& ladder, const Rung& rung) {
    const Worth& worth = *rung.worth;
    const auto gains =
        are_comparable(rung, rung_called(ladder, worth.over))
            ? fmt::format("{} would bring {:.2f} % more than {}", rung.name, 100 * (worth.gain - 1), worth.over)
            : fmt::format("{} would be faster than {}, of which one is padded", rung.name, worth.over);
    if (worth.draws == 0) return fmt::format("{}, and a change is worth {}", gains, percent(margins.worth - 1));
    if (worth.is_enough)
        return fmt::format("{}, and wins {} of {} draws of wrong costs, but nothing launches it", gains, worth.wins,
                           worth.draws);
    const auto needed = static_cast<int>(std::ceil(margins.worth_draws * worth.draws));
    return fmt::format("{}, but is faster in {} of {} draws of wrong costs alone, and a change is worth {} of them",
                       gains, worth.wins, worth.draws, needed);
}

}  // namespace

std::vector<std::string> not_worth_lines(const Ladder& ladder) {
    std::vector<std::string> lines;
    for (std::size_t i = ladder.headline + 1; i < ladder.rungs.size(); ++i)
        if (ladder.rungs[i].worth) lines.push_back(not_worth_line(ladder, ladder.rungs[i]));
    for (const Rung& rung : ladder.beyond)
        if (rung.worth && &rung != &ladder.best()) lines.push_back(not_worth_line(ladder, rung));
    return lines;
}

std::string keep_text(const Ladder& ladder) {
    const bool any = std::any_of(ladder.rungs.begin(), ladder.rungs.end(), [](const Rung& one) { return one.worth; }) ||
                     (!ladder.beyond.empty() && ladder.beyond.back().worth);
    const auto why = any ? "no other rung is worth the change" : "no other rung is shorter";
    return fmt::format("{}, {}", ladder.now_is_said ? "keep what you run" : "stay with the best known today", why);
}

const emulator::Setup& setup_of(const Job& job, const Rung& rung) {
    return rung.launched ? *rung.launched->setup : *job.setup;
}

std::optional<Room> room_of(const Job& job, const Batch& batch, const Rung& rung) {
    const emulator::Setup& setup = setup_of(job, rung);
    const planner::Target& runs = planner::target(job.target);
    if (rung.padding || (runs.fixed_shapes && setup.layout.pp > 1)) return std::nullopt;
    const bool is_packed_apart = rung.launched && rung.launched->batch;
    Room room{.shapes = shapes_of(setup.model, (is_packed_apart ? *rung.launched->batch : batch).microbatches)};
    if (room.shapes < 2) return std::nullopt;
    room.memory = workloads::device(setup.cluster.device).memory;
    room.left = room.memory - rung.peak;
    room.is_at_risk = emulator::leaves_little_room(rung.peak, room.memory);
    if (rung.launched) room.not_set_by = runs.launch.known_schedules_by;
    if (room.not_set_by.empty() && rung.name != groups_rung) room.set_as = runs.launch.segments_expand_as;
    room.by_auto = runs.launch.segments_expand_as.empty() && !(runs.fixed_shapes && job.setup->layout.pp > 1);
    return room;
}

std::string room_text(const std::optional<Room>& room) {
    if (!room) return {};
    const auto left = fmt::format("microbatches have {} shapes, and {:.1f} of {:.1f} GiB are left on the fullest GPU",
                                  room->shapes, gib(room->left), gib(room->memory));
    const auto part = percent(emulator::varying_shapes_part);
    if (!room->is_at_risk)
        return fmt::format("{}, more than the {} that an allocator may take where shapes vary", left, part);
    return fmt::format(
        "at risk: {}; where shapes vary, an allocator may take {} of it above what is allocated, until "
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True is set{}{}",
        left, part, room->not_set_by.empty() ? "" : fmt::format(", which {} leave to you", room->not_set_by),
        !room->set_as.empty() ? fmt::format(", as {}", room->set_as)
        : room->by_auto       ? "; --headroom auto keeps room for it"
                              : fmt::format("; --headroom {:.0f}% keeps room for it",
                                            100 * emulator::headroom_of_varying_shapes().fraction()));
}

namespace {

// The files of a rung, by what is done with them.
struct SortedFiles {
    std::string script{}, assignment{};
    std::vector<std::string> others{};
};

SortedFiles sorted(const std::vector<std::string>& files) {
    SortedFiles all;
    for (const std::string& file : files) {
        if (file.ends_with("assignment.json"))
            all.assignment = file;
        else if (file.ends_with(".sh"))
            all.script = file;
        else
            all.others.push_back(file);
    }
    return all;
}

std::string with_files(const std::string& what, const std::vector<std::string>& files) {
    return files.empty() ? what : fmt::format("{} ({})", what, fmt::join(files, ", "));
}

// How a rung is launched; what `data` needs is a sampler, and no other launch.
std::string launch_step(const Rung& rung, const SortedFiles& files, bool is_data) {
    if (files.script.empty()) return is_data ? "" : with_files(rung.needs, files.others);
    const auto source = with_files(fmt::format("source {} in your launch script", files.script), files.others);
    return is_data ? source : fmt::format("{}: {}", source, rung.needs);
}

// Whether a rung is worth its change over an easier one: as drawn, else by its gain alone.
bool is_worth(const Rung& rung, const Rung& easier) {
    if (rung.worth && rung.worth->over == easier.name) return rung.worth->is_enough;
    return ratio(easier.step, rung.step) >= margins.worth;
}

// The last rung of the same runtime that is worth its change and needs no other checkpoint; null: there is none.
const Rung* in_own_layout(const Ladder& ladder, const Rung& rung) {
    const Rung* now = ladder.has_now() ? &ladder.now() : nullptr;
    const Rung* last = now;
    for (const Rung& one : ladder.rungs) {
        if (&one == now || one.target != rung.target || !one.why_nothing.empty() || one.reshards) continue;
        if (!last || is_worth(one, *last)) last = &one;
    }
    return last == now ? nullptr : last;
}

void add_checkpoint(std::vector<std::string>& steps, const Rung& rung, const emulator::Layout& layout) {
    if (rung.reshards) steps.push_back(fmt::format("reshard the checkpoint to {}", name_of(layout)));
}

}  // namespace

std::vector<std::string> rung_steps(const Job& job, const Ladder& ladder, const Rung& rung) {
    const auto written = files_of_rung(job, ladder, rung);
    std::vector<std::string> steps;
    if (!rung.launched || ladder.is_now(rung)) {
        steps.push_back(with_files(rung.needs, written));
        add_checkpoint(steps, rung, job.setup->layout);
        return steps;
    }
    const SortedFiles files = sorted(written);
    const bool is_data = rung.name == "data";
    if (auto launch = launch_step(rung, files, is_data); !launch.empty()) steps.push_back(std::move(launch));
    if (!files.assignment.empty())
        steps.push_back(fmt::format("feed {} to {}", files.assignment,
                                    is_data ? rung.needs : "a sampler: which samples each replica takes"));
    else if (is_data)
        steps.push_back(rung.needs);
    add_checkpoint(steps, rung, rung.launched->setup->layout);
    return steps;
}

std::vector<std::string> rung_hints(const Job& job, const Ladder& ladder, const Rung& rung) {
    std::vector<std::string> hints = refused_of_rung(job, ladder, rung);
    if (!rung.reshards) return hints;
    if (const Rung* stays = in_own_layout(ladder, rung))
        hints.push_back(fmt::format("to stay in your layout take {}", stays->name));
    if (!rung.search.empty()) hints.push_back("a search in that layout: " + rung.search);
    return hints;
}

std::vector<std::string> what_to_do(const Job& job, const Ladder& ladder, const Rung& rung) {
    std::vector<std::string> all = rung_steps(job, ladder, rung);
    if (all.size() > 1)
        for (std::size_t i = 0; i < all.size(); ++i) all[i] = fmt::format("{}. {}", i + 1, all[i]);
    for (std::string& hint : rung_hints(job, ladder, rung)) all.push_back(std::move(hint));
    return all;
}

}  // namespace pipeweaver::emit
