#include "pipeweaver/partition/asked_layouts.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/options.hpp"
#include "pipeweaver/base/text.hpp"

#include <algorithm>
#include <utility>

namespace pipeweaver::partition {

using namespace emulator;

namespace {

constexpr std::size_t most_combinations = 16;

// Split where the copies divide the heads.
ModuleLayout usual_sharing(const Setup& setup, std::size_t module, std::int64_t tp) {
    ModuleLayout layout{tp, setup.layout.gpus_of_rank() / tp, Sharing::hybrid};
    if (layout.copies == 1 || why_not(layout, setup.model, module, setup.layout, "")) layout.sharing = Sharing::dealt;
    return layout;
}

std::size_t module_called(const std::string& name, const workloads::Model& model) {
    std::vector<std::string> names;
    for (std::size_t m = 0; m < model.modules.size(); ++m) {
        names.push_back(model.modules[m].name);
        if (names.back() == name) return m;
    }
    fail(ErrorKind::input, "--module-tp: {}", unknown("module", name, names));
}

std::optional<ModuleLayout> parse_layout(const std::string& degree, std::size_t module, const Setup& setup,
                                         const std::string& part) {
    if (degree == "auto") return std::nullopt;
    const std::size_t colon = degree.find(':');
    const std::string tp = degree.substr(0, colon);
    const std::int64_t gpus = setup.layout.gpus_of_rank();
    const auto number = integer_in(tp, 1, gpus);
    if (!number)
        fail(ErrorKind::input, "--module-tp {}: {}", part,
             must_be(tp, fmt::format("auto or {}, the GPUs of a rank", a_whole_number(1, gpus))));
    ModuleLayout layout{*number, 1};
    if (*number != setup.layout.tp || setup.layout.cp > 1) layout = usual_sharing(setup, module, *number);
    if (colon != std::string::npos) {
        const auto sharing = sharing_named(degree.substr(colon + 1));
        if (!sharing)
            fail(ErrorKind::input, "--module-tp {}: '{}' is no way to share, allowed are dealt, split and hybrid", part,
                 degree.substr(colon + 1));
        layout.sharing = layout.copies == 1 ? Sharing::dealt : *sharing;
    }
    if (const auto why = why_not(layout, setup.model, module, setup.layout, "--module-tp " + part))
        throw Error(ErrorKind::input, *why);
    return layout;
}

std::vector<ModuleLayout> options_of(const Setup& setup, std::size_t module, const AskedLayouts& asked) {
    if (!asked.empty() && asked[module]) return {*asked[module]};
    std::vector<ModuleLayout> options{layout_of({}, module, setup.layout)};
    const std::int64_t gpus = setup.layout.gpus_of_rank();
    for (std::int64_t tp = 1; tp < gpus; ++tp) {
        if (gpus % tp != 0) continue;
        const ModuleLayout layout = usual_sharing(setup, module, tp);
        if (!why_not(layout, setup.model, module, setup.layout, "")) options.push_back(layout);
    }
    return options;
}

// One option for each module, all combinations.
std::vector<ModuleLayouts> product_of(const std::vector<std::vector<ModuleLayout>>& options) {
    std::vector<ModuleLayouts> all{{}};
    for (const auto& of_module : options) {
        std::vector<ModuleLayouts> longer;
        for (const ModuleLayouts& one : all)
            for (const ModuleLayout& option : of_module) {
                longer.push_back(one);
                longer.back().push_back(option);
            }
        all = std::move(longer);
    }
    return all;
}

}  // namespace

AskedLayouts parse_module_tp(const std::string& text, const Setup& setup) {
    AskedLayouts asked(setup.model.modules.size());
    if (text == "auto") return asked;
    std::vector<char> seen(asked.size());
    for (const std::string& part : parts_of(text)) {
        const std::size_t equals = part.find('=');
        if (equals == std::string::npos)
            fail(ErrorKind::input, "--module-tp: {}", must_be(part, "auto or MODULE=TP, like vit=1,audio=2:split"));
        const std::size_t module = module_called(part.substr(0, equals), setup.model);
        if (std::exchange(seen[module], 1) != 0)
            fail(ErrorKind::input, "--module-tp: names '{}' twice", setup.model.modules[module].name);
        asked[module] = parse_layout(part.substr(equals + 1), module, setup, part);
    }
    return asked;
}

std::vector<ModuleLayouts> layouts_to_try(const Setup& setup, const AskedLayouts& asked) {
    std::vector<std::vector<ModuleLayout>> options;
    std::size_t combinations = 1;
    for (std::size_t m = 0; m < setup.model.modules.size(); ++m) {
        options.push_back(options_of(setup, m, asked));
        combinations *= options.back().size();
    }
    auto all = product_of(options);
    if (combinations <= most_combinations) return all;
    std::erase_if(all, [&](const ModuleLayouts& one) {
        std::optional<std::int64_t> degree;
        for (std::size_t m = 0; m < one.size(); ++m)
            if (options[m].size() > 1 && degree.value_or(one[m].tp) != one[m].tp)
                return true;
            else if (options[m].size() > 1)
                degree = one[m].tp;
        return false;
    });
    return all;
}

std::int64_t fewest_items(const workloads::Model& model, const ModuleLayout& layout) {
    if (layout.sharing != Sharing::dealt) return 1;
    const std::int64_t most = model.most_items > 0 ? model.most_items : model.microbatch_tokens;
    return std::min(layout.copies, most);
}

bool asks_for_copies(const AskedLayouts& asked) {
    return std::any_of(asked.begin(), asked.end(),
                       [](const std::optional<ModuleLayout>& one) { return one && one->copies > 1; });
}

}  // namespace pipeweaver::partition
