// Programs that lie in one folder: pipeweaver, and those that measure it.
#pragma once

#include <string>
#include <vector>

namespace pipeweaver::apps {

/// Path of the program of that name in the folder of this one. Throws Error{io} where there is none, with how to build
/// it.
[[nodiscard]] std::string program_beside(const std::string& name);

/// Makes this process that program, with these arguments. Throws Error{io} where it cannot.
[[noreturn]] void become_program(const std::string& name, const std::vector<std::string>& arguments);

}  // namespace pipeweaver::apps
