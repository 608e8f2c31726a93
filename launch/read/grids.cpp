#include "launch/read/grids.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/options.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/launch/megatron_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace pipeweaver::launch {

namespace {

constexpr std::int64_t most_of_grids = 1'000'000;
constexpr std::int64_t most_of_degree = 32'768;  // whose fourth power is a number, too
constexpr std::string_view before_module = "MIMO_";

struct DegreeOfGrid {
    std::string_view name;
    std::int64_t Grid::*member;
    std::int64_t least, language, images;  ///< then what the launcher takes
};

constexpr std::array<DegreeOfGrid, 5> degrees_of_grids{{{"TP", &Grid::tp, 1, 4, 1},
                                                        {"PP", &Grid::pp, 1, 2, 1},
                                                        {"CP", &Grid::cp, 1, 1, 1},
                                                        {"DP", &Grid::dp, 1, 2, 1},
                                                        {"OFFSET", &Grid::offset, 0, 0, 16}}};

// "AUDIO" of "MIMO_AUDIO_TP"; none: it is no degree of a module.
std::optional<std::string_view> module_in(std::string_view variable) {
    if (!variable.starts_with(before_module)) return std::nullopt;
    const std::string_view rest = variable.substr(before_module.size());
    const std::size_t end = rest.rfind('_');
    if (end == std::string_view::npos || end == 0) return std::nullopt;
    const bool is_degree = std::any_of(degrees_of_grids.begin(), degrees_of_grids.end(),
                                       [&](const DegreeOfGrid& one) { return one.name == rest.substr(end + 1); });
    return is_degree ? std::optional(rest.substr(0, end)) : std::nullopt;
}

// All that is read of a launch with grids, but for degrees.
bool is_beside_grids(std::string_view variable) {
    constexpr std::array<std::string_view, 9> names{"MIMO_LANGUAGE_SIZE",
                                                    "MIMO_IMAGES_SIZE",
                                                    "MICRO_BATCH_SIZE",
                                                    "GLOBAL_BATCH_SIZE",
                                                    "SEQ_LENGTH",
                                                    "PIPEWEAVER_LANGUAGE_RECOMPUTE",
                                                    "PIPEWEAVER_IMAGES_RECOMPUTE",
                                                    "PIPEWEAVER_LANGUAGE_LAYERS",
                                                    planned_variable};
    return std::find(names.begin(), names.end(), variable) != names.end();
}

class GridReader {
public:
    explicit GridReader(const SaidLaunch& said) : said_(said) {}

    GridsLaunch read() {
        refuse_other_modules();
        GridsLaunch launch;
        for (Grid* const grid : {&launch.language, &launch.images}) put(*grid, launch.assumed);
        launch.micro_batch = number("MICRO_BATCH_SIZE", 1);
        launch.global_batch = number("GLOBAL_BATCH_SIZE", 1);
        launch.seq_length = number("SEQ_LENGTH", 1);
        if (const auto planned = value(std::string(planned_variable))) launch.planned = *planned;
        return launch;
    }

private:
    void refuse_other_modules() const {
        for (const Setting& one : said_.settings)
            if (const auto module = module_in(one.name); module && *module != "LANGUAGE" && *module != "IMAGES")
                fail(ErrorKind::input, "{}: {}: there are no grids of a module '{}', allowed are LANGUAGE and IMAGES",
                     said_.from, one.name, *module);
    }

    // The last, as flags are taken.
    std::optional<std::string> value(const std::string& variable) const {
        for (auto one = said_.settings.rbegin(); one != said_.settings.rend(); ++one)
            if (one->name == variable) return one->values.front();
        return std::nullopt;
    }

    std::optional<std::int64_t> number(const std::string& variable, std::int64_t least,
                                       std::int64_t most = most_of_grids) const {
        const auto text = value(variable);
        if (!text) return std::nullopt;
        return parse_integer(fmt::format("{}: {}", said_.from, variable), *text, least, most);
    }

    void put(Grid& grid, std::vector<std::string>& assumed) const {
        for (const DegreeOfGrid& degree : degrees_of_grids) {
            const auto variable = fmt::format("MIMO_{}_{}", grid.name, degree.name);
            const auto said = number(variable, degree.least, degree.least > 0 ? most_of_degree : most_of_grids);
            grid.*degree.member = said.value_or(grid.name == "LANGUAGE" ? degree.language : degree.images);
            if (!said)
                assumed.push_back(
                    fmt::format("{} is not said: {} as slurm_sft.sh has it", variable, grid.*degree.member));
        }
        grid.size = number(fmt::format("MIMO_{}_SIZE", grid.name), 1);
        put_recompute(grid);
        if (grid.name == "LANGUAGE") put_layers(grid);
    }

    void put_recompute(Grid& grid) const {
        const auto variable = fmt::format("PIPEWEAVER_{}_RECOMPUTE", grid.name);
        const auto text = value(variable);
        if (!text) return;
        const auto named = emulator::recompute_named(*text);
        const std::array<emulator::Recompute, 3> known{emulator::Recompute::none, emulator::Recompute::selective,
                                                       emulator::Recompute::full};
        if (!named || std::find(known.begin(), known.end(), *named) == known.end())
            fail(ErrorKind::input, "{}: {}: {}", said_.from, variable, must_be(*text, "none, selective or full"));
        grid.recompute = *named;
    }

    void put_layers(Grid& grid) const {
        const auto variable = fmt::format("PIPEWEAVER_{}_LAYERS", grid.name);
        const auto text = value(variable);
        if (!text) return;
        const auto key = fmt::format("{}: {}", said_.from, variable);
        for (const std::string& one : parts_of(*text)) grid.layers.push_back(parse_integer(key, one, 1, most_of_grids));
        if (std::ssize(grid.layers) != grid.pp)
            fail(ErrorKind::input, "{}: has {} numbers, must be one of each of {} stages", key, grid.layers.size(),
                 grid.pp);
    }

    const SaidLaunch& said_;
};

bool says_grids(const Variables& variables) {
    return std::any_of(variables.begin(), variables.end(),
                       [](const auto& one) { return module_in(one.first).has_value(); });
}

bool says_component(const Word& word) { return word.text == "--component" || word.text.starts_with("--component="); }

bool takes_grids(const std::vector<Word>& words) {
    return std::any_of(words.begin(), words.end(), [](const Word& word) {
        return says_component(word) || word.text.find("megatron_mimo/") != std::string::npos;
    });
}

// Whether a line that is no comment sets the variable.
bool is_set_in(std::string_view text, const std::string& variable) {
    for (std::size_t at = text.find(variable + "="); at != std::string_view::npos;
         at = text.find(variable + "=", at + 1)) {
        const std::size_t end_before = text.substr(0, at).rfind('\n');
        const std::size_t begin = end_before == std::string_view::npos ? 0 : end_before + 1;
        if (text.substr(begin, at - begin).find('#') == std::string_view::npos) return true;
    }
    return false;
}

SaidLaunch said_by_variables(const Variables& variables, std::string_view text, const std::string& name) {
    SaidLaunch said{Dialect::grid_variables, name, {}, {}, variables};
    for (const auto& [variable, value] : variables)
        if (module_in(variable) || is_beside_grids(variable)) said.settings.push_back({variable, {value}, name});
    for (const std::string_view module : {"LANGUAGE", "IMAGES"})
        for (const DegreeOfGrid& degree : degrees_of_grids) {
            const auto variable = fmt::format("MIMO_{}_{}", module, degree.name);
            if (variables.contains(variable) || !is_set_in(text, variable)) continue;
            said.unset.push_back({variable, "$" + variable, name});
        }
    const auto model = variables.find("HF_MODEL");
    if (model != variables.end()) said.named_model = model->second;
    return said;
}

// "language=tp=4,dp=2,rank_offset=0": what is not said is one, and the first rank; replicas must be.
void put_component(const std::string& text, const std::string& where, SaidLaunch& said) {
    const std::size_t equals = text.find('=');
    std::string module = text.substr(0, equals);
    std::transform(module.begin(), module.end(), module.begin(),
                   [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
    Variables degrees{{"TP", "1"}, {"PP", "1"}, {"CP", "1"}, {"OFFSET", "0"}};
    for (const std::string& one :
         equals == std::string::npos ? std::vector<std::string>() : parts_of(text.substr(equals + 1))) {
        const std::size_t end = std::min(one.find('='), one.size());
        const std::string key = one.substr(0, end);
        constexpr std::array<std::pair<std::string_view, std::string_view>, 5> keys{
            {{"tp", "TP"}, {"pp", "PP"}, {"cp", "CP"}, {"dp", "DP"}, {"rank_offset", "OFFSET"}}};
        const auto known = std::find_if(keys.begin(), keys.end(), [&](const auto& pair) { return pair.first == key; });
        if (known == keys.end() || end == one.size())
            fail(ErrorKind::input, "{}: --component: {}", where,
                 must_be(one, "tp=N, pp=N, cp=N, dp=N or rank_offset=N"));
        degrees[std::string(known->second)] = one.substr(end + 1);
    }
    if (!degrees.contains("DP"))
        fail(ErrorKind::input, "{}: --component: {}", where, must_be(text, "like language=tp=4,dp=2, with dp"));
    for (const auto& [degree, value] : degrees)
        said.settings.push_back({fmt::format("MIMO_{}_{}", module, degree), {value}, where});
}

// "--flag=value" apart, as programs take it.
std::vector<Word> with_values_apart(const std::vector<Word>& words) {
    std::vector<Word> apart;
    for (const Word& word : words) {
        const std::size_t end = word.text.starts_with("--") ? word.text.find('=') : std::string::npos;
        if (end == std::string::npos) {
            apart.push_back(word);
            continue;
        }
        Word flag{word.text.substr(0, end), word.line};
        Word value = word;
        value.text.erase(0, end + 1);
        apart.push_back(std::move(flag));
        apart.push_back(std::move(value));
    }
    return apart;
}

SaidLaunch said_by_words(const std::vector<Word>& as_written, const std::string& name) {
    const std::vector<Word> words = with_values_apart(as_written);
    SaidLaunch said{Dialect::grid_variables, name, {}, {}};
    constexpr std::array<std::pair<std::string_view, std::string_view>, 3> flags{
        {{"--micro-batch-size", "MICRO_BATCH_SIZE"},
         {"--global-batch-size", "GLOBAL_BATCH_SIZE"},
         {"--seq-length", "SEQ_LENGTH"}}};
    for (std::size_t w = 0; w + 1 < words.size(); ++w) {
        const std::string& flag = words[w].text;
        const Word& value = words[w + 1];
        const auto where = fmt::format("{}:{}", name, value.line);
        const auto known = std::find_if(flags.begin(), flags.end(), [&](const auto& one) { return one.first == flag; });
        if (flag != "--component" && flag != "--hf-model" && known == flags.end()) continue;
        if (!value.unknown.empty())
            said.unset.push_back({flag, value.unknown, where});
        else if (flag == "--component")
            put_component(value.text, where, said);
        else if (flag == "--hf-model")
            said.named_model = value.text;
        else
            said.settings.push_back({std::string(known->second), {value.text}, where});
    }
    return said;
}

}  // namespace

std::optional<SaidLaunch> said_grids(const Script& script, std::string_view text, const std::string& name,
                                     const std::vector<Word>* launches) {
    if (text.find("PIPEWEAVER_FLAGS=(") != std::string_view::npos) return std::nullopt;  // grids are beside these
    if (says_grids(script.variables) && (launches == nullptr || takes_grids(*launches)))
        return said_by_variables(script.variables, text, name);
    for (auto command = script.commands.rbegin(); command != script.commands.rend(); ++command)
        if (std::any_of(command->words.begin(), command->words.end(), says_component))
            return said_by_words(command->words, name);
    return std::nullopt;
}

GridsLaunch read_grids(const SaidLaunch& said) { return GridReader(said).read(); }

}  // namespace pipeweaver::launch
