// The answers of a step as instances decode them, token by token.
//
// An instance  some GPUs with all weights. Its token step gives each of its answers one token, and takes the longer the
//              more answers it has and the more tokens stand in front of them. It takes an answer where a slot is
//              free, reads its prompt, during which its other answers wait, and has it until its last token.
// Waiting      answers stand in one queue, in the order in which they are given. At the beginning each goes to the
//              instance with the fewest; later to the one that ends an answer first, by time, then by its number.
// Units        Duration is integer nanoseconds; what tokens in front take is added up between events and rounded up.
// Determinism  functions of their arguments.
#pragma once

#include "pipeweaver/base/units.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace pipeweaver::rl {

/// How fast an instance is.
struct Decoding {
    std::vector<Duration> token;  ///< a token step of 1, 2, ... answers: as many as it has slots, 1 or more
    std::int64_t front_ps = 0;  ///< a token step takes so many picoseconds more for each token in front of each answer
    Duration prompt{};          ///< reading one
    std::int64_t prompt_tokens = 0;

    friend bool operator==(const Decoding&, const Decoding&) = default;
};

/// The last answers go together, so that other instances are free (RLHFuse, arXiv 2409.13221, section 4).
struct Tail {
    std::int64_t answers = 0;    ///< once no more than these are not done
    std::int64_t instances = 0;  ///< they go on, on so many, as if they had been given to these in their order
    Duration move{};             ///< and when all have ended their token step and this is over

    friend bool operator==(const Tail&, const Tail&) = default;
};

struct Generation {
    std::vector<Duration> ends;            ///< by answer
    std::vector<Duration> busy;            ///< by instance: until then it decodes
    Duration end{};                        ///< of the last answer
    std::optional<Duration> tail_moves{};  ///< from then on all but the tail's instances are free
};

/// Pre: an instance or more; answers of a token or more; the tail's instances are there. Time O(answers * log).
[[nodiscard]] Generation generate(const Decoding& decoding, std::span<const std::int64_t> answers,
                                  std::int64_t instances, const std::optional<Tail>& tail = {});

/// The same instance, so much slower or faster that `instances` of them generate the answers in `measured`, but for
/// rounding of each token step. Pre: as generate(); measured > 0.
[[nodiscard]] Decoding fitted(const Decoding& decoding, std::span<const std::int64_t> answers, std::int64_t instances,
                              Duration measured);

}  // namespace pipeweaver::rl
