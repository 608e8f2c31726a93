#include "planner/options/attention_options.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/options.hpp"
#include "pipeweaver/planner/long_context.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace pipeweaver::planner {

namespace {

std::vector<std::string> parts_between(std::string_view text, char by) {
    std::vector<std::string> parts;
    for (std::size_t from = 0; from <= text.size();) {
        const std::size_t end = std::min(text.find(by, from), text.size());
        parts.emplace_back(text.substr(from, end - from));
        from = end + 1;
    }
    return parts;
}

workloads::Module& module_called(workloads::Model& of, std::string_view option, const std::string& name) {
    std::vector<std::string> names;
    for (workloads::Module& module : of.modules) {
        if (module.name == name) return module;
        names.push_back(module.name);
    }
    fail(ErrorKind::input, "{}: '{}' has no module '{}', known are {}", option, of.name, name, fmt::join(names, ", "));
}

void set_sparsity_of(workloads::Module& module, const std::string& text) {
    constexpr std::string_view option = "--sparsity";
    if (!may_leave_pairs_out(module))
        fail(ErrorKind::input, "{}: is of diffusion transformers with dense attention alone, and '{}' is none", option,
             module.name);
    std::vector<double> all;
    for (const std::string& one : parts_between(text, '/')) all.push_back(parse_number(option, one, 0, 1));
    const std::int64_t layers = module.architecture.layers;
    if (all.size() > 1 && static_cast<std::int64_t>(all.size()) != layers)
        fail(ErrorKind::input, "{}: has {} numbers, allowed are one or one for each of the {} layers of '{}'", option,
             all.size(), layers, module.name);
    module.architecture.attention.sparsity = std::move(all);
}

}  // namespace

void set_sparsity(workloads::Model& of, const std::string& text) {
    if (text.empty()) return;
    if (text.find('=') != std::string::npos) {
        for (const std::string& one : parts_between(text, ',')) {
            const auto is = one.find('=');
            const bool named = is != std::string::npos;
            set_sparsity_of(module_called(of, "--sparsity", one.substr(0, is)), named ? one.substr(is + 1) : "");
        }
        return;
    }
    bool any = false;
    for (workloads::Module& module : of.modules)
        if (may_leave_pairs_out(module)) {
            set_sparsity_of(module, text);
            any = true;
        }
    if (!any)
        fail(ErrorKind::input, "--sparsity: is of diffusion transformers with dense attention alone, and '{}' has none",
             of.name);
}

void set_contexts(workloads::Model& of, const std::string& text, const std::optional<std::int64_t>& cp) {
    constexpr std::string_view option = "--module-context";
    constexpr std::int64_t most = 1024;
    if (text.empty()) return;
    for (const std::string& one : parts_between(text, ',')) {
        const auto is = one.find('=');
        if (is == std::string::npos)
            fail(ErrorKind::input, "{}: '{}' is not MODULE=ULYSSESxRING; write it like dit=4x2", option, one);
        workloads::Module& module = module_called(of, option, one.substr(0, is));
        const auto degrees = parts_between(one.substr(is + 1), 'x');
        if (degrees.size() > 2)
            fail(ErrorKind::input, "{}: '{}' is not MODULE=ULYSSESxRING; write it like dit=4x2", option, one);
        module.ulysses = parse_integer(option, degrees.front(), 1, most);
        if (degrees.size() == 1) continue;
        const std::int64_t gpus = module.ulysses * parse_integer(option, degrees.back(), 1, most);
        if (gpus != cp.value_or(1))
            fail(ErrorKind::input, "{}: '{}' are {} GPUs, must be those of --cp, {}", option, one, gpus,
                 cp.value_or(1));
    }
}

}  // namespace pipeweaver::planner
