// The commands of the page's *Plan* in the browser: the command line itself, run by a worker for each question, and the
// forms that ask it.
#include "apps/command_line.hpp"
#include "apps/commands.hpp"
#include "apps/console.hpp"
#include "apps/server_plan.hpp"
#include "apps/ui/forms.hpp"
#include "pipeweaver/base/error.hpp"
#include "service/ui/forms.hpp"

#include <nlohmann/json.hpp>

namespace pipeweaver::apps {

ServerPlan plan_on_server(const ServerOptions&, const nlohmann::ordered_json&, const planner::Batch&,
                          std::optional<Duration>, const std::filesystem::path&) {
    fail(ErrorKind::input, "--server: the page in the browser asks no server");
}

std::string text_of(const nlohmann::ordered_json&) { return {}; }

}  // namespace pipeweaver::apps

namespace {

using namespace pipeweaver;

/// Prints the fields of the commands above as the page's server has them.
void add_forms(CLI::App& program) {
    CLI::App& command = apps::add_subcommand(program, "forms", "the fields of the page's forms", {});
    apps::on_run(command, [&program] {
        const auto commands = apps::ui_commands(apps::program_of(program));
        apps::print_json(service::forms_json(commands, PIPEWEAVER_VERSION));
    });
}

}  // namespace

int main(int argc, char** argv) {
    const apps::Program program{.name = "pipeweaver",
                                .about = "plans the training steps of multimodal models",
                                .version = PIPEWEAVER_VERSION,
                                .manual = {},
                                .commands = {apps::add_plan, apps::add_emulate, apps::add_check, add_forms}};
    return apps::run_to_exit_status(program, argc, argv);
}
