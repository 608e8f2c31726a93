#include "launch/read/defaults.hpp"

#include <algorithm>

namespace pipeweaver::launch {

std::vector<Setting> with_defaults(const SaidLaunch& said) {
    if (said.entry == nullptr || said.is_dump) return said.settings;
    const auto is_said = [&](std::string_view name) {
        return !name.empty() && std::any_of(said.settings.begin(), said.settings.end(),
                                            [&](const Setting& one) { return one.name == name; });
    };
    std::vector<Setting> all;
    for (const frameworks::Default& one : said.entry->defaults)
        if (!is_said(one.unless))
            all.push_back({std::string(one.setting), {std::string(one.value)}, std::string(said.entry->name)});
    for (Setting setting : said.settings) {
        const auto& meanings = said.entry->meanings;
        const auto other = std::find_if(meanings.begin(), meanings.end(), [&](const frameworks::Meaning& one) {
            return one.setting == setting.name && (one.beside.empty() || is_said(one.beside));
        });
        if (other != meanings.end()) setting.name = other->as;
        if (!setting.name.empty()) all.push_back(std::move(setting));
    }
    return all;
}

}  // namespace pipeweaver::launch
