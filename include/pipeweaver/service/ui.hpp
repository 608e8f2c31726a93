// A page to plan with, in the browser: `pipeweaver ui` (docs/ui.md).
//
// Commands     each question of the page is a process of this program, with the options that the page's form has set,
//              so that its answer is the command line's. Its files are those that were given with the question.
// Files        values of options never hold a path: nothing is read that was not given, nothing written but in a
//              folder that goes with the server.
#pragma once

#include "pipeweaver/service/serve.hpp"

#include <string>
#include <vector>

namespace pipeweaver::service {

/// A field of a form: an option, or the operand where the name is empty.
struct UiField {
    std::string name, kind, group, about;
    bool takes_value = false, is_required = false;
    bool is_usual = false;             ///< else it is found under "all options"
    std::vector<std::string> choices;  ///< that are known; others may be allowed
    bool takes_files = false;
};

struct UiCommand {
    std::string name, about;
    bool writes = false;  ///< it has --out
    std::vector<UiField> fields;
};

struct UiOptions : ListenOptions {
    UiOptions() { http = "127.0.0.1:8081"; }

    std::string program;  ///< path of this program
    std::vector<UiCommand> commands;
    std::string version;
};

/// Serves the page until SIGTERM or SIGINT, which end what goes on. Says on stderr where it listens. Throws as serve().
void serve_ui(const UiOptions& options);

}  // namespace pipeweaver::service
