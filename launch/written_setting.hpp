// Settings of Megatron Core as our files spell them: in the words of the table that reads them.
#pragma once

#include "launch/read/megatron_table.hpp"
#include "pipeweaver/launch/megatron_words.hpp"

#include <string>

namespace pipeweaver::launch {

/// Pre: the first row that sets the member has flag and field.
[[nodiscard]] LaunchSetting setting_of(const MegatronRow::Member& member, const std::string& value,
                                       std::string why = {});

}  // namespace pipeweaver::launch
