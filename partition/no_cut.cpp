#include "pipeweaver/partition/no_cut.hpp"

#include "partition/level_chains.hpp"
#include "pipeweaver/base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

namespace pipeweaver::partition {

using namespace emulator;

namespace {

// With so many chunks a rank. None: it fits, or there are fewer layers than stages.
struct Nearest {
    bool fits = false;
    std::optional<NoCut> cut;
};

Row row_of(const Setup& setup, const std::vector<ModuleRow>& modules, std::int64_t chunks) {
    Row row{{}, std::vector<RowRank>(static_cast<std::size_t>(setup.layout.pp)), chunks, {}};
    Bytes around = modules.front().around;
    for (const ModuleRow& module : modules) {
        row.layers.insert(row.layers.end(), module.layers.begin(), module.layers.end());
        around = std::min(around, module.around);
    }
    for (RowRank& rank : row.ranks) rank.room = capacity_of(setup) - chunks * around;
    return row;
}

Nearest nearest_of(const Setup& setup, const Sample& sample) {
    const auto modules = module_rows(setup, sample);
    Nearest nearest;
    for (const std::int64_t chunks : chunk_counts) {
        const Row row = row_of(setup, modules, chunks);
        if (row.layers.size() < row.ranks.size() * static_cast<std::size_t>(chunks)) break;
        const ExactCut cut = exact_cut(row);
        if (cut.fits()) return {true, std::nullopt};
        const Bytes around = capacity_of(setup) - row.ranks.front().room;
        NoCut found{setup.layout.pp,    RankId{static_cast<std::uint32_t>(cut.rank)},
                    cut.always,         cut.held + around,
                    capacity_of(setup), ""};
        if (!nearest.cut || found.short_by() < nearest.cut->short_by()) nearest.cut = std::move(found);
    }
    return nearest;
}

std::string change_for(const Setup& setup, const Sample& sample, const NoCut& cut) {
    const Bytes usable = usable_bytes(setup.cluster), kept = usable - capacity_of(setup);
    if (cut.short_by() <= kept) {
        // In tenths of a per cent, rounded down.
        const std::int64_t tenths = (kept - cut.short_by()).count * 1000 / usable.count;
        return fmt::format("--headroom {}.{}%", tenths / 10, tenths % 10);
    }
    if (setup.recipe.zero == 0 && setup.layout.weight_copies() > 1) {
        Setup shared = setup;
        shared.recipe.zero = 1;
        shared.store = std::make_shared<LayerStore>();
        if (nearest_of(shared, sample).fits) return "--zero 1";
    }
    return {};
}

}  // namespace

std::string NoCut::text() const {
    return fmt::format(
        "no cut over {} ranks fits with all recomputed: rank {} of the nearest always holds {}, "
        "of the largest microbatch {}, {} more than its {}{}",
        ranks, index(rank), human(always), human(held), human(short_by()), human(capacity),
        change.empty() ? "" : "; " + change + " would do");
}

std::optional<NoCut> why_no_cut_fits(const Setup& setup, const Sample& sample) {
    auto nearest = nearest_of(setup, sample);
    if (nearest.cut && !nearest.fits) nearest.cut->change = change_for(setup, sample, *nearest.cut);
    return nearest.fits ? std::nullopt : std::move(nearest.cut);
}

}  // namespace pipeweaver::partition
