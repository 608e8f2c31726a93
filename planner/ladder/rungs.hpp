// Rungs of the ladder: what a way that is launched takes, on all replicas and where it fits them.
#pragma once

#include "pipeweaver/partition/partition.hpp"
#include "pipeweaver/planner/ladder.hpp"

#include <algorithm>

namespace pipeweaver::planner {

// A way that fits all replicas, and the step that it makes.
struct Fitting {
    OpponentWay way;
    Rung rung;
    bool is_whole = true;  // of fastest_of(): there was time for all ways
};

constexpr std::string_view no_better_flags = "no other cut, chunks or recomputation that the flags can say is faster";

// In place of the like where some were left out.
constexpr std::string_view none_in_time = "of those that there was time for none is faster";

// Whether a rank that holds `peak` of `usable` bytes has less left than the rung's fullest.
bool is_over(const Rung& rung, Bytes peak, Bytes usable);

// What padding comes to; none: all have one shape as they are.
std::optional<Padding> padding_of(const partition::Padded& all);

// The way on all replicas, with its recomputation or, where one of them needs more memory, with the fastest that all
// fit with, unless it is to be `exactly` the way's. None: nothing does.
std::optional<Fitting> fitting(const std::string& name, const Request& of, OpponentWay way, const Executor& execute,
                               bool exactly = false);

// Why none of some ways runs.
struct WhyNone {
    std::string text;                 // of the one that comes nearest, where it is of each
    std::vector<NotApplicable> of{};  // each of them; none: it is of all
};

// The fastest of the ways, of equal ones the least full. None, and why, where none fits.
std::optional<Fitting> fastest_of(const std::string& name, const Opponents& ways, const Request& request,
                                  const Executor& execute, const Time& time, WhyNone& why_none);

// What is launched and only a batch of the sample was too large for: the batch at hand says whether it fits, and what
// it lacks. Beside these the others.
Opponents refused_on_sample(std::vector<NotApplicable> refused);

// A rung that is no faster than the one before it: the same step.
Rung nothing(std::string name, const Rung& before, std::string why);

// ", model.vision_dp_when_cp=true": the switches that the way's encoders have on; empty: none.
std::string switches_of(const Way& way);

std::string needs_of_flags(const Job& job, const Way& way);

// Whether some were not tried for lack of time.
bool lacks_time(const std::vector<NotApplicable>& refused);

bool lacks(const std::vector<std::string>& left_out, std::string_view what);

}  // namespace pipeweaver::planner
