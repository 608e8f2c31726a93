// Options of a command: a table of options as flags, with a configuration file beside them.
#pragma once

#include "pipeweaver/base/options.hpp"

#include <CLI/App.hpp>

#include <vector>

namespace pipeweaver::apps {

/// Registers an operand, an argument without a name; the kind is what --help shows.
CLI::Option* add_operand(CLI::App& app, const std::string& name, std::string& value, const std::string& kind,
                         const std::string& about);

/// Options that may also stand in a configuration file (`--config FILE`, YAML or JSON, an object with the flags' names
/// as keys). What is on the command line wins.
class Options : public OptionTable {
public:
    explicit Options(CLI::App& app) : app_(&app) {}

    /// Adds `--config`.
    void with_configuration();

    /// Reads the configuration file if one is named, then applies every option given. Call once, after parsing.
    void apply() const;

private:
    void added(const Entry& entry) override;

    CLI::App* app_;
    std::vector<CLI::Option*> flags_;  ///< of the entries
    CLI::Option* configuration_ = nullptr;
};

}  // namespace pipeweaver::apps
