#include "workloads/hf/processors.hpp"

#include "workloads/hf/keys.hpp"

#include <fmt/format.h>

#include <array>

namespace pipeweaver::workloads::hf {

namespace {

constexpr std::array<std::string_view, 3> processor_files{"preprocessor_config.json", "processor_config.json",
                                                          "video_preprocessor_config.json"};
constexpr std::string_view of_videos = processor_files[2];

void add_object(const Json& object, Reading& reading, std::vector<Part>& parts) {
    if (!object.is_object()) object.fail("is no object");
    parts.push_back({object, &reading, "the processor's file"});
}

void add_nested(const Json& root, std::string_view name, Reading& reading, std::vector<Part>& parts) {
    const auto object = root.find(name);
    if (object && !object->is_null()) add_object(*object, reading, parts);
}

void require_side(const Part& part, const Patches& patches) {
    const auto side = side_of(part, key::patch);
    if (side && *side != patches.side)
        given(part, key::patch)
            ->fail(fmt::format("is {}, but the encoder's patches have {} pixels (config.json)", *side, patches.side));
}

void require_merge(const Part& part, const Patches& patches) {
    const auto merge = side_of(part, key::processor_merge);
    if (merge && *merge != patches.merge)
        given(part, key::processor_merge)
            ->fail(fmt::format("is {}, but {} x {} patches make a token (config.json)", *merge, patches.merge,
                               patches.merge));
}

void require_frames(const Part& part, const Patches& patches) {
    const auto frames = given(part, key::temporal_patch);
    if (frames && frames->integer(1, most) != patches.frames)
        frames->fail(
            fmt::format("is {}, but {} frames share a patch (config.json)", frames->integer(1, most), patches.frames));
}

}  // namespace

std::vector<JsonDocument> read_processors(const std::filesystem::path& config) {
    std::vector<JsonDocument> documents;
    if (config.filename() != "config.json" && config.filename() != "config.json.gz") return documents;
    documents.reserve(processor_files.size());
    for (const std::string_view name : processor_files)
        if (const auto file = config.parent_path() / name; std::filesystem::exists(file))
            documents.push_back(JsonDocument::read(file));
    return documents;
}

Processors processors_of(const std::vector<JsonDocument>& documents, Reading& reading) {
    Processors processors;
    for (const JsonDocument& document : documents) {
        const Json root = document.root();
        if (!root.is_object()) root.fail("is no object");
        const bool video = std::filesystem::path(document.name()).filename() == of_videos;
        add_object(root, reading, video ? processors.videos : processors.images);
        add_nested(root, "image_processor", reading, processors.images);
        add_nested(root, "video_processor", reading, processors.videos);
    }
    return processors;
}

std::optional<std::int64_t> side_of(const Part& part, const Key& key) {
    const auto member = given(part, key);
    if (!member) return std::nullopt;
    if (!member->is_object()) return square(part, key);
    const auto height = member->find("height"), width = member->find("width");
    if (!height || !width) return std::nullopt;
    if (height->integer(1, most) != width->integer(1, most)) member->fail("is no square, only squares are read");
    return height->integer(1, most);
}

std::optional<Json> inside(const Part& part, const Key& object, const Key& key) {
    const auto member = given(part, object);
    if (!member || !member->is_object()) return std::nullopt;
    return given({*member, part.reading, object.usual}, key);
}

std::optional<Json> least_pixels(const Part& part) {
    const auto said = given(part, key::min_pixels);
    return said ? said : inside(part, key::processor_size, key::shortest_edge);
}

std::optional<Json> largest_pixels(const Part& part) {
    const auto said = given(part, key::max_pixels);
    return said ? said : inside(part, key::processor_size, key::longest_edge);
}

std::optional<Said> said_by(const std::vector<Part>& processors,
                            const std::function<std::optional<Json>(const Part&)>& find, std::int64_t largest) {
    std::optional<Said> said;
    for (const Part& part : processors) {
        const auto place = find(part);
        if (!place) continue;
        const std::int64_t value = place->integer(1, largest);
        if (said && said->value != value)
            place->fail(fmt::format("is {}, but another file beside it says {}", value, said->value));
        if (!said) said = Said{*place, value};
    }
    return said;
}

void require_patches(const Processors& processors, const Patches& patches) {
    for (const auto* parts : {&processors.images, &processors.videos})
        for (const Part& part : *parts) {
            require_side(part, patches);
            require_merge(part, patches);
            require_frames(part, patches);
        }
}

}  // namespace pipeweaver::workloads::hf
