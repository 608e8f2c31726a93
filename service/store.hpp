// What outlives the server: sessions, and the plans that were served (SQLite).
//
// Durability   what a call has stored is there after the process is killed; after a loss of power, what was stored some
//              seconds before. One server at a time has a folder.
// Threads      any number.
#pragma once

#include "pipeweaver/base/sqlite.hpp"
#include "pipeweaver/base/units.hpp"
#include "service/parts.hpp"

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::service {

/// A session as it was asked for and as it is kept (pipeweaver/planner/record.hpp).
struct StoredSession {
    std::string name;
    std::string asked_sha256;
    std::string kept;  ///< empty: what is stored of it is damaged
};

/// What is known of a served plan beside its parts.
struct StoredPlan {
    std::int64_t step = 0;
    std::string samples_sha256;
    std::string samples;  ///< as a batch file
    std::string how;      ///< planner::to_json(How)
    std::string strategy;
    std::int64_t makespan_ns = 0, lower_bound_ns = 0, step_ns = 0;
    std::uint64_t rounds = 0;
    std::int64_t planning_ns = 0;  ///< from its submission

    bool searched() const { return how != "null"; }  ///< else it is the plan by policy
};

/// How much is kept; the oldest goes first.
struct Retention {
    std::size_t plans_of_session = 1000;
    std::int64_t bytes = std::int64_t{4} << 30;  ///< of all sessions and plans, zipped; the newest plan stays
};

class Store {
public:
    /// Opens the database; without a folder it is in memory. What is made is for its owner alone. A damaged database is
    /// moved aside and said in `moved`; one that somebody has locked is waited for. Throws Error{io}, also where
    /// another server has it or it cannot be read now.
    Store(const std::string& folder, Retention retention, std::optional<std::string>& moved,
          Duration patience = std::chrono::seconds(3));

    [[nodiscard]] std::vector<StoredSession> sessions() const;
    void add(const StoredSession& session);
    void remove_session(const std::string& name);  ///< and its plans

    /// Stores a plan with all its parts at once or, where it throws Error{io} (no room), nothing.
    void add(const std::string& session, const StoredPlan& plan, const std::vector<Part>& parts);

    /// Gives a plan without its samples; none: not served, or not kept any longer.
    [[nodiscard]] std::optional<StoredPlan> plan(const std::string& session, std::int64_t step) const;
    [[nodiscard]] std::optional<StoredPlan> plan_with_samples(const std::string& session, std::int64_t step) const;

    /// Gives a part, zipped; none: there is no such part.
    [[nodiscard]] std::optional<std::string> zipped_part(const std::string& session, std::int64_t step,
                                                         const std::string& part) const;
    [[nodiscard]] std::vector<std::string> part_names(const std::string& session, std::int64_t step) const;

    /// Served steps, the latest first.
    [[nodiscard]] std::vector<std::int64_t> steps(const std::string& session, std::size_t most) const;

private:
    void prepare(const std::string& folder);
    std::int64_t forget_old(const std::string& session, std::int64_t bytes);

    mutable std::mutex mutex_;
    mutable Sqlite database_;
    Retention retention_;
    std::int64_t bytes_ = 0;
};

}  // namespace pipeweaver::service
