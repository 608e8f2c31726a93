#include "emulator/emulate/gradient_buckets.hpp"

#include "emulator/emulate/gradient_ways.hpp"
#include "emulator/pricing/data_traffic.hpp"
#include "emulator/pricing/stage_memory.hpp"
#include "emulator/step/step_parts.hpp"

#include <algorithm>

namespace pipeweaver::emulator {

namespace {

struct Ready {
    std::int64_t at = 0;          // ns
    std::int64_t parameters = 0;  // whose gradients are there then
};

// Of a rank, those of a group of weights in the order in which backwards make them.
std::vector<Ready> ready_gradients(const ScheduledStep& step, const StepTimes& times, RankId rank,
                                   const WeightGroup& group) {
    const auto modules = step.input().placed();
    const auto is_of_group = [&](const PassPiece& piece) {
        const auto& [layout, own] = modules[piece.module];
        return piece.trained && own.in_phases == group.in_phases && layout.weight_copies() == group.copies &&
               layout.stride() == group.stride;
    };
    std::vector<Ready> all;
    for (const TaskId task : step.schedule().order[index(rank)]) {
        const auto& ends = times.list_ends[index(task)];
        if (ends.empty()) continue;
        std::size_t list = 0;
        for (const PassPiece& piece : step.pieces(index(task)))
            for (std::int64_t i = 0; i < piece.times; ++i) {
                list += piece.lists.size();
                if (is_of_group(piece)) all.push_back({ends[list - 1], piece.parameters});
            }
    }
    return all;
}

// The largest pieces of gradients that are reduced as one; the last holds what is left.
std::vector<Ready> buckets_of(const std::vector<Ready>& gradients, std::int64_t all_parameters, const Recipe& recipe) {
    std::vector<Ready> buckets;
    Ready open;
    std::int64_t left = all_parameters;
    for (const Ready& ready : gradients) {
        open.at = ready.at;
        open.parameters += std::min(ready.parameters, left);
        left -= std::min(ready.parameters, left);
        if (reduced_bytes(recipe.state) * open.parameters < recipe.bucket.count) continue;
        buckets.push_back(open);
        open.parameters = 0;
    }
    open.parameters += left;
    if (open.parameters > 0) buckets.push_back(open);
    return buckets;
}

bool reduces_gradients(const Operator& op) {
    return op.name == reduction_in_buckets || op.name == "reduce gradients of experts" ||
           op.name == "reduce dealt gradients";
}

}  // namespace

RankGradients gradients_of_rank(const ScheduledStep& step, const StepTimes& times, RankId rank,
                                std::int64_t end_of_tasks, std::span<const GradientFormat> formats) {
    const StepInput& input = step.input();
    const Recipe& recipe = input.setup->recipe;
    const RankParameters parameters = rank_parameters(input)[index(rank)];
    RankGradients all{.end_of_tasks = Duration{end_of_tasks}};
    std::vector<GradientBucket> late;  // in one piece, after the last task
    auto group = parameters.groups.begin();
    const std::int64_t each = reduced_bytes(recipe.state);
    for (const Operator& op : tail_of(input, parameters)) {
        if (!reduces_gradients(op)) {
            all.rest += time_of(input, op, rank);
            continue;
        }
        const std::int64_t whole = std::get<costdb::Collective>(op.query).message.count / each;
        if (op.name != reduction_in_buckets || recipe.bucket == Bytes{}) {
            late.push_back({all.end_of_tasks, whole, ways_of(input, op, rank, whole, formats)});
            continue;
        }
        while (group->experts || group->in_phases || group->trained == 0 || group->copies == 1) ++group;
        for (const Ready& bucket : buckets_of(ready_gradients(step, times, rank, *group), group->trained, recipe))
            all.buckets.push_back(
                {Duration{bucket.at}, bucket.parameters, ways_of(input, op, rank, bucket.parameters, formats)});
        ++group;
    }
    std::stable_sort(all.buckets.begin(), all.buckets.end(),
                     [](const GradientBucket& a, const GradientBucket& b) { return a.ready < b.ready; });
    all.buckets.insert(all.buckets.end(), late.begin(), late.end());
    return all;
}

std::int64_t end_of_gradients(const ScheduledStep& step, const StepTimes& times, RankId rank,
                              std::int64_t end_of_tasks) {
    const bool in_buckets = step.input().setup->recipe.bucket > Bytes{};
    if (!in_buckets) return end_of_tasks + step.step().problem.ranks[index(rank)].tail.count();
    constexpr std::array as_is{GradientFormat::as_is};
    const RankGradients gradients = gradients_of_rank(step, times, rank, end_of_tasks, as_is);
    return end_of(gradients, std::vector<std::uint8_t>(gradients.buckets.size(), 0)).count();
}

}  // namespace pipeweaver::emulator
