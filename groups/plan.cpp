#include "pipeweaver/groups/plan.hpp"

#include "groups/choices.hpp"
#include "groups/work.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/emulator/placement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <utility>

namespace pipeweaver::groups {

using namespace emulator;

namespace {

constexpr std::size_t priced_to_find = 16;

std::int64_t layers_of(const Asked& group, const workloads::Model& model) {
    std::int64_t layers = 0;
    for (const std::size_t m : group.modules) layers += model.modules[m].architecture.layers;
    return layers;
}

// As many in every stage.
std::vector<std::int64_t> in_equal_parts(std::int64_t layers, std::int64_t stages) {
    std::vector<std::int64_t> parts;
    for (std::int64_t s = 0; s < stages; ++s) parts.push_back((s + 1) * layers / stages - s * layers / stages);
    return parts;
}

// The group's layers in a row, so many in each stage.
Chain chain_of(const Asked& group, const workloads::Model& model, const std::vector<std::int64_t>& layers) {
    Chain chain{group.name, {}};
    std::int64_t begin = 0;
    for (std::size_t s = 0; s < layers.size(); ++s) {
        StageLayers stage{RankId{static_cast<std::uint32_t>(s)}, {}};
        const std::int64_t end = begin + layers[s];
        std::int64_t at = 0;
        for (const std::size_t m : group.modules) {
            const std::int64_t count = model.modules[m].architecture.layers;
            const std::int64_t first = std::max(begin, at), last = std::min(end, at + count);
            if (first < last) stage.parts.push_back({m, first - at, last - first});
            at += count;
        }
        chain.stages.push_back(std::move(stage));
        begin = end;
    }
    return chain;
}

// Of its modules alone, whatever the others need.
workloads::Model alone(const Asked& group, const workloads::Model& model) {
    workloads::Model part = model;
    part.edges.clear();
    part.modules.clear();
    for (const std::size_t m : group.modules) part.modules.push_back(model.modules[m]);
    return part;
}

// The product of a group's degrees that are said; of what no cluster has, as many as none has.
std::int64_t product_said(const Asked& asked) {
    constexpr std::int64_t too_many = 1'000'000'000;
    std::int64_t gpus = 1;
    for (const auto& degree : {asked.tp, asked.cp, asked.pp, asked.dp})
        gpus = std::min(gpus * degree.value_or(1), too_many);
    return gpus;
}

// Where all are said.
std::optional<std::int64_t> gpus_said(const Asked& asked) {
    if (!asked.tp || !asked.pp || !asked.dp) return std::nullopt;
    return product_said(asked);
}

std::optional<std::string> why_no_layout(const Asked& asked, const workloads::Model& model) {
    const std::int64_t layers = layers_of(asked, model);
    if (asked.pp.value_or(1) > layers)
        return fmt::format("--groups: {} has {} layers, pp{} needs as many at least", asked.name, layers, *asked.pp);
    const auto said = gpus_said(asked);
    if (said && asked.gpus.value_or(*said) != *said)
        return fmt::format("--groups: {} has {} GPUs, but its degrees need {}", asked.name, *asked.gpus, *said);
    if (asked.gpus && *asked.gpus % product_said(asked) != 0)
        return fmt::format("--groups: {} has {} GPUs, no multiple of the {} of its degrees", asked.name, *asked.gpus,
                           product_said(asked));
    return std::nullopt;
}

std::optional<std::string> why_no_work(const Asked& asked, const Request& request) {
    const workloads::Model& model = request.setup->model;
    const auto works = [&](std::size_t m) { return has_work(model.modules[m], request.microbatches); };
    if (std::any_of(asked.modules.begin(), asked.modules.end(), works)) return std::nullopt;
    return fmt::format("--groups: the batch has nothing for {}: join it to another module, like {}+{}", asked.name,
                       asked.name, model.modules[model.backbone()].name);
}

// From which group to which.
Bridge bridge_of(const workloads::ModelEdge& edge, const std::vector<Asked>& groups) {
    Bridge bridge;
    for (std::size_t g = 0; g < groups.size(); ++g)
        for (const std::size_t m : groups[g].modules) {
            if (m == edge.from) bridge.from = g;
            if (m == edge.to) bridge.to = g;
        }
    return bridge;
}

std::optional<std::string> why_no_order(const Request& request) {
    for (const workloads::ModelEdge& edge : request.setup->model.edges) {
        const Bridge bridge = bridge_of(edge, request.groups);
        if (bridge.from > bridge.to)
            return fmt::format(
                "--groups: {} and {} each need what the other makes: put the module between them into one of them",
                request.groups[bridge.to].name, request.groups[bridge.from].name);
    }
    return std::nullopt;
}

// Of any; of none nothing.
std::int64_t least_gpus(const Candidates& all) {
    std::int64_t least = all.choices.empty() ? 0 : all.choices.front().gpus;
    for (const Choice& one : all.choices) least = std::min(least, one.gpus);
    return least;
}

class OwnGpus {
public:
    explicit OwnGpus(const Request& request)
        : request_(request),
          setup_(on_their_own(*request.setup)),
          microbatches_(sorted_microbatches(request.microbatches, request.priced)),
          prices_(setup_, microbatches_.priced, request.capacity) {
        for (std::size_t g = 0; g < request.groups.size(); ++g) {
            const auto& modules = request.groups[g].modules;
            if (std::find(modules.begin(), modules.end(), setup_.model.backbone()) != modules.end()) main_ = g;
            choices_.emplace_back(microbatches_, prices_, crossing(g), request.groups[g].recompute);
        }
        for (const workloads::ModelEdge& edge : setup_.model.edges) add_bridge(edge);
        for (std::size_t g = 0; g < request.groups.size(); ++g) deepest_ += stages_of(g).back();
    }

    std::optional<Placing> best() {
        auto best = best_of_all();
        if (best) return best;
        is_wider_ = true;
        return best_of_all();
    }

private:
    std::int64_t gpus() const { return setup_.cluster.gpus; }

    std::optional<Placing> best_of_all() {
        std::optional<Placing> best;
        // Many replicas first: they are the faster ones, and tell which others cannot be.
        auto replicas_of_main = divisors(microbatches_.count(), gpus());
        std::reverse(replicas_of_main.begin(), replicas_of_main.end());
        for (const std::int64_t replicas : replicas_of_main) {
            if (request_.groups[main_].dp.value_or(replicas) != replicas) continue;
            for (const bool alternating : microbatches_.orders()) {
                const auto below = best ? std::optional(best->step) : std::nullopt;
                auto found = best_at({replicas, microbatches_.count() / replicas, deepest_, below, alternating});
                if (found && (!best || found->key() < best->key())) best = std::move(found);
            }
        }
        return best;
    }

    bool has(std::size_t group, std::size_t module) const {
        const auto& modules = request_.groups[group].modules;
        return std::find(modules.begin(), modules.end(), module) != modules.end();
    }

    // Of the microbatch that is the largest there, over the edge that has most.
    Bytes crossing(std::size_t group) const {
        Bytes most;
        for (const workloads::ModelEdge& edge : setup_.model.edges) {
            if (has(group, edge.from) == has(group, edge.to)) continue;
            const workloads::Module& from = setup_.model.modules[edge.from];
            const std::int64_t width = edge.projector_out > 0 ? edge.projector_out : from.architecture.hidden;
            const std::int64_t rows =
                prices_.most_positions(edge.from) / std::max(std::int64_t{1}, edge.token_reduction);
            most = std::max(most, Bytes{setup_.recipe.execution_of(from).value_bytes() * rows * width});
        }
        return most;
    }

    std::vector<std::int64_t> stages_of(std::size_t group) const {
        const Asked& asked = request_.groups[group];
        if (asked.pp) return {*asked.pp};
        if (group != main_) return divisors(layers_of(asked, setup_.model), most_stages_beside);
        const std::int64_t layers = setup_.model.modules[setup_.model.backbone()].architecture.layers;
        return divisors(layers, layers);
    }

    std::vector<std::int64_t> replicas_of(std::size_t group, const Pace& pace) const {
        if (group == main_) return {pace.replicas};
        auto all = divisors(pace.replicas, pace.replicas);
        if (!request_.parts_items) return all;
        const auto takes_items = [&](std::size_t m) {
            return setup_.model.modules[m].unit == workloads::PassUnit::items;
        };
        const auto& modules = request_.groups[group].modules;
        if (!std::all_of(modules.begin(), modules.end(), takes_items)) return all;
        for (std::int64_t copies = 2; copies * pace.replicas <= gpus() && copies <= 8; ++copies)
            all.push_back(copies * pace.replicas);
        return all;
    }

    bool allows(std::size_t group, const Degrees& degrees, std::int64_t most) const {
        const Asked& asked = request_.groups[group];
        return degrees.gpus() <= most && asked.gpus.value_or(degrees.gpus()) == degrees.gpus() &&
               asked.dp.value_or(degrees.dp) == degrees.dp;
    }

    std::vector<std::int64_t> context_parallel(std::size_t group) const {
        const Asked& asked = request_.groups[group];
        if (asked.cp) return {*asked.cp};
        std::vector<std::int64_t> all{1};
        if (!is_wider_ || group != main_) return all;
        for (std::int64_t cp = 2; cp <= setup_.cluster.gpus_per_node; cp *= 2) all.push_back(cp);
        return all;
    }

    std::vector<int> stages_of_zero(std::size_t group) const {
        const int usual = setup_.recipe.zero;
        if (const auto asked = request_.groups[group].zero) return {static_cast<int>(*asked)};
        return usual == 0 ? std::vector{0, 1} : std::vector{usual};
    }

    // Of each replica; none: the model cannot be spread so.
    std::vector<Degrees> layouts_of(std::size_t group) const {
        std::vector<Degrees> all;
        const workloads::Model part = alone(request_.groups[group], setup_.model);
        for (const std::int64_t tp : tensor_parallel(request_.groups[group].tp, setup_.cluster))
            for (const std::int64_t cp : context_parallel(group))
                for (const std::int64_t pp : stages_of(group)) {
                    Layout layout;
                    layout.tp = tp;
                    layout.cp = cp;
                    layout.pp = pp;
                    if (!conflict(layout, part)) all.push_back({tp, pp, 1, cp, setup_.recipe.zero});
                }
        return all;
    }

    // Of a replica's stages; layers of encoders and generators are alike, those of the backbone have embedding and head
    // beside them.
    const std::vector<Chain>& chains(std::size_t group, const Degrees& degrees) {
        const auto [place, added] = chains_.try_emplace({group, degrees});
        const Asked& asked = request_.groups[group];
        if (!added) return place->second;
        if (!asked.layers.empty()) return place->second = {chain_of(asked, setup_.model, asked.layers)};
        if (group != main_)
            return place->second = {
                       chain_of(asked, setup_.model, in_equal_parts(layers_of(asked, setup_.model), degrees.pp))};
        Setup part = prices_.setup_in(degrees);
        part.model = alone(asked, part.model);
        part.store = std::make_shared<LayerStore>();
        place->second = usual_chains(part, microbatches_.priced);
        for (Chain& chain : place->second)
            for (StageLayers& stage : chain.stages)
                for (LayerRange& range : stage.parts) range.module = asked.modules[range.module];
        return place->second;
    }

    // On so many GPUs at most.
    Candidates candidates(std::size_t group, const Pace& pace, std::int64_t most) {
        Candidates all;
        for (const Degrees& replica : layouts_of(group))
            for (const std::int64_t dp : replicas_of(group, pace)) {
                Degrees degrees = replica;
                degrees.dp = dp;
                if (!allows(group, degrees, most)) continue;
                for (const Chain& chain : chains(group, replica))
                    for (const int zero : stages_of_zero(group)) {
                        degrees.zero = zero;
                        if (choices_[group].add(chain, degrees, pace, all)) break;
                    }
            }
        return all;
    }

    std::optional<Placing> best_at(const Pace& pace) {
        std::vector<Candidates> all(request_.groups.size());
        all[main_] = candidates(main_, pace, gpus());
        const std::int64_t left = gpus() - least_gpus(all[main_]);
        for (std::size_t g = 0; g < all.size(); ++g) {
            if (g != main_ && !all[main_].choices.empty()) all[g] = candidates(g, pace, left);
            if (all[g].choices.empty()) return {};
        }
        Split split{gpus(), pace.rounds, {}, bridges_, request_.as_far};
        std::vector<std::vector<Candidate>> candidates_of;
        for (std::size_t g = 0; g < all.size(); ++g) {
            split.groups.push_back({request_.groups[g].name, std::move(all[g].choices)});
            candidates_of.push_back(std::move(all[g].candidates));
        }
        const auto found = allocate(split, pace.below);
        if (!found) return {};
        return placing(split, candidates_of, *found);
    }

    void add_bridge(const workloads::ModelEdge& edge) {
        const Bridge bridge = bridge_of(edge, request_.groups);
        const auto same = [&](const Bridge& one) { return one.from == bridge.from && one.to == bridge.to; };
        if (bridge.from != bridge.to && std::none_of(bridges_.begin(), bridges_.end(), same))
            bridges_.push_back(bridge);
    }

    const Request& request_;
    Setup setup_;
    SortedMicrobatches microbatches_;
    Prices prices_;
    std::vector<Choices> choices_;  // per group
    std::map<std::pair<std::size_t, Degrees>, std::vector<Chain>> chains_;
    std::vector<Bridge> bridges_;
    std::size_t main_ = 0;  // the group with the backbone
    std::int64_t deepest_ = 0;
    bool is_wider_ = false;  // with context parallelism
};

}  // namespace

std::vector<std::int64_t> Placed::layers() const {
    std::vector<std::int64_t> all;
    for (const StageLayers& stage : chain.stages) {
        all.push_back(0);
        for (const LayerRange& part : stage.parts) all.back() += part.count;
    }
    return all;
}

std::int64_t Placing::gpus() const {
    return std::accumulate(groups.begin(), groups.end(), std::int64_t{0},
                           [](std::int64_t sum, const Placed& group) { return sum + group.gpus(); });
}

std::optional<std::string> why_not(const Request& request) {
    const emulator::Recipe& recipe = request.setup->recipe;
    if (recipe.zero > 1)
        return fmt::format("--recipe, --zero: {} shares out states by ZeRO {}, must be 0 or 1 with groups of GPUs",
                           recipe.name, recipe.zero);
    if (emulator::fabric_of(request.setup->cluster).has_shape())
        return "--cluster: has racks, a ring or cubes, on which groups of GPUs have no places; must have none";
    std::int64_t gpus = 0;
    for (const Asked& asked : request.groups) gpus += asked.gpus.value_or(gpus_said(asked).value_or(1));
    if (gpus > request.setup->cluster.gpus)
        return fmt::format("--groups: need {} GPUs, but the cluster has {}", gpus, request.setup->cluster.gpus);
    for (const Asked& asked : request.groups)
        if (auto why = why_no_layout(asked, request.setup->model)) return why;
    for (const Asked& asked : request.groups)
        if (auto why = why_no_work(asked, request)) return why;
    return why_no_order(request);
}

std::optional<Placing> on_own_gpus(const Request& request) {
    if (const auto why = why_not(request)) throw Error(ErrorKind::input, *why);
    auto best = OwnGpus(request).best();
    for (std::size_t g = 0; best && g < best->groups.size(); ++g) best->groups[g].modules = request.groups[g].modules;
    return best;
}

std::optional<Placing> on_own_gpus_soon(const Request& request) {
    Request sought = request;
    sought.priced = std::min(priced_to_find, request.priced);
    const auto found = on_own_gpus(sought);
    if (!found) return std::nullopt;
    for (std::size_t g = 0; g < sought.groups.size(); ++g) take_layout(found->groups[g], sought.groups[g]);
    sought.priced = request.priced;
    auto exact = on_own_gpus(sought);
    if (exact) return exact;
    return on_own_gpus(request);  // what was not priced at first needs more memory
}

}  // namespace pipeweaver::groups
