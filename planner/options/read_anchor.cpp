#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emulator/reserve.hpp"
#include "pipeweaver/planner/anchor.hpp"
#include "pipeweaver/planner/emulate_options.hpp"
#include "pipeweaver/planner/job.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>

namespace pipeweaver::planner {

using emulator::Anchored;
using emulator::RankMemory;

namespace {

constexpr double least_factor = 0.2, most_factor = 5;

// The launch under factors on its kernels.
class AnchoredLaunch {
public:
    explicit AnchoredLaunch(EmulationRequest request) : request_(std::move(request)) {
        request_.any_memory = true;
        request_.loader.reset();
    }

    Emulation emulated(double factor) const {
        EmulationRequest changed = request_;
        changed.job.setup = std::make_shared<const emulator::Setup>(setup_with(factor));
        return emulate(changed, in_order);
    }

    // Forward and backward of that layer, nothing computed again. Nothing: there is none.
    std::optional<Duration> layer(std::string_view module, std::int64_t number, double factor) const {
        for (const emulator::LayerTime& one : layers_of(setup_with(factor), request_.batch))
            if (one.module == module && one.layer == number) return one.forward + one.backward;
        return std::nullopt;
    }

    const emulator::Setup& setup() const { return *request_.job.setup; }

private:
    emulator::Setup setup_with(double factor) const {
        emulator::Setup changed = setup();
        changed.recipe = with_kernels(changed.recipe, factor);
        changed.store = std::make_shared<emulator::LayerStore>();
        return changed;
    }

    EmulationRequest request_;
};

using TimeWith = std::function<Duration(double factor)>;

// The factor with which the time is as measured, to a part in ten thousand: false position, where the weight of an end
// that stays is halved (Illinois). Nothing: none between the bounds.
std::optional<double> factor_for(const TimeWith& time, Duration measured) {
    constexpr double enough = 1e-4;
    constexpr int most_steps = 40;
    const auto over = [&](double factor) {
        return static_cast<double>(time(factor).count()) / static_cast<double>(measured.count()) - 1;
    };
    double low = least_factor, high = most_factor;
    double below = over(low), above = over(high);
    if (below > 0 || above < 0) return std::nullopt;
    double factor = 1;
    for (int i = 0; i < most_steps; ++i) {
        const double off = over(factor);
        if (std::abs(off) <= enough) break;
        if (off < 0) {
            low = factor;
            below = off;
            above /= 2;
        } else {
            high = factor;
            above = off;
            below /= 2;
        }
        factor = low + (high - low) * below / (below - above);
    }
    return factor;
}

using OfRank = Bytes (*)(const RankMemory& rank, std::int64_t gpus);

// What a peak may be of, as --memory-kind of `validate` has it.
constexpr std::array<std::pair<std::string_view, OfRank>, 3> memory_kinds{
    {{"allocated", [](const RankMemory& rank, std::int64_t) { return rank.peak; }},
     {"reserved", [](const RankMemory& rank, std::int64_t) { return emulator::reserved(rank); }},
     {"on-device", [](const RankMemory& rank, std::int64_t gpus) { return emulator::on_device(rank, gpus); }}}};

Bytes most_held(const Emulation& emulation, OfRank of, std::int64_t gpus) {
    Bytes most{};
    for (const emulator::ReplicaEmulation& replica : emulation.replicas)
        for (const RankMemory& rank : replica.memory) most = std::max(most, of(rank, gpus));
    return most;
}

class AnchorFile {
public:
    explicit AnchorFile(const std::string& path)
        : document_(JsonDocument::given("--anchor", path)), path_(document_.name()) {}

    std::shared_ptr<const Anchor> read() const {
        document_.require_format("pipeweaver-anchor", 1);
        const Json root = document_.root();
        root.only_keys({"format", "about", "step_time_s", "layer", "memory_gib", "memory_kind", "launch"});
        const auto step = root.find("step_time_s"), layer = root.find("layer"), memory = root.find("memory_gib");
        if (!layer && !memory) static_cast<void>(root.at("step_time_s"));
        if (step && layer) layer->fail("goes without step_time_s; one of the two corrects the kernels");
        const AnchoredLaunch launch(launch_of(root.at("launch"), step || memory));
        const emulator::Setup& setup = launch.setup();
        Anchor anchor{.found = {}, .device = setup.cluster.device, .recipe = setup.recipe.name};
        anchor.found.from = path_;
        if (step)
            take_time(
                *step, measured_in(*step), [&](double factor) { return launch.emulated(factor).step; }, anchor.found);
        if (layer) take_layer(*layer, launch, anchor.found);
        if (memory) take_memory(root, *memory, launch, anchor.found);
        return std::make_shared<const Anchor>(std::move(anchor));
    }

private:
    // Of a layer alone nothing is computed again.
    static EmulationRequest launch_of(const Json& json, bool has_passes) {
        if (const auto anchor = json.find("anchor")) anchor->fail("an anchor's launch has no anchor of its own");
        for (const std::string_view key : {"model", "cluster", "tp", "pp"}) static_cast<void>(json.at(key));
        if (has_passes && !json.find("schedule")) static_cast<void>(json.at("recompute"));
        OptionTable table;
        EmulateOptions options;
        options.add_to(table);
        table.configure(json);
        for (const auto& [key, degree] : {std::pair{"tp", &options.workload.tp}, std::pair{"pp", &options.workload.pp}})
            if (!degree->number) json.at(key).fail("is 'auto', must be the number that was run");
        require_fixed(json, options.workload);
        return options.request(1, in_order);
    }

    static void require_fixed(const Json& json, const WorkloadOptions& workload) {
        if (const auto any = json.find("layout")) any->fail("chooses a layout; allowed is to leave it out");
        if (workload.overrides.any_zero) json.at("zero").fail("is 'auto', must be the stage that was run");
        for (const auto& [key, degree] :
             {std::pair{"dp", &workload.dp}, std::pair{"cp", &workload.cp}, std::pair{"ep", &workload.ep}})
            if (degree->automatic) json.at(key).fail("is 'auto', must be the number that was run");
    }

    static Duration measured_in(const Json& json) {
        constexpr double least_s = 1e-6, most_s = 1e6;
        return Duration{std::llround(1e9 * json.number(least_s, most_s))};
    }

    static void take_time(const Json& json, Duration measured, const TimeWith& time, Anchored& found) {
        found.measured = measured;
        found.emulated = time(1);
        const auto factor = factor_for(time, measured);
        if (!factor)
            json.fail(
                fmt::format("{} was measured, {} is emulated: kernels of {} to {} times their time do not explain "
                            "it; another launch was measured, or it waits for its host or its data",
                            human(measured), human(found.emulated), least_factor, most_factor));
        found.kernels = *factor;
    }

    static void take_layer(const Json& json, const AnchoredLaunch& launch, Anchored& found) {
        json.only_keys({"module", "layer", "forward_s", "backward_s"});
        found.layer_of = json.at("module").text();
        const auto which = json.find("layer");
        const std::int64_t layer = which ? which->integer() : 0;
        if (!launch.layer(found.layer_of, layer, 1))
            json.fail(fmt::format("the model has no layer {} of a module '{}'", layer, found.layer_of));
        const Duration measured = measured_in(json.at("forward_s")) + measured_in(json.at("backward_s"));
        take_time(
            json, measured, [&](double factor) { return *launch.layer(found.layer_of, layer, factor); }, found);
    }

    static void take_memory(const Json& root, const Json& json, const AnchoredLaunch& launch, Anchored& found) {
        const emulator::Setup& setup = launch.setup();
        const Bytes all = workloads::device(setup.cluster.device).memory;
        constexpr double gib = 1 << 30, least_gib = 1e-3;
        const double most_gib = static_cast<double>(all.count) / gib;
        found.measured_peak.count = std::llround(gib * json.number(least_gib, most_gib));
        const auto kind = root.find("memory_kind");
        const std::string name = kind ? kind->one_of({"allocated", "reserved", "on-device"}) : "allocated";
        const auto* of =
            std::find_if(memory_kinds.begin(), memory_kinds.end(), [&](const auto& one) { return one.first == name; });
        found.emulated_peak = most_held(launch.emulated(1), of->second, setup.layout.gpus());
        found.beside = std::max(Bytes{}, found.measured_peak - found.emulated_peak);
    }

    JsonDocument document_;
    std::string path_;
};

}  // namespace

std::shared_ptr<const Anchor> read_anchor(const std::string& path) {
    return path.empty() ? nullptr : AnchorFile(path).read();
}

}  // namespace pipeweaver::planner
