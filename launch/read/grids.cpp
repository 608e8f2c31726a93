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
    constexpr std::array<std::string_view, 10> names{"MIMO_LANGUAGE_SIZE",
                                                     "MIMO_IMAGES_SIZE",
                                                     "MICRO_BATCH_SIZE",
                                                     "GLOBAL_BATCH_SIZE",
                                                     "SEQ_LENGTH",
                                                     "PIPEWEAVER_LANGUAGE_RECOMPUTE",
                                                     "PIPEWEAVER_IMAGES_RECOMPUTE",
                                                     "PIPEWEAVER_LANGUAGE_LAYERS",
                                                     "PIPEWEAVER_IMAGES_LAYERS",
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

    std::optional<std::string> value(const std::string& variable) const {
        for (const Setting& one : said_.settings)
            if (one.name == variable) return one.values.front();
        return std::nullopt;
    }

    std::optional<std::int64_t> number(const std::string& variable, std::int64_t least) const {
        const auto text = value(variable);
        if (!text) return std::nullopt;
        return parse_integer(fmt::format("{}: {}", said_.from, variable), *text, least, most_of_grids);
    }

    void put(Grid& grid, std::vector<std::string>& assumed) const {
        for (const DegreeOfGrid& degree : degrees_of_grids) {
            const auto variable = fmt::format("MIMO_{}_{}", grid.name, degree.name);
            const auto said = number(variable, degree.least);
            grid.*degree.member = said.value_or(grid.name == "LANGUAGE" ? degree.language : degree.images);
            if (!said)
                assumed.push_back(
                    fmt::format("{} is not said: {} as slurm_sft.sh has it", variable, grid.*degree.member));
        }
        grid.size = number(fmt::format("MIMO_{}_SIZE", grid.name), 1);
        put_recompute(grid);
        put_layers(grid);
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
        for (const std::string& one : parts_of(*text)) grid.layers.push_back(parse_integer(key, one, 0, most_of_grids));
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

bool takes_grids(const std::vector<Word>& words) {
    return std::any_of(words.begin(), words.end(), [](const Word& word) {
        return word.text == "--component" || word.text.find("megatron_mimo/") != std::string::npos;
    });
}

SaidLaunch said_by_variables(const Variables& variables, std::string_view text, const std::string& name) {
    SaidLaunch said{Dialect::grid_variables, name, {}, {}, variables};
    for (const auto& [variable, value] : variables)
        if (module_in(variable) || is_beside_grids(variable)) said.settings.push_back({variable, {value}, name});
    for (const std::string_view module : {"LANGUAGE", "IMAGES"})
        for (const DegreeOfGrid& degree : degrees_of_grids) {
            const auto variable = fmt::format("MIMO_{}_{}", module, degree.name);
            if (variables.contains(variable) || text.find(variable + "=") == std::string_view::npos) continue;
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

SaidLaunch said_by_words(const std::vector<Word>& words, const std::string& name) {
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
        if (std::any_of(command->words.begin(), command->words.end(),
                        [](const Word& word) { return word.text == "--component"; }))
            return said_by_words(command->words, name);
    return std::nullopt;
}

GridsLaunch read_grids(const SaidLaunch& said) { return GridReader(said).read(); }

}  // namespace pipeweaver::launch
