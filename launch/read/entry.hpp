// The entry of a framework that a command starts.
#pragma once

#include "launch/read/words.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::launch {

/// The value of "--name value" or "--name=value", of a name that has its dash ("-n") of "-n value"; none: it is not
/// said.
[[nodiscard]] std::optional<std::string> flag_value(const std::vector<Word>& words, std::string_view name);

/// Throws Error{input} where the words start an entry that is not read, by its name.
void refuse_entry(const std::vector<Word>& words, const std::string& from);

/// Puts the GPUs that the words, or variables of the launch, start processes on.
void put_gpus(const std::vector<Word>& words, SaidLaunch& said);

/// Puts what the program that the words start sets where nobody says it. Pre: the entry and the settings are there.
void put_program_defaults(const std::vector<Word>& words, SaidLaunch& said);

/// Puts the entry that the words start into `said`, what they name, and the GPUs that they are launched on.
void put_entry(const std::vector<Word>& words, SaidLaunch& said);

/// The same of an option's words, which start no program: torchtitan's where they name a configuration of its registry.
void put_entry_of_option(const std::vector<Word>& words, SaidLaunch& said);

}  // namespace pipeweaver::launch
