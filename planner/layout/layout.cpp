#include "planner/layout/layout.hpp"

#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emulator/operators.hpp"
#include "planner/layout/layout_trial.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <numeric>
#include <tuple>

namespace pipeweaver::planner {

using namespace emulator;
using workloads::Architecture;

namespace {

// In the order in which they are checked.
enum Reason { other_nodes, heads, columns, layers, context, experts, few_microbatches, memory, reasons };

// "tp must divide 8: vit has 16, llm 40".
std::string divisible(const LayoutRequest& request, std::int64_t Architecture::*size) {
    std::int64_t common = 0;
    std::vector<std::string> modules;
    for (const auto& module : request.setup->model.modules) {
        if (module.architecture.*size == 0) continue;
        common = std::gcd(common, module.architecture.*size);
        modules.push_back(
            fmt::format("{}{} {}", module.name, modules.empty() ? " has" : "", module.architecture.*size));
    }
    return fmt::format("tp must divide {}: {}", common, fmt::join(modules, ", "));
}

std::string shallowest(const LayoutRequest& request) {
    const auto& modules = request.setup->model.modules;
    const auto& least = *std::min_element(modules.begin(), modules.end(), [](const auto& a, const auto& b) {
        return a.architecture.layers < b.architecture.layers;
    });
    return fmt::format("{} has {}", least.name, least.architecture.layers);
}

std::string name_of(Reason reason, const LayoutRequest& request) {
    switch (reason) {
        case other_nodes:
            return fmt::format("tp does not divide the {} GPUs of a node", request.setup->cluster.gpus_per_node);
        case heads:
            return "tp does not divide a module's attention heads; " + divisible(request, &Architecture::heads);
        case columns:
            return "tp does not divide a module's feed-forward columns; " + divisible(request, &Architecture::ffn);
        case layers:
            return "pp is more than a module's layers; " + shallowest(request);
        case context:
            return fmt::format(
                "tp * cp {} does not divide a module's attention heads, which --context ring does not need",
                request.cp);
        case experts:
            return fmt::format("ep {} does not divide tp * cp * dp or a module's experts", request.ep.value_or(1));
        case few_microbatches:
            return "more replicas than microbatches";
        default:
            return "does not fit the memory";
    }
}

struct Considered {
    Layout layout;
    std::optional<Reason> refused{};
    LayoutTrial trial{};  // unless refused before it
    std::exception_ptr failure{};

    const std::optional<LayoutTried>& tried() const { return trial.tried; }
};

std::vector<std::int64_t> divisors(std::int64_t number) {
    std::vector<std::int64_t> all;
    for (std::int64_t d = 1; d * d <= number; ++d)
        if (number % d == 0) {
            all.push_back(d);
            if (d * d != number) all.push_back(number / d);
        }
    std::sort(all.begin(), all.end());
    return all;
}

std::vector<Considered> candidates(const LayoutRequest& request) {
    std::vector<Considered> all;
    if (request.setup->cluster.gpus % request.cp != 0) return all;
    const std::int64_t gpus = request.setup->cluster.gpus / request.cp;
    for (const std::int64_t tp : divisors(gpus))
        for (const std::int64_t pp : divisors(gpus / tp)) {
            Layout layout{.tp = tp, .pp = pp, .dp = gpus / tp / pp, .cp = request.cp, .context = request.context};
            layout.ep = request.ep.value_or(default_ep(layout, request.setup->model));
            if (tp != request.tp.value_or(tp) || pp != request.pp.value_or(pp)) continue;
            if (layout.dp == request.dp.value_or(layout.dp)) all.push_back({.layout = layout});
        }
    return all;
}

std::optional<Reason> refusal(const LayoutRequest& request, const Layout& layout) {
    if (request.setup->cluster.gpus_per_node % layout.tp != 0) return other_nodes;
    if (const auto found = conflict(layout, request.setup->model)) {
        constexpr std::array by_kind{heads, columns, layers, context, experts};
        return by_kind[static_cast<std::size_t>(found->what)];
    }
    const auto microbatches = static_cast<std::int64_t>(request.microbatches.size());
    if (!request.for_each_replica && microbatches < layout.dp) return few_microbatches;
    return std::nullopt;
}

bool is_faster(const LayoutTried& a, const LayoutTried& b) {
    return std::tuple(a.per_microbatch(), a.layout.tp, a.layout.pp) <
           std::tuple(b.per_microbatch(), b.layout.tp, b.layout.pp);
}

void try_out(const LayoutRequest& request, Considered& candidate, bool every_replica) {
    candidate.trial = try_layout(request, candidate.layout, every_replica);
    if (!candidate.tried()) candidate.refused = memory;
}

// Those with most positions of items, which is what microbatches of as many tokens differ in.
std::vector<workloads::Microbatch> largest(std::vector<workloads::Microbatch> all, std::size_t count) {
    const auto positions = [](const workloads::Microbatch& microbatch) {
        std::int64_t sum = 0;
        for (const auto& item : microbatch.items) sum += item.size.patches;
        return sum;
    };
    std::stable_sort(all.begin(), all.end(), [&](const auto& a, const auto& b) { return positions(a) > positions(b); });
    if (all.size() > count) all.resize(count);
    return all;
}

// A drawn batch has other microbatches for each replica than those that all layouts were judged by: whether the largest
// of them fit, as many as a replica has.
bool holds_whole_batch(const LayoutRequest& request, Considered& candidate) {
    const Layout& layout = candidate.layout;
    if (layout.dp == 1 || !request.draw) return true;
    LayoutRequest whole = request;
    whole.microbatches = largest(request.draw(layout.dp), request.microbatches.size());
    LayoutTrial trial = try_layout(whole, layout, false);
    if (trial.tried) return true;
    candidate.trial = std::move(trial);
    candidate.refused = memory;
    return false;
}

// Judges the fastest by all of its replicas, or by the whole batch, until the fastest has been.
void settle_fastest(const LayoutRequest& request, std::vector<Considered>& all) {
    while (true) {
        Considered* fastest = nullptr;
        for (Considered& one : all)
            if (one.tried() && (fastest == nullptr || is_faster(*one.tried(), *fastest->tried()))) fastest = &one;
        if (fastest == nullptr) return;
        if (request.for_each_replica) {
            if (holds_whole_batch(request, *fastest)) return;
        } else {
            if (fastest->trial.settled) return;
            try_out(request, *fastest, true);
        }
    }
}

std::vector<Considered> try_all(const LayoutRequest& request, const Executor& execute) {
    auto all = candidates(request);
    execute(all.size(), [&](std::size_t i) {
        try {
            all[i].refused = refusal(request, all[i].layout);
            if (!all[i].refused) try_out(request, all[i], false);
        } catch (...) {
            all[i].failure = std::current_exception();
        }
    });
    for (const Considered& candidate : all)
        if (candidate.failure) std::rethrow_exception(candidate.failure);
    settle_fastest(request, all);
    return all;
}

LayoutChoice choice_of(const LayoutRequest& request, const std::vector<Considered>& all) {
    LayoutChoice choice;
    std::array<std::size_t, reasons> count{};
    for (const Considered& candidate : all) {
        if (candidate.tried()) choice.tried.push_back(*candidate.tried());
        if (candidate.refused) ++count[*candidate.refused];
    }
    std::sort(choice.tried.begin(), choice.tried.end(), is_faster);
    for (std::size_t reason = 0; reason < reasons; ++reason)
        if (count[reason] > 0) choice.refused.push_back({name_of(static_cast<Reason>(reason), request), count[reason]});
    return choice;
}

std::string text(const LayoutChoice& choice) {
    std::string all;
    for (const LayoutRefused& refused : choice.refused)
        all += fmt::format("{}{} ({})", all.empty() ? "" : "; ", refused.why, refused.count);
    return all;
}

// The candidate that is short of the least; null if memory refused none.
const Considered* closest(const std::vector<Considered>& all) {
    const Considered* best = nullptr;
    for (const Considered& candidate : all)
        if (const auto& shortage = candidate.trial.shortage)
            if (!best || shortage->short_by() < best->trial.shortage->short_by()) best = &candidate;
    return best;
}

}  // namespace

std::string what_would_fit(const LayoutRequest& request, const Executor& execute) {
    constexpr int most_doublings = 6;
    LayoutRequest free = request;
    free.tp = free.pp = free.dp = free.ep = std::nullopt;
    emulator::Setup larger = with_layout(*request.setup, {});
    free.setup = &larger;
    for (int doublings = 0; doublings <= most_doublings; ++doublings, larger.cluster.gpus *= 2) {
        const auto choice = choice_of(free, try_all(free, execute));
        if (choice.tried.empty()) continue;
        return doublings == 0
                   ? fmt::format("{} fits on these GPUs", emulator::name_of(choice.layout()))
                   : fmt::format("{} GPUs fit it as {}", larger.cluster.gpus, emulator::name_of(choice.layout()));
    }
    return fmt::format("not even {} GPUs fit it in any layout", request.setup->cluster.gpus << most_doublings);
}

LayoutChoice choose_layout(const LayoutRequest& request, const Executor& execute) {
    PIPEWEAVER_ASSERT(!request.microbatches.empty());
    const auto all = try_all(request, execute);
    auto choice = choice_of(request, all);
    if (!choice.tried.empty()) return choice;
    const auto fixed = [](const std::optional<std::int64_t>& value) { return value ? std::to_string(*value) : "auto"; };
    const auto degrees = fmt::format("--tp {} --pp {} --dp {}{}", fixed(request.tp), fixed(request.pp),
                                     fixed(request.dp), request.cp > 1 ? fmt::format(" --cp {}", request.cp) : "");
    const auto asked = fmt::format("{} on {} GPUs", degrees, request.setup->cluster.gpus);
    if (all.empty()) fail(ErrorKind::input, "{}: the numbers given do not divide the GPUs", asked);
    if (const Considered* near = closest(all))
        fail(ErrorKind::limit,
             "{}: no layout fits the memory; {} comes closest: rank {} is {} short of the {} usable of a {}{}; {}",
             asked, emulator::name_of(near->layout), index(near->trial.shortage->rank),
             human(near->trial.shortage->short_by()), human(capacity_of(*request.setup)), request.setup->cluster.device,
             kept_free(request.setup->headroom), what_would_fit(request, execute));
    const bool short_of_memory =
        std::any_of(all.begin(), all.end(), [](const Considered& c) { return c.refused == memory; });
    fail(short_of_memory ? ErrorKind::limit : ErrorKind::input, "{}: no layout is possible: {}", asked, text(choice));
}

}  // namespace pipeweaver::planner
