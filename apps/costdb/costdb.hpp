// `pipeweaver costdb ...`: ask the cost database, and build one.
#pragma once

namespace CLI {
class App;
}

namespace pipeweaver::apps {

/// Adds `costdb` with `query` and `import` to `app`; they run when the command line is parsed and throw Error.
void add_costdb_commands(CLI::App& app);

}  // namespace pipeweaver::apps
