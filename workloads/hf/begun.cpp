#include "workloads/hf/begun.hpp"

#include "workloads/hf/keys.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <set>
#include <span>

namespace pipeweaver::workloads::hf {

namespace {

using Object = nlohmann::ordered_json;

// A size of a model file by what configurations call it.
struct Size {
    std::string_view ours;
    Key theirs;
};
constexpr std::array llm_sizes{Size{"layers", key::layers},     Size{"hidden", key::hidden},
                               Size{"ffn", key::ffn},           Size{"heads", key::heads},
                               Size{"kv_heads", key::kv_heads}, Size{"head_dim", key::head_dim},
                               Size{"vocab", key::vocab}};
constexpr std::array vit_sizes{Size{"layers", key::vit_layers}, Size{"hidden", key::hidden},
                               Size{"ffn", key::ffn},           Size{"heads", key::heads},
                               Size{"patch_size", key::patch},  Size{"image_size", key::image}};
constexpr std::array dit_sizes{Size{"layers", key::layers}, Size{"heads", key::heads},
                               Size{"head_dim", Key{"attention_head_dim"}}, Size{"in_channels", Key{"in_channels"}}};

constexpr std::array<std::string_view, 3> text_parts{"text_config", "llm_config", "language_config"};
constexpr std::array<std::string_view, 2> vision_parts{"vision_config", "vit_config"};
constexpr std::array<std::string_view, 3> no_sizes{"model_type", "_class_name", "architectures"};

// The file, or an object of it that says a module.
struct BegunPart {
    Json json;
    std::string_view name{};  // empty: the file
    std::set<std::string_view> taken{no_sizes.begin(), no_sizes.end()};
};

std::optional<BegunPart> part_of(BegunPart& whole, std::span<const std::string_view> names) {
    for (const std::string_view name : names)
        if (const auto part = whole.json.find(name); part && part->is_object()) {
            whole.taken.insert(name);
            return BegunPart{*part, name};
        }
    return std::nullopt;
}

Object sizes_in(BegunPart& part, std::span<const Size> sizes, Object architecture) {
    for (const Size& size : sizes)
        for (const std::string_view spelling : size.theirs.spellings()) {
            if (spelling.empty() || architecture.contains(size.ours)) continue;
            const auto said = part.json.find(spelling);
            if (!said || !said->raw().is_number_integer()) continue;
            architecture[std::string(size.ours)] = said->integer(1, most);
            part.taken.insert(spelling);
        }
    return architecture;
}

void add_left(const BegunPart& part, Object& left) {
    for (const auto& [name, value] : part.json.members())
        if (!value.is_null() && !part.taken.contains(name))
            left.push_back(part.name.empty() ? name : fmt::format("{}.{}", part.name, name));
}

}  // namespace

std::string begun_model(const Json& root, const std::string& name) {
    BegunPart whole{root};
    Object modules = Object::array(), left = Object::array();
    const auto add = [&](const char* called, const char* unit, const char* modality, BegunPart& part, auto& sizes) {
        Object architecture{{"name", fmt::format("{}-{}", name, called)}, {"kind", called}};
        modules.push_back({{"name", called},
                           {"architecture", sizes_in(part, sizes, std::move(architecture))},
                           {"unit", unit},
                           {"modalities", Object::array({modality})}});
        if (!part.name.empty()) add_left(part, left);
    };
    if (auto vision = part_of(whole, vision_parts)) add("vit", "items", "image", *vision, vit_sizes);
    if (root.find("_class_name"))
        add("dit", "microbatch", "image", whole, dit_sizes);
    else if (auto text = part_of(whole, text_parts))
        add("llm", "microbatch", "text", *text, llm_sizes);
    else
        add("llm", "microbatch", "text", whole, llm_sizes);
    add_left(whole, left);
    const Object json{{"format", "pipeweaver-model/1"}, {"name", name}, {"not_read", left}, {"modules", modules}};
    return json.dump(2, ' ', false, Object::error_handler_t::replace) + "\n";
}

}  // namespace pipeweaver::workloads::hf
