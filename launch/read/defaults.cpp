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
    const auto has = [&](std::string_view name, std::string_view value) {
        return std::any_of(all.begin(), all.end(), [&](const Setting& one) {
            return one.name == name && (value.empty() || (one.values.size() == 1 && one.values.front() == value));
        });
    };
    for (const frameworks::Implied& one : said.entry->implied)
        if (has(one.setting, one.value) && !has(one.then, {}))
            all.push_back({std::string(one.then), {std::string(one.is)}, std::string(said.entry->name)});
    return all;
}

}  // namespace pipeweaver::launch
