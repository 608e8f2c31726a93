// Which layouts modules may have: what --module-tp asks for, and what a job tries.
#pragma once

#include "pipeweaver/emulator/setup.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::partition {

/// Per module; none: any that a job may choose. Empty: so for all.
using AskedLayouts = std::vector<std::optional<emulator::ModuleLayout>>;

/// Parses "vit=1,audio=2:split": tensor parallel GPUs of a module, and how its copies share a unit (hybrid unless said;
/// dealt where the copies do not divide the heads). "auto" for a module, or alone, leaves it to the job. Throws
/// Error{input} naming module and degrees that would do.
[[nodiscard]] AskedLayouts parse_module_tp(const std::string& text, const emulator::Setup& setup);

/// The layouts that a job tries, that of the job for all modules first where it may be chosen. Modules that take items
/// have each divisor of a rank's GPUs; of more than a few combinations those in which all modules with a choice have
/// the same degree.
[[nodiscard]] std::vector<emulator::ModuleLayouts> layouts_to_try(const emulator::Setup& setup,
                                                                  const AskedLayouts& asked);

/// Items of the smallest unit that a module takes in a layout: dealt ones are one for each copy, as far as a microbatch
/// may hold so many.
[[nodiscard]] std::int64_t fewest_items(const workloads::Model& model, const emulator::ModuleLayout& layout);

/// Whether a layout is asked for that is not the job's.
[[nodiscard]] bool asks_for_copies(const AskedLayouts& asked);

}  // namespace pipeweaver::partition
