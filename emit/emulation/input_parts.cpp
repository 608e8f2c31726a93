#include "emit/emulation/input_parts.hpp"

#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/base/or_null.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/loader/advice.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace pipeweaver::emit {

using Writer = nlohmann::ordered_json;

namespace {

// "4 workers with 2 packs ahead on 3 cores"
std::string queue_text(const loader::Queue& queue) {
    if (queue.workers == 0) return "no workers";
    std::string text = fmt::format("{} with {} ahead", plural(queue.workers, "worker"), plural(queue.prefetch, "pack"));
    if (queue.cores) text += fmt::format(" on {}", plural(*queue.cores, "core"));
    return text;
}

std::string enough_text(const planner::Input& input) {
    if (input.enough) return fmt::format("enough: {}", queue_text(*input.enough));
    if (input.most_tried == 0) return "what is enough is not looked for";
    const std::string most = fmt::format("{} with {} ahead", plural(input.most_tried, "worker"),
                                         plural(loader::most_prefetch_advised, "pack"));
    return input.decides ? fmt::format("not enough: {}", most)
                         : fmt::format("this queue is enough; none is found of up to {}", most);
}

Writer queue_json(const loader::Queue& queue) {
    return {{"workers", queue.workers},
            {"prefetch", queue.prefetch},
            {"cores", or_null(queue.cores)},
            {"window", or_null(queue.window)}};
}

}  // namespace

Writer input_json(const planner::Input& input) {
    Writer json{{"loader", input.loader.name}};
    json.update(queue_json(input.loader.queue));
    if (!input.why_not.empty()) {
        json["why_not"] = input.why_not;
        return json;
    }
    json["takes"] = input.loader.taking.whole_step ? "step" : "microbatch";
    json["together"] = input.loader.taking.microbatches_together ? "microbatch" : "step";
    json["steps"] = input.steps;
    json["step_ns"] = input.step.count();
    json["longest_step_ns"] = input.longest.count();
    json["first_step_ns"] = input.first.count();
    json["waits_ns"] = input.waits.count();
    json["decides"] = input.decides ? Writer(input.stages[*input.decides].name) : Writer(nullptr);
    json["stages"] = Writer::array();
    for (std::size_t s = 0; s < input.stages.size(); ++s)
        json["stages"].push_back({{"name", input.stages[s].name},
                                  {"on", loader::name_of(input.loader.stages[s].on)},
                                  {"work_ns", input.stages[s].work.count()},
                                  {"step_without_ns", input.stages[s].step_without.count()},
                                  {"cores", or_null(input.stages[s].cores)},
                                  {"source", input.loader.stages[s].source}});
    json["enough"] = input.enough ? queue_json(*input.enough) : Writer(nullptr);
    json["left_out"] = input.left_out;
    return json;
}

std::vector<std::string> lines_of(const planner::Input& input) {
    const std::string whose =
        fmt::format("loader {}, {} a replica: ", input.loader.name, queue_text(input.loader.queue));
    if (!input.why_not.empty()) return {whose + "not replayed: " + input.why_not};
    std::vector<std::string> lines;
    if (input.decides) {
        const planner::InputStage& stage = input.stages[*input.decides];
        lines.push_back(
            whose +
            fmt::format("step {} (the longest {}), of which GPUs wait {} for samples; {} decides, without it {}; {}",
                        human(input.step), human(input.longest), human(input.waits), stage.name,
                        human(stage.step_without), enough_text(input)));
    } else {
        lines.push_back(whose + fmt::format("GPUs wait for no samples once packs are ahead (the first step {}); {}",
                                            human(input.first), enough_text(input)));
    }
    lines.insert(lines.end(), input.left_out.begin(), input.left_out.end());
    return lines;
}

}  // namespace pipeweaver::emit
