// In which branches and loops of a script its commands stand, and whether they are taken.
#pragma once

#include "launch/read/words.hpp"

#include <optional>
#include <vector>

namespace pipeweaver::launch {

class Branches {
public:
    /// Opens and closes branches by a word at the beginning of a command: "if", "else", "fi", "for", "done", ...
    void follow(const std::vector<Word>& words);

    /// Begins the next arm of an "if" or "case" by whether its condition holds; none: not known.
    void take(std::optional<bool> truth);

    /// "case WORD in": arms follow, of which the first counts whose pattern the word has.
    void open_case(const Word& subject);

    /// The word of the "case" at hand; null: the command stands in none, or in another branch within it.
    [[nodiscard]] const Word* subject() const;

    /// Whether a pattern of "case" is next.
    [[nodiscard]] bool awaits_pattern() const { return !open_.empty() && open_.back().awaits_pattern; }
    void await_pattern(bool awaits) { open_.back().awaits_pattern = awaits; }

    [[nodiscard]] bool empty() const { return open_.empty(); }
    [[nodiscard]] bool is_skipped() const;    ///< commands are never run
    [[nodiscard]] bool is_uncertain() const;  ///< nor is it known that they are

private:
    // An "if" with its arms, a "case", or a loop.
    struct Branch {
        bool skipped = false;      // the arm at hand is never taken
        bool uncertain = true;     // nor is it known that it is taken
        bool decided = false;      // an arm in front of it is always taken
        bool unknown_arm = false;  // of one in front of it that is not known

        bool is_case = false, awaits_pattern = false;
        Word subject{};
    };

    std::vector<Branch> open_;
};

/// Words behind which another command begins, which may be a branch itself.
[[nodiscard]] bool begins_arm(const Word& word);

}  // namespace pipeweaver::launch
