// What may stand where: the words of each kind of value, and the commands with their options as lists.
#include "apps/completion/scripts.hpp"
#include "pipeweaver/emit/targets.hpp"
#include "pipeweaver/loader/loader.hpp"
#include "pipeweaver/search/policies.hpp"
#include "pipeweaver/search/search.hpp"
#include "pipeweaver/workloads/batch.hpp"
#include "pipeweaver/workloads/catalogue.hpp"
#include "pipeweaver/workloads/cluster.hpp"
#include "pipeweaver/workloads/network.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace pipeweaver::apps {

namespace {

template <class Known>
Words names_of(const Known& all) {
    Words words;
    for (const auto& one : all) words.push_back(one.name);
    return words;
}

Words and_all(Words words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

// The parts between '|'.
Words split(const std::string& kind) {
    Words words;
    for (std::size_t from = 0; from <= kind.size();) {
        const std::size_t end = std::min(kind.find('|', from), kind.size());
        words.push_back(kind.substr(from, end - from));
        from = end + 1;
    }
    return words;
}

bool has_capital(const std::string& word) {
    return std::any_of(word.begin(), word.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

}  // namespace

Words words_of(const std::string& kind) {
    if (kind.find('|') != std::string::npos || !has_capital(kind)) {
        Words words = split(kind);
        std::erase_if(words, has_capital);  // of "auto|N" only "auto" can be offered
        return words;
    }
    if (kind == "MODEL") return and_all(workloads::model_names(), {"hf:"});
    if (kind == "NAME")
        return and_all(and_all(words_of("MODEL"), names_of(workloads::clusters())), names_of(workloads::networks()));
    if (kind == "CLUSTER") {
        Words words = names_of(workloads::clusters());
        for (auto& word : words) word += ":";
        return words;
    }
    if (kind == "DATASET") return names_of(workloads::datasets());
    if (kind == "DEVICE") return names_of(workloads::devices());
    if (kind == "LOADER") return names_of(loader::loaders());
    if (kind == "NETWORK,...") return and_all(names_of(workloads::networks()), {"all"});
    if (kind == "NETWORK") return names_of(workloads::networks());
    if (kind == "POLICY") return names_of(search::policies());
    if (kind == "STRATEGY") return names_of(search::strategies());
    if (kind == "TARGET") return names_of(emit::targets());
    return {};
}

bool takes_files(std::string_view kind) {
    return kind == "FILE" || kind == "MODEL" || kind == "CLUSTER" || kind == "LOADER";
}

std::string case_function(std::string_view name, std::string_view of, const std::string& cases) {
    return fmt::format("\n_pipeweaver_{}() {{\n    case {} in\n{}    esac\n}}\n", name, of, cases);
}

std::vector<NamedCommand> all_commands(const CommandShape& program) {
    std::vector<NamedCommand> all{{"", &program}};
    for (std::size_t i = 0; i < all.size(); ++i) {
        const NamedCommand command = all[i];
        for (const CommandShape& one : command.shape->commands)
            all.push_back({command.path.empty() ? one.name : command.path + " " + one.name, &one});
    }
    return all;
}

std::string operand_of(const CommandShape& command) {
    for (const OptionShape& option : command.options)
        if (!option.group.empty() && !option.operand.empty()) return option.kind;
    return {};
}

KindCases kind_cases(const CommandShape& program) {
    KindCases cases;
    std::set<std::string> known;  // kinds that have their words
    const auto add = [&](const std::string& path, const std::string& place, const std::string& kind) {
        cases.kinds += fmt::format("        '{} {}') echo '{}' ;;\n", path, place, kind);
        const Words all = words_of(kind);
        if (!all.empty() && known.insert(kind).second)
            cases.words += fmt::format("        '{}') echo '{}' ;;\n", kind, fmt::join(all, " "));
    };
    for (const auto& [path, command] : all_commands(program)) {
        if (const std::string kind = operand_of(*command); !kind.empty()) add(path, "operand", kind);
        for (const OptionShape& option : command->options) {
            if (option.group.empty() || !option.takes_value) continue;
            for (const auto& name : option.names) add(path, "--" + name, option.kind);
        }
    }
    return cases;
}

}  // namespace pipeweaver::apps
