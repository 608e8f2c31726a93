// The forms of the page of `pipeweaver ui`, made from the options of the commands that it asks.
#pragma once

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

}  // namespace pipeweaver::service
