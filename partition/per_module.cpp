// Partitions in which each module is a chain of its own: that of DIP, and those that a job is offered beside it.
#include "partition/level_chains.hpp"
#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emulator/layer_costs.hpp"
#include "pipeweaver/partition/partitioners.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

namespace pipeweaver::partition {

using namespace emulator;
using namespace workloads;

namespace {

constexpr double wanted_efficiency = 0.95;

// Forward and backward of all blocks of a module.
Duration module_time(LayerCosts& costs, const Model& model, std::size_t m, const PassShape& shape) {
    const LayerRange all{m, 0, model.modules[m].architecture.layers};
    return costs.layers(all, shape, PassKind::forward).time + costs.layers(all, shape, PassKind::backward).time;
}

PassShape first_items(const PassShape& shape, std::size_t count) {
    const auto first = [count](const std::vector<std::int64_t>& lengths) {
        const auto end = lengths.begin() + static_cast<std::ptrdiff_t>(std::min(count, lengths.size()));
        return std::vector<std::int64_t>(lengths.begin(), end);
    };
    return {first(shape.lengths), first(shape.context)};
}

// Items of the module in the microbatch that has most of them: what sub-microbatch sizes are tried on.
PassShape largest_shape(const Setup& setup, const Sample& sample, std::size_t m) {
    PassShape largest;
    for (const Microbatch& microbatch : sample) {
        const auto shape = shape_in(setup.model.modules[m], microbatch, 0, microbatch.items.size());
        if (shape.lengths.size() > largest.lengths.size()) largest = shape;
    }
    return largest;
}

// Smallest number of items with which the module runs at 95 % of the best positions per second.
std::int64_t smallest_efficient(LayerCosts& costs, const Model& model, std::size_t m, const PassShape& all) {
    std::vector<double> speed;
    for (std::size_t n = 1; n <= all.lengths.size(); ++n) {
        const PassShape shape = first_items(all, n);
        speed.push_back(static_cast<double>(shape.positions()) /
                        static_cast<double>(module_time(costs, model, m, shape).count()));
    }
    const double best = *std::max_element(speed.begin(), speed.end());
    const auto found =
        std::find_if(speed.begin(), speed.end(), [&](double s) { return s >= wanted_efficiency * best; });
    return found - speed.begin() + 1;
}

// What one pass of the module takes on average over the sample.
Duration mean_pass_time(LayerCosts& costs, const Setup& setup, const Sample& sample, std::size_t m) {
    Duration sum{};
    for (const Microbatch& microbatch : sample)
        sum += module_time(costs, setup.model, m,
                           shape_in(setup.model.modules[m], microbatch, 0, microbatch.items.size()));
    return sum / static_cast<std::int64_t>(sample.size());
}

// `segments` passes over all ranks; layers as equal as they can be, the remainder to the earlier chunks.
Chain chain_of(const Model& model, std::size_t m, std::int64_t ranks, std::int64_t segments) {
    Chain chain{model.modules[m].name, {}};
    const std::int64_t layers = model.modules[m].architecture.layers, chunks = ranks * segments;
    std::int64_t first = 0;
    for (std::int64_t c = 0; c < chunks; ++c) {
        const std::int64_t count = layers / chunks + (c < layers % chunks ? 1 : 0);
        chain.stages.push_back({RankId{static_cast<std::uint32_t>(c % ranks)}, {{m, first, count}}});
        first += count;
    }
    return chain;
}

// Modules with the work that units of given sizes make: what segments are counted from.
class ModuleWork {
public:
    ModuleWork(const Setup& setup, const Sample& sample)
        : setup_(setup), sample_(sample), costs_(LayerCosts::usual(setup, setup.modules)) {
        for (std::size_t m = 0; m < modules().size(); ++m) {
            shapes_.push_back(takes_items(m) ? largest_shape(setup, sample, m) : PassShape{});
            // Without any item in the sample there is nothing to measure; any size does.
            efficient_.push_back(!takes_items(m) ? 0
                                 : shapes_[m].lengths.empty()
                                     ? fewest(m)
                                     : std::max(fewest(m), smallest_efficient(costs_, setup.model, m, shapes_[m])));
        }
    }

    const std::vector<Module>& modules() const { return setup_.model.modules; }
    bool takes_items(std::size_t m) const { return modules()[m].unit == PassUnit::items; }

    // Items of a unit with which the module is efficient; 0: it takes microbatches whole.
    const std::vector<std::int64_t>& efficient() const { return efficient_; }

    // A part of the efficient units, each no smaller than its module's layout allows.
    std::vector<std::int64_t> part_of_efficient(std::int64_t part, std::int64_t whole) const {
        auto items = efficient_;
        for (std::size_t m = 0; m < items.size(); ++m)
            if (items[m] > 0) items[m] = std::max(fewest(m), (items[m] * part + whole / 2) / whole);
        return items;
    }

    // Of a pass of the module with so many items.
    Duration time(std::size_t m, std::int64_t items) {
        if (!takes_items(m)) return mean_pass_time(costs_, setup_, sample_, m);
        if (shapes_[m].lengths.empty()) return Duration{0};
        return module_time(costs_, setup_.model, m, first_items(shapes_[m], static_cast<std::size_t>(items)));
    }

    std::vector<Duration> times(const std::vector<std::int64_t>& items) {
        std::vector<Duration> all;
        for (std::size_t m = 0; m < modules().size(); ++m) all.push_back(time(m, items[m]));
        return all;
    }

    std::int64_t most_segments(std::size_t m) const {
        return std::max<std::int64_t>(1, modules()[m].architecture.layers / setup_.layout.pp);
    }

private:
    std::int64_t fewest(std::size_t m) const {
        return fewest_items(setup_.model, layout_of(setup_.modules, m, setup_.layout));
    }

    const Setup& setup_;
    const Sample& sample_;
    LayerCosts costs_;
    std::vector<PassShape> shapes_;
    std::vector<std::int64_t> efficient_;
};

Duration shortest_of(const std::vector<Duration>& times) {
    Duration shortest = Duration::max();
    for (const Duration t : times)
        if (t > Duration{0}) shortest = std::min(shortest, t);
    return shortest;
}

Partition per_module(const Setup& setup, std::string name, const std::vector<std::int64_t>& items,
                     const std::vector<std::int64_t>& segments) {
    Partition partition{std::move(name), 0, {}, items, {}, setup.modules};
    for (std::size_t m = 0; m < segments.size(); ++m) {
        partition.chunks_per_rank += segments[m];
        partition.chains.push_back(chain_of(setup.model, m, setup.layout.pp, segments[m]));
    }
    return partition;
}

// What decided it, module by module.
std::vector<std::string> notes_of(const Setup& setup, const std::vector<std::int64_t>& items,
                                  const std::vector<std::int64_t>& segments, const std::vector<Duration>& times) {
    std::vector<std::string> notes;
    for (std::size_t m = 0; m < segments.size(); ++m) {
        const Module& module = setup.model.modules[m];
        notes.push_back(fmt::format(
            "{}{}: a pass{} takes {}, {} of {} over {}", module.name,
            setup.modules.empty() || setup.modules[m].copies == 1 ? "" : " with " + name_of(setup.modules[m]),
            items[m] > 0 ? " of " + plural(items[m], "item") : "", human(times[m]), plural(segments[m], "segment"),
            plural(module.architecture.layers, "layer"), plural(setup.layout.pp, "rank")));
    }
    return notes;
}

// The chains cut so that the fullest rank has least to do, where that is less than with equal layers.
void level(const Setup& setup, const std::vector<ModuleRow>& rows, Partition& partition) {
    auto level = level_chains(setup, rows, partition.chains);
    if (!level) return;
    partition.chains = std::move(level->chains);
    partition.notes.push_back(
        fmt::format("layers by time and memory: the fullest rank has {:.1f} % less to do than with equal counts",
                    100 - 100 * static_cast<double>(level->load) / static_cast<double>(level->load_before)));
}

}  // namespace

Partition dip(const Setup& setup, const Sample& sample, std::int64_t) {
    ModuleWork work(setup, sample);
    const auto times = work.times(work.efficient());
    const Duration shortest = shortest_of(times);
    std::vector<std::int64_t> segments;
    for (std::size_t m = 0; m < times.size(); ++m)
        segments.push_back(std::clamp<std::int64_t>(times[m] / shortest, 1, work.most_segments(m)));
    Partition partition = per_module(setup, "dip", work.efficient(), segments);
    for (std::size_t m = 0; m < times.size(); ++m)
        if (work.takes_items(m))
            partition.notes.push_back(
                fmt::format("{}: {} items a sub-microbatch run at {:.0f} % of the best efficiency "
                            "or more",
                            work.modules()[m].name, work.efficient()[m], 100 * wanted_efficiency));
    const auto notes = notes_of(setup, work.efficient(), segments, times);
    partition.notes.insert(partition.notes.end(), notes.begin(), notes.end());
    return partition;
}

namespace {

// How many segments modules get: as many times as the shortest pass as a pass takes, times a factor, and no more than
// the cap. Small encoders beside a large language model would cut it into many chunks, for messages alone.
struct Segmenting {
    double factor = 1;
    std::int64_t most = INT64_MAX;
};
constexpr std::array<Segmenting, 7> segmentings{{{1}, {2}, {3}, {4}, {1, 2}, {1, 4}, {1, 8}}};

std::vector<std::int64_t> segments_of(const ModuleWork& work, const std::vector<Duration>& times,
                                      const Segmenting& how) {
    const auto shortest = static_cast<double>(shortest_of(times).count());
    std::vector<std::int64_t> segments;
    for (std::size_t m = 0; m < times.size(); ++m) {
        const auto wanted = std::llround(how.factor * static_cast<double>(times[m].count()) / shortest);
        segments.push_back(std::clamp<std::int64_t>(wanted, 1, std::min(how.most, work.most_segments(m))));
    }
    return segments;
}

}  // namespace

std::vector<Partition> per_module_candidates(const Setup& setup, const Sample& sample) {
    constexpr std::array<std::pair<std::int64_t, std::int64_t>, 5> unit_parts{{{1, 1}, {3, 4}, {2, 3}, {1, 2}, {1, 3}}};
    constexpr std::int64_t most_chunks = 24;  // of a rank: more are more messages, and no test gained by them
    ModuleWork work(setup, sample);
    const auto rows = module_rows(setup, sample);
    std::vector<Partition> all;
    std::set<std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>> seen;
    for (const auto& [part, whole] : unit_parts) {
        const auto items = work.part_of_efficient(part, whole);
        const auto times = work.times(items);
        for (const Segmenting& how : segmentings) {
            const auto segments = segments_of(work, times, how);
            const std::int64_t chunks = std::accumulate(segments.begin(), segments.end(), std::int64_t{0});
            if (chunks > most_chunks || !seen.emplace(items, segments).second) continue;
            all.push_back(per_module(setup, "modules", items, segments));
            all.back().notes = notes_of(setup, items, segments, times);
            level(setup, rows, all.back());
        }
    }
    return all;
}

Partition modules(const Setup& setup, const Sample& sample, std::int64_t) {
    return per_module_candidates(setup, sample).front();
}

}  // namespace pipeweaver::partition
