#include "apps/programs.hpp"

#include "pipeweaver/base/error.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <unistd.h>

namespace pipeweaver::apps {

std::string program_beside(const std::string& name) {
    const auto path = std::filesystem::read_symlink("/proc/self/exe").parent_path() / name;
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored))
        fail(ErrorKind::io, "{}: is not there; in a checkout `cmake --build --preset release --target {}` builds it",
             path.string(), name);
    return path.string();
}

void become_program(const std::string& name, const std::vector<std::string>& arguments) {
    std::vector<std::string> words{program_beside(name)};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> pointers;
    pointers.reserve(words.size() + 1);
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    ::execv(pointers.front(), pointers.data());
    fail(ErrorKind::io, "{}: cannot be run: {}", words.front(), std::strerror(errno));
}

}  // namespace pipeweaver::apps
