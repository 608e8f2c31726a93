#include "costdb/import/gpu_names.hpp"

#include "costdb/tables/device_facts.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"

#include <array>
#include <utility>

namespace pipeweaver::costdb {

namespace {

// In this order: the first whose word the product's name has.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> gpu_words{{{"A100", "a100_sxm"},
                                                                                  {"H100", "h100_sxm"},
                                                                                  {"H800", "h800_sxm"},
                                                                                  {"H200", "h200_sxm"},
                                                                                  {"H20", "h20_sxm"},
                                                                                  {"B200", "b200"}}};

}  // namespace

std::string device_of_product(std::string_view product) {
    if (contains(product, "GH200") || contains(product, "GB200") || contains(product, "NVL"))
        return "";  // other memory and links
    const bool card = contains(product, "PCIe") || contains(product, "PCIE");
    if (card) return contains(product, "A100") ? "a100_pcie" : "";
    for (const auto& [word, device] : gpu_words)
        if (contains(product, word)) return std::string(device);
    return "";
}

std::string device_of(std::string_view file, std::string_view given, std::string_view product) {
    auto named = device_of_product(product);
    if (given.empty() && named.empty())
        fail(ErrorKind::input, "{}: its device '{}' is none that is known here; --device says which it counts as", file,
             product.empty() ? "(none stated)" : product);
    if (given.empty()) return named;
    auto wanted = facts_of(given).name;
    if (!named.empty() && named != wanted)
        fail(ErrorKind::input, "{}: was measured on '{}', which is {}, but --device says {}", file, product, named,
             wanted);
    return wanted;
}

}  // namespace pipeweaver::costdb
