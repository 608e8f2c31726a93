#include "tests/support/referee.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "tests/support/shared.hpp"
#include "tests/support/temporary.hpp"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <memory>
#include <sstream>

namespace pipeweaver::testing {

namespace {

std::string output_of(const std::string& command) {
    const auto close = [](std::FILE* pipe) { ::pclose(pipe); };
    const std::unique_ptr<std::FILE, decltype(close)> pipe(::popen(command.c_str(), "r"), close);
    if (!pipe) fail(ErrorKind::io, "cannot run {}", command);
    std::string output;
    std::string buffer(std::size_t{1} << 16, '\0');
    while (const std::size_t size = std::fread(buffer.data(), 1, buffer.size(), pipe.get()))
        output.append(buffer, 0, size);
    return output;
}

}  // namespace

std::vector<Answer> ask_referee(const std::filesystem::path& shared, const std::vector<Question>& questions) {
    std::string lines;
    for (const Question& question : questions)
        lines += nlohmann::json{{"problem", question.problem},
                                {"solution", question.solution},
                                {"replay", question.check == Check::replay}}
                     .dump() +
                 "\n";
    const TemporaryFolder folder("referee");
    write_files({{folder.path() / "questions", lines}});
    std::istringstream output(
        output_of(fmt::format("python3 '{}/tests/support/referee.py' '{}' '{}'", source_folder().string(),
                              (shared / "tools/verify_schedule.py").string(), (folder.path() / "questions").string())));
    std::vector<Answer> answers;
    for (std::string line; std::getline(output, line);) answers.push_back({line.substr(0, 64), line.substr(65)});
    if (answers.size() != questions.size())
        fail(ErrorKind::io, "the referee gave {} answers to {} questions", answers.size(), questions.size());
    return answers;
}

}  // namespace pipeweaver::testing
