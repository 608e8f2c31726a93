#include "apps/options.hpp"

#include "pipeweaver/base/error.hpp"

#include <CLI/CLI.hpp>

namespace pipeweaver::apps {

CLI::Option* add_operand(CLI::App& app, const std::string& name, std::string& value, const std::string& kind,
                         const std::string& about) {
    return app.add_option(name, value, about)->type_name(kind)->group("Operands");
}

// The value stays with CLI11 until apply(): a configuration file may be named behind the option it sets.
void Options::added(const Entry& entry) {
    const std::string name = "--" + entry.name;
    auto* option = entry.flag != nullptr ? app_->add_flag(name, entry.about)
                                         : app_->add_option(name, entry.about)->expected(1)->type_name(entry.kind);
    flags_.push_back(option->group(entry.group));
}

void Options::with_configuration() {
    configuration_ =
        app_->add_option("--config", "a YAML or JSON file with these options as keys; the command line wins")
            ->expected(1)
            ->type_name("FILE")
            ->group(group());
}

namespace {

void set_from_command_line(const OptionTable::Entry& entry, const CLI::Option& option) {
    if (entry.flag != nullptr) {
        *entry.flag = option.as<bool>();
        return;
    }
    try {
        entry.set(option.as<std::string>());
    } catch (const Error& error) {
        const std::string name = "--" + entry.name;
        throw std::string_view(error.what()).starts_with(name) ? error : error.in(name);
    }
}

}  // namespace

void Options::apply() const {
    const auto given = [this](std::size_t entry) { return flags_[entry]->count() > 0; };
    for (std::size_t i = 0; i < entries().size(); ++i)
        if (given(i)) set_from_command_line(entries()[i], *flags_[i]);
    if (configuration_ == nullptr || configuration_->count() == 0) return;
    const auto file = JsonDocument::read(configuration_->as<std::string>());
    configure(file.root(), given);
}

}  // namespace pipeweaver::apps
