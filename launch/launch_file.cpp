// "pipeweaver-launch/1", written and read back strictly.
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emulator/stages.hpp"
#include "pipeweaver/frameworks/built_encoders.hpp"
#include "pipeweaver/launch/launch.hpp"
#include "pipeweaver/planner/step_recompute.hpp"
#include "pipeweaver/planner/targets.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>
#include <sstream>

namespace pipeweaver::launch {

using Writer = nlohmann::ordered_json;
using partition::ModuleLayers;

namespace {

constexpr std::int64_t most_degree = 1'000'000, most_stage_layers = 100'000;

Writer layout_json(const Degrees& degrees) {
    return {{"tp", degrees.tp},
            {"cp", degrees.cp},
            {"pp", degrees.pp},
            {"dp", degrees.dp},
            {"ep", degrees.ep},
            {"expert_tensor_parallel", degrees.expert_tp},
            {"zero", degrees.zero},
            {"sequence_parallel", degrees.sequence_parallel},
            {"dispatcher", degrees.dispatches_by_node ? "once_a_node" : "all_to_all"},
            {"context_parallel", degrees.ring ? "ring" : "all_to_all"},
            {"overlaps_gradients", degrees.overlaps_gradients},
            {"gathers_ahead", degrees.gathers_ahead}};
}

Degrees degrees_of(const Json& json) {
    json.only_keys({"tp", "cp", "pp", "dp", "ep", "expert_tensor_parallel", "zero", "sequence_parallel", "dispatcher",
                    "context_parallel", "overlaps_gradients", "gathers_ahead"});
    const auto degree = [&](std::string_view key) { return json.at(key).integer(1, most_degree); };
    return {.tp = degree("tp"),
            .cp = degree("cp"),
            .pp = degree("pp"),
            .dp = degree("dp"),
            .ep = degree("ep"),
            .expert_tp = degree("expert_tensor_parallel"),
            .zero = static_cast<int>(json.at("zero").integer(0, 3)),
            .sequence_parallel = json.at("sequence_parallel").boolean(),
            .dispatches_by_node = json.at("dispatcher").one_of({"once_a_node", "all_to_all"}) == "once_a_node",
            .ring = json.at("context_parallel").one_of({"ring", "all_to_all"}) == "ring",
            .overlaps_gradients = json.at("overlaps_gradients").boolean(),
            .gathers_ahead = json.at("gathers_ahead").boolean()};
}

Writer vision_json(const VisionSizes& sizes) {
    return {
        {"layers", sizes.layers}, {"hidden", sizes.hidden}, {"ffn", sizes.ffn}, {"native_sizes", sizes.native_sizes}};
}

VisionSizes vision_of(const Json& json) {
    json.only_keys({"layers", "hidden", "ffn", "native_sizes"});
    return {.layers = json.at("layers").integer(1, most_stage_layers),
            .hidden = json.at("hidden").integer(1, most_degree),
            .ffn = json.at("ffn").integer(0, most_degree),
            .native_sizes = json.at("native_sizes").boolean()};
}

Writer modules_json(const Launch& launch) {
    Writer all = Writer::array();
    const auto add = [&](const std::string& module, std::string_view role, const std::vector<std::int64_t>& layers) {
        const auto& frozen = launch.frozen;
        Writer json{{"module", module}, {"role", role}};
        if (const auto kind = launch.kinds.find(module); kind != launch.kinds.end()) json["kind"] = kind->second;
        if (const auto sizes = launch.vision.find(module); sizes != launch.vision.end())
            json["vision"] = vision_json(sizes->second);
        json["trains"] = std::find(frozen.begin(), frozen.end(), module) == frozen.end();
        if (const auto adapters = launch.adapters.find(module); adapters != launch.adapters.end())
            json["adapters"] = Writer::parse(workloads::to_json(adapters->second));
        json["layers"] = layers;
        all.push_back(std::move(json));
    };
    for (const ModuleLayers& one : launch.split.encoders) add(one.module, "encoder", one.layers);
    for (const std::string& dealt : launch.dealt) add(dealt, "dealt", {});
    add(launch.language, "language", launch.split.layers);
    for (const ModuleLayers& one : launch.split.generators) add(one.module, "generator", one.layers);
    return all;
}

std::vector<std::int64_t> integers(const Json& json, std::int64_t low, std::int64_t high) {
    std::vector<std::int64_t> all;
    for (const Json& one : json.elements()) all.push_back(one.integer(low, high));
    return all;
}

class LaunchReader {
public:
    explicit LaunchReader(const Json& json) : json_(json) {}

    Launch read() {
        json_.only_keys({"format",
                         "rung",
                         "target",
                         "way",
                         "model",
                         "device",
                         "layout",
                         "modules",
                         "language_letters",
                         "deals_images",
                         "encoder_recompute",
                         "encoder_switch",
                         "fused_attention",
                         "bf16",
                         "fused_loss",
                         "has_pipeline",
                         "policy",
                         "chunks",
                         "recompute",
                         "recompute_of_ranks",
                         "microbatches",
                         "most_tokens",
                         "shapes",
                         "step_ns",
                         "makespan_ns",
                         "peak_bytes",
                         "usable_bytes",
                         "projectors",
                         "optimizer_bytes"});
        read_texts();
        launch_.degrees = degrees_of(json_.at("layout"));
        launch_.split.ranks = launch_.degrees.pp;
        for (const Json& module : json_.at("modules").elements()) read_module(module);
        launch_.fused_attention = json_.at("fused_attention").boolean();
        if (const auto deals = json_.find("deals_images")) launch_.deals = deals->text();
        read_encoders();
        if (const auto bf16 = json_.find("bf16")) launch_.bf16 = bf16->boolean();
        if (const auto fused = json_.find("fused_loss")) launch_.fused_loss = fused->boolean();
        launch_.has_pipeline = json_.at("has_pipeline").boolean();
        read_trained();
        check_stages();
        read_letters();
        read_recompute();
        read_figures();
        return std::move(launch_);
    }

private:
    void read_texts() {
        for (auto [key, text] : {std::pair{"rung", &launch_.rung},
                                 {"target", &launch_.target},
                                 {"way", &launch_.way},
                                 {"model", &launch_.model},
                                 {"device", &launch_.device},
                                 {"policy", &launch_.policy}})
            *text = json_.at(key).text();
    }

    // Of switches, which become words of a script, those that a framework has.
    void read_encoders() {
        if (const auto how = json_.find("encoder_recompute"))
            launch_.encoder_recompute =
                *workloads::encoder_recompute_called(how->one_of({"as-backbone", "never", "always"}));
        const auto said = json_.find("encoder_switch");
        if (!said) return;
        std::set<std::string> known;  // several rows have the same
        for (const workloads::Built& row : frameworks::built_encoders())
            if (!row.recompute_by.empty()) known.insert(recompute_switch(recomputing_otherwise(row)));
        launch_.encoder_switch = said->text();
        if (!known.contains(launch_.encoder_switch))
            said->fail(must_be(said->text(), one_of(std::vector<std::string>(known.begin(), known.end()))));
    }

    void read_module(const Json& json) {
        json.only_keys({"module", "role", "kind", "vision", "trains", "adapters", "layers"});
        const std::string name = json.at("module").text();
        if (const auto kind = json.find("kind"))
            launch_.kinds[name] = kind->one_of({"llm", "vit", "audio_encoder", "text_encoder", "dit", "head"});
        if (const auto sizes = json.find("vision")) launch_.vision[name] = vision_of(*sizes);
        const std::string role = json.at("role").one_of({"encoder", "dealt", "language", "generator"});
        const auto layers = integers(json.at("layers"), 0, most_stage_layers);
        if (!json.at("trains").boolean()) launch_.frozen.push_back(name);
        if (const auto adapters = json.find("adapters"))
            launch_.adapters.emplace(name, workloads::parse_adapters(*adapters));
        if (role == "dealt") {
            launch_.dealt.push_back(name);
        } else if (role == "language") {
            if (!launch_.language.empty()) json.fail("is a second language model; allowed is one");
            launch_.language = name;
            launch_.split.layers = layers;
        } else {
            (role == "encoder" ? launch_.split.encoders : launch_.split.generators).push_back({name, layers});
        }
    }

    void read_trained() {
        if (const auto projectors = json_.find("projectors")) {
            const std::string text = projectors->one_of({"trained", "frozen", "some"});
            launch_.trains_projectors = text != "frozen";
            launch_.freezes_projectors = text != "trained";
        }
        const auto bytes = json_.find("optimizer_bytes");
        if (!bytes) return;
        constexpr std::int64_t most = 256;
        bytes->only_keys({"gpu", "host"});
        launch_.state_on_gpu = bytes->at("gpu").integer(0, most);
        launch_.state_on_host = bytes->at("host").integer(1, most);
    }

    void check_stages() const {
        const Split& split = launch_.split;
        const Json modules = json_.at("modules");
        if (launch_.language.empty() || split.layers.empty()) modules.fail("has no language model with stages");
        if (split.stages() % split.ranks != 0)
            modules.fail(
                fmt::format("has {} stages, allowed are {} for each chunk of a rank", split.stages(), split.ranks));
        for (const auto* some : {&split.encoders, &split.generators})
            for (const ModuleLayers& one : *some)
                if (one.layers.size() != split.layers.size())
                    modules.fail(fmt::format("{} has {} stages, {} has {}", one.module, one.layers.size(),
                                             launch_.language, split.layers.size()));
        if (json_.at("chunks").integer(1) != split.chunks())
            json_.at("chunks").fail(fmt::format("is not {}, which the stages of modules are", split.chunks()));
    }

    void read_letters() {
        std::istringstream words(json_.at("language_letters").text());
        for (std::string word; words >> word;) launch_.letters.push_back(word);
        const auto depth = launch_.split.depth();
        if (!launch_.letters.empty() && static_cast<std::int64_t>(launch_.letters.size()) != depth)
            json_.at("language_letters")
                .fail(fmt::format("has {} layers, but the stages have {}", launch_.letters.size(), depth));
    }

    void read_recompute() {
        const Json name = json_.at("recompute");
        launch_.recompute = name.text();
        const bool by_rank = planner::step_recompute_named(launch_.recompute) == planner::recompute_by_rank;
        if (!by_rank) check_setting(name);
        for (const Json& one : json_.at("recompute_of_ranks").elements()) {
            check_setting(one);
            launch_.recompute_of_ranks.push_back(one.text());
        }
        const auto ranks = static_cast<std::int64_t>(launch_.recompute_of_ranks.size());
        if (ranks != (by_rank ? launch_.degrees.pp : 0))
            json_.at("recompute_of_ranks")
                .fail(fmt::format("has {} settings, allowed are {}", ranks, by_rank ? launch_.degrees.pp : 0));
    }

    static void check_setting(const Json& json) {
        if (!emulator::recompute_named(json.text()))
            json.fail(must_be(json.text(), one_of(emulator::recompute_names()) + ", by-rank"));
    }

    void read_figures() {
        constexpr std::int64_t most_microbatches = 1'000'000'000;
        launch_.microbatches = integers(json_.at("microbatches"), 1, most_microbatches);
        require_size("microbatches", launch_.microbatches.size(), launch_.degrees.dp);
        launch_.most_tokens = json_.at("most_tokens").integer(0);
        if (const auto shapes = json_.find("shapes")) launch_.shapes = shapes->integer(1);
        launch_.step = Duration{json_.at("step_ns").integer()};
        launch_.makespan = Duration{json_.at("makespan_ns").integer()};
        for (const std::int64_t bytes : integers(json_.at("peak_bytes"), 0, Json::largest))
            launch_.peak.push_back(Bytes{bytes});
        require_size("peak_bytes", launch_.peak.size(), launch_.degrees.pp);
        launch_.usable = Bytes{json_.at("usable_bytes").integer()};
    }

    void require_size(std::string_view key, std::size_t size, std::int64_t wanted) const {
        if (static_cast<std::int64_t>(size) != wanted)
            json_.at(key).fail(fmt::format("has {} entries, allowed are {}", size, wanted));
    }

    Json json_;
    Launch launch_;
};

}  // namespace

std::string to_json(const Launch& launch) {
    Writer peaks = Writer::array();
    for (const Bytes peak : launch.peak) peaks.push_back(peak.count);
    Writer json{{"format", "pipeweaver-launch/1"},
                {"rung", launch.rung},
                {"target", launch.target},
                {"way", launch.way},
                {"model", launch.model},
                {"device", launch.device},
                {"layout", layout_json(launch.degrees)},
                {"modules", modules_json(launch)},
                {"language_letters", fmt::format("{}", fmt::join(launch.letters, " "))},
                {"fused_attention", launch.fused_attention},
                {"bf16", launch.bf16},
                {"fused_loss", launch.fused_loss},
                {"has_pipeline", launch.has_pipeline},
                {"policy", launch.policy},
                {"chunks", launch.split.chunks()},
                {"recompute", launch.recompute},
                {"recompute_of_ranks", launch.recompute_of_ranks},
                {"microbatches", launch.microbatches},
                {"most_tokens", launch.most_tokens},
                {"shapes", launch.shapes},
                {"step_ns", launch.step.count()},
                {"makespan_ns", launch.makespan.count()},
                {"peak_bytes", std::move(peaks)},
                {"usable_bytes", launch.usable.count}};
    if (!launch.deals.empty()) json["deals_images"] = launch.deals;
    if (launch.encoder_recompute != workloads::EncoderRecompute::as_backbone)
        json["encoder_recompute"] = workloads::name_of(launch.encoder_recompute);
    if (!launch.encoder_switch.empty()) json["encoder_switch"] = launch.encoder_switch;
    if (launch.freezes_projectors || launch.trains_projectors)
        json["projectors"] = !launch.freezes_projectors ? "trained" : launch.trains_projectors ? "some" : "frozen";
    if (launch.state_on_host > 0)
        json["optimizer_bytes"] = {{"gpu", launch.state_on_gpu}, {"host", launch.state_on_host}};
    return json.dump(1) + "\n";
}

Launch parse_launch(const JsonDocument& document) {
    document.require_format("pipeweaver-launch", 1);
    return LaunchReader(document.root()).read();
}

Launch read_launch(const std::filesystem::path& path) { return parse_launch(JsonDocument::read_large(path)); }

}  // namespace pipeweaver::launch
