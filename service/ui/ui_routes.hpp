// What the page asks its server: forms, runs, their progress and files.
//
//   GET    /                       the page
//   GET    /ui/forms               commands and their fields
//   POST   /ui/play                a pipeline of Play, searched (play_search.hpp)
//   POST   /ui/runs                {"command", "options": {name: value}, "operand", "files": {name: text}} -> {"run"}
//   GET    /ui/runs/{run}/events   progress (server-sent events): `lines` for people, `doing`, `rung` of a ladder as it
//                                  climbs, each with its `place`; then `end` with the status and the files
//   GET    /ui/runs/{run}/answer   the command's JSON
//   GET    /ui/runs/{run}/files?name=...
//   DELETE /ui/runs/{run}          ends it: at once, or with ?best=1 with what was found so far
#pragma once

#include "pipeweaver/service/ui.hpp"
#include "service/http/answers.hpp"
#include "service/ui/runs.hpp"

#include <memory>
#include <string>

namespace pipeweaver::service {

class UiRoutes {
public:
    /// Throws Error{io, input}.
    explicit UiRoutes(const UiOptions& options);

    [[nodiscard]] Answer answer(const Question& question);

    /// The command line of a question, and its files. Throws Error{input}: what it may not ask.
    [[nodiscard]] static RunQuestion run_question(const UiOptions& options, const std::string& body);

private:
    [[nodiscard]] static Answer play(const Question& question);
    [[nodiscard]] Answer begin(const Question& question);
    [[nodiscard]] Answer events(std::uint64_t run);
    [[nodiscard]] Answer file(std::uint64_t run, const Question& question) const;
    [[nodiscard]] Answer of_run(const std::string& method, std::uint64_t run, const std::string& what,
                                const Question& question);

    const UiOptions options_;
    Guard guard_;
    std::shared_ptr<Runs> runs_;  // connections that are told of them may outlive this
};

}  // namespace pipeweaver::service
