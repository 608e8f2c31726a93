// Model files ("pipeweaver-model/1"): strict reading.
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/workloads/catalogue.hpp"
#include "workloads/architecture.hpp"
#include "workloads/fields.hpp"
#include "workloads/model_parts.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace pipeweaver::workloads {

namespace {

constexpr std::int64_t largest_degree = 10'000'000;

Modality parse_modality(const Json& json) {
    const std::string text = json.one_of({"text", "image", "video", "audio"});
    for (const auto modality : {Modality::image, Modality::video, Modality::audio})
        if (name_of(modality) == text) return modality;
    return Modality::text;
}

void check_adapted(const Json& json, const Architecture& network) {
    if (!may_have_adapters(network))
        json.fail(
            "a network of this kind cannot have adapters: allowed are those with dense, windowed or linear "
            "attention");
}

void check_experts(const Json& json, const Architecture& network) {
    if (!network.moe) json.fail("a network without experts has none");
}

Adapters parse_adapters_of(const Json& json, const Architecture& network) {
    check_adapted(json, network);
    if (const auto experts = json.find("experts")) check_experts(*experts, network);
    return parse_adapters(json);
}

Module parse_module(const Json& json) {
    json.only_keys({"name", "architecture", "unit", "modalities", "trainable", "adapters"});
    Module module;
    module.name = json.at("name").text();
    if (module.name.empty()) json.at("name").fail("is empty");
    const Json network = json.at("architecture");
    try {
        module.architecture = network.is_string() ? architecture(network.text()) : parse_architecture(network);
    } catch (const Error& error) {
        if (network.is_string()) network.fail(error.what());
        throw;
    }
    module.unit = json.at("unit").one_of({"microbatch", "items"}) == "items" ? PassUnit::items : PassUnit::microbatch;
    for (const Json& modality : json.at("modalities").elements()) {
        module.modalities.push_back(parse_modality(modality));
        if (std::count(module.modalities.begin(), module.modalities.end(), module.modalities.back()) > 1)
            modality.fail("is given twice");
    }
    if (module.modalities.empty()) json.at("modalities").fail("is empty");
    const auto adapters = json.find("adapters");
    module.trainable = boolean_or(json, "trainable", !adapters);
    if (!adapters) return module;
    if (module.trainable) json.at("trainable").fail("is true: adapters go with frozen weights");
    module.adapters = parse_adapters_of(*adapters, module.architecture);
    return module;
}

std::vector<Module> parse_modules(const Json& json) {
    std::vector<Module> modules;
    for (const Json& element : json.elements()) {
        modules.push_back(parse_module(element));
        const auto same = [&](const Module& m) { return m.name == modules.back().name; };
        if (std::count_if(modules.begin(), modules.end(), same) > 1)
            element.at("name").fail(fmt::format("'{}' is given twice", modules.back().name));
    }
    const auto backbones =
        std::count_if(modules.begin(), modules.end(), [](const Module& m) { return m.unit == PassUnit::microbatch; });
    if (backbones != 1)
        json.fail(fmt::format("{} modules have the unit 'microbatch', exactly one must: the backbone", backbones));
    return modules;
}

std::size_t module_index(const Json& json, const std::vector<Module>& modules) {
    const std::string name = json.text();
    std::vector<std::string> names;
    for (const auto& module : modules) {
        if (module.name == name) return names.size();
        names.push_back(module.name);
    }
    json.fail(unknown("module", name, names));
}

void parse_projector(const Json& json, ModelEdge& edge) {
    json.only_keys({"in", "out", "hidden", "trainable"});
    edge.projector_in = json.at("in").integer(1, 10'000'000);
    edge.projector_out = json.at("out").integer(1, 10'000'000);
    edge.projector_hidden = integer_or(json, "hidden", 0, 1, 10'000'000);
    if (const auto trainable = json.find("trainable")) edge.projector_trainable = trainable->boolean();
}

std::vector<ModelEdge> parse_edges(const Json& json, const std::vector<Module>& modules) {
    std::vector<ModelEdge> edges;
    for (const Json& element : json.elements()) {
        element.only_keys({"from", "to", "token_reduction", "projector"});
        ModelEdge edge;
        edge.from = module_index(element.at("from"), modules);
        edge.to = module_index(element.at("to"), modules);
        const auto same = [&](const ModelEdge& e) { return e.from == edge.from && e.to == edge.to; };
        if (std::any_of(edges.begin(), edges.end(), same)) element.fail("joins the same modules as an earlier edge");
        edge.token_reduction = integer_or(element, "token_reduction", 1, 1, 1'000'000);
        if (const auto projector = element.find("projector")) parse_projector(*projector, edge);
        edges.push_back(edge);
    }
    return edges;
}

// Puts the modules in topological order, of several possible ones the one nearest to the file's.
void sort_modules(const Json& edges_json, Model& model) {
    const std::size_t count = model.modules.size();
    std::vector<std::size_t> place(count, count);
    std::vector<Module> sorted;
    while (sorted.size() < count) {
        std::size_t next = count;
        for (std::size_t i = count; i-- > 0;) {
            const bool waits = std::any_of(model.edges.begin(), model.edges.end(), [&](const ModelEdge& edge) {
                return edge.to == i && place[edge.from] == count;
            });
            if (place[i] == count && !waits) next = i;
        }
        if (next == count) edges_json.fail("the modules form a cycle");
        place[next] = sorted.size();
        sorted.push_back(model.modules[next]);
    }
    model.modules = std::move(sorted);
    for (auto& edge : model.edges) {
        edge.from = place[edge.from];
        edge.to = place[edge.to];
    }
}

bool takes(const Model& model, Modality modality) {
    return std::any_of(model.modules.begin(), model.modules.end(), [&](const Module& module) {
        return std::count(module.modalities.begin(), module.modalities.end(), modality) > 0;
    });
}

// Limits go with the ways that have them.
ImageResize parse_resize(const Json& json) {
    const auto said = json.find("resize");
    const std::string text = said ? said->one_of({"round", "side", "pad", "fill"}) : "round";
    const auto refuse = [&](const char* key, const char* why) {
        if (const auto member = json.find(key)) member->fail(why);
    };
    if (text != "side") refuse("longest_side", "goes with \"resize\": \"side\"");
    if (text == "side") refuse("max_tokens", "goes without \"resize\": \"side\", which has longest_side");
    if (text != "round") refuse("min_tokens", "goes with \"resize\": \"round\"");
    for (const auto resize : {ImageResize::side, ImageResize::pad, ImageResize::fill})
        if (name_of(resize) == text) return resize;
    return ImageResize::round;
}

ImageRule parse_image(const Json& json) {
    json.only_keys({"patch", "merge", "fixed_pixels", "min_tokens", "max_tokens", "resize", "longest_side"});
    ImageRule rule;
    rule.patch = json.at("patch").integer(1, most_pixels);
    rule.merge = integer_or(json, "merge", 1, 1, 1'000);
    if (const auto fixed = json.find("fixed_pixels")) {
        rule.fixed_pixels = fixed->integer(rule.patch, most_pixels);
        for (const char* native : {"min_tokens", "max_tokens", "resize", "longest_side"})
            if (json.find(native))
                json.fail("min_tokens and max_tokens are for native resolution, not beside fixed_pixels");
        return rule;
    }
    rule.resize = parse_resize(json);
    if (rule.resize == ImageResize::side) {
        rule.longest_side = json.at("longest_side").integer(1, most_pixels);
        const std::int64_t unit = rule.patch * rule.merge, tokens = (rule.longest_side + unit - 1) / unit;
        rule.max_tokens = tokens * tokens;
        return rule;
    }
    rule.min_tokens = rule.resize == ImageResize::round ? integer_or(json, "min_tokens", 1, 1, most_tokens) : 1;
    rule.max_tokens = integer_or(json, "max_tokens", 0, rule.min_tokens, most_tokens);
    if (rule.resize == ImageResize::fill && rule.max_tokens == 0)
        json.fail("the key 'max_tokens' is missing: images are filled up to it");
    return rule;
}

constexpr std::int64_t most_clip_pixels = 1'000'000'000'000;
constexpr std::int64_t most_frames_read = 1'000'000;

SampledClips parse_sampled(const Json& json) {
    json.only_keys(
        {"patch", "merge", "frames", "fps", "min_frames", "max_frames", "min_pixels", "max_pixels", "pixels_of"});
    SampledClips rule;
    rule.patch = json.at("patch").integer(1, most_pixels);
    rule.merge = json.at("merge").integer(1, 1'000);
    rule.frames = json.at("frames").integer(1, 1'000);
    rule.fps = json.at("fps").number(0.001, 1'000);
    rule.min_frames = json.at("min_frames").integer(1, most_frames_read);
    rule.max_frames = json.at("max_frames").integer(std::max(rule.min_frames, rule.frames), most_frames_read);
    rule.min_pixels = json.at("min_pixels").integer(1, most_clip_pixels);
    rule.max_pixels = json.at("max_pixels").integer(rule.min_pixels, most_clip_pixels);
    rule.whole_clip = json.at("pixels_of").one_of({"frame", "clip"}) == "clip";
    return rule;
}

VideoRule parse_video(const Json& json) {
    if (json.find("patch")) {
        VideoRule rule;
        rule.sampled = parse_sampled(json);
        return rule;
    }
    json.only_keys(
        {"width", "height", "spatial", "frames_in", "frames_out", "first_frame_alone", "fps", "max_seconds"});
    VideoRule rule;
    rule.spatial = json.at("spatial").integer(1, most_pixels);
    const auto width = json.find("width"), height = json.find("height");
    if (width.has_value() != height.has_value())
        json.fail(
            "has one of width and height, allowed are both (clips are scaled to them) or neither (clips keep "
            "their own)");
    rule.width = width ? width->integer(rule.spatial, most_pixels) : 0;
    rule.height = height ? height->integer(rule.spatial, most_pixels) : 0;
    rule.frames_in = json.at("frames_in").integer(1, 10'000);
    rule.frames_out = json.at("frames_out").integer(1, 10'000);
    rule.first_frame_alone = boolean_or(json, "first_frame_alone", false);
    rule.fps = json.at("fps").number(0.001, 1'000);
    rule.max_seconds = json.at("max_seconds").number(0.001, 100'000);
    return rule;
}

AudioRule parse_audio(const Json& json) {
    json.only_keys({"frames_per_second", "tokens_per_second"});
    return {json.at("frames_per_second").number(0.001, 1e6), json.at("tokens_per_second").number(0.001, 1e6)};
}

// The rule of a modality is needed where a module takes it, and an error where none does.
std::optional<Json> rule_for(const Json& json, const Model& model, Modality modality) {
    const auto rule = json.find(name_of(modality));
    if (rule && !takes(model, modality)) rule->fail("no module has this modality");
    return takes(model, modality) ? json.at(name_of(modality)) : rule;
}

constexpr std::int64_t most_latents = 131'072;  // of a microbatch, where a file does not say it

void parse_rules(const Json& json, Model& model) {
    if (const auto image = rule_for(json, model, Modality::image)) model.image = parse_image(*image);
    if (const auto video = rule_for(json, model, Modality::video)) model.video = parse_video(*video);
    if (const auto audio = rule_for(json, model, Modality::audio)) model.audio = parse_audio(*audio);
    if (model.modules[model.backbone()].architecture.kind == ModuleKind::diffusion_transformer &&
        !json.find("microbatch_tokens")) {
        model.microbatch_tokens = most_latents;
        model.microbatch_tokens_of_file = 0;
    }
    model.microbatch_tokens = integer_or(json, "microbatch_tokens", model.microbatch_tokens, 1, most_tokens);
    model.most_items = integer_or(json, "most_items", 0, 1, most_tokens);
    model.most_video_seconds = number_or(json, "most_video_seconds", 0, 0.001, 1e9);
    model.most_positions = integer_or(json, "most_positions", 0, 1, most_tokens);
    if (const auto layout = json.find("layout")) {
        layout->only_keys({"tp", "pp", "dp"});
        model.tp = layout->at("tp").integer(1, largest_degree);
        model.pp = layout->at("pp").integer(1, largest_degree);
        model.dp = layout->at("dp").integer(1, largest_degree);
    }
}

// What the parts say of each other must agree.
void check_encoder_edge(const Json& json, const Model& model, const ModelEdge& edge) {
    const Module& from = model.modules[edge.from];
    const auto reads = [&](Modality m) { return std::count(from.modalities.begin(), from.modalities.end(), m) > 0; };
    if (role_of(model, edge.from) != Role::encoder) return;
    if (reads(Modality::image) && model.image.merge * model.image.merge != edge.token_reduction)
        json.at("image").fail(
            fmt::format("merge is {}, but the edge from '{}' makes one token of {}: merge * merge is "
                        "needed there",
                        model.image.merge, from.name, edge.token_reduction));
    const double ratio = model.audio.frames_per_second / model.audio.tokens_per_second;
    if (reads(Modality::audio) && std::abs(ratio - static_cast<double>(edge.token_reduction)) > 1e-6)
        json.at("audio").fail(
            fmt::format("frames_per_second / tokens_per_second is {:.6g}, but the edge from '{}' makes "
                        "one token of {}",
                        ratio, from.name, edge.token_reduction));
}

// A projector begins with what one module hands over, of a token's patches together or fewer, and ends at another's
// width; a head is conditioned on what it follows.
void check_widths(const Json& json, const Model& model, const ModelEdge& edge) {
    const Architecture &from = model.modules[edge.from].architecture, &to = model.modules[edge.to].architecture;
    const auto joins = fmt::format("'{}' to '{}'", model.modules[edge.from].name, model.modules[edge.to].name);
    if (edge.projector_in == 0) {
        if (to.kind == ModuleKind::head && to.condition_dim > 0 && to.condition_dim != from.hidden)
            json.at("edges").fail(fmt::format("{}: condition_dim of the head is {}, needed is the width of '{}', {}",
                                              joins, to.condition_dim, model.modules[edge.from].name, from.hidden));
        return;
    }
    const std::int64_t widest = from.hidden * edge.token_reduction;
    if (edge.projector_in < from.hidden || edge.projector_in > widest)
        json.at("edges").fail(fmt::format(
            "{}: in of the projector is {}, must be {} (hidden of '{}') to {} (that of token_reduction patches)", joins,
            edge.projector_in, from.hidden, model.modules[edge.from].name, widest));
    if (edge.projector_out != to.hidden)
        json.at("edges").fail(fmt::format("{}: out of the projector is {}, needed is {} (hidden of '{}')", joins,
                                          edge.projector_out, to.hidden, model.modules[edge.to].name));
}

void check_agreement(const Json& json, const Model& model) {
    const std::size_t backbone = model.backbone();
    for (std::size_t i = 0; i < model.modules.size(); ++i) {
        const Module& module = model.modules[i];
        if (!reaches(model, i, backbone) && !reaches(model, backbone, i))
            json.at("modules").fail(fmt::format("no path of edges joins '{}' and the backbone '{}'", module.name,
                                                model.modules[backbone].name));
        const bool sees = std::count(module.modalities.begin(), module.modalities.end(), Modality::image) > 0;
        if (sees && module.architecture.kind == ModuleKind::vision_encoder &&
            module.architecture.patch_size != model.image.patch)
            json.at("image").fail(fmt::format("patch is {}, but the patches of '{}' have {} pixels", model.image.patch,
                                              module.name, module.architecture.patch_size));
    }
    for (const auto& edge : model.edges) {
        check_encoder_edge(json, model, edge);
        check_widths(json, model, edge);
    }
}

void read_teacher(const Json& json, Model& model) {
    model.teacher.push_back(parse_model_object(json));
    if (const auto why = why_no_teacher(model, model.teacher.front())) json.fail(*why);
}

}  // namespace

Model parse_model_object(const Json& json) {
    json.only_keys({"format", "name", "family", "modules", "edges", "image", "video", "audio", "microbatch_tokens",
                    "most_items", "most_video_seconds", "most_positions", "reference", "teacher", "layout",
                    "confidence", "source", "assumed"});
    Model model;
    model.name = json.at("name").text();
    if (model.name.empty()) json.at("name").fail("is empty");
    model.family = text_or(json, "family");
    model.reference = boolean_or(json, "reference", false);
    model.modules = parse_modules(json.at("modules"));
    if (const auto edges = json.find("edges")) {
        model.edges = parse_edges(*edges, model.modules);
        sort_modules(*edges, model);
    }
    parse_rules(json, model);
    model.confidence = text_or(json, "confidence");
    model.source = text_or(json, "source");
    if (const auto assumed = json.find("assumed"))
        for (const Json& line : assumed->elements()) model.assumed.push_back(line.text());
    check_agreement(json, model);
    if (const auto teacher = json.find("teacher")) read_teacher(*teacher, model);
    return model;
}

Adapters parse_adapters(const Json& json) {
    json.only_keys({"rank", "on", "experts", "apart"});
    Adapters adapters;
    adapters.rank = json.at("rank").integer(1, 100'000);
    adapters.apart = boolean_or(json, "apart", false);
    if (const auto experts = json.find("experts")) {
        const std::string text = experts->one_of({"none", "each", "together"});
        for (const auto one : {ExpertAdapters::each, ExpertAdapters::together})
            if (name_of(one) == text) adapters.experts = one;
    }
    const auto on = json.find("on");
    if (!on) return adapters;
    adapters.qkv = adapters.output = adapters.up = adapters.down = false;
    for (const Json& place : on->elements()) {
        const std::string name = place.one_of({"qkv", "output", "up", "down"});
        for (const AdaptedMatrix& one : adapted_matrix_names)
            if (one.name == name) adapters.*(one.has) = true;
    }
    if (on->size() == 0) on->fail("is empty");
    return adapters;
}

Model parse_model(const JsonDocument& document) {
    document.require_format("pipeweaver-model", 1);
    return parse_model_object(document.root());
}

Model read_model(const std::filesystem::path& path) {
    const auto document = JsonDocument::read(path);
    const Json root = document.root();
    if (root.is_object() && !root.find("format") && (root.find("architectures") || root.find("model_type")))
        fail(ErrorKind::input, "{}: is a Hugging Face configuration, no model file: write hf:{}", path.string(),
             path.string());
    return parse_model(document);
}

}  // namespace pipeweaver::workloads
