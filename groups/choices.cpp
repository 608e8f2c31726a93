#include "groups/choices.hpp"

#include "pipeweaver/partition/partitioners.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace pipeweaver::groups {

using namespace emulator;

namespace {

constexpr std::int64_t receive_buffers = 2;  // rounds that may wait at a bridge

// Microbatches that a replica runs in a round, and replicas that share one.
std::int64_t taken_by_one(const Degrees& degrees, const Pace& pace) {
    return std::max(std::int64_t{1}, pace.replicas / degrees.dp);
}
std::int64_t copies_in(const Degrees& degrees, const Pace& pace) {
    return std::max(std::int64_t{1}, degrees.dp / pace.replicas);
}

// Which of the sorted microbatches are the round's.
std::size_t block_of(std::size_t round, const Pace& pace) {
    if (!pace.alternating) return round;
    return round % 2 == 0 ? round / 2 : static_cast<std::size_t>(pace.rounds) - 1 - round / 2;
}

}  // namespace

Bytes Candidate::peak(const std::vector<std::int64_t>& ahead) const {
    Bytes peak;
    for (std::size_t s = 0; s < ahead.size(); ++s) peak = std::max(peak, base[s] + ahead[s] * held[s]);
    return peak;
}

Placing placing(const Split& split, const std::vector<std::vector<Candidate>>& of, const Allocation& found) {
    const Replayed replayed = replay(split, found.taken);
    Placing placing{replayed.step, split.rounds, {}};
    for (std::size_t g = 0; g < found.taken.size(); ++g) {
        const Candidate& as = of[g][found.taken[g]];
        placing.groups.push_back({split.groups[g].name, as.degrees.tp, as.degrees.pp, as.degrees.dp,
                                  Prices::modes()[as.mode], as.peak(replayed.ahead[g]), replayed.spent[g]});
    }
    return placing;
}

std::vector<Chain> usual_chains(const Setup& setup, const std::vector<workloads::Microbatch>& sample) {
    std::vector<Chain> chains;
    for (const auto& cutting : partition::cuttings(partition::Use::opponent, setup)) {
        if (!cutting.by->one_chain || cutting.chunks_per_rank != 1 || cutting.why_not(setup)) continue;
        auto partition = cutting.make(setup, sample);
        chains.push_back(std::move(partition.chains.front()));
        chains.back().name = partition.name;
    }
    return chains;
}

std::vector<std::int64_t> tensor_parallel(const std::optional<std::int64_t>& asked, const workloads::Cluster& cluster) {
    std::vector<std::int64_t> all;
    for (std::int64_t tp = 1; tp <= cluster.gpus_per_node; tp *= 2) all.push_back(tp);
    if (!asked) return all;
    return *asked <= cluster.gpus_per_node ? std::vector{*asked} : std::vector<std::int64_t>{};
}

std::vector<std::int64_t> divisors(std::int64_t number, std::int64_t most) {
    std::vector<std::int64_t> all;
    for (std::int64_t d = 1; d <= std::min(number, most); ++d)
        if (number % d == 0) all.push_back(d);
    return all;
}

const Fixed& Choices::fixed(const Chain& chain, const Degrees& degrees) {
    const auto place = fixed_.find({chain.name, degrees});
    if (place != fixed_.end()) return place->second;
    return fixed_.emplace(std::pair(chain.name, degrees), prices_.fixed(chain, degrees)).first->second;
}

// The slowest replica of each round; they take the round's microbatches in turn.
std::vector<Duration> Choices::rounds_of(const std::vector<Duration>& passes, const Degrees& degrees,
                                         const Pace& pace) const {
    std::vector<Duration> rounds;
    rounds.reserve(static_cast<std::size_t>(pace.rounds));
    const auto of_round = static_cast<std::size_t>(pace.replicas);
    const std::size_t replicas = std::min(of_round, static_cast<std::size_t>(degrees.dp));
    for (std::size_t r = 0; r < static_cast<std::size_t>(pace.rounds); ++r) {
        const std::size_t first = block_of(r, pace) * of_round;
        Duration slowest{};
        for (std::size_t j = 0; j < replicas; ++j) {
            Duration all{};
            for (std::size_t m = j; m < of_round; m += replicas) all += passes[microbatches_.as[first + m]];
            slowest = std::max(slowest, all);
        }
        rounds.push_back(slowest);
    }
    return rounds;
}

// The work of the fullest stage, with nothing computed again.
Duration Choices::least_step(const std::vector<std::array<StagePasses, mode_count>>& passes, const Degrees& degrees,
                             const Pace& pace) const {
    Duration most{};
    for (const auto& stage : passes) {
        Duration all{};
        for (const auto& times :
             {rounds_of(stage.front().forward, degrees, pace), rounds_of(stage.front().backward, degrees, pace)})
            all = std::accumulate(times.begin(), times.end(), all);
        most = std::max(most, all);
    }
    return most;
}

// Of a round, on each GPU of the group.
Bytes Choices::message(const Degrees& degrees, const Pace& pace) const {
    const std::int64_t gpus = degrees.tp * copies_in(degrees, pace);
    return {(taken_by_one(degrees, pace) * crossing_.count + gpus - 1) / gpus};
}

void Choices::add(const Chain& chain, const Degrees& degrees, const Pace& pace, Candidates& to) {
    const auto& passes = prices_.passes(chain, degrees, copies_in(degrees, pace));
    if (pace.below && least_step(passes, degrees, pace) > *pace.below) return;
    const Fixed& all_the_time = fixed(chain, degrees);
    const Bytes capacity = prices_.capacity();
    if (!all_the_time.fits) return;
    const Bytes waiting = receive_buffers * message(degrees, pace);
    const std::int64_t most = std::min(pace.rounds, pace.deepest);
    for (std::size_t mode = 0; mode < mode_count; ++mode) {
        Choice choice{degrees.gpus(), {}, all_the_time.hop, {}, all_the_time.tail};
        Candidate candidate{degrees, mode, {}, {}};
        std::int64_t least_ahead = most;
        for (std::size_t s = 0; s < passes.size(); ++s) {
            const StagePasses& stage = passes[s][mode];
            candidate.base.push_back(all_the_time.base[s] + stage.transient + waiting);
            candidate.held.push_back(taken_by_one(degrees, pace) * stage.held);
            const Bytes left = capacity - candidate.base.back();
            const std::int64_t held = std::max(std::int64_t{1}, candidate.held.back().count);
            const std::int64_t ahead = left.count < 0 ? 0 : std::min(most, left.count / held);
            least_ahead = std::min(least_ahead, ahead);
            if (ahead < 1) break;
            choice.stages.push_back(
                {rounds_of(stage.forward, degrees, pace), rounds_of(stage.backward, degrees, pace), ahead});
        }
        if (least_ahead < 1) continue;
        if (crossing_ > Bytes{0}) choice.bridge = prices_.bridge(message(degrees, pace));
        to.choices.push_back(std::move(choice));
        to.candidates.push_back(std::move(candidate));
        if (least_ahead == most) return;
    }
}

}  // namespace pipeweaver::groups
