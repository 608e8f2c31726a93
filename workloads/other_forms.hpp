// Files of samples that are no batch files: in which forms people keep what they train on.
#pragma once

#include "pipeweaver/base/json.hpp"

#include <string>
#include <string_view>

namespace pipeweaver::workloads {

/// What a file of this name holds that is no text, in words; "" where it may be a batch file.
[[nodiscard]] std::string_view form_of_name(std::string_view name);

/// The form of a chat, conversation, caption or list of data sets, by the keys of a line; "" where it has none of them.
[[nodiscard]] std::string_view form_of_line(const Json& line);

/// Throws Error{input}: `place` is of `form`, and the command that makes a batch file of `file`.
[[noreturn]] void refuse_form(std::string_view place, std::string_view form, const std::string& file);

}  // namespace pipeweaver::workloads
