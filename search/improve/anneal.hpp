// Simulated annealing over single steps of an IncrementalSchedule. (S. Kirkpatrick, C. Gelatt, M. Vecchi, Science 220,
// 1983.)
#pragma once

#include "pipeweaver/base/random.hpp"
#include "search/improve/rebuild.hpp"
#include "search/instance/candidate.hpp"

namespace pipeweaver::search {

struct Annealing {
    double temperature = 0;  ///< ns
    double weight = 0.5;     ///< of the average end against the makespan
    std::uint64_t seed = 1;
    std::uint64_t first_number = 0;  ///< number of the first evaluation; random numbers belong to it
    std::uint64_t evaluations = 0;
    std::uint32_t rebuild_permille = 0;  ///< how many evaluations of a thousand are large steps
    std::int64_t enough = 0;             ///< a makespan that cannot be beaten: stop there
};

/// What steps choose from; made once per problem.
struct StepChoices {
    explicit StepChoices(const Flat& flat);

    std::vector<std::uint32_t> pairs;                 ///< those with more than one mode
    std::vector<std::vector<std::uint32_t>> on_rank;  ///< the same by rank
};

/// What large steps work with; one per slot.
struct LargeSteps {
    LargeSteps(const Flat& flat, const TaskGroups& groups) : rebuild(flat, groups), trial(flat) {}

    Rebuild rebuild;
    FlatReplay trial;
};

/// Steps from `current` on; keeps the best in `best`. Allocates nothing once `best` has room.
void anneal(const Flat& flat, const StepChoices& choices, const Annealing& options, LargeSteps& large,
            IncrementalSchedule& current, Candidate& best);

}  // namespace pipeweaver::search
