#include "pipeweaver/emulator/module_layout.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace pipeweaver::emulator {

using workloads::Model;
using workloads::Module;

namespace {

constexpr std::array<std::string_view, 4> sharings{"dealt", "split", "hybrid", "counted"};
constexpr std::ptrdiff_t of_partitions = 3;

bool divides(const Module& module, const ModuleLayout& layout) {
    const auto& network = module.architecture;
    const std::int64_t exchanged = layout.sharing == Sharing::dealt ? layout.tp : layout.tp * layout.copies;
    return network.heads % layout.tp == 0 && network.ffn % layout.tp == 0 && network.heads % exchanged == 0;
}

std::vector<std::int64_t> degrees_of(const Module& module, std::int64_t gpus, Sharing sharing) {
    std::vector<std::int64_t> fit;
    for (std::int64_t tp = 1; tp <= gpus; ++tp)
        if (gpus % tp == 0 && divides(module, {tp, gpus / tp, sharing})) fit.push_back(tp);
    return fit;
}

// The degrees that would do, with the sharing that was asked for, or else with whole sequences.
std::string allowed_degrees(const Module& module, std::int64_t gpus, Sharing sharing) {
    const auto fit = degrees_of(module, gpus, sharing);
    if (!fit.empty()) return fmt::format("allowed with '{}' are {}", name_of(sharing), fmt::join(fit, ", "));
    return fmt::format("none is allowed with '{}', with 'dealt' {}", name_of(sharing),
                       fmt::join(degrees_of(module, gpus, Sharing::dealt), ", "));
}

}  // namespace

std::string_view name_of(Sharing sharing) { return sharings[static_cast<std::size_t>(sharing)]; }

std::optional<Sharing> sharing_named(std::string_view name) {
    const auto end = sharings.begin() + of_partitions, found = std::find(sharings.begin(), end, name);
    if (found == end) return std::nullopt;
    return static_cast<Sharing>(found - sharings.begin());
}

ModuleLayout layout_of(const ModuleLayouts& layouts, std::size_t module, const Layout& layout) {
    return layouts.empty() ? ModuleLayout{layout.tp, 1, Sharing::dealt} : layouts[module];
}

ModuleLayout in_phases(const Layout& layout) { return {1, layout.gpus_of_rank() * layout.pp, Sharing::dealt, true}; }

std::vector<std::size_t> phase_modules(const ModuleLayouts& layouts) {
    std::vector<std::size_t> modules;
    for (std::size_t m = 0; m < layouts.size(); ++m)
        if (layouts[m].in_phases) modules.push_back(m);
    return modules;
}

bool differ(const ModuleLayouts& layouts, const Layout& layout) {
    return std::any_of(layouts.begin(), layouts.end(), [&](const ModuleLayout& one) {
        return one.tp != layout.tp || one.copies != 1 || one.in_phases;
    });
}

Layout with_module(const Layout& layout, const ModuleLayout& module) {
    if (module.copies == 1 && module.tp == layout.tp) return layout;
    Layout own = layout;
    own.tp = module.tp;
    own.cp = module.copies;
    own.ep = 1;
    own.context = ContextParallel::all_to_all;
    own.ulysses = 0;
    return own;
}

Layout with_lies(const Layout& layout, const workloads::Lies& lies) {
    if (lies.is_as_job()) return layout;
    Layout own = layout;
    own.ep = 1;
    own.all_positions = lies.tensor != workloads::OnTensorRanks::as_job;
    if (lies.tensor == workloads::OnTensorRanks::whole) {
        own.tp = 1;
        own.alike_tensor = layout.tp;
    }
    if (lies.context == workloads::OnContextRanks::each) {
        own.cp = 1;
        own.ulysses = 0;
        own.alike_context = layout.cp;
    }
    return own;
}

namespace {

PlacedModule placed(const Layout& job, const ModuleLayout& own, const Module& module) {
    const workloads::Lies& lies = module.lies;
    Layout layout = job;
    layout.ulysses = job.cp > 1 ? module.ulysses : 0;
    const bool as_job = own.tp == layout.tp && own.copies == 1 && !own.in_phases;
    if (!as_job || lies.is_as_job()) return {with_module(layout, own), own};
    const Layout divided = with_lies(layout, lies);
    const bool dealt = lies.context == workloads::OnContextRanks::dealt;
    return {divided, {divided.tp, dealt ? divided.cp : 1, dealt ? Sharing::counted : Sharing::dealt}};
}

}  // namespace

std::vector<PlacedModule> placed_modules(const Layout& layout, const ModuleLayouts& layouts, const Model& model) {
    std::vector<PlacedModule> all;
    all.reserve(model.modules.size());
    for (std::size_t m = 0; m < model.modules.size(); ++m)
        all.push_back(placed(layout, layout_of(layouts, m, layout), model.modules[m]));
    return all;
}

std::optional<std::string> why_not(const ModuleLayout& module, const Model& model, std::size_t which,
                                   const Layout& layout, const std::string& named) {
    const Module& of = model.modules[which];
    const std::int64_t gpus = layout.gpus_of_rank();
    if (module.copies == 1 && module.tp == layout.tp) return std::nullopt;
    if (which == model.backbone() || of.unit == workloads::PassUnit::microbatch)
        return fmt::format("{}: '{}' takes whole microbatches and has the tp of the job, {}", named, of.name,
                           layout.tp);
    if (of.architecture.moe || of.architecture.linear)
        return fmt::format("{}: '{}' has {}, and has the tp of the job, {}", named, of.name,
                           of.architecture.moe ? "experts" : "linear attention", layout.tp);
    if (module.tp * module.copies == gpus && divides(of, module)) return std::nullopt;
    const std::string what =
        module.tp * module.copies != gpus
            ? fmt::format("tp {} x {} cop{} of '{}' are not the {} GPUs of a rank", module.tp, module.copies,
                          module.copies == 1 ? "y" : "ies", of.name, gpus)
            : fmt::format("tp {}{} does not divide the {} heads and {} feed-forward columns of '{}'", module.tp,
                          module.sharing == Sharing::dealt ? "" : fmt::format(" x {} copies", module.copies),
                          of.architecture.heads, of.architecture.ffn, of.name);
    return fmt::format("{}: {}; {}", named, what, allowed_degrees(of, gpus, module.sharing));
}

std::string name_of(const ModuleLayout& module) {
    if (module.in_phases) return fmt::format("tp {} on all GPUs of the replica, in phases", module.tp);
    if (module.copies == 1) return fmt::format("tp {}", module.tp);
    return fmt::format("tp {} x {} copies, {}", module.tp, module.copies, name_of(module.sharing));
}

}  // namespace pipeweaver::emulator
