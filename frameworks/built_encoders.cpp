#include "pipeweaver/frameworks/built_encoders.hpp"

#include "frameworks/built_tables.hpp"

#include <algorithm>

namespace pipeweaver::frameworks {

using workloads::Built;

std::vector<Built> built_encoders() {
    std::vector<Built> all;
    for (const auto& table : {built_by_megatron_bridge(), built_by_megatron_lm(), built_by_swift(),
                              built_by_torchtitan(), built_by_veomni()})
        all.insert(all.end(), table.begin(), table.end());
    return all;
}

const Built* built_encoder(std::span<const std::string_view> frameworks, std::string_view family) {
    static const std::vector<Built> all = built_encoders();
    for (const std::string_view framework : frameworks)
        for (const Built& row : all)
            if (row.framework == framework && is_of(row, family)) return &row;
    return nullptr;
}

std::vector<std::string> builders() {
    std::vector<std::string> names;
    for (const Built& row : built_encoders())
        if (std::find(names.begin(), names.end(), row.framework) == names.end()) names.emplace_back(row.framework);
    return names;
}

}  // namespace pipeweaver::frameworks
