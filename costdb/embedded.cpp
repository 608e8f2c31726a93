#include "costdb/embedded.hpp"

#include <array>
#include <cstddef>

extern "C" {
extern const char pipeweaver_costdb_a100_pcie[], pipeweaver_costdb_a100_pcie_end[];
extern const char pipeweaver_costdb_a100_sxm[], pipeweaver_costdb_a100_sxm_end[];
extern const char pipeweaver_costdb_b200[], pipeweaver_costdb_b200_end[];
extern const char pipeweaver_costdb_b300[], pipeweaver_costdb_b300_end[];
extern const char pipeweaver_costdb_gb200[], pipeweaver_costdb_gb200_end[];
extern const char pipeweaver_costdb_gb300[], pipeweaver_costdb_gb300_end[];
extern const char pipeweaver_costdb_h100_sxm[], pipeweaver_costdb_h100_sxm_end[];
extern const char pipeweaver_costdb_h200_sxm[], pipeweaver_costdb_h200_sxm_end[];
}

namespace pipeweaver::costdb {

namespace {

struct Embedded {
    std::string_view device;
    const char *begin, *end;
};

constexpr std::array<Embedded, 8> embedded{{
    {"a100_pcie", pipeweaver_costdb_a100_pcie, pipeweaver_costdb_a100_pcie_end},
    {"a100_sxm", pipeweaver_costdb_a100_sxm, pipeweaver_costdb_a100_sxm_end},
    {"b200", pipeweaver_costdb_b200, pipeweaver_costdb_b200_end},
    {"b300", pipeweaver_costdb_b300, pipeweaver_costdb_b300_end},
    {"gb200", pipeweaver_costdb_gb200, pipeweaver_costdb_gb200_end},
    {"gb300", pipeweaver_costdb_gb300, pipeweaver_costdb_gb300_end},
    {"h100_sxm", pipeweaver_costdb_h100_sxm, pipeweaver_costdb_h100_sxm_end},
    {"h200_sxm", pipeweaver_costdb_h200_sxm, pipeweaver_costdb_h200_sxm_end},
}};

}  // namespace

std::vector<std::string> embedded_devices() {
    std::vector<std::string> names;
    for (const Embedded& one : embedded) names.emplace_back(one.device);
    return names;
}

std::string_view embedded_store(std::string_view device) {
    for (const Embedded& one : embedded)
        if (one.device == device) return {one.begin, static_cast<std::size_t>(one.end - one.begin)};
    return {};
}

}  // namespace pipeweaver::costdb
