#include "emulator/emulate/gradient_buckets.hpp"

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

// Of a bucket.
struct Reduction {
    std::int64_t ready = 0, time = 0;  // ns
};

}  // namespace

std::int64_t end_of_gradients(const ScheduledStep& step, const StepTimes& times, RankId rank,
                              std::int64_t end_of_tasks) {
    const StepInput& input = step.input();
    const Recipe& recipe = input.setup->recipe;
    if (recipe.bucket == Bytes{}) return end_of_tasks + step.step().problem.ranks[index(rank)].tail.count();
    const RankParameters parameters = rank_parameters(input)[index(rank)];
    std::vector<Reduction> reductions;
    std::int64_t rest = 0;
    auto group = parameters.groups.begin();
    for (const Operator& op : tail_of(input, parameters)) {
        if (op.name != reduction_in_buckets) {
            rest += time_of(input, op, rank).count();
            continue;
        }
        while (group->experts || group->in_phases || group->trained == 0 || group->copies == 1) ++group;
        for (const Ready& bucket : buckets_of(ready_gradients(step, times, rank, *group), group->trained, recipe)) {
            Operator part = op;
            costdb::Collective query = std::get<costdb::Collective>(op.query);
            query.message = Bytes{reduced_bytes(recipe.state) * bucket.parameters};
            part.query = query;
            reductions.push_back({bucket.at, time_of(input, part, rank).count()});
        }
        ++group;
    }
    std::stable_sort(reductions.begin(), reductions.end(),
                     [](const Reduction& a, const Reduction& b) { return a.ready < b.ready; });
    std::int64_t reduced = 0;
    for (const Reduction& one : reductions) reduced = std::max(reduced, one.ready) + one.time;
    return std::max(reduced, end_of_tasks) + rest;
}

}  // namespace pipeweaver::emulator
