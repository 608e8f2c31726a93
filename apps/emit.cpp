// pipeweaver emit: a plan, or a problem with its solution, as a framework's files.
#include "apps/commands.hpp"
#include "apps/options.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emit/targets.hpp"

#include <CLI/CLI.hpp>

#include <memory>

namespace pipeweaver::apps {

namespace {

struct Emit {
    explicit Emit(CLI::App& app) : options(app) {
        options.text("plan", plan,
                     "folder of `pipeweaver plan`, or one with problem.json[.gz] and solution.json (required)");
        options.text("target", target, "a target of `pipeweaver list targets` (required)");
        options.text("out", out, "folder for the files (required)");
    }

    void run() const {
        options.apply();
        for (const auto& [name, value] : {std::pair{"--plan", &plan}, {"--target", &target}, {"--out", &out}})
            if (value->empty()) fail(ErrorKind::input, "{}: is missing", name);
        const auto files = emit::emit(plan, target, out);
        write_files(files);
        for (const auto& file : files) fmt::print("{}\n", file.path.string());
    }

    Options options;
    std::string plan, target, out;
};

}  // namespace

void add_emit(CLI::App& program) {
    auto* app = program.add_subcommand("emit", "write a plan's schedule for a framework");
    app->footer("example: pipeweaver emit --plan out/quickstart --target torch-csv --out csv");
    const auto command = std::make_shared<Emit>(*app);  // shared: CLI11 keeps the callback
    app->callback([command] { command->run(); });
}

}  // namespace pipeweaver::apps
