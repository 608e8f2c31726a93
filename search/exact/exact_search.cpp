#include "search/exact/exact_search.hpp"

namespace pipeweaver::search {

ExactSearch::ExactSearch(const Flat& flat, const Rules& rules, std::int64_t makespan)
    : flat_(flat), rules_(rules), whole_(flat, makespan) {
    const auto busiest = busiest_with_choice(flat);
    if (!busiest) return;
    rank_ = *busiest;
    easier_problem_ = with_choice_on(flat, rules, rank_);
    if (!easier_problem_) return;
    easier_.emplace(easier_problem_->flat, makespan, tuning.exact.easier);
}

void ExactSearch::offer(std::int64_t makespan) {
    whole_.offer(makespan);
    if (easier_ && works(*easier_)) easier_->offer(makespan);
    if (narrower_) narrower_->offer(makespan);
}

std::int64_t ExactSearch::bound() const {
    return easier_ && easier_->state() == Exact::State::proven ? easier_->makespan() : 0;
}

std::uint64_t ExactSearch::nodes() const {
    return whole_.nodes() + (easier_ ? easier_->nodes() : 0) + (narrower_ ? narrower_->nodes() : 0) + nodes_of_done_;
}

std::optional<Candidate> ExactSearch::round(const Executor& execute) {
    std::optional<Candidate> found = round_of_variants(execute);
    const bool turn = ++turns_ % 2 == 0 || !easier_ || !works(*easier_);
    if (turn && !found && !proven() && works(whole_)) found = whole_.round(execute);
    if (found) offer(found->energy.makespan);
    return found;
}

std::optional<Candidate> ExactSearch::round_of_variants(const Executor& execute) {
    if (narrower_) return round_of_narrower(execute);
    if (!easier_ || !works(*easier_)) return std::nullopt;
    if (const auto found = easier_->round(execute)) begin_narrower(*found);
    return std::nullopt;
}

void ExactSearch::begin_narrower(const Candidate& of_easier) {
    const schedule::Schedule schedule = as_schedule(flat_, of_easier.sequence, of_easier.mode);
    narrower_problem_ = with_rank_as_in(flat_, rules_, rank_, schedule);
    given_mode_ = schedule.mode;
    narrower_.emplace(narrower_problem_->flat, whole_.makespan(), tuning.exact.narrower);
}

std::optional<Candidate> ExactSearch::round_of_narrower(const Executor& execute) {
    std::optional<Candidate> found;
    if (works(*narrower_)) found = narrower_->round(execute);
    if (found) found = as_of_problem(*found);
    if (!works(*narrower_)) {
        nodes_of_done_ += narrower_->nodes();
        narrower_.reset();
        narrower_problem_.reset();
    }
    return found;
}

Candidate ExactSearch::as_of_problem(const Candidate& of_narrower) const {
    std::vector<std::uint32_t> mode = of_narrower.mode;
    for (std::size_t p = 0; p < mode.size(); ++p)
        if (flat_.rank_of[index(flat_.problem().pairs[p].forward)] == rank_) mode[p] = given_mode_[p];
    IncrementalSchedule current(flat_);
    current.load(of_narrower.sequence, mode);
    Candidate made;
    store(current, made);
    return made;
}

}  // namespace pipeweaver::search
