#include "emit/emulation/precision_parts.hpp"

#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/base/text_table.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <utility>
#include <vector>

namespace pipeweaver::emit {

using planner::LayersInFormat;
using planner::ModuleInFormat;
using planner::PrecisionAnswer;
using Writer = nlohmann::ordered_json;

namespace {

std::string changed_by(Duration before, Duration after) {
    const double ratio = static_cast<double>(after.count()) / static_cast<double>(before.count());
    return fmt::format("{:+.2f} %", 100 * (ratio - 1));
}

std::string modules_text(const PrecisionAnswer& answer) {
    TextTable table(
        {{"module", true, 16}, {"in", true, 10}, {"step", false, 14}, {"change", false, 10}, {"peak", false, 12}}, 1);
    for (const ModuleInFormat& one : answer.modules)
        table.add({one.module, std::string(name_of(one.products)), seconds(one.step, 6),
                   changed_by(answer.step, one.step), human(one.peak)});
    return "\nwhat if the products of a module had another format\n" + table.text();
}

std::string layers_text(const PrecisionAnswer& answer, const LayersInFormat& layers) {
    const std::string wanted = fmt::format("{:g} %", 100 * answer.asked.share);
    const std::string step = fmt::format("step {} ({}), peak {}", seconds(layers.step, 6),
                                         changed_by(answer.step, layers.step), human(layers.peak));
    const auto format = name_of(*answer.asked.products);
    if (!layers.reached)
        return fmt::format("\n{} less is not reached in {}: {} of {} layers come closest, {}\n", wanted, format,
                           layers.count, layers.of, step);
    return fmt::format("\n{} less takes {} of {} layers in {}: {}\n--precision {}\n", wanted, layers.count, layers.of,
                       format, step, layers.precision);
}

}  // namespace

std::string precision_text(const PrecisionAnswer& answer) {
    return answer.layers ? layers_text(answer, *answer.layers) : modules_text(answer);
}

Writer precision_json(const PrecisionAnswer& answer) {
    Writer modules = Writer::array();
    for (const ModuleInFormat& one : answer.modules)
        modules.push_back({{"module", one.module},
                           {"products", name_of(one.products)},
                           {"step_ns", one.step.count()},
                           {"peak_bytes", one.peak.count}});
    Writer json{{"modules", std::move(modules)}};
    if (!answer.layers) return json;
    const LayersInFormat& layers = *answer.layers;
    Writer ranges = Writer::array();
    for (const auto& one : layers.layers)
        ranges.push_back({{"module", one.module}, {"first", one.first}, {"last", one.last}});
    json["layers"] = {{"products", name_of(*answer.asked.products)},
                      {"share", answer.asked.share},
                      {"reached", layers.reached},
                      {"count", layers.count},
                      {"of", layers.of},
                      {"ranges", std::move(ranges)},
                      {"step_ns", layers.step.count()},
                      {"peak_bytes", layers.peak.count}};
    return json;
}

}  // namespace pipeweaver::emit
