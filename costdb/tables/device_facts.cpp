#include "costdb/tables/device_facts.hpp"

#include "pipeweaver/base/error.hpp"

#include <algorithm>

namespace pipeweaver::costdb {

namespace {

// Which methods and errors its answers go by.
Family counted_as(const std::string& device) {
    const Family family = workloads::family_of(device);
    return family == Family::other ? Family::hopper : family;
}

// The shipped cluster made of a device.
const workloads::Cluster* cluster_of(std::string_view device) {
    const auto clusters = workloads::clusters();
    const auto found =
        std::find_if(clusters.begin(), clusters.end(), [&](const auto& c) { return c.device == device; });
    return found == clusters.end() ? nullptr : &*found;
}

}  // namespace

double DeviceFacts::peak(Dtype dtype) const {
    switch (dtype) {
        case Dtype::bf16:
        case Dtype::fp16:
            return bf16_flops_per_us;
        case Dtype::fp32:
            return bf16_flops_per_us / 2;
        case Dtype::int8:
            return bf16_flops_per_us * 2;
        case Dtype::fp8:
        case Dtype::fp8_block:
        case Dtype::nvfp4:
            break;
    }
    const double peak = dtype == Dtype::nvfp4 ? fp4_flops_per_us : fp8_flops_per_us;
    if (peak <= 0)
        fail(ErrorKind::input, "dtype: {} is not supported by {}, allowed {}", name_of(dtype), name,
             fp8_flops_per_us > 0 ? "are bf16 and fp8" : "is bf16");
    return peak;
}

DeviceFacts facts_of(std::string_view name) {
    const workloads::Device& device = workloads::device(name);
    const workloads::Cluster* cluster = cluster_of(device.name);
    return {device.name,
            counted_as(device.name),
            device.bf16_flops * 1e-6,
            device.fp8_flops * 1e-6,
            device.fp4_flops * 1e-6,
            static_cast<double>(device.memory_bandwidth.bytes_per_second) * 1e-6,
            device.multiprocessors,
            cluster == nullptr ? 0 : static_cast<double>(cluster->node_link.bytes_per_second) * 1e-6,
            cluster == nullptr ? 0
                               : static_cast<double>(cluster->network.bytes_per_second) * 1e-6 /
                                     static_cast<double>(cluster->gpus_per_node)};
}

}  // namespace pipeweaver::costdb
