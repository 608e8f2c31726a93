#include "pipeweaver/planner/read_anchor.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emulator/reserve.hpp"
#include "pipeweaver/planner/emulate_options.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

namespace pipeweaver::planner {

namespace {

using emulator::Anchored;
using emulator::RankMemory;

constexpr double least_factor = 0.2, most_factor = 5;

// The launch under factors on its kernels.
class AnchoredLaunch {
public:
    explicit AnchoredLaunch(EmulationRequest request) : request_(std::move(request)) { request_.any_memory = true; }

    Emulation emulated(double factor) const {
        EmulationRequest changed = request_;
        emulator::Setup setup = *request_.job.setup;
        setup.recipe = with_kernels(setup.recipe, factor);
        setup.store = std::make_shared<emulator::LayerStore>();
        changed.job.setup = std::make_shared<const emulator::Setup>(std::move(setup));
        return emulate(changed, in_order);
    }

    // How much longer than measured the step is, as a part of that.
    double over(Duration measured, double factor) const {
        return static_cast<double>(emulated(factor).step.count()) / static_cast<double>(measured.count()) - 1;
    }

    const emulator::Setup& setup() const { return *request_.job.setup; }

private:
    EmulationRequest request_;
};

// The factor with which the step is as measured, to a part in ten thousand: false position, where the weight of an end
// that stays is halved (Illinois). Nothing: none between the bounds.
std::optional<double> factor_for(const AnchoredLaunch& launch, Duration measured) {
    constexpr double enough = 1e-4;
    constexpr int most_steps = 40;
    double low = least_factor, high = most_factor;
    double below = launch.over(measured, low), above = launch.over(measured, high);
    if (below > 0 || above < 0) return std::nullopt;
    double factor = 1;
    for (int i = 0; i < most_steps; ++i) {
        const double off = launch.over(measured, factor);
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
        root.only_keys({"format", "about", "step_time_s", "memory_gib", "memory_kind", "launch"});
        if (!root.find("memory_gib")) static_cast<void>(root.at("step_time_s"));
        const AnchoredLaunch launch(launch_of(root.at("launch")));
        const emulator::Setup& setup = launch.setup();
        Anchor anchor{.found = {}, .device = setup.cluster.device, .recipe = setup.recipe.name};
        anchor.found.from = path_;
        const Emulation emulation = launch.emulated(1);
        anchor.found.emulated = emulation.step;
        if (const auto step = root.find("step_time_s")) take_step(*step, launch, anchor.found);
        if (const auto memory = root.find("memory_gib")) take_memory(root, *memory, {launch, emulation}, anchor.found);
        return std::make_shared<const Anchor>(std::move(anchor));
    }

private:
    struct AsEmulated {
        const AnchoredLaunch& launch;
        const Emulation& emulation;
    };

    EmulationRequest launch_of(const Json& json) const {
        if (const auto anchor = json.find("anchor")) anchor->fail("an anchor's launch has no anchor of its own");
        for (const std::string_view key : {"model", "cluster", "tp", "pp"}) static_cast<void>(json.at(key));
        if (!json.find("schedule")) static_cast<void>(json.at("recompute"));
        OptionTable table;
        EmulateOptions options;
        options.add_to(table);
        table.configure(json);
        for (const auto& [key, degree] : {std::pair{"tp", &options.workload.tp}, std::pair{"pp", &options.workload.pp}})
            if (!degree->number) json.at(key).fail("is 'auto', must be the number that was run");
        return options.request(1, in_order);
    }

    static void take_step(const Json& json, const AnchoredLaunch& launch, Anchored& found) {
        constexpr double least_s = 1e-6, most_s = 1e6;
        found.measured = Duration{std::llround(1e9 * json.number(least_s, most_s))};
        const auto factor = factor_for(launch, found.measured);
        if (!factor)
            json.fail(
                fmt::format("{} was measured, {} is emulated: kernels of {} to {} times their time do not explain "
                            "it; another launch was measured, or it waits for its host or its data",
                            human(found.measured), human(found.emulated), least_factor, most_factor));
        found.kernels = *factor;
    }

    static void take_memory(const Json& root, const Json& json, const AsEmulated& as, Anchored& found) {
        const emulator::Setup& setup = as.launch.setup();
        const Bytes all = workloads::device(setup.cluster.device).memory;
        constexpr double gib = 1 << 30, least_gib = 1e-3;
        const double most_gib = static_cast<double>(all.count) / gib;
        found.measured_peak.count = std::llround(gib * json.number(least_gib, most_gib));
        const auto kind = root.find("memory_kind");
        const std::string name = kind ? kind->one_of({"allocated", "reserved", "on-device"}) : "allocated";
        const auto* of =
            std::find_if(memory_kinds.begin(), memory_kinds.end(), [&](const auto& one) { return one.first == name; });
        found.emulated_peak = most_held(as.emulation, of->second, setup.layout.gpus());
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
