#include "emulator/emulate/gradient_ways.hpp"

#include "emulator/emulate/gradient_buckets.hpp"
#include "emulator/emulate/step_times.hpp"
#include "emulator/pricing/data_traffic.hpp"
#include "emulator/step/step_parts.hpp"
#include "pipeweaver/base/error.hpp"

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

}  // namespace

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
