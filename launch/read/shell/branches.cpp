#include "launch/read/shell/branches.hpp"

#include <algorithm>
#include <string>

namespace pipeweaver::launch {

void Branches::follow(const std::vector<Word>& words) {
    if (words.size() != 1 || words.front().quoted) return;
    const std::string& word = words.front().text;
    if (word == "if" || word == "for" || word == "while" || word == "until" || word == "case") open_.push_back({});
    if (open_.empty()) return;
    if (word == "else") {
        open_.back().skipped = open_.back().decided;
        open_.back().uncertain = open_.back().unknown_arm;
    }
    if (word == "fi" || word == "done" || word == "esac") open_.pop_back();
}

void Branches::take(std::optional<bool> truth) {
    Branch& branch = open_.back();
    branch.skipped = branch.decided || truth == false;
    branch.unknown_arm = branch.unknown_arm || !truth;
    branch.uncertain = branch.unknown_arm;
    branch.decided = branch.decided || (truth == true && !branch.unknown_arm);
}

void Branches::open_case(const Word& subject) {
    if (open_.empty()) return;
    Branch& branch = open_.back();
    branch.is_case = branch.awaits_pattern = true;
    branch.subject = subject;
    branch.skipped = true;
}

const Word* Branches::subject() const {
    return open_.empty() || !open_.back().is_case ? nullptr : &open_.back().subject;
}

bool Branches::is_skipped() const {
    return std::any_of(open_.begin(), open_.end(), [](const Branch& one) { return one.skipped; });
}

bool Branches::is_uncertain() const {
    return std::any_of(open_.begin(), open_.end(), [](const Branch& one) { return one.uncertain; });
}

bool begins_arm(const Word& word) {
    return !word.quoted && (word.text == "then" || word.text == "else" || word.text == "do" || word.text == "{");
}

}  // namespace pipeweaver::launch
