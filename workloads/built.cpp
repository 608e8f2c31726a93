#include "pipeweaver/workloads/built.hpp"

#include <algorithm>

namespace pipeweaver::workloads {

std::vector<std::string> encoder_recompute_names() { return {"as-backbone", "never", "always"}; }

std::string name_of(EncoderRecompute how) { return encoder_recompute_names().at(static_cast<std::size_t>(how)); }

std::optional<EncoderRecompute> encoder_recompute_called(std::string_view name) {
    const auto names = encoder_recompute_names();
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) return std::nullopt;
    return static_cast<EncoderRecompute>(found - names.begin());
}

bool is_of(const Built& row, std::string_view family) {
    std::string_view left = row.families;
    while (!left.empty() && !family.empty()) {
        const std::size_t end = left.find('|');
        if (left.substr(0, end) == family) return true;
        left = end == std::string_view::npos ? std::string_view{} : left.substr(end + 1);
    }
    return false;
}

Built recomputing_otherwise(const Built& row) {
    Built other = row;
    other.recompute =
        row.recompute == EncoderRecompute::never ? EncoderRecompute::as_backbone : EncoderRecompute::never;
    other.recompute_turned = true;
    return other;
}

std::string recompute_switch(const Built& row) {
    if (!row.recompute_turned) return {};
    return "--" + std::string(row.recompute_by) + (row.recompute == EncoderRecompute::never ? " false" : "");
}

Built dealing(const Built& row) {
    Built dealt = row;
    dealt.lies.context = OnContextRanks::dealt;
    return dealt;
}

}  // namespace pipeweaver::workloads
