// On what is trained: devices and clusters, each figure with its source.
#pragma once

#include "pipeweaver/base/json.hpp"
#include "pipeweaver/base/units.hpp"
#include "pipeweaver/workloads/network.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::workloads {

/// Generation of a device: what was not measured on it is taken from its like.
enum class Family : std::uint8_t { ampere, hopper, blackwell, other };

/// A GPU (or CPU) as its data sheet gives it.
struct Device {
    std::string name;                  ///< canonical: a100_sxm, h100_sxm, ...
    std::vector<std::string> aliases;  ///< compared without case, '-' equal to '_'
    double bf16_flops = 0;             ///< dense peak per second
    double fp8_flops = 0;              ///< 0: not supported
    Bandwidth memory_bandwidth;
    Bytes memory;
    std::int64_t multiprocessors = 0;
    double power_watts = 0;  ///< thermal design power; 0: not known
    bool modelled = false;   ///< known by these figures alone: neither tables of its operators nor runs are at hand
    std::string source;
    double fp4_flops = 0;  ///< dense peak per second; 0: not supported
};

struct Cluster {
    std::string name;
    std::string device;  ///< Device::name
    std::int64_t gpus_per_node = 8;
    std::int64_t gpus = 0;          ///< 0: not said
    Bandwidth node_link;            ///< per GPU, inside a node, one direction; 0: none
    Bandwidth network;              ///< per node, between nodes, one direction; 0: none
    double price_per_gpu_hour = 0;  ///< USD; 0: not said
    std::string source;
    std::optional<Network> shape{};  ///< the ring or the cubes that join GPUs; none: a switch in each node
    std::int64_t gpus_per_rack = 0;  ///< whole nodes; 0: every node has its whole network to every other
    double oversubscription = 1;     ///< what the nodes of a rack can send, over what leaves the rack
};

[[nodiscard]] std::span<const Device> devices();
[[nodiscard]] std::span<const Cluster> clusters();

/// The device of that name or alias; null: none is known by it.
[[nodiscard]] const Device* known_device(std::string_view name);

/// The device of that name or alias. Throws Error{input} naming the nearest.
[[nodiscard]] const Device& device(std::string_view name);

/// The generation of the device with this canonical name.
[[nodiscard]] Family family_of(std::string_view device);

/// "h100-sxm:32" (a cluster's name and GPU count) or a cluster file ("pipeweaver-cluster/1"; "file.json:64" overrides
/// its count). Throws Error{input}, also for a link that this many GPUs need and the file lacks; Error{io}.
[[nodiscard]] Cluster find_cluster(std::string_view text);

/// Throws Error{input} where its GPUs need links that the cluster lacks; `given` is what to name in front.
void require_links(const Cluster& cluster, std::string_view given);

/// The cluster joined so: its nodes are the domains of switches or cubes, or the nodes of a ring. A GPU keeps its part
/// of the network between them. Throws Error{input} for a cube whose GPUs are no whole number cubed.
[[nodiscard]] Cluster with_network(Cluster cluster, const Network& shape);

/// Why the cluster cannot have racks of so many GPUs: no whole nodes, or a ring, which goes through all. None: it can.
[[nodiscard]] std::optional<std::string> why_no_racks(const Cluster& cluster, std::int64_t gpus_per_rack);

/// The cluster in racks. Throws Error{input} with why_no_racks().
[[nodiscard]] Cluster with_racks(Cluster cluster, std::int64_t gpus_per_rack, double oversubscription);

/// The cluster as a file to edit.
[[nodiscard]] std::string to_json(const Cluster& cluster);

}  // namespace pipeweaver::workloads
