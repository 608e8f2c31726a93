#include "emulator/emulate/gradient_buckets.hpp"

#include "emulator/pricing/data_traffic.hpp"
#include "emulator/pricing/stage_memory.hpp"
#include "emulator/step/step_parts.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/emulator/operators.hpp"

#include <algorithm>

namespace pipeweaver::emulator {

namespace {

constexpr std::int64_t bf16_bytes = 2, scale_bytes = 4, values_of_scale = 128;
constexpr std::int64_t kept_of_top_k = 100, entry_bytes = 8;  // one in so many; an fp32 value and its place

// What goes over the links, and through memory before and after.
struct CompressedBucket {
    std::int64_t message = 0, before = 0, after = 0;
    bool gathered = false;  // each copy gets those of all others, and adds them up
};

std::int64_t rounded_share(std::int64_t whole, std::int64_t parts) { return (whole + parts - 1) / parts; }

// `mine`: of whose sums a copy needs the values; `width`: bytes of a gradient.
CompressedBucket sizes_in(GradientFormat format, std::int64_t parameters, std::int64_t mine, std::int64_t width,
                          std::int64_t copies) {
    const std::int64_t all = width * parameters, own = width * mine;
    if (format == GradientFormat::bf16) {
        const std::int64_t message = bf16_bytes * parameters;
        return {message, all + message, bf16_bytes * mine + own};
    }
    if (format == GradientFormat::fp8) {
        const std::int64_t message = parameters + scale_bytes * rounded_share(parameters, values_of_scale);
        // Parts are summed by who gets them; sums that all need are cast and exchanged once more.
        const std::int64_t again = mine == parameters ? message : 0;
        return {message, all + message, message + again + own};
    }
    const std::int64_t entries = rounded_share(parameters, kept_of_top_k) * entry_bytes;
    // Sums that all need take the entries of every copy; those of a share, its part of the entries of every copy.
    const bool gathered = mine == parameters;
    const std::int64_t arriving = gathered ? copies * entries : entries;
    // The largest are found and taken out of sums that are kept: two reads, then one with what is written back.
    return {arriving, 4 * all + entries, own + arriving + 2 * width * arriving / entry_bytes, gathered};
}

// Kernels that do no more than move so many bytes.
Duration moved_through_memory(const StepInput& input, std::int64_t bytes, RankId rank) {
    return time_of(input, Operator{"gradients cast", costdb::Elementwise{Bytes{std::max<std::int64_t>(1, bytes)}}},
                   rank);
}

// Of so many parameters whose gradients `op`, a collective of the rank's tail, reduces.
std::vector<GradientWay> ways_of(const StepInput& input, const Operator& op, RankId rank, std::int64_t parameters,
                                 std::span<const GradientFormat> formats) {
    const std::int64_t width = reduced_bytes(input.setup->recipe.state);
    std::vector<GradientWay> ways;
    for (const GradientFormat format : formats) {
        auto query = std::get<costdb::Collective>(op.query);
        const bool shares = query.kind == costdb::CollectiveKind::reduce_scatter;
        const std::int64_t mine = shares ? rounded_share(parameters, query.gpus) : parameters;
        CompressedBucket sizes{.message = width * parameters};
        if (format != GradientFormat::as_is) sizes = sizes_in(format, parameters, mine, width, query.gpus);
        query.message = Bytes{sizes.message};
        if (sizes.gathered) query.kind = costdb::CollectiveKind::all_gather;
        Operator part = op;
        part.query = query;
        GradientWay way{.exchange = time_of(input, part, rank), .sent = query.message};
        if (format != GradientFormat::as_is) {
            way.compress = moved_through_memory(input, sizes.before, rank);
            way.decompress = moved_through_memory(input, sizes.after, rank);
        }
        ways.push_back(way);
    }
    return ways;
}

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

std::string_view name_of(GradientFormat format) {
    constexpr std::array<std::string_view, gradient_formats> names{"as it is", "bf16", "fp8", "top-k 1 %"};
    return names[static_cast<std::size_t>(format)];
}

std::vector<GradientFormat> formats_for(const Setup& setup) {
    std::vector<GradientFormat> formats{GradientFormat::as_is};
    if (reduced_bytes(setup.recipe.state) > bf16_bytes) formats.push_back(GradientFormat::bf16);
    if (workloads::device(setup.cluster.device).fp8_flops > 0) formats.push_back(GradientFormat::fp8);
    formats.push_back(GradientFormat::top_k);
    return formats;
}

Duration end_of(const RankGradients& rank, std::span<const std::uint8_t> ways) {
    const auto way = [&](std::size_t bucket) -> const GradientWay& { return rank.buckets[bucket].ways[ways[bucket]]; };
    Duration later{}, link{};       // by which compute is late; when the link is free
    std::vector<Duration> arrived;  // per bucket
    std::size_t next = 0;           // the first bucket that is not decompressed
    for (std::size_t b = 0; b < rank.buckets.size(); ++b) {
        for (; next < b && arrived[next] <= rank.buckets[b].ready + later; ++next) later += way(next).decompress;
        later += way(b).compress;
        link = std::max(link, rank.buckets[b].ready + later) + way(b).exchange;
        arrived.push_back(link);
    }
    Duration end = rank.end_of_tasks + later;
    for (; next < rank.buckets.size(); ++next) end = std::max(end, arrived[next]) + way(next).decompress;
    return end + rank.rest;
}

std::vector<RankGradients> gradient_traffic(const StepInput& input, const StepProblem& step,
                                            const schedule::Schedule& schedule,
                                            std::span<const GradientFormat> formats) {
    if (input.setup->recipe.zero >= 2)
        fail(ErrorKind::input,
             "--what-if gradients: goes with ZeRO 0 and 1, whose gradients are reduced beside and "
             "after the last backwards; the recipe has ZeRO {}",
             input.setup->recipe.zero);
    const ScheduledStep scheduled(input, step, schedule);
    const StepTimes times = times_by_passes(scheduled);
    std::vector<RankGradients> all;
    for (std::size_t r = 0; r < schedule.order.size(); ++r) {
        const auto& order = schedule.order[r];
        const std::int64_t end = order.empty() ? 0 : times.end[index(order.back())];
        all.push_back(gradients_of_rank(scheduled, times, RankId{static_cast<std::uint32_t>(r)}, end, formats));
    }
    return all;
}

}  // namespace pipeweaver::emulator
