// How many tokens the answers of a step of reinforcement learning have.
//
// Determinism  functions of their arguments.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pipeweaver::rl {

/// Answers of at most so many tokens lie in this share of all.
struct Quantile {
    double percent = 0;
    std::int64_t tokens = 0;

    friend bool operator==(const Quantile&, const Quantile&) = default;
};

/// Rising in both; from 0 to 100 percent, between two of them a straight line.
using Lengths = std::vector<Quantile>;

constexpr std::int64_t longest_answer = 1'000'000, most_answers = 65'536;

/// The longest and the mean alone: tokens rise by the power of the share of answers that gives the mean, in lines
/// that are the shorter the nearer they are to the longest. Pre: 1 <= mean <= longest.
[[nodiscard]] Lengths lengths_with(double mean, std::int64_t longest);

/// "0:256,50:2k,100:8k", "mean:3k,longest:8k", or a file with the tokens of an answer in each line, blank lines left
/// out. Throws Error{input} naming the place and what is allowed; Error{io}.
[[nodiscard]] Lengths lengths_of(const std::string& text);

/// The tokens of `answers` answers, 1 or more each: one of each of as many equal shares of the distribution, at its
/// middle, in an order drawn by `seed`. Pre: 1 <= answers <= most_answers; lengths are as lengths_of() gives them.
[[nodiscard]] std::vector<std::int64_t> drawn(const Lengths& lengths, std::int64_t answers, std::uint64_t seed);

}  // namespace pipeweaver::rl
