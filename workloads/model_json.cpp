// Model files ("pipeweaver-model/1"): writing.
#include "pipeweaver/workloads/model.hpp"
#include "workloads/architecture.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

namespace pipeweaver::workloads {

namespace {

using Object = nlohmann::ordered_json;

Object adapters_json(const Adapters& adapters) {
    Object on = Object::array();
    for (const AdaptedMatrix& one : adapted_matrix_names)
        if (adapters.*(one.has)) on.push_back(one.name);
    Object json{{"rank", adapters.rank}, {"on", std::move(on)}};
    if (adapters.experts != ExpertAdapters::none) json["experts"] = name_of(adapters.experts);
    if (adapters.apart) json["apart"] = true;
    return json;
}

Object module_json(const Module& module) {
    Object modalities = Object::array();
    for (const auto modality : module.modalities) modalities.push_back(name_of(modality));
    Object json{{"name", module.name},
                {"architecture", architecture_json(module.architecture)},
                {"unit", module.unit == PassUnit::items ? "items" : "microbatch"},
                {"modalities", modalities},
                {"trainable", module.trainable}};
    if (!module.adapters) return json;
    json["adapters"] = adapters_json(*module.adapters);
    return json;
}

Object edge_json(const Model& model, const ModelEdge& edge) {
    Object json{{"from", model.modules[edge.from].name},
                {"to", model.modules[edge.to].name},
                {"token_reduction", edge.token_reduction}};
    if (edge.projector_in == 0) return json;
    json["projector"] = {{"in", edge.projector_in}, {"out", edge.projector_out}};
    if (edge.projector_hidden > 0) json["projector"]["hidden"] = edge.projector_hidden;
    if (edge.projector_trainable) json["projector"]["trainable"] = *edge.projector_trainable;
    return json;
}

Object image_json(const ImageRule& rule) {
    Object json{{"patch", rule.patch}, {"merge", rule.merge}};
    if (rule.fixed_pixels > 0) {
        json["fixed_pixels"] = rule.fixed_pixels;
        return json;
    }
    if (rule.resize != ImageResize::round) json["resize"] = name_of(rule.resize);
    if (rule.resize == ImageResize::side) {
        json["longest_side"] = rule.longest_side;
        return json;
    }
    if (rule.resize == ImageResize::round) json["min_tokens"] = rule.min_tokens;
    if (rule.max_tokens > 0) json["max_tokens"] = rule.max_tokens;
    return json;
}

Object sampled_json(const SampledClips& rule) {
    return {{"patch", rule.patch},
            {"merge", rule.merge},
            {"frames", rule.frames},
            {"fps", rule.fps},
            {"min_frames", rule.min_frames},
            {"max_frames", rule.max_frames},
            {"min_pixels", rule.min_pixels},
            {"max_pixels", rule.max_pixels},
            {"pixels_of", rule.whole_clip ? "clip" : "frame"}};
}

Object video_json(const VideoRule& rule) {
    if (rule.sampled) return sampled_json(*rule.sampled);
    Object json = Object::object();
    if (!rule.keeps_sizes()) json = {{"width", rule.width}, {"height", rule.height}};
    json["spatial"] = rule.spatial;
    json["frames_in"] = rule.frames_in;
    json["frames_out"] = rule.frames_out;
    json["first_frame_alone"] = rule.first_frame_alone;
    json["fps"] = rule.fps;
    json["max_seconds"] = rule.max_seconds;
    return json;
}

void put_rules(Object& json, const Model& model) {
    const auto takes = [&](Modality modality) {
        return std::any_of(model.modules.begin(), model.modules.end(), [&](const Module& m) {
            return std::count(m.modalities.begin(), m.modalities.end(), modality) > 0;
        });
    };
    if (takes(Modality::image)) json["image"] = image_json(model.image);
    if (takes(Modality::video)) json["video"] = video_json(model.video);
    if (takes(Modality::audio))
        json["audio"] = {{"frames_per_second", model.audio.frames_per_second},
                         {"tokens_per_second", model.audio.tokens_per_second}};
}

Object object_of(const Model& model) {
    Object json{{"format", "pipeweaver-model/1"}, {"name", model.name}};
    if (!model.family.empty()) json["family"] = model.family;
    json["modules"] = Object::array();
    for (const auto& module : model.modules) json["modules"].push_back(module_json(module));
    json["edges"] = Object::array();
    for (const auto& edge : model.edges) json["edges"].push_back(edge_json(model, edge));
    put_rules(json, model);
    const std::int64_t tokens = model.microbatch_tokens_of_file.value_or(model.microbatch_tokens);
    if (tokens > 0) json["microbatch_tokens"] = tokens;
    if (model.most_items > 0) json["most_items"] = model.most_items;
    if (model.most_video_seconds > 0) json["most_video_seconds"] = model.most_video_seconds;
    if (model.most_positions > 0) json["most_positions"] = model.most_positions;
    if (model.reference) json["reference"] = true;
    if (!model.teacher.empty()) json["teacher"] = object_of(model.teacher.front());
    if (model.tp > 0) json["layout"] = {{"tp", model.tp}, {"pp", model.pp}, {"dp", model.dp}};
    if (!model.confidence.empty()) json["confidence"] = model.confidence;
    if (!model.source.empty()) json["source"] = model.source;
    if (!model.assumed.empty()) json["assumed"] = model.assumed;
    return json;
}

}  // namespace

std::string to_json(const Adapters& adapters) { return adapters_json(adapters).dump(); }

std::string to_json(const Model& model) {
    return object_of(model).dump(2, ' ', false, Object::error_handler_t::replace) + "\n";
}

Model as_read(const Model& model, std::string name) {
    return parse_model(JsonDocument(std::move(name), to_json(model)));
}

}  // namespace pipeweaver::workloads
