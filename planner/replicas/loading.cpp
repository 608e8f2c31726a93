#include "planner/replicas/loading.hpp"

#include <algorithm>
#include <utility>

namespace pipeweaver::planner {

namespace {

using partition::Shares;

// Rounded up: what takes some time is not free.
Duration part_of(Duration whole, std::int64_t by) { return (whole + Duration{by - 1}) / by; }

Duration time_of(const loader::Queue& queue, const loader::Pack& pack) {
    Duration all{}, on_cores{};
    for (const loader::Piece& piece : pack.pieces) {
        all = loader::add_work(all, piece.time);
        if (piece.core) on_cores = loader::add_work(on_cores, piece.time);
    }
    if (queue.workers == 0) return loader::add_work(all, pack.copy);
    const std::int64_t cores = queue.cores.value_or(queue.workers);
    return std::max({part_of(all, queue.workers), part_of(on_cores, cores), pack.copy});
}

// What a replica trains for, and what its queue takes for that.
std::pair<Duration, Duration> times_of(const Feeding& of, const std::vector<std::size_t>& share) {
    Duration costs{}, loading{};
    for (const std::size_t m : share) {
        costs += of.costs[m];
        loading = loader::add_work(loading, of.loading[m]);
    }
    const auto count = static_cast<std::int64_t>(share.size());
    const Duration filling = count == 0 ? Duration{} : costs / count * (of.stages - 1);
    return {(costs + filling) / of.stages, loading};
}

Duration longest_training(const Feeding& of, const Shares& shares) {
    Duration longest{};
    for (const auto& share : shares) longest = std::max(longest, times_of(of, share).first);
    return longest;
}

}  // namespace

std::vector<Duration> loading_times(const loader::Loader& loader, const workloads::Model& model,
                                    const std::vector<workloads::Sample>& samples,
                                    const std::vector<workloads::Microbatch>& microbatches) {
    std::vector<Duration> times;
    times.reserve(microbatches.size());
    for (const workloads::Microbatch& one : microbatches)
        times.push_back(time_of(loader.queue, loader::pack_of(loader, one, samples, model)));
    return times;
}

Duration slowest_fed(const Feeding& of, const Shares& shares) {
    Duration slowest{};
    for (const auto& share : shares) {
        const auto [training, loading] = times_of(of, share);
        slowest = std::max(slowest, of.beside ? std::max(training, loading) : training + loading);
    }
    return slowest;
}

std::optional<Shares> shares_by_loading(const Feeding& of, const Shares& by_cost) {
    Duration least = slowest_fed(of, by_cost);
    if (least <= longest_training(of, by_cost)) return std::nullopt;
    for (const auto& share : by_cost)
        if (times_of(of, share).second == loader::most_work) return std::nullopt;  // why_no_input() refuses it
    constexpr std::int64_t mixtures = 4;
    std::optional<Shares> best;
    for (std::int64_t k = 1; k <= mixtures; ++k) {
        std::vector<Duration> mixed;
        mixed.reserve(of.costs.size());
        for (std::size_t m = 0; m < of.costs.size(); ++m)
            mixed.push_back((mixtures - k) * (of.costs[m] / of.stages) + k * of.loading[m]);
        Shares shares = partition::balance(mixed, by_cost.size());
        const Duration slowest = slowest_fed(of, shares);
        if (slowest >= least) continue;
        least = slowest;
        best = std::move(shares);
    }
    return best;
}

}  // namespace pipeweaver::planner
