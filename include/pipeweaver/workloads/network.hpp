// How GPUs are joined at high bandwidth: kinds of domains, with what fails together and what the interconnect costs.
//
// Source       InfinitePOD / InfiniteHBD, arXiv 2502.03885; each entry of workloads/data/networks.json names its own.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver {
class Json;
}

namespace pipeweaver::workloads {

struct Cluster;

/// What joins the GPUs of a domain: a switch, fixed links of a torus (a cube), or links from each node to the next few
/// of one ring through the whole cluster.
enum class NetworkKind : std::uint8_t { switched, cube, ring };

struct Network {
    std::string name;
    std::vector<std::string> aliases;  ///< compared without case
    NetworkKind kind = NetworkKind::switched;
    std::int64_t domain = 8;            ///< GPUs of a domain; of a ring 0: it has all
    std::int64_t node = 8;              ///< GPUs that fail together; divides `domain`
    std::int64_t hops = 0;              ///< of a ring: each node is linked to so many on each side
    std::optional<double> usd_per_gpu;  ///< of the interconnect; none: not known
    std::string source;

    friend bool operator==(const Network&, const Network&) = default;
};

/// GPUs along an axis of a cube of so many, rounded.
[[nodiscard]] std::int64_t side_of(std::int64_t gpus_of_cube);

/// "switch", "cube" or "ring".
[[nodiscard]] std::string_view name_of(NetworkKind kind);

/// Those that ship with the program.
[[nodiscard]] std::span<const Network> networks();

/// The network of that name or alias, or of a file ("pipeweaver-network/1"). Throws Error{input} naming the known ones;
/// Error{io}.
[[nodiscard]] Network find_network(std::string_view text);

/// Of an object of that format. Throws Error{input}.
[[nodiscard]] Network parse_network(const Json& json);

/// The network of a cluster by the size of its nodes: dgx-8 of 8 GPUs, nvl-72 of 72; none of other sizes, nor of CPUs.
[[nodiscard]] std::optional<Network> network_of(const Cluster& cluster);

/// The network as a file to edit.
[[nodiscard]] std::string to_json(const Network& network);

}  // namespace pipeweaver::workloads
