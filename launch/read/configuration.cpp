// A configuration of Megatron-Bridge as it writes one (ConfigContainer.to_yaml, run_config.yaml), or the fields of its
// model provider alone, as overrides.
#include "launch/read/script.hpp"
#include "launch/read/sharded_words.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/launch/megatron.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::launch {

namespace {

bool is_section(const Json& value, std::string_view name) {
    const std::string prefix = std::string(name) + ".";
    const auto names = megatron_names();
    return value.is_object() && std::any_of(names.begin(), names.end(),
                                            [&](const MegatronName& one) { return one.field.starts_with(prefix); });
}

std::string text_of_scalar(const Json& value) { return value.is_string() ? value.text() : value.raw().dump(); }

// None: an object, such as a function with what it is called with; a name alone is its text ("torch.float32").
std::optional<std::string> text_of_value(const Json& value) {
    if (value.is_object()) {
        const auto target = value.find("_target_"), call = value.find("_call_");
        const bool is_name = target && target->is_string() && call && call->raw() == false;
        return is_name ? std::optional(target->text()) : std::nullopt;
    }
    if (!value.is_array()) return text_of_scalar(value);
    std::vector<std::string> parts;
    for (const Json& one : value.elements()) parts.push_back(text_of_scalar(one));
    return fmt::format("[{}]", fmt::join(parts, ", "));
}

// Whether a framework wrote it, with all that it has; else it goes into a recipe.
bool is_whole(const Json& root) {
    const auto has = [](const Json& value, std::string_view name) { return value.find(name).has_value(); };
    const auto model = root.find("model");
    return has(root, "_target_") || has(root, "num_layers") ||
           (model && model->is_object() && (has(*model, "_target_") || has(*model, "num_layers")));
}

// Of a field beside a model's: "train.micro_batch_size" of "micro_batch_size".
std::string with_section(const std::string& name) {
    for (const MegatronName& one : megatron_names())
        if (one.field.ends_with("." + name)) return one.field;
    return "model." + name;
}

void add_fields(const std::string& section, const Json& fields, SaidLaunch& said) {
    for (const auto& [name, value] : fields.members()) {
        const std::string full = section.empty() ? with_section(name) : fmt::format("{}.{}", section, name);
        const auto text = text_of_value(value);
        if (!text && is_megatron_setting(Dialect::bridge_overrides, full))
            value.fail("is an object, allowed is plain text: say it in an override of a script");
        if (text) said.settings.push_back({full, {*text}, said.from});
    }
}

}  // namespace

SaidLaunch read_configuration(const std::filesystem::path& path) {
    const auto document = JsonDocument::read_large(path);
    const Json root = document.root();
    if (!root.is_object()) root.fail("is no object with a model's fields or sections of a configuration");
    if (auto sharded = sharded_configuration(path)) return std::move(*sharded);
    SaidLaunch said{Dialect::bridge_overrides, path.string(), {}, {}, {}};
    said.is_dump = is_whole(root);
    said.entry = frameworks::entry_of(Dialect::bridge_overrides);
    if (!said.is_dump) said.named = fmt::format("the recipe that {} goes into", path.filename().string());
    bool has_sections = false;
    for (const auto& [name, value] : root.members()) {
        if (!is_section(value, name)) continue;
        has_sections = true;
        add_fields(name, value, said);
    }
    if (!has_sections) add_fields("", root, said);
    const auto is_known = [](const Setting& one) { return is_megatron_setting(Dialect::bridge_overrides, one.name); };
    if (std::none_of(said.settings.begin(), said.settings.end(), is_known))
        root.fail("has no field of Megatron-Bridge's configuration, such as model.num_layers or num_layers");
    return said;
}

}  // namespace pipeweaver::launch
