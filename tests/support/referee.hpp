// The referee of the shared folder, a Python program, asked about many pairs at once.
#pragma once

#include "tests/support/verifier.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace pipeweaver::testing {

struct Question {
    std::string problem, solution;  ///< file texts
    Check check = Check::everything;
};

struct Answer {
    std::string problem_sha256;  ///< of the canonical bytes, as the referee's language writes them
    std::string line;            ///< "ok ..." or "violation: ..."
};

/// Runs the referee in one process of python3. Throws Error{io} if it cannot be run or does not answer every question.
[[nodiscard]] std::vector<Answer> ask_referee(const std::filesystem::path& shared,
                                              const std::vector<Question>& questions);

}  // namespace pipeweaver::testing
