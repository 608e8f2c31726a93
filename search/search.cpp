#include "pipeweaver/search/search.hpp"

#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"
#include "search/dip/dip.hpp"
#include "search/improve/default_strategy.hpp"
#include "search/strategy.hpp"

#include <algorithm>
#include <memory>

namespace pipeweaver::search {

namespace {

std::unique_ptr<Strategy> make_default(const Flat& flat, const Options& options) {
    return std::make_unique<DefaultStrategy>(flat, options);
}

std::unique_ptr<Strategy> make_dip(const Flat& flat, const Options& options) {
    return std::make_unique<Dip>(flat, options);
}

struct StrategyRow {
    StrategyEntry entry;
    std::unique_ptr<Strategy> (*make)(const Flat&, const Options&);
};

const std::vector<StrategyRow>& table() {
    static const std::vector<StrategyRow> all{
        {{"default",
          "policies and list schedules, then search over group priorities, then annealing; beside it, exact search of "
          "small problems"},
         make_default},
        {{"dip", "the published method: tree search over segments, dual queue, memory modes per rank"}, make_dip}};
    return all;
}

const StrategyRow& row_of(std::string_view name) {
    std::vector<std::string> names;
    for (const StrategyRow& row : table()) {
        if (row.entry.name == name) return row;
        names.push_back(row.entry.name);
    }
    fail(ErrorKind::input, "{}", unknown("strategy", name, names));
}

void require_rules(const schedule::Problem& problem, const Rules& rules) {
    if (rules.fixed_order.empty()) return;
    if (rules.fixed_order.size() != problem.ranks.size())
        fail(ErrorKind::input, "rules: fixed_order has {} lists, the problem has {} ranks", rules.fixed_order.size(),
             problem.ranks.size());
    for (std::size_t r = 0; r < rules.fixed_order.size(); ++r)
        for (const TaskId task : rules.fixed_order[r])
            if (index(task) >= problem.tasks.size() || index(problem.tasks[index(task)].rank) != r)
                fail(ErrorKind::input, "rules: fixed_order[{}]: task {} is not on this rank", r, index(task));
}

// The one loop that all strategies run in: it records how the search goes and decides when it ends.
class Run {
public:
    Run(const Flat& flat, const Options& options, const KeepGoing& keep_going, Strategy& strategy)
        : flat_(flat),
          keep_going_(keep_going),
          most_rounds_(options.max_rounds.value_or(keep_going || options.patience ? UINT64_MAX : default_rounds)),
          patience_(options.max_rounds ? std::nullopt : options.patience),
          strategy_(strategy) {}

    Found run(const Executor& execute) {
        strategy_.start(execute);
        while (!stops()) strategy_.round(execute);
        found_.bound = strategy_.bound().value;
        found_.bound_name = strategy_.bound().name;
        found_.rounds = strategy_.rounds();
        found_.evaluations = strategy_.evaluations();
        if (strategy_.best().valid())
            fill();
        else
            found_.why_not = strategy_.why_not();
        return std::move(found_);
    }

private:
    // With the best makespan known or, before there is a schedule, one that none exceeds.
    Progress progress() const {
        const Candidate& best = strategy_.best();
        return {strategy_.rounds(), strategy_.evaluations(),
                Duration{best.valid() ? best.energy.makespan : longest_makespan(flat_)}, strategy_.bound().value,
                strategy_.found_by()};
    }

    // Asked between rounds.
    bool stops() {
        const Progress now = progress();
        const bool any = strategy_.best().valid();
        if (any) record(now);
        std::optional<schedule::StopReason> reason;
        if (any && now.best <= now.bound)
            reason = schedule::StopReason::optimal;
        else if (now.rounds >= most_rounds_ || strategy_.exhausted())
            reason = schedule::StopReason::rounds;
        else if (any && patience_ && gained_enough(now))
            reason = schedule::StopReason::no_gain;
        else if (keep_going_)
            reason = keep_going_(now);
        if (reason) found_.stop_reason = *reason;
        return reason.has_value();
    }

    // Little is left to gain by the bound, or little was gained for long. A function of the rounds: a search that ended
    // so ends there again.
    bool gained_enough(const Progress& now) {
        const auto best = static_cast<double>(now.best.count());
        if (last_gain_.best == Duration{} ||
            best < (1 - patience_->gain) * static_cast<double>(last_gain_.best.count()))
            last_gain_ = {now.rounds, now.best};
        if (best <= (1 + patience_->gap) * static_cast<double>(now.bound.count())) return true;
        const std::uint64_t since = now.rounds - last_gain_.rounds;
        return since >= patience_->rounds &&
               static_cast<double>(since) >= patience_->share * static_cast<double>(now.rounds);
    }

    void record(const Progress& now) {
        const Candidate& best = strategy_.best();
        if (!found_.first)
            found_.first = {as_schedule(flat_, best.sequence, best.mode), now.best, std::string(now.found_by)};
        auto& history = found_.history;
        if (!history.empty() && now.best >= history.back().best && now.bound <= history.back().bound) return;
        history.push_back({now.rounds, now.evaluations, now.best, now.bound, std::string(now.found_by)});
    }

    void fill() {
        const Candidate& best = strategy_.best();
        found_.strategy = strategy_.found_by();
        found_.schedule = as_schedule(flat_, best.sequence, best.mode);
        found_.replay = flat_.replayer->replay(*found_.schedule);
        found_.alternatives = strategy_.alternatives();
        PIPEWEAVER_ASSERT(found_.replay.outcome == schedule::Outcome::completed);
        PIPEWEAVER_ASSERT(found_.replay.makespan.count() == best.energy.makespan);
        PIPEWEAVER_ASSERT(found_.bound <= found_.replay.makespan);
    }

    struct Gain {
        std::uint64_t rounds = 0;
        Duration best{};
    };

    const Flat& flat_;
    const KeepGoing& keep_going_;
    std::uint64_t most_rounds_;
    std::optional<Patience> patience_;
    Gain last_gain_;  // after how many rounds, and what the best was then
    Strategy& strategy_;
    Found found_;
};

}  // namespace

const std::vector<StrategyEntry>& strategies() {
    static const std::vector<StrategyEntry> all = [] {
        std::vector<StrategyEntry> list;
        for (const StrategyRow& row : table()) list.push_back(row.entry);
        return list;
    }();
    return all;
}

Found solve(const schedule::Replayer& replayer, const Options& options, const Executor& execute,
            const KeepGoing& keep_going) {
    const StrategyRow& row = row_of(options.strategy);
    require_rules(replayer.problem(), options.rules);
    const Flat flat(replayer, options.rules);
    const auto strategy = row.make(flat, options);
    return Run(flat, options, keep_going, *strategy).run(execute);
}

schedule::Solution solution(const Found& found, const schedule::Problem& problem, std::string sha256) {
    PIPEWEAVER_ASSERT(found.schedule);
    schedule::Solution made;
    made.problem = problem.name;
    made.problem_sha256 = std::move(sha256);
    made.schedule = *found.schedule;
    made.start = found.replay.start;
    made.makespan = found.replay.makespan;
    made.lower_bound = found.bound;
    made.peak = found.replay.peak;
    made.strategy = found.strategy;
    made.stop_reason = found.stop_reason;
    made.rounds = found.rounds;
    made.evaluations = found.evaluations;
    return made;
}

}  // namespace pipeweaver::search
