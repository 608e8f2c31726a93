#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emulator/memory.hpp"
#include "pipeweaver/partition/replicas.hpp"
#include "pipeweaver/planner/job.hpp"
#include "pipeweaver/planner/layout_choice.hpp"
#include "pipeweaver/planner/tuning.hpp"
#include "pipeweaver/workloads/built_model.hpp"
#include "planner/layout/layout_trial.hpp"

#include <algorithm>
#include <array>
#include <tuple>

namespace pipeweaver::planner {

using namespace emulator;

namespace {

struct Considered {
    LayoutCandidate is;
    std::shared_ptr<const Setup> setup{};
    LayoutTrial trial{};  // unless refused before it
    bool passed_over = false;
    bool not_reached = false;  // when time was over
    bool is_final = false;     // one of those that the layout is chosen from

    const std::optional<LayoutTried>& tried() const { return trial.tried; }

    // A step's, for each of its microbatches.
    Duration bound() const { return is.bound / is.microbatches; }
};

auto rank_of(const LayoutTried& one) {
    const Layout& in = one.layout;
    return std::tuple(one.per_microbatch(), in.tp, in.pp, in.cp, in.ep, one.zero);
}

bool is_faster(const LayoutTried& a, const LayoutTried& b) { return rank_of(a) < rank_of(b); }

// Those that hold most.
std::vector<workloads::Microbatch> largest(std::vector<workloads::Microbatch> all, std::size_t count) {
    std::stable_sort(all.begin(), all.end(), [&](const auto& a, const auto& b) {
        return workloads::positions_of(a) > workloads::positions_of(b);
    });
    if (all.size() > count) all.resize(count);
    return all;
}

class Choosing {
public:
    Choosing(const LayoutRequest& request, const Executor& execute, const Time& time)
        : request_(request), execute_(execute), time_(time), candidates_(request, execute) {
        for (const LayoutCandidate& one : candidates_.take()) all_.push_back({.is = one});
    }

    LayoutChoice run() {
        try_quickly();
        if (!request_.only_launched) {
            search(fastest(sizes.layouts_promising));
            settle_fastest();
        } else if (request_.closely) {
            judge_fastest_closely();
        }
        for (Considered* one : fastest(sizes.layouts_searched)) one->is_final = true;
        return choice();
    }

    // The candidate that is short of the least; null if memory refused none. Of those that were refused by their
    // weights alone the few that are short of the least are tried first.
    const Considered* closest() {
        constexpr std::size_t most = 4;
        std::vector<Considered*> heavy;
        for (Considered& one : all_)
            if (one.is.refused == LayoutReason::memory && !one.trial.shortage) heavy.push_back(&one);
        std::stable_sort(heavy.begin(), heavy.end(),
                         [](const Considered* a, const Considered* b) { return a->is.short_by < b->is.short_by; });
        heavy.resize(std::min(heavy.size(), most));
        judge(heavy, LayoutEffort::quick);
        const Considered* best = nullptr;
        for (const Considered& one : all_)
            if (const auto& shortage = one.trial.shortage)
                if (!best || shortage->short_by() < best->trial.shortage->short_by()) best = &one;
        return best;
    }

    bool any() const { return !all_.empty(); }

private:
    // Judges all quickly, but for those that a bound rules out: those with less shared out first, which bound the
    // others.
    void try_quickly() {
        constexpr int last_stage = 3;
        for (int zero = 1; zero <= last_stage; ++zero) {
            std::vector<Considered*> open;
            for (Considered& one : all_)
                if (!one.is.refused && !one.setup && std::max(1, one.is.is_own ? 1 : one.is.as.zero) == zero)
                    open.push_back(&one);
            if (zero > 1) bound_by_siblings(open);
            try_in_order(std::move(open));
        }
    }

    // Until the fastest, and the user's own, have been judged by all that they are chosen for.
    void judge_fastest_closely() {
        while (!cut_short_) {
            std::vector<Considered*> open = fastest(1);
            std::erase_if(open, [](const Considered* one) { return one->trial.whole; });
            if (open.empty()) break;
            judge(open, LayoutEffort::whole);
            cut_short_ = time_.is_over();
        }
    }

    // Judges the fastest few, and the user's own, by all that they are chosen for, until the fastest few have been.
    void settle_fastest() {
        while (!cut_short_) {
            std::vector<Considered*> unsettled;
            for (Considered* one : fastest(sizes.layouts_searched))
                if (!one->trial.whole) unsettled.push_back(one);
            if (unsettled.empty()) break;
            judge(unsettled, LayoutEffort::whole);
            for (Considered* one : unsettled)
                if (one->tried()) require_whole_batch(*one);
            std::erase_if(unsettled, [](const Considered* one) { return !one->tried(); });
            search(unsettled);
        }
    }

    LayoutChoice choice() const {
        LayoutChoice choice;
        std::array<std::size_t, layout_reasons> count{};
        std::vector<const Considered*> fitting;
        for (const Considered& one : all_) {
            if (one.tried()) fitting.push_back(&one);
            if (one.is.refused) ++count[static_cast<std::size_t>(*one.is.refused)];
            if (one.is.refused && one.is.is_own) choice.own_refused = reason_text(*one.is.refused, request_);
            if (one.passed_over) ++choice.passed_over;
            if (one.not_reached) ++choice.not_reached;
        }
        std::sort(fitting.begin(), fitting.end(),
                  [](const Considered* a, const Considered* b) { return is_faster(*a->tried(), *b->tried()); });
        for (const Considered* one : fitting) choice.tried.push_back(*one->tried());
        if (!fitting.empty()) choice.taken = taken(fitting);
        for (const Considered& one : all_)
            choice.considered.push_back({one.is.as, one.is.refused ? reason_text(*one.is.refused, request_) : "",
                                         one.passed_over, one.is.bound});
        choice.equal_batch = !request_.for_each_replica;
        choice.cut_short = cut_short_;
        for (std::size_t reason = 0; reason < count.size(); ++reason)
            if (count[reason] > 0)
                choice.refused.push_back({reason_text(static_cast<LayoutReason>(reason), request_), count[reason]});
        return choice;
    }

    void try_in_order(std::vector<Considered*> open) {
        std::stable_sort(open.begin(), open.end(), [](const Considered* a, const Considered* b) {
            return std::tuple(!a->is.is_own, a->bound()) < std::tuple(!b->is.is_own, b->bound());
        });
        for (std::size_t first = 0; first < open.size(); first += sizes.layouts_at_once) {
            const std::size_t end = std::min(open.size(), first + sizes.layouts_at_once);
            const auto limit = slowest_shown();
            std::vector<Considered*> now;
            for (std::size_t i = first; i < end; ++i) {
                Considered& one = *open[i];
                one.passed_over = is_hidden(one, limit);
                one.not_reached = cut_short_ && !one.passed_over;
                if (!one.passed_over && !one.not_reached) now.push_back(&one);
            }
            judge(now, LayoutEffort::quick);
            cut_short_ = cut_short_ || time_.is_over();
        }
    }

    bool is_hidden(const Considered& one, const std::optional<Duration>& limit) const {
        if (one.is.is_own || !request_.bounds) return false;
        return (limit && one.bound() > *limit) || (request_.slowest && one.is.bound > *request_.slowest);
    }

    // To share out gradients or weights, too, saves memory, and to reduce gradients earlier saves the exchange after
    // the last backward: no more than the layout would gain with endless memory and no exchange.
    void bound_by_siblings(const std::vector<Considered*>& some) const {
        for (Considered* one : some) {
            LayoutAndZero less = one->is.as;
            --less.zero;
            const auto found = std::find_if(all_.begin(), all_.end(),
                                            [&](const Considered& other) { return are_equal(other.is.as, less); });
            if (found == all_.end()) continue;
            one->is.bound = std::max(one->is.bound, found->is.bound);
            if (!found->trial.at_best) continue;
            const auto at_best = static_cast<double>(found->trial.at_best->count());
            one->is.bound = std::max(one->is.bound, Duration{static_cast<std::int64_t>(margins.searching * at_best)});
        }
    }

    void judge(const std::vector<Considered*>& some, LayoutEffort effort) {
        run_jobs(execute_, some.size(), [&](std::size_t i) {
            Considered& one = *some[i];
            if (!one.setup) one.setup = candidates_.setup_of(one.is.as);
            one.trial = try_layout(request_, *one.setup, candidates_.costs_of(*one.setup), effort);
            if (!one.tried()) one.is.refused = LayoutReason::memory;
            if (one.tried()) one.trial.tried->is_own = one.is.is_own;
            one.trial.partitions.shrink_to_fit();
        });
    }

    // The slowest of those that are shown; none: there are fewer.
    std::optional<Duration> slowest_shown() const {
        std::vector<Duration> times;
        for (const Considered& one : all_)
            if (one.tried()) times.push_back(one.tried()->per_microbatch());
        const std::size_t shown = request_.shown.value_or(sizes.layouts_shown);
        if (times.size() < shown) return std::nullopt;
        const auto last = times.begin() + static_cast<std::ptrdiff_t>(shown - 1);
        std::nth_element(times.begin(), last, times.end());
        return *last;
    }

    // So many of the fastest, and the user's own.
    std::vector<Considered*> fastest(std::size_t count) {
        std::vector<Considered*> fitting;
        for (Considered& one : all_)
            if (one.tried()) fitting.push_back(&one);
        std::sort(fitting.begin(), fitting.end(),
                  [](const Considered* a, const Considered* b) { return is_faster(*a->tried(), *b->tried()); });
        std::vector<Considered*> best;
        for (std::size_t i = 0; i < fitting.size(); ++i)
            if (i < count || fitting[i]->is.is_own) best.push_back(fitting[i]);
        return best;
    }

    void search(const std::vector<Considered*>& some) {
        cut_short_ = cut_short_ || time_.is_over();
        if (cut_short_ || fastest(2).size() < 2) return;
        run_jobs(execute_, some.size(), [&](std::size_t i) {
            search_layout(request_, some[i]->setup, candidates_.costs_of(*some[i]->setup), some[i]->trial);
        });
        cut_short_ = time_.is_over();
    }

    // A drawn batch has other microbatches for each replica than those that all layouts were judged by: whether the
    // largest of them fit, as many as a replica has.
    void require_whole_batch(Considered& one) const {
        const Layout& layout = one.is.as.layout;
        if (!request_.for_each_replica || layout.dp == 1 || !request_.draw) return;
        LayoutRequest whole = request_;
        whole.microbatches = largest(request_.draw(layout.dp), request_.microbatches.size());
        LayoutTrial trial = try_layout(whole, *one.setup, partition::microbatch_costs(*one.setup, whole.microbatches),
                                       LayoutEffort::quick);
        if (trial.tried) return;
        one.trial = std::move(trial);
        one.is.refused = LayoutReason::memory;
    }

    // Of the finalists that are near the best of them the simplest.
    static std::size_t taken(const std::vector<const Considered*>& fitting) {
        const auto simplicity = [](const LayoutTried& one) {
            return std::tuple(!one.is_own, one.chunks_per_rank, one.layout.tp);
        };
        std::optional<std::size_t> first;
        std::size_t best = 0;
        for (std::size_t i = 0; i < fitting.size(); ++i) {
            if (!fitting[i]->is_final) continue;
            const LayoutTried& one = *fitting[i]->tried();
            if (!first) first = best = i;
            const auto fastest = static_cast<double>(fitting[*first]->tried()->per_microbatch().count());
            const bool near = static_cast<double>(one.per_microbatch().count()) <= margins.layouts * fastest;
            if (near && simplicity(one) < simplicity(*fitting[best]->tried())) best = i;
        }
        return best;
    }

    const LayoutRequest& request_;
    const Executor& execute_;
    const Time& time_;
    LayoutCandidates candidates_;
    std::vector<Considered> all_;
    bool cut_short_ = false;
};

std::string text(const LayoutChoice& choice) {
    std::string all;
    for (const LayoutRefused& refused : choice.refused)
        all += fmt::format("{}{} ({})", all.empty() ? "" : "; ", refused.why, refused.count);
    return all;
}

// "--tp auto --pp 2 --dp auto on 8 GPUs".
std::string asked_of(const LayoutRequest& request) {
    const auto degree = [](const std::optional<std::int64_t>& value) {
        return value ? std::to_string(*value) : "auto";
    };
    auto text = fmt::format("--tp {} --pp {} --dp {}", degree(request.tp), degree(request.pp), degree(request.dp));
    if (request.cp != 1) text += fmt::format(" --cp {}", degree(request.cp));
    if (request.any_ep && !request.ep) text += " --ep auto";
    if (request.any_zero) text += " --zero auto";
    return fmt::format("{} on {} GPUs", text, request.setup->cluster.gpus);
}

// "; with --encoders split, as other launchers can, tp 4 x pp 4 x dp 1 fits on these GPUs"; nothing where no framework
// builds the encoders in another way.
std::string split_would_fit(const LayoutRequest& request, const Executor& execute) {
    const auto& built = request.setup->model.built;
    if (!built || built->source.empty()) return {};
    emulator::Setup split = with_layout(*request.setup, {});
    workloads::build_as(split.model, {});
    split.model.built.reset();
    LayoutRequest other = request;
    other.setup = &split;
    return "; with --encoders split, as other launchers can, " + what_would_fit(other, execute);
}

// "; with --headroom 3% tp 2 x pp 1 x dp 4 fits on these GPUs"; nothing where no more is kept free, or less fails.
std::string fuller_would_fit(const LayoutRequest& request, const Executor& execute) {
    constexpr emulator::Headroom least = emulator::usual_headroom;
    if (request.setup->headroom.parts_per_million <= least.parts_per_million) return {};
    emulator::Setup fuller = with_layout(*request.setup, {});
    fuller.headroom = least;
    LayoutRequest other = request;
    other.setup = &fuller;
    const Time endless;
    const auto choice = Choosing(other, execute, endless).run();
    if (choice.tried.empty()) return {};
    return fmt::format("; with --headroom {:.0f}% {} fits on these GPUs", 100 * least.fraction(),
                       emulator::name_of(choice.layout()));
}

[[noreturn]] void fail_without(Choosing& choosing, const LayoutRequest& request, const LayoutChoice& choice,
                               const Executor& execute) {
    const auto asked = asked_of(request);
    if (!choosing.any()) fail(ErrorKind::input, "{}: the numbers given do not divide the GPUs", asked);
    if (choice.cut_short)
        fail(ErrorKind::limit, "{}: there was no time for a layout that fits, leave --budget out; {}{}", asked,
             what_would_fit(request, execute), split_would_fit(request, execute));
    if (const Considered* near = choosing.closest())
        fail(ErrorKind::limit,
             "{}: no layout fits the memory; {} comes closest: rank {} is {} short of the {} usable of a {}{}{}; {}{}",
             asked, emulator::name_of(near->is.as.layout), index(near->trial.shortage->rank),
             human(near->trial.shortage->short_by()), human(capacity_of(*request.setup)), request.setup->cluster.device,
             kept_free(request.setup->headroom), fuller_would_fit(request, execute), what_would_fit(request, execute),
             split_would_fit(request, execute));
    fail(ErrorKind::input, "{}: no layout is possible: {}", asked, text(choice));
}

}  // namespace

std::string what_would_fit(const LayoutRequest& request, const Executor& execute) {
    constexpr int most_doublings = 6;
    const std::string what =
        request.drawn_for_own ? "the same " + plural(request.microbatches.size(), "microbatch") : "it";
    LayoutRequest free = request;
    free.tp = free.pp = free.dp = free.ep = std::nullopt;
    free.own = std::nullopt;
    emulator::Setup larger = with_layout(*request.setup, {});
    free.setup = &larger;
    for (int doublings = 0; doublings <= most_doublings; ++doublings, larger.cluster.gpus *= 2) {
        const Time endless;
        Choosing choosing(free, execute, endless);
        const auto choice = choosing.run();
        if (choice.tried.empty()) continue;
        const std::string as = emulator::name_of(choice.layout());
        return doublings == 0 ? as + " fits on these GPUs"
                              : fmt::format("{} GPUs fit {} as {}", larger.cluster.gpus, what, as);
    }
    return fmt::format("not even {} GPUs fit {} in any layout", request.setup->cluster.gpus << most_doublings, what);
}

LayoutChoice judge_layouts(const LayoutRequest& request, const Executor& execute, const Time& time) {
    PIPEWEAVER_ASSERT(!request.microbatches.empty());
    return Choosing(request, execute, time).run();
}

std::size_t count_layouts(const LayoutRequest& request) { return LayoutCandidates::count(request); }

LayoutChoice choose_layout(const LayoutRequest& request, const Executor& execute, const Time& time) {
    PIPEWEAVER_ASSERT(!request.microbatches.empty());
    Choosing choosing(request, execute, time);
    auto choice = choosing.run();
    if (choice.tried.empty()) fail_without(choosing, request, choice, execute);
    return choice;
}

LayoutChoice launched_layouts(const Job& job, const Batch& batch, const std::optional<std::int64_t>& cp,
                              const Executor& execute, const Time& time) {
    LayoutRequest request;
    request.setup = job.setup.get();
    request.cp = cp;
    request.any_ep = request.any_zero = true;
    request.context = job.setup->layout.context;
    request.microbatches = batch.microbatches;
    request.own = {job.setup->layout, job.setup->recipe.zero};
    request.target = job.target;
    request.only_launched = true;
    request.drawn_for_own = batch.drawn_microbatches > 0;
    return choose_layout(request, execute, time);
}

}  // namespace pipeweaver::planner
