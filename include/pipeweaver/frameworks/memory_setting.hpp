// Settings that change what a launch holds in memory, and that our model of memory does not follow. Data: what is
// modelled later leaves the table.
//
// Determinism  Tables alone.
#pragma once

#include "pipeweaver/frameworks/entry.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::frameworks {

/// How what is not modelled moves memory away from what we say.
enum class Effect : std::uint8_t { less, more, either };
[[nodiscard]] std::string_view name_of(Effect effect);

struct MemorySetting {
    Dialect dialect = Dialect::megatron_arguments;
    std::string_view name;  ///< in that dialect; a '*' at its end stands for any end
    Effect effect = Effect::either;
    std::string_view what;        ///< "a vision tower that is not counted"
    std::string_view harmless{};  ///< "a|b": values with which it changes nothing, beside those that turn it off
    bool of_sizes = false;        ///< says sizes of a model: harmless where a model with such parts is named beside it
    bool of_tower = false;        ///< these sizes are of an encoder
    std::string_view unless{};    ///< harmless where this setting has the value `unless_is`
    std::string_view unless_is{};
    std::string_view only{};  ///< "a|b": the row is of these values; others are of one behind it
    /// "*", or "A*|B*", beginnings of values: then it changes what a step holds, but not weights, gradients and states.
    std::string_view step{};
    std::string_view beside{};  ///< not empty: the row is of launches that say this setting, too, as `beside_is`
    std::string_view beside_is{};
    bool of_loss = false;  ///< it is no more than what a loss holds of logits
};

/// Whether a setting of that row with these values leaves weights, gradients and states as they are.
[[nodiscard]] bool is_of_step(const MemorySetting& row, const std::vector<std::string>& values);

/// What is known of the model beside a launch.
struct NamedModel {
    bool is_named = false;
    bool has_encoders = false;
};

[[nodiscard]] std::span<const MemorySetting> memory_settings();

/// The row of a setting with these values; null: it changes nothing, as far as known.
[[nodiscard]] const MemorySetting* memory_setting(Dialect dialect, const std::string& name,
                                                  const std::vector<std::string>& values, const NamedModel& model);

}  // namespace pipeweaver::frameworks
