// What a search found, before the verifier.
#pragma once

#include "pipeweaver/search/search.hpp"
#include "tests/support/verifier.hpp"

#include <doctest/doctest.h>

namespace pipeweaver::testing {

/// Requires a schedule, and that the verifier accepts all that the solution's file claims.
inline void check_verified(const schedule::Problem& problem, const search::Found& found) {
    REQUIRE(found.schedule);
    const auto text = to_json(problem);
    const auto solution = search::solution(found, problem, schedule::parse_problem("problem", text).sha256);
    const Verdict verdict = verify(text, to_json(solution));
    CHECK_MESSAGE(verdict.ok, verdict.violation);
    CHECK(verdict.makespan_ns == found.replay.makespan.count());
}

}  // namespace pipeweaver::testing
