// Other formats of products, emulated on the same partition and schedule.
#include "pipeweaver/planner/precision.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/planner/emulate.hpp"
#include "pipeweaver/workloads/counts.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>

namespace pipeweaver::planner {

namespace {

using costdb::Dtype;
using Choice = std::vector<std::int64_t>;

// What a layer saves, by what is looked at first.
struct Saving {
    double first = 0, then = 0;

    friend auto operator<=>(const Saving&, const Saving&) = default;
};

std::int64_t layers_in(const Choice& chosen) { return std::accumulate(chosen.begin(), chosen.end(), std::int64_t{0}); }

class Greedy {
public:
    Greedy(const Choice& rows, Duration most, std::int64_t at_once, const ComeOf& come)
        : rows_(rows), most_(most), at_once_(at_once), come_(come) {}

    struct Found {
        Choice chosen;
        Duration step{};
    };

    Found by(bool load) const {
        Choice chosen(rows_.size(), 0);
        Came now = come_({chosen}).front();
        while (now.step > most_) {
            const auto choices = with_more(chosen);
            if (choices.empty()) break;
            const auto came = come_(choices);
            std::size_t best = 0;
            Saving most;
            for (std::size_t i = 0; i < came.size(); ++i) {
                const Saving saving = saving_of(now, came[i], layers_in(choices[i]) - layers_in(chosen), load);
                if (i == 0 || saving > most) {
                    best = i;
                    most = saving;
                }
            }
            if (most <= Saving{}) break;
            chosen = choices[best];
            now = came[best];
        }
        return now.step <= most_ ? left_out({chosen, now.step}) : Found{chosen, now.step};
    }

private:
    static Saving saving_of(const Came& before, const Came& after, std::int64_t layers, bool load) {
        const auto each = static_cast<double>(layers);
        const double step = static_cast<double>((before.step - after.step).count()) / each;
        const double loads = (before.load - after.load) / each;
        return load ? Saving{loads, step} : Saving{step, loads};
    }

    // Some more layers of each row that has any left.
    std::vector<Choice> with_more(const Choice& chosen) const {
        std::vector<Choice> choices;
        for (std::size_t row = 0; row < rows_.size(); ++row)
            if (const std::int64_t more = std::min(at_once_, rows_[row] - chosen[row]); more > 0) {
                choices.push_back(chosen);
                choices.back()[row] += more;
            }
        return choices;
    }

    // One layer less as long as the others are enough, where the step is then shortest.
    Found left_out(Found found) const {
        while (true) {
            std::vector<Choice> choices;
            for (std::size_t row = 0; row < rows_.size(); ++row)
                if (found.chosen[row] > 0) {
                    choices.push_back(found.chosen);
                    --choices.back()[row];
                }
            if (choices.empty()) return found;
            const auto came = come_(choices);
            const auto best = std::min_element(came.begin(), came.end(),
                                               [](const Came& a, const Came& b) { return a.step < b.step; });
            if (best->step > most_) return found;
            found = {choices[static_cast<std::size_t>(best - came.begin())], best->step};
        }
    }

    const Choice& rows_;
    Duration most_;
    std::int64_t at_once_;
    const ComeOf& come_;
};

}  // namespace

std::vector<std::int64_t> fewest_layers(const std::vector<std::int64_t>& rows, Duration most, std::int64_t at_once,
                                        const ComeOf& come) {
    const Greedy greedy(rows, most, at_once, come);
    const auto by_step = greedy.by(false), by_load = greedy.by(true);
    const bool steps = by_step.step <= most, loads = by_load.step <= most;
    if (steps != loads) return steps ? by_step.chosen : by_load.chosen;
    if (!steps) return by_step.step <= by_load.step ? by_step.chosen : by_load.chosen;
    return layers_in(by_step.chosen) <= layers_in(by_load.chosen) ? by_step.chosen : by_load.chosen;
}

PrecisionAsked precision_asked(std::string_view text) {
    constexpr std::string_view alone = "precision";
    if (text == alone) return {};
    const auto said = text.substr(std::min(text.size(), alone.size() + 1));
    const auto colon = said.find(':');
    double percent = 0;
    const char* const end = said.data() + said.size();
    const auto read = colon == std::string_view::npos ? std::from_chars_result{end, std::errc::invalid_argument}
                                                      : std::from_chars(said.data() + colon + 1, end, percent);
    const bool is_percent = read.ec == std::errc{} && std::string(read.ptr, end) == "%";
    for (const auto& [name, products] : emulator::product_formats())
        if (is_percent && percent > 0 && percent < 100 && name == said.substr(0, colon) && products != Dtype::fp32)
            return {products, percent / 100};
    fail(
        ErrorKind::input,
        "--what-if: is '{}', must be a file, precision, precision=MODULE=FORMAT,... or precision=FORMAT:PERCENT%, like "
        "precision=vit=bf16 or precision=fp8:5%",
        text);
}

namespace {

double powers_of_busy(const Emulation& emulation) {
    constexpr double power = 8;
    double load = 0;
    for (const emulator::ReplicaEmulation& replica : emulation.replicas)
        for (const emulator::RankTime& rank : replica.time)
            load += std::pow(1e-9 * static_cast<double>(rank.busy().count()), power);
    return load;
}

// A row of like layers of a stage.
struct LayerRow {
    std::size_t module = 0;
    std::int64_t first = 0, count = 0;
};

class Formats {
public:
    Formats(const EmulationRequest& request, const Emulation& emulation, const Executor& execute)
        : request_(request), emulation_(emulation), execute_(execute), setup_(*request.job.setup) {}

    std::vector<ModuleInFormat> modules() const {
        std::vector<ModuleInFormat> all;
        std::vector<emulator::Recipe> recipes;
        const auto& device = workloads::device(setup_.cluster.device);
        for (const auto& module : setup_.model.modules)
            for (const auto& [name, products] : emulator::product_formats()) {
                const Dtype now = setup_.recipe.execution_of(module).products;
                if (products == now || products == Dtype::fp32 || !emulator::has_products(device, products)) continue;
                emulator::Recipe recipe = setup_.recipe;
                recipe.precision[module.name] = products;
                std::erase_if(recipe.layer_precision, [&](const auto& one) { return one.module == module.name; });
                all.push_back({module.name, products, {}, {}});
                recipes.push_back(std::move(recipe));
            }
        const auto emulations = emulated(recipes);
        for (std::size_t i = 0; i < all.size(); ++i) {
            all[i].step = emulations[i].step;
            all[i].peak = fullest_peak(emulations[i]);
        }
        return all;
    }

    LayersInFormat layers(Dtype products, double share) const {
        const auto rows = rows_in_others(products);
        Choice counts;
        for (const LayerRow& row : rows) counts.push_back(row.count);
        const auto before = static_cast<double>(emulation_.step.count());
        const Duration most{static_cast<std::int64_t>(std::floor(before * (1 - share)))};
        constexpr std::int64_t steps = 32;  // of the greedy choice: so many layers are chosen one by one
        const std::int64_t all = layers_in(counts);
        const auto come = [&](const std::vector<Choice>& choices) { return came_of(rows, choices, products); };
        const Choice chosen = fewest_layers(counts, most, std::max<std::int64_t>(1, all / steps), come);
        LayersInFormat answer{ranges(rows, chosen, products), 0, all, false, {}, {}};
        answer.count = layers_in(chosen);
        const emulator::Recipe recipe = with(answer.layers, products);
        const Emulation at_end = emulated({recipe}).front();
        answer.precision = formats_of(recipe);
        answer.step = at_end.step;
        answer.peak = fullest_peak(at_end);
        answer.reached = answer.step <= most;
        return answer;
    }

private:
    // The same step, products in other formats.
    EmulationRequest in(const emulator::Recipe& recipe) const {
        EmulationRequest changed = request_;
        auto setup = std::make_shared<emulator::Setup>(with_recipe(setup_, recipe));
        if (!setup_.store) setup->store.reset();
        changed.job.setup = std::move(setup);
        changed.job.fixed = partition::PartitionFile{emulation_.partition, {}};
        changed.recompute = emulation_.recompute;
        changed.any_memory = true;
        changed.loader.reset();
        return changed;
    }

    std::vector<Emulation> emulated(const std::vector<emulator::Recipe>& recipes) const {
        std::vector<Emulation> all(recipes.size());
        run_jobs(execute_, recipes.size(), [&](std::size_t i) { all[i] = emulate(in(recipes[i]), in_order); });
        return all;
    }

    // What may change: fp32 is of whole modules alone.
    std::vector<LayerRow> rows_in_others(Dtype products) const {
        std::vector<LayerRow> rows;
        for (const emulator::Chain& chain : emulation_.partition.chains)
            for (const emulator::StageLayers& stage : chain.stages)
                for (const emulator::LayerRange& part : stage.parts) add_rows(part, products, rows);
        return rows;
    }

    void add_rows(const emulator::LayerRange& part, Dtype products, std::vector<LayerRow>& rows) const {
        const auto& module = setup_.model.modules[part.module];
        std::optional<std::pair<workloads::BlockKind, Dtype>> last;
        for (std::int64_t layer = part.first; layer < part.first + part.count; ++layer) {
            const std::pair kind(block_kind(module.architecture, layer), setup_.recipe.products_of(module, layer));
            const bool changes = kind.second != products && kind.second != Dtype::fp32;
            if (!changes) {
                last.reset();
                continue;
            }
            if (last != kind) rows.push_back({part.module, layer, 0});
            ++rows.back().count;
            last = kind;
        }
    }

    std::vector<emulator::LayerPrecision> ranges(const std::vector<LayerRow>& rows, const Choice& chosen,
                                                 Dtype products) const {
        std::map<std::pair<std::size_t, std::int64_t>, std::int64_t> counts;
        for (std::size_t r = 0; r < rows.size(); ++r)
            if (chosen[r] > 0) counts[{rows[r].module, rows[r].first}] = chosen[r];
        std::vector<emulator::LayerPrecision> all;
        for (const auto& [place, count] : counts) {
            const auto& name = setup_.model.modules[place.first].name;
            if (!all.empty() && all.back().module == name && all.back().last + 1 == place.second)
                all.back().last += count;
            else
                all.push_back({name, place.second, place.second + count - 1, products});
        }
        return all;
    }

    // What the recipe has of single layers stays around them: layer by layer, as ranges may be in two.
    emulator::Recipe with(const std::vector<emulator::LayerPrecision>& layers, Dtype products) const {
        emulator::Recipe recipe = setup_.recipe;
        std::vector<emulator::LayerPrecision> apart;
        for (const auto& one : recipe.layer_precision)
            for (std::int64_t layer = one.first; layer <= one.last; ++layer) {
                const bool changes = std::any_of(layers.begin(), layers.end(), [&](const auto& range) {
                    return range.module == one.module && range.first <= layer && layer <= range.last;
                });
                if (!changes) apart.push_back({one.module, layer, layer, one.products});
            }
        for (const auto& range : layers) apart.push_back({range.module, range.first, range.last, products});
        recipe.layer_precision = std::move(apart);
        return recipe;
    }

    std::vector<Came> came_of(const std::vector<LayerRow>& rows, const std::vector<Choice>& choices,
                              Dtype products) const {
        std::vector<emulator::Recipe> recipes;
        recipes.reserve(choices.size());
        for (const Choice& chosen : choices) recipes.push_back(with(ranges(rows, chosen, products), products));
        std::vector<Came> came;
        for (const Emulation& one : emulated(recipes)) came.push_back({one.step, powers_of_busy(one)});
        return came;
    }

    const EmulationRequest& request_;
    const Emulation& emulation_;
    const Executor& execute_;
    const emulator::Setup& setup_;
};

}  // namespace

std::optional<PrecisionAnswer> precision_answer(const EmulationRequest& request, const Emulation& emulation,
                                                const Executor& execute) {
    if (!request.precision) return std::nullopt;
    const Formats formats(request, emulation, execute);
    PrecisionAnswer answer{*request.precision, emulation.step, {}, {}};
    if (const auto products = answer.asked.products)
        answer.layers = formats.layers(*products, answer.asked.share);
    else
        answer.modules = formats.modules();
    return answer;
}

}  // namespace pipeweaver::planner
