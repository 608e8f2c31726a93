// Rungs of the ladder: what a way that is launched takes, on all replicas and where it fits them.
#pragma once

#include "pipeweaver/planner/ladder.hpp"

#include <algorithm>

namespace pipeweaver::planner {

// A way with a recomputation that fits all replicas.
struct Fitting {
    const OpponentWay* way = nullptr;
    std::string recompute;
    Rung rung;
    bool is_whole = true;  // of fastest_of(): there was time for all ways
};

constexpr std::string_view no_better_flags = "no other cut, chunks or recomputation that the flags can say is faster";

// In place of the like where some were left out.
constexpr std::string_view none_in_time = "of those that there was time for none is faster";

// Whether a rank that holds `peak` of `usable` bytes has less left than the rung's fullest.
bool is_over(const Rung& rung, Bytes peak, Bytes usable);

// The step as a way runs it, what its command prints; none: it does not fit so.
std::optional<Rung> emulated_if_it_fits(const std::string& name, const Request& of, const OpponentWay& way,
                                        const std::string& recompute, const Executor& execute);

// The row was judged on the most loaded replicas; where another one needs more memory, all recompute more. None: that
// does not fit either.
std::optional<Fitting> fitting(const std::string& name, const Request& of, const OpponentWay& way, const Baseline& row,
                               const Executor& execute);

// The fastest of the ways, of equal ones the least full. None, and why, where none fits.
std::optional<Fitting> fastest_of(const std::string& name, const Opponents& ways, const Request& request,
                                  const Executor& execute, const Time& time, std::string& why_none);

// A rung that is no faster than the one before it: the same step.
Rung nothing(std::string name, const Rung& before, std::string why);

std::string needs_of_flags(const Job& job, const OpponentWay& way, const std::string& recompute);

// Whether some were not tried for lack of time.
bool lacks_time(const std::vector<NotApplicable>& refused);

bool lacks(const std::vector<std::string>& left_out, std::string_view what);

}  // namespace pipeweaver::planner
