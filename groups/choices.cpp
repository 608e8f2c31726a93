#include "groups/choices.hpp"

#include "pipeweaver/partition/partitioners.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace pipeweaver::groups {

using namespace emulator;

namespace {

constexpr std::int64_t receive_buffers = 2;  // rounds that may wait at a bridge

// Replicas that share a microbatch.
std::int64_t copies_in(const Degrees& degrees, const Pace& pace) {
    return std::max(std::int64_t{1}, degrees.dp / pace.replicas);
}

bool takes_as_long(const StagePasses& a, const StagePasses& b) {
    return a.forward == b.forward && a.backward == b.backward;
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
    Placing placing{replayed.step, split.rounds, {}, {split.gpus, split.rounds, {}, split.bridges}};
    for (std::size_t g = 0; g < found.taken.size(); ++g) {
        const Candidate& as = of[g][found.taken[g]];
        const Degrees& in = as.degrees;
        placing.groups.push_back({split.groups[g].name,
                                  {},
                                  in.tp,
                                  in.cp,
                                  in.pp,
                                  in.dp,
                                  in.zero,
                                  Prices::modes()[as.mode],
                                  std::max(as.peak(replayed.ahead[g]), as.fixed->update()),
                                  replayed.spent[g],
                                  as.base,
                                  as.held,
                                  *as.chain,
                                  as.portion.copies,
                                  as.portion.joined,
                                  as.fixed->at_rest,
                                  as.received,
                                  replayed.ahead[g]});
        placing.split.groups.push_back({split.groups[g].name, {split.groups[g].choices[found.taken[g]]}});
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

Choices::Choices(const SortedMicrobatches& microbatches, Prices& prices, Bytes crossing,
                 std::optional<Recompute> recompute)
    : microbatches_(microbatches),
      prices_(prices),
      crossing_(crossing),
      recompute_(recompute),
      times_(microbatches.priced.size()) {
    for (const std::size_t p : microbatches.as) ++times_[p];
}

const Fixed& Choices::fixed(const Chain& chain, const Taken& taken) {
    const std::tuple key(chain.name, taken.degrees, taken.portion.joined);
    const auto place = fixed_.find(key);
    if (place != fixed_.end()) return place->second;
    return fixed_.emplace(key, prices_.fixed(chain, taken.degrees, taken.portion)).first->second;
}

// The slowest replica of each round; they take the round's microbatches in turn. A pass through joined ones is as many
// of one's alike, and those of a round are.
std::vector<Duration> Choices::rounds_of(const std::vector<Duration>& passes, const Taken& taken) const {
    const Pace& pace = taken.pace;
    if (passes.size() == 1)
        return std::vector<Duration>(static_cast<std::size_t>(pace.rounds), taken.passes() * passes.front());
    std::vector<Duration> rounds;
    rounds.reserve(static_cast<std::size_t>(pace.rounds));
    for (std::size_t r = 0; r < static_cast<std::size_t>(pace.rounds); ++r)
        rounds.push_back(slowest_in(passes, block_of(r, pace) * static_cast<std::size_t>(pace.replicas), taken));
    return rounds;
}

// Of the round that begins with that microbatch.
Duration Choices::slowest_in(const std::vector<Duration>& passes, std::size_t first, const Taken& taken) const {
    const auto of_round = static_cast<std::size_t>(taken.pace.replicas);
    const std::size_t replicas = std::min(of_round, static_cast<std::size_t>(taken.degrees.dp));
    Duration slowest{};
    if (replicas == of_round) {  // each has one: those of a round are priced in a row
        const auto from = static_cast<std::ptrdiff_t>(microbatches_.as[first]);
        const auto to = static_cast<std::ptrdiff_t>(microbatches_.as[first + of_round - 1]) + 1;
        return *std::max_element(passes.begin() + from, passes.begin() + to);
    }
    for (std::size_t j = 0; j < replicas; ++j) {
        Duration all{};
        for (std::size_t m = j; m < of_round; m += replicas) all += passes[microbatches_.as[first + m]];
        slowest = std::max(slowest, all / taken.portion.joined);
    }
    return slowest;
}

// Of all microbatches, on the fullest stage, with nothing computed again.
Duration Choices::work_of(const Passes& passes) {
    const auto [place, added] = work_.try_emplace(&passes);
    if (!added) return place->second;
    for (const auto& stage : passes) {
        Duration all{};
        for (std::size_t p = 0; p < times_.size(); ++p)
            all += times_[p] * (stage.front().forward[p] + stage.front().backward[p]);
        place->second = std::max(place->second, all);
    }
    return place->second;
}

// Whether the step must be longer than the one that is known: first by its work in equal parts, which is known at once.
bool Choices::takes_longer(const Passes& passes, const Taken& taken) {
    if (!taken.pace.below) return false;
    const std::int64_t parts = taken.portion.joined * std::min(taken.pace.replicas, taken.degrees.dp);
    const Duration rounded_off{2 * taken.pace.rounds};
    return work_of(passes) / parts - rounded_off > *taken.pace.below || least_step(passes, taken) > *taken.pace.below;
}

// The work of the fullest stage, with nothing computed again.
Duration Choices::least_step(const Passes& passes, const Taken& taken) const {
    Duration most{};
    for (std::size_t s = 0; s < passes.size(); ++s) {
        const StagePasses& stage = passes[s].front();
        if (s > 0 && takes_as_long(stage, passes[s - 1].front())) continue;
        Duration all{};
        for (const auto& times : {rounds_of(stage.forward, taken), rounds_of(stage.backward, taken)})
            all = std::accumulate(times.begin(), times.end(), all);
        most = std::max(most, all);
    }
    return most;
}

// Of a round, on each GPU of the group.
Bytes Choices::message(const Taken& taken) const {
    const std::int64_t gpus = taken.degrees.tp * taken.degrees.cp * taken.portion.copies;
    return {(taken.microbatches() * crossing_.count + gpus - 1) / gpus};
}

bool Choices::add(const Chain& chain, const Degrees& degrees, const Pace& pace, Candidates& to) {
    Taken taken{degrees, {copies_in(degrees, pace), 1}, pace};
    if (prices_.takes_items(chain)) taken.portion.joined = divisors(taken.microbatches(), most_joined).back();
    if (add(chain, taken, to)) return true;
    if (taken.portion.joined == 1) return false;
    taken.portion.joined = 1;
    return add(chain, taken, to);
}

bool Choices::add(const Chain& chain, const Taken& taken, Candidates& to) {
    const auto& passes = prices_.passes(chain, taken.degrees, taken.portion);
    if (takes_longer(passes, taken)) return true;
    const Fixed& all_the_time = fixed(chain, taken);
    const Bytes capacity = prices_.capacity();
    if (!all_the_time.fits) return false;
    const Bytes waiting = receive_buffers * message(taken);
    const std::int64_t most = std::min(taken.pace.rounds, taken.pace.deepest);
    bool any = false;
    for (std::size_t mode = 0; mode < mode_count; ++mode) {
        if (recompute_ && Prices::modes()[mode] != *recompute_) continue;
        Choice choice{taken.degrees.gpus(), {}, all_the_time.hop, {}, all_the_time.tail};
        Candidate candidate{taken.degrees, mode, {}, {}, &chain, taken.portion, &all_the_time, waiting};
        std::int64_t least_ahead = most;
        for (std::size_t s = 0; s < passes.size(); ++s) {
            const StagePasses& stage = passes[s][mode];
            candidate.base.push_back(all_the_time.base[s] + stage.transient + waiting);
            candidate.held.push_back(taken.passes() * stage.held);
            const Bytes left = capacity - candidate.base.back();
            const std::int64_t held = std::max(std::int64_t{1}, candidate.held.back().count);
            const std::int64_t ahead = left.count < 0 ? 0 : std::min(most, left.count / held);
            least_ahead = std::min(least_ahead, ahead);
            if (ahead < 1) break;
            if (s > 0 && takes_as_long(stage, passes[s - 1][mode])) {
                choice.stages.push_back(choice.stages.back());
                choice.stages.back().most_in_flight = ahead;
            } else {
                choice.stages.push_back({rounds_of(stage.forward, taken), rounds_of(stage.backward, taken), ahead});
            }
        }
        if (least_ahead < 1) continue;
        any = true;
        if (crossing_ > Bytes{0}) choice.bridge = prices_.bridge(message(taken));
        to.choices.push_back(std::move(choice));
        to.candidates.push_back(std::move(candidate));
        if (least_ahead == most) return true;
    }
    return any;
}

}  // namespace pipeweaver::groups
