// What is kept of a session, and a plan that was made in one as a record from which the same bytes come again.
//
// Format       "pipeweaver-session/1" and "pipeweaver-record/1", docs/formats.md.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/planner/plan.hpp"
#include "pipeweaver/planner/plan_options.hpp"
#include "pipeweaver/planner/session.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace pipeweaver::planner {

/// What a session is asked for: options of `pipeweaver plan`, and the batch that it is opened on, as a batch file,
/// unless they name a data set.
struct SessionOptions {
    PlanConfiguration asked;

    SessionOptions(const Json& configuration, const std::optional<std::string>& sample);

    Request request(const Executor& execute) const;
};

/// What is kept of the session that began with `plan` of the job: its configuration (JSON, what SessionOptions was made
/// of) with layout, packing, partition and split as they were chosen, and the order that searches begin with.
[[nodiscard]] std::string keep(std::string_view configuration, const std::optional<std::string>& sample, const Job& job,
                               const Plan& plan);

/// A session that plans again.
struct KeptSession {
    Session session;
    std::string partition;  ///< as a file
    std::string sample;     ///< that the session was opened on, as a batch file
    Duration first{};       ///< makespan of the first plan

    /// What is asked for step `step`, of samples as in a batch file. Throws as workloads::parse_batch().
    [[nodiscard]] Batch batch(std::int64_t step, std::string_view samples) const;
};

/// From what keep() made; `name` stands for it in errors. Throws Error{input}.
[[nodiscard]] KeptSession read_session(const std::string& name, std::string_view kept, const Executor& execute);

/// The record of a plan of a kept session.
[[nodiscard]] std::string record(std::string_view kept, std::int64_t step, std::string_view samples, const How& how);

/// The plan of a record, again.
struct Recorded {
    Job job;
    Batch batch;
    Plan plan;
};
[[nodiscard]] Recorded plan_again(const std::filesystem::path& record, const Executor& execute);

/// `how` as JSON, and back.
[[nodiscard]] std::string to_json(const How& how);
[[nodiscard]] How parse_how(const std::string& name, std::string_view text);

}  // namespace pipeweaver::planner
