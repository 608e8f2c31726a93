// The closed form, from domains and rings to the whole cluster.
#include "capacity/faults/group_counts.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/capacity/faults.hpp"

#include <cmath>

namespace pipeweaver::capacity {

namespace {

using workloads::Network;
using workloads::NetworkKind;

// Groups of a domain with so many free nodes; of a cube whose blocks are whole nodes `free` are its free blocks.
std::int64_t groups_of_free(const FaultCase& asked, std::int64_t free) {
    const bool blocks = asked.network.kind == NetworkKind::cube && asked.tp > asked.network.node;
    return blocks ? free : free * asked.network.node / asked.tp;
}

GroupCounts groups_of_domain(const FaultCase& asked, std::int64_t domain_gpus) {
    const std::int64_t node = asked.network.node;
    GroupCounts free = power(of_one_node(asked.faulty), domain_gpus / node);
    if (asked.network.kind == NetworkKind::cube && asked.tp > node) {
        const std::int64_t nodes = asked.tp / node;  // of a block
        const double whole = std::pow(1 - asked.faulty, static_cast<double>(nodes));
        free = power(of_one_node(1 - whole), domain_gpus / asked.tp);
    }
    GroupCounts groups;
    for (std::size_t i = 0; i < free.probability.size(); ++i) {
        const std::int64_t count = groups_of_free(asked, free.first + static_cast<std::int64_t>(i));
        add_scaled(groups, {count, {free.probability[i]}}, 1, 0);
    }
    return groups;
}

}  // namespace

std::optional<std::string> why_no_group(const Network& network, std::int64_t tp) {
    if (network.kind == NetworkKind::ring) return {};
    if (tp > network.domain)
        return fmt::format("tp {} is above the {} GPUs of a domain of {}", tp, network.domain, network.name);
    if (network.kind == NetworkKind::switched) return {};
    if (network.domain % tp == 0 && (tp % network.node == 0 || network.node % tp == 0)) return {};
    return fmt::format("groups of tp {} do not fill the {} GPUs of a cube of {} in whole nodes of {}", tp,
                       network.domain, network.name, network.node);
}

void require_answerable(const FaultCase& asked) {
    const Network& network = asked.network;
    if (asked.gpus < 1 || asked.gpus > FaultCase::most_gpus)
        fail(ErrorKind::input, "{} GPUs: allowed are 1 to {}", asked.gpus, FaultCase::most_gpus);
    if (asked.gpus % network.node != 0)
        fail(ErrorKind::input, "{} GPUs are no multiple of the {} of a node of {}", asked.gpus, network.node,
             network.name);
    if (!(asked.faulty >= 0 && asked.faulty <= 1))
        fail(ErrorKind::input, "a node is faulty with probability {}: allowed are 0 to 1", asked.faulty);
    if (asked.tp < 1 || asked.tp > asked.gpus)
        fail(ErrorKind::input, "tp {}: allowed are 1 to the {} GPUs", asked.tp, asked.gpus);
    if (const auto why = why_no_group(network, asked.tp)) fail(ErrorKind::input, "{}", *why);
}

std::optional<GroupCounts> usable_groups(const FaultCase& asked) {
    require_answerable(asked);
    if (asked.network.kind == NetworkKind::ring) return groups_of_ring(asked);
    const std::int64_t domain = asked.network.domain;
    return sum_of(power(groups_of_domain(asked, domain), asked.gpus / domain),
                  groups_of_domain(asked, asked.gpus % domain));
}

double usable_of_domain(const FaultCase& asked, std::int64_t domain_gpus) {
    return static_cast<double>(asked.tp) * groups_of_domain(asked, domain_gpus).mean();
}

}  // namespace pipeweaver::capacity
