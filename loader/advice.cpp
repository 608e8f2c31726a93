#include "pipeweaver/loader/advice.hpp"

#include <algorithm>

namespace pipeweaver::loader {

namespace {

// Of all steps, with packs that cost nothing.
Duration unhindered(const Taking& taking, std::vector<Replica> replicas) {
    for (Replica& replica : replicas)
        for (Pack& pack : replica.packs) pack = {{}, {}, pack.samples};
    return replay({}, taking, replicas).back().end;
}

// load / cores of `a` below that of `b`.
bool is_faster(Duration a, std::int64_t cores_a, Duration b, std::int64_t cores_b) {
    __extension__ using Wide = __int128;
    return Wide{a.count()} * cores_b < Wide{b.count()} * cores_a;
}

}  // namespace

bool is_fed(const std::vector<Step>& steps) {
    return std::all_of(steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2), steps.end(),
                       [](const Step& step) {
                           return std::all_of(step.waited.begin(), step.waited.end(),
                                              [](Duration time) { return time == Duration{}; });
                       });
}

Duration least_time(const Queue& queue, const std::vector<Replica>& replicas) {
    if (queue.workers == 0) return {};
    const auto shared_by = [](Duration work, std::int64_t many) { return (work + Duration{many - 1}) / many; };
    Duration least{};
    for (const Replica& replica : replicas) {
        Duration work{}, on_cores{}, copies{};
        for (const Pack& pack : replica.packs) {
            copies += pack.copy;
            for (const Piece& piece : pack.pieces) {
                work += piece.time;
                if (piece.core) on_cores += piece.time;
            }
        }
        least = std::max({least, copies, shared_by(work, queue.workers)});
        if (queue.cores) least = std::max(least, shared_by(on_cores, *queue.cores));
    }
    return least;
}

std::optional<Queue> enough(const Queue& queue, const Taking& taking, const ReplicasFor& replicas_for) {
    Queue tried{.window = queue.window};
    std::optional<std::vector<Replica>> replicas;
    Duration steps{};
    const auto feeds = [&] {
        return least_time(tried, *replicas) <= steps && is_fed(replay(tried, taking, *replicas));
    };
    tried.prefetch = most_prefetch_advised;
    for (tried.workers = 1;; ++tried.workers) {
        if (tried.workers > most_workers_advised || !(replicas = replicas_for(tried.workers))) return std::nullopt;
        steps = unhindered(taking, *replicas);
        if (feeds()) break;
    }
    for (tried.prefetch = 1; !feeds();) ++tried.prefetch;
    Queue found = tried;
    found.cores = tried.workers;
    for (std::int64_t cores = tried.workers - 1; cores >= 1; --cores) {
        tried.cores = cores;
        if (!feeds()) break;
        found.cores = cores;
    }
    return found;
}

std::optional<std::vector<std::int64_t>> share_cores(std::span<const Duration> loads, std::int64_t cores) {
    std::vector<std::int64_t> given;
    for (const Duration load : loads) {
        given.push_back(load > Duration{} ? 1 : 0);
        cores -= given.back();
    }
    if (cores < 0) return std::nullopt;
    const auto slowest = [&] {
        std::optional<std::size_t> found;
        for (std::size_t s = 0; s < loads.size(); ++s)
            if (given[s] > 0 && (!found || is_faster(loads[*found], given[*found], loads[s], given[s]))) found = s;
        return found;
    };
    for (; cores > 0; --cores)
        if (const auto stage = slowest()) ++given[*stage];
    return given;
}

}  // namespace pipeweaver::loader
