// The one answer to a launch, and what it rests on.
//
// Truth        A launch is said to fit, or not to, only where nothing that we do not know could turn it; else it is
//              undecided, and what it rests on is named.
#pragma once

#include "pipeweaver/base/units.hpp"
#include "pipeweaver/frameworks/memory_setting.hpp"
#include "pipeweaver/launch/doubt.hpp"
#include "pipeweaver/launch/rules.hpp"
#include "pipeweaver/workloads/model.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::launch {

struct Fit;

/// `close`: the fullest rank is nearer to the limit than the error of our memory model.
enum class Verdict : std::uint8_t { fits, close, does_not_fit, does_not_construct, undecided };

/// "fits", "close", "does-not-fit", "does-not-construct", "undecided".
[[nodiscard]] std::string_view name_of(Verdict verdict);

/// Of the command that answers it: 0, 0, 4, 4, 5.
[[nodiscard]] int exit_status_of(Verdict verdict);

/// What the outcome rests on and is not known here.
struct Open {
    std::string setting;                                     ///< as a user writes it
    std::string why;                                         ///< who sets it, or what of it is not counted
    std::string give;                                        ///< how it is told to us; empty: it cannot be
    frameworks::Effect effect = frameworks::Effect::either;  ///< on memory
    bool is_taken = false;        ///< what is read is taken, of a branch or of a version, and no default
    bool of_step = false;         ///< weights, gradients and optimizer states do not rest on it
    std::optional<Bytes> most{};  ///< by which it moves a rank; none: it is not known
    bool of_loss = false;         ///< by what the loss holds of logits at most
};

/// By how much of what we say the memory of a rank was off in recorded runs, docs/accuracy.md.
struct MemoryError {
    std::string_view recipe{};  ///< of the recipes that ship, or what a run calls its own; empty: any
    std::string_view entry{};   ///< of frameworks::entries(); empty: any
    std::string_view
        kind{};       ///< of the model: "linear attention", "experts", "several modules", "dense"; "pipeline": of more
                      ///< ranks; empty: any
    double more = 0;  ///< it was more by that part of what we say
    double less = 0;
    std::string_view runs{};  ///< that say it
};
[[nodiscard]] const std::vector<MemoryError>& memory_errors();
[[nodiscard]] const MemoryError& memory_error_of(std::string_view recipe, std::string_view entry,
                                                 const workloads::Model& model, bool has_pipeline);

/// What is beyond its usable part, but on the device and not kept free for headroom, is close, too. Pre: no rule is
/// broken.
[[nodiscard]] Verdict verdict_of(const Fit& fit, const MemoryError& error, const std::vector<Open>& open);

/// Those of `open` that could turn what would be said without them. Where weights, gradients and states alone do not
/// fit, none that is of the step does.
[[nodiscard]] std::vector<Open> turning(const Fit& fit, const MemoryError& error, const std::vector<Open>& open);

/// Settings that the launch says, that change what is held and that no emulation follows.
[[nodiscard]] std::vector<Open> not_modelled(const SaidLaunch& said, const frameworks::NamedModel& model);

/// The same of these settings, none of which is followed, beside `all` that are said.
[[nodiscard]] std::vector<Open> not_modelled(Dialect dialect, const std::vector<Setting>& settings,
                                             const std::vector<Setting>& all, const frameworks::NamedModel& model);

/// Of the doubts of a fit those whose setting is said.
[[nodiscard]] std::vector<Open> open_of(const std::vector<Doubt>& doubts);

/// What a script leaves to its caller.
[[nodiscard]] std::vector<Open> open_of(const std::vector<Unset>& unset);

/// Variables that a branch sets which may not be taken, as far as a name or a setting outside `passed_over` has them.
[[nodiscard]] std::vector<Open> open_of_branches(const SaidLaunch& said, const std::vector<std::string>& passed_over);

/// What `said.named` may set. Pre: it is not empty.
[[nodiscard]] Open set_elsewhere(const SaidLaunch& said, const std::string& setting, frameworks::Effect effect);

/// Settings of memory that nobody says and that `said.named` may set: of each kind the first. Pre: as above.
[[nodiscard]] std::vector<Open> memory_set_elsewhere(const SaidLaunch& said);

/// The rules that a launch breaks with these settings more, none of which is said or a size of the model.
using BrokenWith = std::function<std::vector<BrokenRule>(const std::vector<Setting>& more)>;

/// Settings of the dialect that are not said and with which the broken rules hold, a few of each, tried one by one and
/// in pairs; none where a rule is broken whatever they are. Sizes of the model are not among them.
[[nodiscard]] std::vector<std::string> settings_that_mend(const SaidLaunch& said, const MegatronLaunch* launch,
                                                          const std::vector<BrokenRule>& broken,
                                                          const BrokenWith& broken_with);

}  // namespace pipeweaver::launch
