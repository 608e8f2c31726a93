// `costdb import --measured`: a recorded run of a plan becomes factors in a cost database, by which the next plans are
// better.
//
// Base         Factors are over the costs that the plan was made with: its own database, which must not have changed
//              since, or the tables that ship with the program. Older factors of that database are multiplied with.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/measured/comparison.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace pipeweaver::measured {

/// What is asked for. Where a text is empty, the plan says it.
struct RunAsked {
    std::string plan;                ///< folder of `plan`
    std::vector<std::string> files;  ///< recordings of all ranks of the replica
    std::int64_t replica = 0;
    std::string model, cluster, batch;
    std::string out, into;  ///< one of them: a new database, or the one that the plan was made with
};

struct ImportedFactor {
    std::string module;
    bool backward = false;
    Duration planned{};  ///< of all tasks of the schedule
    double fitted = 1;   ///< over the plan
    double factor = 1;   ///< over the tables: fitted, and what the plan's database had
};

struct ImportedRun {
    std::string model, device, output;
    std::size_t steps = 0;
    std::vector<ImportedFactor> factors;
    std::vector<std::pair<std::size_t, double>> slow_ranks;  ///< and their factors
};

/// Fits and writes. Throws Error{input} for a folder that is no plan's, recordings of another run, a plan that is older
/// than its model or costs, factors outside 0.001 to 1000, and as
/// planner::EmulateOptions::request(); Error{io}. Nothing is written then.
ImportedRun import_run(const RunAsked& asked, const Executor& execute);

}  // namespace pipeweaver::measured
