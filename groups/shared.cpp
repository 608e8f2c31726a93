// All modules on the same GPUs, by the same costs and the same replay: a split with one group.
#include "groups/choices.hpp"
#include "pipeweaver/groups/plan.hpp"

#include <algorithm>
#include <utility>

namespace pipeweaver::groups {

using namespace emulator;

namespace {

class SharedGpus {
public:
    explicit SharedGpus(const Request& request)
        : request_(request),
          setup_(*request.setup),
          microbatches_(sorted_microbatches(request.microbatches, request.priced)),
          prices_(setup_, microbatches_.priced),
          choices_(microbatches_, prices_, Bytes{0}) {
        for (const std::int64_t tp : tensor_parallel(request.tp, setup_.cluster)) add_chains(tp);
    }

    std::optional<Placing> best() {
        std::optional<Placing> best;
        auto all = divisors(microbatches_.count(), setup_.cluster.gpus);
        std::reverse(all.begin(), all.end());
        for (const std::int64_t replicas : all)
            for (const bool alternating : microbatches_.orders()) {
                const auto below = best ? std::optional(best->step) : std::nullopt;
                auto found = best_at({replicas, microbatches_.count() / replicas, 1, below, alternating});
                if (found && (!best || found->key() < best->key())) best = std::move(found);
            }
        return best;
    }

private:
    struct Cut {
        Degrees degrees;  // of one replica
        Chain chain;
    };

    void add_chains(std::int64_t tp) {
        const std::int64_t layers = setup_.model.modules[setup_.model.backbone()].architecture.layers;
        const std::int64_t most = std::min(layers, setup_.cluster.gpus / tp);
        for (const std::int64_t pp : request_.pp ? std::vector{*request_.pp} : divisors(layers, most)) {
            const Degrees degrees{tp, pp, 1, 1, setup_.recipe.zero};
            Layout layout;
            layout.tp = tp;
            layout.pp = pp;
            if (pp > most || conflict(layout, setup_.model)) continue;
            if (request_.even)
                cuts_.push_back({degrees, even_chain(pp)});
            else
                add_cuts(degrees);
        }
    }

    // As many of the backbone's layers on each stage, what is before it on the first, what is behind it on the last.
    Chain even_chain(std::int64_t stages) const {
        const auto& modules = setup_.model.modules;
        const std::size_t backbone = setup_.model.backbone();
        const std::int64_t layers = modules[backbone].architecture.layers;
        Chain chain{"even", {}};
        for (std::int64_t s = 0; s < stages; ++s) {
            StageLayers stage{RankId{static_cast<std::uint32_t>(s)}, {}};
            for (std::size_t m = 0; m < modules.size(); ++m) {
                if (m == backbone)
                    stage.parts.push_back({m, s * layers / stages, (s + 1) * layers / stages - s * layers / stages});
                else if (m < backbone ? s == 0 : s + 1 == stages)
                    stage.parts.push_back({m, 0, modules[m].architecture.layers});
            }
            chain.stages.push_back(std::move(stage));
        }
        return chain;
    }

    void add_cuts(const Degrees& degrees) {
        for (Chain& chain : usual_chains(prices_.setup_in(degrees), microbatches_.priced))
            cuts_.push_back({degrees, std::move(chain)});
    }

    std::optional<Placing> best_at(Pace pace) {
        Candidates all;
        for (const Cut& cut : cuts_) {
            Degrees degrees = cut.degrees;
            degrees.dp = pace.replicas;
            pace.deepest = degrees.pp;
            if (degrees.gpus() > setup_.cluster.gpus) continue;
            choices_.add(cut.chain, degrees, pace, all);
        }
        if (all.choices.empty()) return {};
        const Split split{setup_.cluster.gpus, pace.rounds, {{"all", std::move(all.choices)}}, {}};
        const auto found = allocate(split, pace.below);
        if (!found) return {};
        return placing(split, {std::move(all.candidates)}, *found);
    }

    const Request& request_;
    const Setup& setup_;
    SortedMicrobatches microbatches_;
    Prices prices_;
    Choices choices_;
    std::vector<Cut> cuts_;
};

}  // namespace

std::optional<Placing> on_shared_gpus(const Request& request) { return SharedGpus(request).best(); }

}  // namespace pipeweaver::groups
