// An emulated step as text.
#include "emit/emulation/input_parts.hpp"
#include "emit/emulation/long_context_parts.hpp"
#include "emit/emulation/precision_parts.hpp"
#include "emit/emulation/what_if_parts.hpp"
#include "emit/plan/parts.hpp"
#include "emit/report/report_parts.hpp"
#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/base/text_table.hpp"
#include "pipeweaver/emit/emulation_files.hpp"
#include "pipeweaver/emulator/reserve.hpp"
#include "pipeweaver/planner/training_cost.hpp"
#include "pipeweaver/workloads/counts.hpp"
#include "pipeweaver/workloads/module_roles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace pipeweaver::emit {

using namespace emulator;
using planner::Emulation;
using planner::EmulationRequest;
using report_parts::TimePart;

namespace {

std::string exact_seconds(Duration time) { return seconds(time, 6); }

std::string share(Duration part, Duration whole) { return percent(ratio(part, whole)); }

std::string recipe_text(const EmulationRequest& request, const Emulation& emulation) {
    const Recipe& recipe = request.job.setup->recipe;
    std::string text;
    if (emulation.recompute) text = fmt::format("recompute {}, ", name_of(*emulation.recompute));
    text += fmt::format("recipe {}, ZeRO {}", recipe.name, recipe.zero);
    if (const auto formats = formats_of(recipe); !formats.empty()) text += ", products in " + formats;
    if (recipe.bucket.count > 0) text += fmt::format(", gradients in buckets of {}", human(recipe.bucket));
    if (recipe.launch.count() > 0) text += fmt::format(", {} of the host a kernel", human(recipe.launch));
    if (recipe.action.count() > 0) text += fmt::format(", {} of the host a task", human(recipe.action));
    if (recipe.overlap_slowdown > 1) text += fmt::format(", overlapped compute x{}", recipe.overlap_slowdown);
    return text;
}

std::string emulation_heading(const EmulationRequest& request, const Emulation& emulation) {
    std::string layouts;
    for (const std::string& line : layout_lines(emulation.partition, request.job.setup->model)) layouts += line + "\n";
    return fmt::format(
        "{}; {}: {}\n{}\npartition {}, {}, schedule {}, {}\n{}\n", setup_text(*request.job.setup), request.batch.name,
        batch_text(request.batch), workloads::sizes_text(request.batch.samples, request.job.setup->model),
        emulation.partition.name, plural(emulation.partition.chunks_per_rank, "chunk") + " a rank",
        request.schedule.empty() ? emulation.policy : request.schedule, recipe_text(request, emulation), layouts);
}

std::string training_text(const planner::Job& job, const Emulation& emulation) {
    if (job.training_tokens == 0 || emulation.tokens == 0) return {};
    const workloads::Cluster& cluster = job.setup->cluster;
    const auto cost = planner::training_cost(job.training_tokens, emulation.step, emulation.tokens, cluster);
    return fmt::format("{} tokens in {} steps: {}\n", planner::tokens_text(cost.tokens), cost.steps,
                       planner::training_text(cost, cluster));
}

std::string layer_of_host(Duration layer, Duration expert_layer) {
    const std::string routing =
        expert_layer > Duration{} ? fmt::format(", {} for routing", human(expert_layer)) : std::string();
    return fmt::format("{} of it for a layer's forward{}", human(layer), routing);
}

// Of a recipe that knows its host: by which rank, and how long, it is waited for.
std::string known_host_line(const Setup& setup, const Emulation& emulation) {
    const Recipe& recipe = setup.recipe;
    constexpr double least = 0.01;
    const ReplicaEmulation& replica = emulation.replicas[emulation.slowest];
    const auto waits = [](const RankTime& time) { return time.exposed[static_cast<std::size_t>(Stream::host)]; };
    const auto most = std::max_element(replica.time.begin(), replica.time.end(),
                                       [&](const auto& a, const auto& b) { return waits(a) < waits(b); });
    if (!recipe.has_host() || ratio(waits(*most), replica.step) < least) return {};
    const Duration routing = workloads::routes_to_experts(setup.model) ? recipe.expert_layer : Duration{};
    return fmt::format("host: rank {} waits {} of the step for it{}\n", most - replica.time.begin(),
                       share(waits(*most), replica.step),
                       recipe.layer > Duration{} ? ", " + layer_of_host(recipe.layer, routing) : std::string());
}

std::string host_line(const Setup& setup, const Emulation& emulation) {
    if (!emulation.host) return known_host_line(setup, emulation);
    const planner::HostBound& host = *emulation.host;
    const std::size_t rank = host.rank();
    const std::string runs =
        host.far > 1 ? fmt::format(", and {} times that is what nine of ten such runs took at most", host.far) : "";
    return fmt::format(
        "host: the near end has layers in CUDA graphs{} and never waits for it; launched kernel by kernel ({}, as "
        "{} has it) the step takes {}, {:.2f} times as long, of which rank {} waits {} for its host{}; --launched "
        "graphs or eager takes one\n",
        setup.recipe.launched == Launched::compiled ? ", or compiled into few kernels," : "",
        layer_of_host(host.layer, host.expert_layer), host.as, human(host.step), ratio(host.step, emulation.step), rank,
        share(host.waits[rank], host.step), runs);
}

// Both ends, where there are two.
template <class TextOf>
std::string both_ends(const Emulation& emulation, const std::string& near, TextOf far) {
    return emulation.host ? fmt::format("{} to {}", near, far(emulation.host->most())) : near;
}

std::string input_lines(const Emulation& emulation) {
    if (!emulation.input) return {};
    std::string text;
    for (const std::string& line : lines_of(*emulation.input)) text += fmt::format("input: {}\n", line);
    return text;
}

std::string shapes_line(const Emulation& emulation) {
    if (!emulation.shapes) return {};
    const planner::FewShapes& shapes = *emulation.shapes;
    const auto added = static_cast<double>(shapes.positions - shapes.positions_before);
    return fmt::format("shapes: {} of microbatches in place of {}; padding adds {} to tokens and patches\n",
                       shapes.after, shapes.before, percent(added / static_cast<double>(shapes.positions_before)));
}

// "shapes: over 1,000 steps, at 40.000 s a shape, the cheapest are 3 with 1,240 s; the most, 12 with 1,532 s".
std::string price_line(const EmulationRequest& request, const Emulation& emulation) {
    if (!emulation.price) return {};
    const auto text = [](const planner::PricedShapes& one) {
        return fmt::format("{} with {} s", one.shapes, planner::with_commas(one.seconds));
    };
    const planner::ShapesPrice& price = *emulation.price;
    const planner::PricedShapes &best = price.tried[price.cheapest], &own = price.tried.back();
    return fmt::format("shapes: over {} steps, at {} a shape, the cheapest are {}{}\n",
                       planner::with_commas(static_cast<double>(request.compiling->steps)),
                       human(request.compiling->each), text(best),
                       own.shapes == best.shapes ? "" : fmt::format("; the most, {}", text(own)));
}

// What the step rests on where that is no table and no run, is corrected, or leaves its host out.
std::string footing_lines(const EmulationRequest& request, const Emulation& emulation) {
    const planner::Job& job = request.job;
    const std::string modelled = modelled_text(*job.setup), anchored = anchored_text(*job.setup);
    return (modelled.empty() ? "" : fmt::format("modelled: {}\n", modelled)) +
           (anchored.empty() ? "" : fmt::format("anchored: {}\n", anchored)) + host_line(*job.setup, emulation) +
           shapes_line(emulation) + price_line(request, emulation) + input_lines(emulation);
}

// A rate at both ends of the step, where there are two.
std::string rate_text(const Emulation& emulation, double near, const char* form) {
    const auto text = [&](double number) { return fmt::format(fmt::runtime(form), number); };
    return both_ends(emulation, text(near), [&](Duration far) { return text(near * ratio(emulation.step, far)); });
}

std::string rates_text(const EmulationRequest& request, const Emulation& emulation) {
    const planner::Job& job = request.job;
    const auto gpus = static_cast<double>(job.setup->layout.gpus());
    const double seconds = static_cast<double>(emulation.step.count()) * 1e-9;
    return fmt::format("{} tokens/s, {} a GPU: {} tokens of '{}' a step; {} samples/s; {} TFLOP/s a GPU; {} kernels\n",
                       rate_text(emulation, emulation.tokens_per_second, "{:.0f}"),
                       rate_text(emulation, emulation.tokens_per_second / gpus, "{:.0f}"), emulation.tokens,
                       job.setup->model.modules[job.setup->model.backbone()].name,
                       rate_text(emulation, static_cast<double>(request.batch.samples.size()) / seconds, "{:.2f}"),
                       rate_text(emulation, emulation.model_flops / seconds / gpus * 1e-12, "{:.1f}"),
                       emulation.kernels);
}

// A step whose host is not known has both ends; what it is made of, and all below, is of the near one.
std::string figures(const EmulationRequest& request, const Emulation& emulation) {
    const planner::Job& job = request.job;
    const double peak = workloads::device(job.setup->cluster.device).bf16_flops;
    const std::string near = exact_seconds(emulation.step);
    const std::string ends = both_ends(emulation, near, [&](Duration far) {
        return fmt::format("{}, by how layers are launched: {}", exact_seconds(far), near);
    });
    const std::string mfu = both_ends(emulation, percent(emulation.mfu), [&](Duration far) {
        return percent(emulation.mfu * ratio(emulation.step, far));
    });
    return fmt::format(
        "step {} = makespan {} + optimizer {}\n"
        "MFU {}: {:.4g} model FLOPs (forward and backward, recomputation not counted) over {} GPUs x {:.4g} TFLOP/s "
        "(dense bf16) x step\n"
        "{}{}{}",
        ends, exact_seconds(emulation.makespan), exact_seconds(emulation.step - emulation.makespan), mfu,
        emulation.model_flops, job.setup->layout.gpus(), peak * 1e-12, rates_text(request, emulation),
        training_text(job, emulation), line(waits_text(emulation.replicas[emulation.slowest].waits)));
}

std::string factors_text(const WhatIf& what_if) {
    std::string text;
    const auto add = [&](const std::string& what, double factor) {
        text += fmt::format("{}{} x{}", text.empty() ? "" : ", ", what, factor);
    };
    for (const WhatIf::Device& device : what_if.devices)
        add(fmt::format("rank {}{}", device.rank, device.replica ? fmt::format(" of replica {}", *device.replica) : ""),
            device.factor);
    for (const auto& [name, factor] : what_if.links) add("link " + name, factor);
    for (const auto& [name, factor] : what_if.operators) add("operator " + name, factor);
    for (const auto& [name, factor] : what_if.modules) add("module " + name, factor);
    if (!what_if.precision.empty()) text += fmt::format("{}{}", text.empty() ? "" : ", ", what_if.precision);
    return text;
}

std::string change(double before, double after) {
    return before == 0 ? "" : fmt::format("{:+.2f} %", 100 * (after / before - 1));
}

std::string what_if_text(const EmulationRequest& request, const Emulation& emulation, const Emulation* base) {
    if (base == nullptr) return {};
    TextTable table({{"", true, 12}, {"as it is", false, 14}, {"what if", false, 14}, {"change", false, 10}}, 1);
    const auto time = [&](const std::string& name, Duration before, Duration after) {
        table.add({name, exact_seconds(before), exact_seconds(after),
                   change(static_cast<double>(before.count()), static_cast<double>(after.count()))});
    };
    time("step", base->step, emulation.step);
    time("makespan", base->makespan, emulation.makespan);
    table.add({"MFU", percent(base->mfu), percent(emulation.mfu), change(base->mfu, emulation.mfu)});
    table.add({"tokens/s", fmt::format("{:.0f}", base->tokens_per_second),
               fmt::format("{:.0f}", emulation.tokens_per_second),
               change(base->tokens_per_second, emulation.tokens_per_second)});
    return fmt::format("\nwhat if times change: {}\n{}what follows is of the changed step\n",
                       factors_text(request.job.setup->what_if), table.text());
}

const RankMemory& fullest_memory(const Emulation& emulation, std::size_t rank) {
    return emulation.replicas[fullest_replica(emulation, rank)].memory[rank];
}

struct Shown {
    std::vector<std::size_t> ranks;
    std::string remark;  // empty: all of them
};

constexpr std::size_t most_rows = 16, ends = 4;

Shown shown_ranks(const Emulation& emulation) {
    const auto& time = emulation.replicas[emulation.slowest].time;
    std::set<std::size_t> chosen;
    const auto add_range = [&](std::size_t first, std::size_t last) {
        for (std::size_t r = first; r < last; ++r) chosen.insert(r);
    };
    if (time.size() <= most_rows) {
        add_range(0, time.size());
        return {{chosen.begin(), chosen.end()}, ""};
    }
    add_range(0, ends);
    add_range(time.size() - ends, time.size());
    std::size_t busiest = 0, idlest = 0, fullest = 0;
    for (std::size_t r = 1; r < time.size(); ++r) {
        if (time[r].bubble < time[busiest].bubble) busiest = r;
        if (time[r].bubble > time[idlest].bubble) idlest = r;
        if (fullest_memory(emulation, r).peak > fullest_memory(emulation, fullest).peak) fullest = r;
    }
    chosen.insert({busiest, idlest, fullest});
    return {{chosen.begin(), chosen.end()},
            fmt::format("of {} ranks the first and last {}, that with least bubble ({}), with most ({}), and the "
                        "fullest ({})\n",
                        time.size(), ends, busiest, idlest, fullest)};
}

std::vector<TimePart> time_columns(const std::vector<RankTime>& time) {
    std::vector<TimePart> columns;
    const auto add = [&](std::string name, const auto& value) {
        TimePart& column = columns.emplace_back(TimePart{std::move(name), 0, {}});
        for (const RankTime& rank : time) column.ranks.push_back(value(rank));
    };
    add("busy", [](const RankTime& rank) { return rank.busy(); });
    add("compute", [](const RankTime& rank) { return rank.compute; });
    for (std::size_t s = 0; s < streams; ++s)
        add(fmt::format("+{}", name_of(static_cast<Stream>(s))), [s](const RankTime& rank) { return rank.exposed[s]; });
    add("+gradients", [](const RankTime& rank) { return rank.gradients; });
    add("+optimizer", [](const RankTime& rank) { return rank.optimizer; });
    add("bubble", [](const RankTime& rank) { return rank.bubble; });
    return report_parts::parts_that_occur(std::move(columns));
}

constexpr std::size_t number_width = 11;
const TextTable::Column rank_column{"rank", true, 6};

std::string time_table(const Emulation& emulation, const Shown& shown) {
    const ReplicaEmulation& replica = emulation.replicas[emulation.slowest];
    std::string text = "\ntime of each rank in percent of the step";
    if (emulation.replicas.size() > 1)
        text += fmt::format(", in replica {}, the slowest of {}", emulation.slowest, emulation.replicas.size());
    text += "; + what compute waits for on its own GPU, and what follows the last task\n" + shown.remark;
    const auto columns = time_columns(replica.time);
    std::vector<TextTable::Column> headings{rank_column};
    for (const TimePart& column : columns) headings.push_back({column.name, false, number_width});
    TextTable table(std::move(headings), 1);
    for (const std::size_t r : shown.ranks) {
        std::vector<std::string> row{std::to_string(r)};
        for (const TimePart& column : columns) row.push_back(share(column.ranks[r], replica.step));
        table.add(std::move(row));
    }
    return text + table.text();
}

std::string memory_table(const EmulationRequest& request, const Emulation& emulation, const Shown& shown) {
    const bool several = emulation.replicas.size() > 1;
    std::string text =
        fmt::format("\nmemory of a GPU at its peak; {} is usable{}\n{}", human(capacity_of(*request.job.setup)),
                    kept_free(request.job.setup->headroom), shown.remark);
    std::vector<TextTable::Column> columns{rank_column};
    for (const char* part : {"peak", "weights", "gradients", "optimizer", "buffers", "activations", "transient"})
        columns.push_back({part, false, number_width});
    columns.push_back({"recompute", false, number_width});
    columns.push_back({"fullest replica", false, 16});
    TextTable table(std::move(columns), 1);
    for (const std::size_t r : shown.ranks) {
        const std::size_t fullest = fullest_replica(emulation, r);
        const RankMemory& memory = fullest_memory(emulation, r);
        // What the rank recomputes, where each has its own; as the rest of its row, of the fullest replica.
        table.add({std::to_string(r), human(memory.peak), human(memory.fixed.weights), human(memory.fixed.gradients),
                   human(memory.fixed.optimizer), human(memory.fixed.workspace + memory.fixed.buffers),
                   human(memory.activations), human(memory.transient),
                   emulation.by_rank.empty() ? "" : name_of(emulation.by_rank[fullest][r]),
                   several ? std::to_string(fullest) : ""});
    }
    return text + table.text() + not_counted() + "\n";
}

std::string critical_path(const Emulation& emulation) {
    const ReplicaEmulation& replica = emulation.replicas[emulation.slowest];
    std::string text = "\nthe path that decides the step\n";
    constexpr std::size_t most = 12;
    Duration rest{};
    for (std::size_t i = 0; i < replica.critical.size(); ++i) {
        const CriticalPart& part = replica.critical[i];
        if (i >= most)
            rest += part.time;
        else
            text += fmt::format("{:>9} {}{}\n", share(part.time, replica.step), part.what,
                                part.module.empty() ? "" : " of " + part.module);
    }
    if (rest.count() > 0) text += fmt::format("{:>9} all else\n", share(rest, replica.step));
    return text;
}

}  // namespace

std::string emulation_table(const EmulationRequest& request, const Emulation& emulation, const Emulation* base) {
    const Shown shown = shown_ranks(emulation);
    std::string text =
        emulation_heading(request, emulation) + figures(request, emulation) + footing_lines(request, emulation) +
        what_if_text(request, emulation, base) + (emulation.lengths ? long_context_text(*emulation.lengths) : "") +
        (emulation.precision ? precision_text(*emulation.precision) : "") + time_table(emulation, shown) +
        memory_table(request, emulation, shown) + critical_path(emulation);
    if (emulation.jitter) text += jitter_text(*emulation.jitter);
    if (emulation.gradients) text += gradients_text(*emulation.gradients);
    text += "\n" + shares_text(emulation.shares);
    for (const std::string& sentence : emulator::approximations(*request.job.setup, emulation.host.has_value()))
        text += fmt::format("assumed: {}\n", sentence);
    for (const std::string& sentence : assumptions(request.job, request.batch))
        text += fmt::format("assumed: {}\n", sentence);
    return text;
}

}  // namespace pipeweaver::emit
