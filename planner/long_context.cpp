#include "pipeweaver/planner/long_context.hpp"

#include "pipeweaver/emulator/layer_costs.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <utility>

namespace pipeweaver::planner {

namespace {

using emulator::PassKind;
using workloads::Module;

// Times of all layers of a module over one clip of each length.
struct AtLengths {
    std::vector<Duration> times{};
    std::vector<Duration> attention{};
};

std::vector<std::int64_t> lengths_tried() {
    constexpr std::int64_t shortest = 1024, quarters = 40;  // of doublings, up to 1,048,576
    std::vector<std::int64_t> all;
    for (std::int64_t i = 0; i <= quarters; ++i)
        all.push_back(std::llround(static_cast<double>(shortest) * std::exp2(static_cast<double>(i) / 4)));
    return all;
}

Duration attention_of(const emulator::PassCost& cost) {
    Duration sum{};
    for (const auto& by_basis : cost.shares[static_cast<std::size_t>(emulator::OperatorClass::attention)])
        sum += by_basis.time;
    return sum;
}

class OfModule {
public:
    OfModule(const emulator::Setup& setup, std::size_t module, const std::vector<std::int64_t>& lengths)
        : setup_(setup), module_(module), lengths_(lengths) {}

    AtLengths with(const std::vector<double>& sparsity, std::int64_t ulysses) const {
        emulator::Setup other = with_recipe(setup_, setup_.recipe);
        Module& module = other.model.modules[module_];
        module.architecture.attention.sparsity = sparsity;
        module.ulysses = ulysses;
        emulator::LayerCosts costs(other);
        AtLengths all;
        for (const std::int64_t length : lengths_) {
            emulator::PassShape shape{{length}};
            if (module.architecture.text_tokens > 0) shape.context = {module.architecture.text_tokens};
            emulator::PassCost sum;
            for (const PassKind pass : {PassKind::forward, PassKind::backward})
                sum += costs.layers({module_, 0, module.architecture.layers}, shape, pass);
            all.times.push_back(sum.time);
            all.attention.push_back(attention_of(sum));
        }
        return all;
    }

    const Module& module() const { return setup_.model.modules[module_]; }

    // GPUs that exchange heads, fewest first: heads are shared out evenly.
    std::vector<std::int64_t> ways() const {
        std::vector<std::int64_t> all;
        const std::int64_t cp = setup_.layout.cp, heads = module().architecture.heads;
        for (std::int64_t ulysses = 1; ulysses <= cp && cp > 1; ++ulysses)
            if (cp % ulysses == 0 && heads % (setup_.layout.tp * ulysses) == 0) all.push_back(ulysses);
        return all;
    }

private:
    const emulator::Setup& setup_;
    std::size_t module_;
    const std::vector<std::int64_t>& lengths_;
};

void add_sparse(const OfModule& of, std::size_t at_length, LongContext& all) {
    const Module& module = of.module();
    const AtLengths dense = of.with({}, module.ulysses);
    const auto whole = static_cast<double>(dense.times[at_length].count());
    all.shares.push_back({module.name, static_cast<double>(dense.attention[at_length].count()) / whole});
    std::set<double> tried{0.5, 0.7, 0.8, 0.9, 0.95};
    const auto& own = module.architecture.attention.sparsity;
    tried.insert(own.begin(), own.end());
    tried.erase(0);
    for (const double sparsity : tried) {
        const AtLengths sparse = of.with({sparsity}, module.ulysses);
        std::size_t from = all.lengths.size();
        while (from > 0 && sparse.times[from - 1] < dense.times[from - 1]) --from;
        const bool pays = from < all.lengths.size();
        all.sparse.push_back({module.name, sparsity, pays ? std::optional(all.lengths[from]) : std::nullopt,
                              static_cast<double>(sparse.times[at_length].count()) / whole});
    }
}

// Of equally fast ways the one that exchanges among fewer GPUs.
void add_contexts(const OfModule& of, std::int64_t cp, LongContext& all) {
    const auto ways = of.ways();
    std::vector<AtLengths> times;
    times.reserve(ways.size());
    for (const std::int64_t ulysses : ways)
        times.push_back(of.with(of.module().architecture.attention.sparsity, ulysses));
    std::size_t last = ways.size();
    for (std::size_t l = 0; l < all.lengths.size() && !ways.empty(); ++l) {
        std::size_t best = 0;
        for (std::size_t w = 1; w < ways.size(); ++w)
            if (times[w].times[l] < times[best].times[l]) best = w;
        if (best != last) all.contexts.push_back({of.module().name, all.lengths[l], ways[best], cp / ways[best]});
        last = best;
    }
}

}  // namespace

bool may_leave_pairs_out(const Module& module) {
    return module.architecture.kind == workloads::ModuleKind::diffusion_transformer &&
           module.architecture.attention.kind == workloads::AttentionKind::dense;
}

LongContext long_context(const emulator::Setup& setup) {
    LongContext all;
    all.lengths = lengths_tried();
    const auto longest = std::find(all.lengths.begin(), all.lengths.end(), LongContext::length);
    const auto at = static_cast<std::size_t>(longest - all.lengths.begin());
    for (std::size_t m = 0; m < setup.model.modules.size(); ++m) {
        if (!may_leave_pairs_out(setup.model.modules[m])) continue;
        const OfModule of(setup, m, all.lengths);
        add_sparse(of, at, all);
        add_contexts(of, setup.layout.cp, all);
    }
    return all;
}

}  // namespace pipeweaver::planner
