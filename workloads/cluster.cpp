#include "pipeweaver/workloads/cluster.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"
#include "workloads/embedded.hpp"
#include "workloads/fields.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>

namespace pipeweaver::workloads {

namespace {

constexpr std::int64_t most_gpus = 1'000'000;
constexpr double most_oversubscription = 1000;
constexpr std::int64_t most_speed = 1'000'000'000'000'000;  // bytes per second

// Names compare without case, '-' equal to '_'.
std::string folded(std::string_view name) {
    std::string text(name);
    for (char& c : text) c = c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
}

// The name as it was given, with the nearest of the folded ones.
std::string unknown_name(std::string_view what, std::string_view name, const std::vector<std::string>& names) {
    if (const auto near = nearest(folded(name), names))
        return fmt::format("unknown {} '{}'; did you mean '{}'?", what, name, *near);
    return unknown(what, name, names);
}

Device parse_device(const Json& json) {
    json.only_keys({"name", "aliases", "bf16_flops", "fp8_flops", "fp4_flops", "memory_bytes_per_s", "memory_bytes",
                    "multiprocessors", "power_watts", "modelled", "source"});
    Device device;
    device.name = json.at("name").text();
    for (const Json& alias : json.at("aliases").elements()) device.aliases.push_back(alias.text());
    device.bf16_flops = json.at("bf16_flops").number(1, 1e21);
    device.fp8_flops = number_or(json, "fp8_flops", 0, 1, 1e21);
    device.fp4_flops = number_or(json, "fp4_flops", 0, 1, 1e21);
    device.memory_bandwidth.bytes_per_second = json.at("memory_bytes_per_s").integer(1, most_speed);
    device.memory.count = json.at("memory_bytes").integer(1, std::int64_t{1} << 50);
    device.multiprocessors = json.at("multiprocessors").integer(1, 100'000);
    device.power_watts = number_or(json, "power_watts", 0, 1, 1e5);
    if (const auto modelled = json.find("modelled")) device.modelled = modelled->boolean();
    device.source = json.at("source").text();
    return device;
}

bool is_cube(std::int64_t gpus) {
    const std::int64_t side = side_of(gpus);
    return side * side * side == gpus;
}

// What a text or an object says of a network's shape, racks.
Cluster with_shape(const Json& json, Cluster cluster) {
    if (const auto network = json.find("network")) {
        const bool is_text = network->is_string();
        if (is_text && (names_a_document(network->text()) || is_a_document(network->text())))
            network->fail(must_be(network->text(), "a name of `pipeweaver list networks`, or the network itself"));
        cluster = with_network(std::move(cluster), is_text ? find_network(network->text()) : parse_network(*network));
    }
    const auto rack = json.find("gpus_per_rack"), over = json.find("rack_oversubscription");
    if (over && !rack) over->fail("goes with gpus_per_rack");
    if (!rack) return cluster;
    const std::int64_t gpus = rack->integer(1, most_gpus);
    if (const auto why = why_no_racks(cluster, gpus)) rack->fail(*why);
    return with_racks(std::move(cluster), gpus, over ? over->number(1, most_oversubscription) : 1);
}

// `devices` are those that a cluster may name.
Cluster parse_cluster(const Json& json, std::span<const Device> devices) {
    json.only_keys({"format", "name", "device", "gpus_per_node", "gpus", "node_link_bytes_per_s", "network_bytes_per_s",
                    "price_per_gpu_hour", "source", "network", "gpus_per_rack", "rack_oversubscription"});
    Cluster cluster;
    cluster.name = json.at("name").text();
    cluster.device = json.at("device").text();
    cluster.gpus_per_node = json.at("gpus_per_node").integer(1, 10'000);
    cluster.gpus = integer_or(json, "gpus", 0, 1, most_gpus);
    cluster.node_link.bytes_per_second = integer_or(json, "node_link_bytes_per_s", 0, 1, most_speed);
    cluster.network.bytes_per_second = integer_or(json, "network_bytes_per_s", 0, 1, most_speed);
    cluster.price_per_gpu_hour = number_or(json, "price_per_gpu_hour", 0, 0, 1e6);
    cluster.source = text_or(json, "source");
    std::vector<std::string> names;
    for (const auto& device : devices) {
        names.push_back(device.name);
        names.insert(names.end(), device.aliases.begin(), device.aliases.end());
        const auto same = [&](const std::string& name) { return folded(name) == folded(cluster.device); };
        if (!same(device.name) && std::none_of(device.aliases.begin(), device.aliases.end(), same)) continue;
        cluster.device = device.name;
        return with_shape(json, std::move(cluster));
    }
    json.at("device").fail(unknown_name("device", cluster.device, names));
}

struct Known {
    std::vector<Device> devices;
    std::vector<Cluster> clusters;

    Known() {
        const JsonDocument document("clusters.json", embedded_clusters());
        document.require_format("pipeweaver-clusters", 1);
        const Json root = document.root();
        root.only_keys({"format", "about", "devices", "clusters"});
        for (const Json& entry : root.at("devices").elements()) devices.push_back(parse_device(entry));
        for (const Json& entry : root.at("clusters").elements()) clusters.push_back(parse_cluster(entry, devices));
    }
};

// Constant once made: parsed at the first call, shared by all.
const Known& known() {
    static const Known embedded;
    return embedded;
}

std::int64_t parse_count(std::string_view text, std::string_view whole) {
    std::int64_t gpus = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), gpus);
    if (error != std::errc{} || end != text.data() + text.size() || gpus < 1 || gpus > most_gpus)
        fail(ErrorKind::input, "cluster '{}': '{}' is no number of GPUs, allowed are 1 to {}", whole, text, most_gpus);
    return gpus;
}

Cluster read_cluster(std::string_view path) {
    const auto document = JsonDocument::given("--cluster", std::string(path));
    document.require_format("pipeweaver-cluster", 1);
    return parse_cluster(document.root(), devices());
}

Cluster cluster_named(std::string_view name) {
    std::vector<std::string> names;
    for (const auto& cluster : clusters()) {
        if (folded(cluster.name) == folded(name)) return cluster;
        names.push_back(cluster.name);
    }
    if (const Device* const device = known_device(name))
        for (const auto& cluster : clusters())
            if (cluster.device == device->name)
                fail(ErrorKind::input, "unknown cluster '{}'; did you mean '{}'?", name, cluster.name);
    fail(ErrorKind::input, "{}", unknown_name("cluster", name, names));
}

}  // namespace

std::span<const Device> devices() { return known().devices; }

std::span<const Cluster> clusters() { return known().clusters; }

const Device* known_device(std::string_view name) {
    const auto is_called = [&](std::string_view one) { return folded(one) == folded(name); };
    for (const Device& device : devices())
        if (is_called(device.name) || std::any_of(device.aliases.begin(), device.aliases.end(), is_called))
            return &device;
    return nullptr;
}

const Device& device(std::string_view name) {
    if (const Device* const known = known_device(name)) return *known;
    std::vector<std::string> names;
    for (const Device& device : devices()) {
        names.push_back(device.name);
        names.insert(names.end(), device.aliases.begin(), device.aliases.end());
    }
    fail(ErrorKind::input, "{}", unknown_name("device", name, names));
}

Family family_of(std::string_view device) {
    if (device.starts_with("a100") || device.starts_with("a800")) return Family::ampere;
    if (device.starts_with("h") || device.starts_with("gh")) return Family::hopper;
    if (device.starts_with("b") || device.starts_with("gb")) return Family::blackwell;
    return Family::other;
}

// Any layout of more than one GPU exchanges something.
void require_links(const Cluster& cluster, std::string_view given) {
    if (cluster.gpus > cluster.gpus_per_node && cluster.network.bytes_per_second == 0)
        fail(
            ErrorKind::input,
            "{}: network_bytes_per_s: is missing; {} GPUs in nodes of {} need it, allowed without are {} GPUs or fewer",
            given, cluster.gpus, cluster.gpus_per_node, cluster.gpus_per_node);
    if (std::min(cluster.gpus, cluster.gpus_per_node) > 1 && cluster.node_link.bytes_per_second == 0)
        fail(ErrorKind::input,
             "{}: node_link_bytes_per_s: is missing; {} GPUs in nodes of {} need it, allowed without are nodes of one "
             "GPU",
             given, cluster.gpus, cluster.gpus_per_node);
}

Cluster find_cluster(std::string_view text) {
    // A ':' inside a file's path is no count: what follows a count holds no '/' and no '.'.
    const std::size_t colon = is_a_document(text) ? std::string_view::npos : text.rfind(':');
    const std::string_view tail = colon == std::string_view::npos ? "" : text.substr(colon + 1);
    const bool counted = colon != std::string_view::npos && !names_a_document(tail);
    const std::string_view name = counted ? text.substr(0, colon) : text;
    Cluster cluster = is_a_document(name) || names_a_document(name) ? read_cluster(name) : cluster_named(name);
    if (counted) cluster.gpus = parse_count(tail, text);
    if (cluster.gpus == 0)
        fail(ErrorKind::input, "cluster '{}': the number of GPUs is missing, write {}:32 for 32 of them", text, name);
    require_links(cluster, is_a_document(name) ? "--cluster" : name);
    return cluster;
}

Cluster with_network(Cluster cluster, const Network& shape) {
    if (shape.kind == NetworkKind::cube && !is_cube(shape.domain))
        fail(ErrorKind::input, "network '{}': {} GPUs are no cube, which has a whole number cubed, like 64", shape.name,
             shape.domain);
    const std::int64_t node = shape.kind == NetworkKind::ring ? shape.node : shape.domain;
    if (node != cluster.gpus_per_node) {
        const std::int64_t of_gpu = cluster.network.bytes_per_second / cluster.gpus_per_node;
        cluster.network.bytes_per_second = std::min(of_gpu, most_speed / node) * node;
        cluster.gpus_per_node = node;
    }
    cluster.shape.reset();
    if (shape.kind != NetworkKind::switched) {
        cluster.shape = shape;
        cluster.shape->aliases.clear();  // which no file of the cluster keeps
    }
    return cluster.gpus_per_rack > 0 ? with_racks(cluster, cluster.gpus_per_rack, cluster.oversubscription) : cluster;
}

std::optional<std::string> why_no_racks(const Cluster& cluster, std::int64_t gpus_per_rack) {
    if (cluster.shape && cluster.shape->kind == NetworkKind::ring)
        return fmt::format("network '{}' is a ring through all nodes, which has no racks", cluster.shape->name);
    if (gpus_per_rack % cluster.gpus_per_node == 0) return std::nullopt;
    return fmt::format("is {}, must be whole nodes of {} GPUs", gpus_per_rack, cluster.gpus_per_node);
}

Cluster with_racks(Cluster cluster, std::int64_t gpus_per_rack, double oversubscription) {
    if (const auto why = why_no_racks(cluster, gpus_per_rack)) fail(ErrorKind::input, "gpus_per_rack: {}", *why);
    cluster.gpus_per_rack = gpus_per_rack;
    cluster.oversubscription = oversubscription;
    return cluster;
}

std::string to_json(const Cluster& cluster) {
    nlohmann::ordered_json json{{"format", "pipeweaver-cluster/1"},
                                {"name", cluster.name},
                                {"device", cluster.device},
                                {"gpus_per_node", cluster.gpus_per_node}};
    if (cluster.gpus > 0) json["gpus"] = cluster.gpus;
    if (cluster.node_link > Bandwidth{}) json["node_link_bytes_per_s"] = cluster.node_link.bytes_per_second;
    if (cluster.network > Bandwidth{}) json["network_bytes_per_s"] = cluster.network.bytes_per_second;
    if (cluster.price_per_gpu_hour > 0) json["price_per_gpu_hour"] = cluster.price_per_gpu_hour;
    if (!cluster.source.empty()) json["source"] = cluster.source;
    if (cluster.shape) json["network"] = nlohmann::ordered_json::parse(to_json(*cluster.shape));
    if (cluster.gpus_per_rack > 0) json["gpus_per_rack"] = cluster.gpus_per_rack;
    if (cluster.oversubscription > 1) json["rack_oversubscription"] = cluster.oversubscription;
    return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace pipeweaver::workloads
