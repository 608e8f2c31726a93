#include "apps/ui/forms.hpp"

#include "apps/completion/scripts.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace pipeweaver::apps {

namespace {

constexpr std::array<std::string_view, 5> asked{"plan", "check", "recommend", "emulate", "solve"};

// Also of fields whose words the page can only suggest: a model may be a file, a cluster needs a number of GPUs.
service::UiField field_of(const OptionShape& option, const Manual& manual) {
    service::UiField field;
    field.name = option.operand.empty() && !option.names.empty() ? option.names.front() : "";
    field.kind = option.kind;
    field.group = option.group;
    field.about = option.about;
    field.takes_value = option.takes_value;
    field.is_required = is_required(option);
    field.is_usual =
        manual.usual.empty() || std::find(manual.usual.begin(), manual.usual.end(), field.name) != manual.usual.end();
    if (option.takes_value) field.choices = words_of(option.kind);
    field.takes_files = takes_files(option.kind);
    return field;
}

service::UiCommand command_of(const CommandShape& shape) {
    service::UiCommand command{shape.name, shape.about, false, {}};
    for (const OptionShape& option : shape.options) {
        const bool is_out = std::find(option.names.begin(), option.names.end(), "out") != option.names.end();
        command.writes = command.writes || is_out;
        if (!option.group.empty() && !is_out) command.fields.push_back(field_of(option, shape.manual));
    }
    return command;
}

}  // namespace

std::vector<service::UiCommand> ui_commands(const CommandShape& program) {
    std::vector<service::UiCommand> all;
    for (const CommandShape& shape : program.commands)
        if (std::find(asked.begin(), asked.end(), shape.name) != asked.end()) all.push_back(command_of(shape));
    return all;
}

}  // namespace pipeweaver::apps
