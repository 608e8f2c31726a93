#include "pipeweaver/emulator/what_if.hpp"

#include "emulator/pricing/stage_walk.hpp"
#include "pipeweaver/base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace pipeweaver::emulator {

namespace {

constexpr double largest_factor = 1000;

double factor_of(const Json& value) {
    const double factor = value.number(0, largest_factor);
    if (factor <= 0) value.fail(must_be(0, fmt::format("a number above 0 up to {}", largest_factor)));
    return factor;
}

std::map<std::string, double> factors_of(const std::optional<Json>& object, std::span<const std::string> known) {
    std::map<std::string, double> factors;
    if (!object) return factors;
    object->only_keys(known);
    for (const auto& [name, value] : object->members()) factors.emplace(name, factor_of(value));
    return factors;
}

WhatIf::Device device_of(const Json& entry, const Layout& layout) {
    entry.only_keys({"rank", "replica", "factor"});
    WhatIf::Device device;
    device.rank = entry.at("rank").integer(0, layout.pp - 1);
    if (const auto replica = entry.find("replica")) device.replica = replica->integer(0, layout.dp - 1);
    device.factor = factor_of(entry.at("factor"));
    return device;
}

double largest_of(const std::map<std::string, double>& factors) {
    double largest = 1;
    for (const auto& [name, factor] : factors) largest = std::max(largest, factor);
    return largest;
}

// Times as large as the largest factor allows can be added up; products of many factors could not be.
void require_small_products(const WhatIf& what_if, const Json& root) {
    double device = 1;
    std::map<std::int64_t, double> of_rank;
    for (const WhatIf::Device& one : what_if.devices) {
        double& together = of_rank.try_emplace(one.rank, 1).first->second;
        together *= std::max(1.0, one.factor);
        device = std::max(device, together);
    }
    double of_class = 1, of_name = 1;
    for (const auto& [name, factor] : what_if.operators) {
        bool is_class = false;
        for (std::size_t c = 0; c < operator_classes; ++c)
            is_class = is_class || name == name_of(static_cast<OperatorClass>(c));
        double& largest = is_class ? of_class : of_name;
        largest = std::max(largest, factor);
    }
    const double product = device * largest_of(what_if.links) * of_class * of_name * largest_of(what_if.modules);
    if (product > largest_factor)
        root.fail(fmt::format("the largest factors that may meet are {:.6g} together, allowed is up to {}", product,
                              largest_factor));
}

// Every module at once, as one GPU would run it: only names are wanted.
std::vector<PassShape> any_shapes(const workloads::Model& model) {
    std::vector<PassShape> shapes;
    for (const auto& module : model.modules) {
        const auto& network = module.architecture;
        PassShape shape{{4096}, {}};
        if (network.cross_attention_dim > 0 || network.mmdit) shape.context = {256};
        shapes.push_back(std::move(shape));
    }
    return shapes;
}

}  // namespace

const std::vector<std::string>& link_names() {
    static const std::vector<std::string> names{"tensor", "context", "data", "copy", "pipeline"};
    return names;
}

std::vector<std::string> operator_names(const workloads::Model& model, const Layout& layout) {
    std::set<std::string> found{"optimizer", "tied embedding"};
    if (layout.weight_copies() > 1) found.insert({"reduce gradients", "gather weights"});
    const auto add = [&](const std::vector<Operator>& operators) {
        for (const Operator& op : operators) found.emplace(op.name);
    };
    StageLayers all;
    for (std::size_t m = 0; m < model.modules.size(); ++m)
        all.parts.push_back({m, 0, model.modules[m].architecture.layers});
    const auto shapes = any_shapes(model);
    const auto modules = placed_modules(layout, {}, model);
    for (const PassKind pass : {PassKind::forward, PassKind::backward})
        walk_stage(
            model, modules, workloads::gradient_reaches(model), Recipe{}, all, shapes, pass,
            [&](const LayerRange& part, PassKind here, const PassShape&) {
                walk_layers(model, part, [&](std::int64_t first, std::int64_t) {
                    add(layer_operators(model.modules[part.module].architecture, shapes[part.module], layout, here,
                                        first));
                });
            },
            [&](const AroundBlocks& around) { add(around.operators()); });
    std::vector<std::string> names;
    for (std::size_t c = 0; c < operator_classes; ++c) names.emplace_back(name_of(static_cast<OperatorClass>(c)));
    for (const std::string& name : names) found.erase(name);
    names.insert(names.end(), found.begin(), found.end());
    return names;
}

double factor_of(const WhatIf& what_if, const Operator& op, std::string_view module) {
    double factor = 1;
    const auto apply = [&](const std::map<std::string, double>& factors, std::string_view name) {
        if (const auto found = factors.find(std::string(name)); found != factors.end()) factor *= found->second;
    };
    apply(what_if.operators, name_of(op.kind()));
    if (op.name != name_of(op.kind())) apply(what_if.operators, op.name);
    apply(what_if.links, name_of(op.stream));
    apply(what_if.modules, module);
    return factor;
}

double pass_factor(const WhatIf& what_if, std::string_view module, bool backward) {
    double factor = 1;
    for (const WhatIf::Passes& one : what_if.passes)
        if (one.module == module && one.backward == backward) factor *= one.factor;
    return factor;
}

double device_factor(const WhatIf& what_if, std::int64_t replica, RankId rank) {
    double factor = 1;
    for (const WhatIf::Device& device : what_if.devices)
        if (device.rank == static_cast<std::int64_t>(index(rank)) && device.replica.value_or(replica) == replica)
            factor *= device.factor;
    return factor;
}

WhatIf parse_what_if(const JsonDocument& document, const workloads::Model& model, const Layout& layout) {
    document.require_format("pipeweaver-what-if", 1);
    const Json root = document.root();
    root.only_keys({"format", "devices", "links", "operators", "modules"});
    std::vector<std::string> modules;
    for (const auto& module : model.modules) modules.push_back(module.name);
    WhatIf what_if;
    if (const auto devices = root.find("devices"))
        for (const Json& entry : devices->elements()) what_if.devices.push_back(device_of(entry, layout));
    what_if.links = factors_of(root.find("links"), link_names());
    what_if.operators = factors_of(root.find("operators"), operator_names(model, layout));
    what_if.modules = factors_of(root.find("modules"), modules);
    require_small_products(what_if, root);
    return what_if;
}

WhatIf read_what_if(const std::filesystem::path& path, const workloads::Model& model, const Layout& layout) {
    return parse_what_if(JsonDocument::read(path), model, layout);
}

}  // namespace pipeweaver::emulator
