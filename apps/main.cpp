#include "apps/costdb.hpp"
#include "pipeweaver/base/error.hpp"

#include <CLI/CLI.hpp>
#include <fmt/core.h>

int main(int argc, char** argv) {
    CLI::App app{"pipeweaver: plans multimodal pipeline-parallel training"};
    app.require_subcommand(1);
    pipeweaver::apps::add_costdb_commands(app);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    } catch (const pipeweaver::Error& error) {
        fmt::print(stderr, "pipeweaver: {}\n", error.what());
        return static_cast<int>(error.kind());
    }
    return 0;
}
