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

}  // namespace

bool says_grids(const Variables& variables) {
    return std::any_of(variables.begin(), variables.end(),
                       [](const auto& one) { return module_in(one.first).has_value(); });
}

bool takes_grids(const std::vector<Word>& words) {
    return std::any_of(words.begin(), words.end(), [](const Word& word) {
        return word.text == "--component" || word.text.find("megatron_mimo/") != std::string::npos;
    });
}

SaidLaunch said_grids(std::string_view script, const std::string& name, Variables variables) {
    SaidLaunch said{Dialect::grid_variables, name, {}, {}, std::move(variables)};
    for (const auto& [variable, value] : said.variables)
        if (module_in(variable) || is_beside_grids(variable)) said.settings.push_back({variable, {value}, name});
    for (const std::string_view module : {"LANGUAGE", "IMAGES"})
        for (const DegreeOfGrid& degree : degrees_of_grids) {
            const auto variable = fmt::format("MIMO_{}_{}", module, degree.name);
            if (said.variables.contains(variable) || script.find(variable + "=") == std::string_view::npos) continue;
            said.unset.push_back({variable, "$" + variable, name});
        }
    const auto model = said.variables.find("HF_MODEL");
    if (model != said.variables.end()) said.named_model = model->second;
    return said;
}

GridsLaunch read_grids(const SaidLaunch& said) { return GridReader(said).read(); }

}  // namespace pipeweaver::launch
