// Which products are in which format: what recipes and options say of modules and layers.
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emulator/product_format.hpp"
#include "pipeweaver/emulator/recipe.hpp"
#include "pipeweaver/workloads/cluster.hpp"
#include "pipeweaver/workloads/model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace pipeweaver::emulator {

using costdb::Dtype;

namespace {

std::optional<Dtype> format_named(std::string_view name) {
    for (const auto& [known, format] : product_formats())
        if (known == name) return format;
    return std::nullopt;
}

// "0-3" or "7"; none: it is neither.
std::optional<std::pair<std::int64_t, std::int64_t>> layers_called(std::string_view text) {
    std::int64_t first = 0;
    const char* const begin = text.data();
    const char* const end = begin + text.size();
    auto read = std::from_chars(begin, end, first);
    if (read.ec != std::errc{} || first < 0) return std::nullopt;
    std::int64_t last = first;
    if (read.ptr != end && *read.ptr == '-') read = std::from_chars(read.ptr + 1, end, last);
    if (read.ec != std::errc{} || read.ptr != end || last < first) return std::nullopt;
    return std::pair(first, last);
}

void require_module(const Recipe& recipe, const workloads::Model& model, const std::string& name) {
    std::vector<std::string> modules;
    for (const auto& module : model.modules) {
        if (module.name == name) return;
        modules.push_back(module.name);
    }
    std::string text = unknown("module", name, modules);
    if (text.ends_with('?')) text += fmt::format(" Known are {}", fmt::join(modules, ", "));
    fail(ErrorKind::input, "recipe {}: precision.{}: {}", recipe.name, name, text);
}

// Bytes of a value do not change between the layers of a module.
void require_one_width(const Recipe& recipe, const LayerPrecision& layers) {
    const auto of_module = recipe.precision.find(layers.module);
    const Dtype whole = of_module == recipe.precision.end() ? recipe.execution.products : of_module->second;
    if ((layers.products == Dtype::fp32) == (whole == Dtype::fp32)) return;
    fail(ErrorKind::input, "recipe {}: precision.{}: is {}, and the module is in {}; fp32 is of whole modules alone",
         recipe.name, layers.name(), name_of(layers.products), name_of(whole));
}

void require_layers(const Recipe& recipe, const workloads::Model& model, const LayerPrecision& layers) {
    require_module(recipe, model, layers.module);
    for (const auto& module : model.modules)
        if (module.name == layers.module && layers.last >= module.architecture.layers)
            fail(ErrorKind::input, "recipe {}: precision.{}: module '{}' has layers 0 to {}", recipe.name,
                 layers.name(), module.name, module.architecture.layers - 1);
    require_one_width(recipe, layers);
    for (const LayerPrecision& other : recipe.layer_precision)
        if (&other != &layers && other.module == layers.module && other.first <= layers.last &&
            layers.first <= other.last)
            fail(ErrorKind::input, "recipe {}: precision.{}: has layers of precision.{}, too; allowed is one format",
                 recipe.name, layers.name(), other.name());
}

void require_products(const Recipe& recipe, const workloads::Device& device, std::string_view of, Dtype products) {
    if (!has_products(device, products))
        fail(ErrorKind::input, "recipe {}: precision: module '{}' in {}, which {} has no products of; allowed {}",
             recipe.name, of, name_of(products), device.name, allowed_products(device));
}

}  // namespace

std::string LayerPrecision::name() const { return fmt::format("{}:{}-{}", module, first, last); }

const std::vector<std::pair<std::string_view, Dtype>>& product_formats() {
    static const std::vector<std::pair<std::string_view, Dtype>> all{{"bf16", Dtype::bf16},
                                                                     {"fp8", Dtype::fp8},
                                                                     {"fp8_block", Dtype::fp8_block},
                                                                     {"nvfp4", Dtype::nvfp4},
                                                                     {"fp32", Dtype::fp32}};
    return all;
}

bool is_narrow(Dtype products) {
    return products == Dtype::fp8 || products == Dtype::fp8_block || products == Dtype::nvfp4;
}

double bytes_with_scale(Dtype products) {
    constexpr double scale_of_block = 4. / 128, scale_of_sixteen = 1. / 16;
    if (products == Dtype::fp8_block) return 1 + scale_of_block;
    if (products == Dtype::nvfp4) return 0.5 + scale_of_sixteen;
    return static_cast<double>(costdb::size_of(products));
}

bool has_products(const workloads::Device& device, Dtype products) {
    if (products == Dtype::nvfp4) return device.fp4_flops > 0;
    return !is_narrow(products) || device.fp8_flops > 0;
}

std::string allowed_products(const workloads::Device& device) {
    std::vector<std::string_view> names;
    for (const auto& [name, format] : product_formats())
        if (format != Dtype::fp32 && has_products(device, format)) names.push_back(name);
    return fmt::format("{} {}", names.size() == 1 ? "is" : "are", fmt::join(names, ", "));
}

Dtype Recipe::products_of(const workloads::Module& module, std::int64_t block) const {
    for (const LayerPrecision& one : layer_precision)
        if (one.module == module.name && one.first <= block && block <= one.last) return one.products;
    const auto own = precision.find(module.name);
    return own == precision.end() ? execution.products : own->second;
}

bool Recipe::tells_layers_apart(const workloads::Module& module) const {
    return std::any_of(layer_precision.begin(), layer_precision.end(),
                       [&](const LayerPrecision& one) { return one.module == module.name; });
}

Execution Recipe::execution_of(const workloads::Module& module, std::int64_t block) const {
    Execution own = execution_of(module);
    own.products = products_of(module, block);
    return own;
}

std::optional<std::string> why_not_set(Recipe& recipe, std::string_view of, std::string_view format) {
    const auto products = format_named(format);
    if (!products) {
        std::vector<std::string> names;
        for (const auto& [known, dtype] : product_formats()) names.emplace_back(known);
        return must_be(format, one_of(names));
    }
    const auto colon = of.find(':');
    if (of == "default") {
        recipe.execution.products = *products;
    } else if (colon == std::string_view::npos) {
        recipe.precision[std::string(of)] = *products;
    } else {
        const auto layers = layers_called(of.substr(colon + 1));
        if (!layers) return fmt::format("'{}' names no layers; write it like llm:0-3", of);
        recipe.layer_precision.push_back({std::string(of.substr(0, colon)), layers->first, layers->second, *products});
    }
    return std::nullopt;
}

Recipe with_precision(Recipe recipe, std::string_view option, std::string_view text) {
    const auto set = [&](std::string_view of, std::string_view format) {
        if (const auto why = why_not_set(recipe, of, format)) fail(ErrorKind::input, "{}: {}", option, *why);
    };
    if (text.find('=') == std::string_view::npos) {
        recipe.precision.clear();
        recipe.layer_precision.clear();
        set("default", text);
        return recipe;
    }
    std::vector<std::pair<std::string_view, std::string_view>> said;
    for (std::size_t from = 0; from <= text.size();) {
        const std::size_t end = std::min(text.find(',', from), text.size());
        const auto one = text.substr(from, end - from);
        const auto is = one.find('=');
        if (is == std::string_view::npos || is == 0)
            fail(ErrorKind::input, "{}: '{}' is not MODULE=FORMAT; write it like vit=bf16,llm=fp8,llm:0-3=bf16", option,
                 one);
        said.emplace_back(one.substr(0, is), one.substr(is + 1));
        from = end + 1;
    }
    // What was said of the layers of a module goes with what was said of the module.
    for (const auto& one : said)
        std::erase_if(recipe.layer_precision, [&](const LayerPrecision& layers) { return layers.module == one.first; });
    for (const auto& [of, format] : said) set(of, format);
    return recipe;
}

std::string formats_of(const Recipe& recipe) {
    const bool usual = recipe.execution.products == Dtype::bf16;
    const std::string whole(name_of(recipe.execution.products));
    if (recipe.precision.empty() && recipe.layer_precision.empty()) return usual ? "" : whole;
    std::vector<std::string> parts;
    if (!usual) parts.push_back("default=" + whole);
    for (const auto& [module, products] : recipe.precision)
        parts.push_back(fmt::format("{}={}", module, name_of(products)));
    for (const LayerPrecision& one : recipe.layer_precision)
        parts.push_back(fmt::format("{}={}", one.name(), name_of(one.products)));
    return fmt::format("{}", fmt::join(parts, ","));
}

void check_precision(const Recipe& recipe, const workloads::Model& model, const workloads::Device& device) {
    for (const auto& [name, products] : recipe.precision) require_module(recipe, model, name);
    for (const LayerPrecision& layers : recipe.layer_precision) require_layers(recipe, model, layers);
    for (const auto& module : model.modules)
        require_products(recipe, device, module.name, recipe.execution_of(module).products);
    for (const LayerPrecision& layers : recipe.layer_precision)
        require_products(recipe, device, layers.name(), layers.products);
}

}  // namespace pipeweaver::emulator
