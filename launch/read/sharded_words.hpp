// The words of a command that starts a sharded trainer.
#pragma once

#include "launch/read/words.hpp"

#include <cstddef>
#include <vector>

namespace pipeweaver::launch {

/// How many of their settings a sharded trainer knows, its program and a configuration file counted among them; 0: they
/// start none.
[[nodiscard]] std::size_t sharded_settings_among(const std::vector<Word>& words);

/// Puts entry and settings into `said`, those of its variables and of a configuration file in front. Pre: the words
/// start a sharded trainer. Throws Error{input}, Error{io}.
void put_sharded_words(const std::vector<Word>& all, SaidLaunch& said);

/// What of a configuration file, flat, is a sharded trainer's; none: it is of another framework.
[[nodiscard]] std::optional<SaidLaunch> sharded_configuration(const std::filesystem::path& path);

}  // namespace pipeweaver::launch
