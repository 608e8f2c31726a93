// The steps that were done last: for people, who see how time and gap went, and what was late.
//
// Threads      any number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::service {

/// A step that was planned, or could not be.
struct DoneStep {
    std::uint64_t number = 0;  ///< its place among all that were done, from 1
    std::int64_t at_ms = 0;    ///< when, since 1970
    std::string session;
    std::int64_t step = 0;
    double seconds = 0, late_seconds = 0;  ///< since it was submitted, and since its deadline (negative: in time)
    std::optional<double> gap;             ///< none: there is no plan
    std::string how;                       ///< "search", "policy" or "none"
    std::string why;                       ///< it was late, or could not be planned
    std::int64_t makespan_ns = 0;
};

class History {
public:
    explicit History(std::size_t most = 512) : most_(most) {}

    /// Numbers the step and keeps it; of more than so many the oldest is forgotten.
    void add(DoneStep step);

    /// Those with a greater number, the oldest first.
    [[nodiscard]] std::vector<DoneStep> after(std::uint64_t number) const;

private:
    mutable std::mutex mutex_;
    std::deque<DoneStep> steps_;
    std::size_t most_;
    std::uint64_t last_ = 0;
};

}  // namespace pipeweaver::service
