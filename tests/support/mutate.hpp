// Valid instances broken in known ways: what a verifier must notice.
#pragma once

#include "tests/support/random_problem.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace pipeweaver::testing {

/// What a verifier must say of the mutated instance.
enum class Expect {
    refused,
    accepted,  ///< harmless on purpose: a verifier that refuses everything must fail too
    either     ///< depends on the instance
};

/// How many kinds of mutation there are.
[[nodiscard]] std::size_t mutation_kinds();

/// "drop a task". Pre: kind < mutation_kinds().
[[nodiscard]] std::string_view mutation_name(std::size_t kind);

/// What a full check must say after it. Pre: kind < mutation_kinds().
[[nodiscard]] Expect mutation_expects(std::size_t kind);

/// The instance after one mutation, at a place drawn from `seed`; nothing if this kind finds no place in it.
/// Where the problem is changed, the solution's problem_sha256 follows it, so that the change itself must be noticed.
[[nodiscard]] std::optional<Instance> mutate(const Instance& instance, std::size_t kind, std::uint64_t seed);

}  // namespace pipeweaver::testing
