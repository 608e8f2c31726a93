// Faults drawn node by node, and what they leave.
#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/base/random.hpp"
#include "pipeweaver/capacity/faults.hpp"

#include <algorithm>
#include <cmath>

namespace pipeweaver::capacity {

namespace {

using workloads::NetworkKind;
using Nodes = std::vector<char>;

std::int64_t free_among(const Nodes& faulty, std::int64_t from, std::int64_t until) {
    return std::count(faulty.begin() + from, faulty.begin() + until, char{0});
}

std::int64_t groups_of_domains(const FaultCase& asked, const Nodes& faulty) {
    const std::int64_t node = asked.network.node, nodes = asked.gpus / node, domain = asked.network.domain / node;
    const bool blocks = asked.network.kind == NetworkKind::cube && asked.tp > node;
    std::int64_t groups = 0;
    for (std::int64_t from = 0; from < nodes; from += domain) {
        const std::int64_t until = std::min(from + domain, nodes);
        if (!blocks) {
            groups += free_among(faulty, from, until) * node / asked.tp;
            continue;
        }
        const std::int64_t block = asked.tp / node;
        for (std::int64_t at = from; at + block <= until; at += block)
            groups += free_among(faulty, at, at + block) == block ? 1 : 0;
    }
    return groups;
}

// The node behind a run of faults that cuts the ring; nothing where none does.
std::optional<std::int64_t> first_behind_a_cut(const Nodes& faulty, std::int64_t hops) {
    const auto nodes = static_cast<std::int64_t>(faulty.size());
    std::int64_t run = 0;
    for (std::int64_t i = 0; i < 2 * nodes; ++i) {
        if (!faulty[static_cast<std::size_t>(i % nodes)]) {
            if (run >= hops) return i % nodes;
            run = 0;
        } else {
            ++run;
        }
    }
    return {};
}

std::int64_t groups_of_segments(const FaultCase& asked, const Nodes& faulty) {
    const std::int64_t node = asked.network.node, hops = asked.network.hops;
    const auto nodes = static_cast<std::int64_t>(faulty.size());
    const std::int64_t begin = first_behind_a_cut(faulty, hops).value_or(0);
    std::int64_t groups = 0, free = 0, run = 0;
    for (std::int64_t i = 0; i < nodes; ++i) {
        if (!faulty[static_cast<std::size_t>((begin + i) % nodes)]) {
            ++free;
            run = 0;
        } else if (++run == hops) {
            groups += free * node / asked.tp;
            free = 0;
        }
    }
    // Without a cut the whole ring is one segment, also where it began inside a run of faults.
    return groups + free * node / asked.tp;
}

TriedMean mean_of(const std::vector<std::int64_t>& gpus) {
    const auto count = static_cast<double>(gpus.size());
    std::int64_t sum = 0;
    for (const std::int64_t one : gpus) sum += one;
    const double mean = static_cast<double>(sum) / count;
    double squares = 0;
    for (const std::int64_t one : gpus) {
        const double off = static_cast<double>(one) - mean;
        squares += off * off;
    }
    constexpr double normal_95 = 1.959964;
    return {mean, count > 1 ? normal_95 * std::sqrt(squares / (count - 1) / count) : 0};
}

}  // namespace

std::int64_t groups_with(const FaultCase& asked, const Nodes& faulty_nodes) {
    return asked.network.kind == NetworkKind::ring ? groups_of_segments(asked, faulty_nodes)
                                                   : groups_of_domains(asked, faulty_nodes);
}

std::int64_t FaultTrials::at(double confidence) const {
    const auto below = static_cast<std::size_t>((1 - confidence) * static_cast<double>(usable_gpus.size()) + 1e-9);
    return usable_gpus[std::min(below, usable_gpus.size() - 1)];
}

FaultTrials try_faults(const FaultCase& asked, std::int64_t trials, std::uint64_t seed, const Executor& execute) {
    require_answerable(asked);
    PIPEWEAVER_ASSERT(trials > 0);
    const auto count = static_cast<std::size_t>(trials);
    const auto nodes = static_cast<std::size_t>(asked.gpus / asked.network.node);
    std::vector<std::int64_t> usable(count), wasted(count);
    constexpr std::size_t of_a_job = 256;
    execute((count + of_a_job - 1) / of_a_job, [&](std::size_t job) {
        Nodes faulty(nodes);
        for (std::size_t trial = job * of_a_job; trial < std::min(count, (job + 1) * of_a_job); ++trial) {
            Random random(seed, trial);
            for (char& node : faulty) node = random.uniform() < asked.faulty ? 1 : 0;
            usable[trial] = groups_with(asked, faulty) * asked.tp;
            const std::int64_t free = free_among(faulty, 0, static_cast<std::int64_t>(nodes));
            wasted[trial] = free * asked.network.node - usable[trial];
        }
    });
    FaultTrials tried{mean_of(usable), mean_of(wasted), {}};
    std::sort(usable.begin(), usable.end());
    tried.usable_gpus = std::move(usable);
    return tried;
}

}  // namespace pipeweaver::capacity
