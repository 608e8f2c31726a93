// A page to plan with, in the browser: `pipeweaver ui` (docs/ui.md).
//
// Commands     each question of the page is a process of this program, with the options that the page's form has set,
//              so that its answer is the command line's. Its files are those that were given with the question.
// Files        values of options never hold a path: nothing is read that was not given, nothing written but in a
//              folder that goes with the server.
#pragma once

#include "pipeweaver/service/serve.hpp"
#include "pipeweaver/service/ui_forms.hpp"

#include <string>
#include <vector>

namespace pipeweaver::service {

struct UiOptions : ListenOptions {
    UiOptions() { http = "127.0.0.1:8081"; }

    std::string program;  ///< path of this program
    std::vector<UiCommand> commands;
    std::string version;
};

/// Serves the page until SIGTERM or SIGINT, which end what goes on. Says on stderr where it listens. Throws as serve().
void serve_ui(const UiOptions& options);

}  // namespace pipeweaver::service
