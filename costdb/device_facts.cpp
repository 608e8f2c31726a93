// Stands in for workloads::device() until that is there; figures of NVIDIA's data sheets, dense.
#include "costdb/device_facts.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

namespace pipeweaver::costdb {

namespace {

struct Entry {
    DeviceFacts facts;
    std::vector<std::string> aliases;  // lower case, '_' for '-' and blank
};

const std::array<Entry, 7>& entries() {
    static const std::array<Entry, 7> all{{
        {{"a100_sxm", Family::ampere, 312e6, 0, 2.039e6, 108, 300e3},
         {"a100", "a100_80gb", "a100_80gb_sxm", "a100_sxm4", "a100_sxm4_80gb"}},
        {{"a100_pcie", Family::ampere, 312e6, 0, 1.935e6, 108, 32e3}, {"a100_80gb_pcie", "a100_pcie_80gb"}},
        {{"h100_sxm", Family::hopper, 989e6, 1979e6, 3.35e6, 132, 450e3},
         {"h100", "h100_80gb", "h100_80gb_sxm", "h100_sxm5", "h100_sxm5_80gb"}},
        {{"h200_sxm", Family::hopper, 989e6, 1979e6, 4.8e6, 132, 450e3}, {"h200", "h200_141gb", "h200_sxm5"}},
        {{"h800_sxm", Family::hopper, 989e6, 1979e6, 3.35e6, 132, 200e3}, {"h800"}},
        {{"h20_sxm", Family::hopper, 148e6, 296e6, 4.0e6, 78, 450e3}, {"h20"}},
        {{"b200", Family::blackwell, 2250e6, 4500e6, 8.0e6, 148, 900e3}, {"b200_sxm", "b200_180gb"}},
    }};
    return all;
}

std::string normal(std::string_view name) {
    std::string out(name);
    for (auto& c : out) {
        c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        if (c == '-' || c == ' ') c = '_';
    }
    return out;
}

}  // namespace

double DeviceFacts::peak(Dtype dtype) const {
    switch (dtype) {
        case Dtype::bf16:
        case Dtype::fp16: return bf16_flops_per_us;
        case Dtype::fp32: return bf16_flops_per_us / 2;
        case Dtype::int8: return bf16_flops_per_us * 2;
        case Dtype::fp8: break;
    }
    if (fp8_flops_per_us <= 0) fail(ErrorKind::input, "dtype: fp8 is not supported by {}, allowed is bf16", name);
    return fp8_flops_per_us;
}

DeviceFacts facts_of(std::string_view device) {
    const auto name = normal(device);
    std::vector<std::string> known;
    for (const auto& [facts, aliases] : entries()) {
        if (facts.name == name || std::find(aliases.begin(), aliases.end(), name) != aliases.end()) return facts;
        known.push_back(facts.name);
    }
    fail(ErrorKind::input, "{}", unknown("device", device, known));
}

}  // namespace pipeweaver::costdb
