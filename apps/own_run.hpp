// pipeweaver validate --measured: one run of one's own beside its prediction.
#pragma once

#include "apps/console.hpp"
#include "pipeweaver/planner/emulate_options.hpp"

#include <optional>
#include <string>

namespace pipeweaver::apps {

struct OwnRunOptions {
    planner::EmulateOptions asked;
    std::optional<Duration> measured;
    std::optional<Bytes> memory;
    std::string memory_kind;
    Limits limits;

    void add_to(OptionTable& options);

    bool given() const { return measured.has_value(); }

    /// Throws Error{input} for an option of a run that goes without --measured.
    void require_none() const;

    /// Emulates the run and prints it beside what was measured. Throws as planner::emulate().
    void run(const Console& console) const;
};

}  // namespace pipeweaver::apps
