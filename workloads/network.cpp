#include "pipeweaver/workloads/network.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/workloads/cluster.hpp"
#include "workloads/embedded.hpp"
#include "workloads/fields.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace pipeweaver::workloads {

namespace {

constexpr std::int64_t most_gpus_of_domain = 10'000, most_hops = 8;

NetworkKind kind_of(const Json& json) {
    const std::string kind = json.at("kind").one_of({"switch", "cube", "ring"});
    return kind == "switch" ? NetworkKind::switched : kind == "cube" ? NetworkKind::cube : NetworkKind::ring;
}

// Constant once made: parsed at the first call, shared by all.
const std::vector<Network>& shipped() {
    static const std::vector<Network> embedded = [] {
        const JsonDocument document("networks.json", embedded_networks());
        document.require_format("pipeweaver-networks", 1);
        const Json root = document.root();
        root.only_keys({"format", "about", "networks"});
        std::vector<Network> all;
        for (const Json& entry : root.at("networks").elements()) all.push_back(parse_network(entry));
        return all;
    }();
    return embedded;
}

}  // namespace

Network parse_network(const Json& json) {
    json.only_keys(
        {"format", "name", "aliases", "kind", "gpus_per_domain", "gpus_per_node", "hops", "usd_per_gpu", "source"});
    Network network;
    network.name = json.at("name").text();
    if (const auto aliases = json.find("aliases"))
        for (const Json& alias : aliases->elements()) network.aliases.push_back(alias.text());
    network.kind = kind_of(json);
    const bool ring = network.kind == NetworkKind::ring;
    const std::string_view needed = ring ? "hops" : "gpus_per_domain", other = ring ? "gpus_per_domain" : "hops";
    if (const auto found = json.find(other))
        found->fail(fmt::format("goes with no {}, which has {}", name_of(network.kind), needed));
    network.domain = ring ? 0 : json.at("gpus_per_domain").integer(1, most_gpus_of_domain);
    network.hops = ring ? json.at("hops").integer(1, most_hops) : 0;
    network.node = json.at("gpus_per_node").integer(1, most_gpus_of_domain);
    if (network.domain % network.node != 0)
        json.at("gpus_per_node")
            .fail(fmt::format("is {}, which does not divide the {} GPUs of a domain", network.node, network.domain));
    if (const auto usd = json.find("usd_per_gpu")) network.usd_per_gpu = usd->number(0, 1e7);
    network.source = text_or(json, "source");
    return network;
}

std::string_view name_of(NetworkKind kind) {
    return kind == NetworkKind::switched ? "switch" : kind == NetworkKind::cube ? "cube" : "ring";
}

std::int64_t side_of(std::int64_t gpus_of_cube) { return std::llround(std::cbrt(static_cast<double>(gpus_of_cube))); }

std::span<const Network> networks() { return shipped(); }

Network find_network(std::string_view text) {
    if (names_a_document(text) || is_a_document(text)) {
        const auto document = JsonDocument::given("--network", std::string(text));
        document.require_format("pipeweaver-network", 1);
        return parse_network(document.root());
    }
    const std::string asked = in_lower_case(text);
    std::vector<std::string> names;
    names.reserve(shipped().size());
    for (const Network& network : shipped()) {
        names.push_back(network.name);
        const auto& aliases = network.aliases;
        if (network.name == asked || std::find(aliases.begin(), aliases.end(), asked) != aliases.end()) return network;
    }
    fail(ErrorKind::input, "unknown network '{}'; known are {}", text, fmt::join(names, ", "));
}

std::optional<Network> network_of(const Cluster& cluster) {
    if (cluster.device == "cpu") return {};
    for (const Network& network : shipped())
        if (network.kind == NetworkKind::switched && network.domain == cluster.gpus_per_node) return network;
    return {};
}

std::string to_json(const Network& network) {
    nlohmann::ordered_json json{
        {"format", "pipeweaver-network/1"}, {"name", network.name}, {"kind", name_of(network.kind)}};
    if (network.kind == NetworkKind::ring) json["hops"] = network.hops;
    if (network.kind != NetworkKind::ring) json["gpus_per_domain"] = network.domain;
    json["gpus_per_node"] = network.node;
    if (network.usd_per_gpu) json["usd_per_gpu"] = *network.usd_per_gpu;
    if (!network.source.empty()) json["source"] = network.source;
    return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace pipeweaver::workloads
