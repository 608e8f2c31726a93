#include "pipeweaver/workloads/built.hpp"

namespace pipeweaver::workloads {

bool is_of(const Built& row, std::string_view family) {
    std::string_view left = row.families;
    while (!left.empty() && !family.empty()) {
        const std::size_t end = left.find('|');
        if (left.substr(0, end) == family) return true;
        left = end == std::string_view::npos ? std::string_view{} : left.substr(end + 1);
    }
    return false;
}

Built dealing(const Built& row) {
    Built dealt = row;
    dealt.lies.context = OnContextRanks::dealt;
    return dealt;
}

}  // namespace pipeweaver::workloads
