// Where memory is not as the launch says it, and in which direction.
#pragma once

#include "pipeweaver/base/units.hpp"
#include "pipeweaver/frameworks/memory_setting.hpp"

#include <optional>
#include <string>

namespace pipeweaver::launch {

struct Doubt {
    frameworks::Effect effect = frameworks::Effect::either;  ///< of the truth on what we say
    std::string phrase;                                      ///< "32-bit values"
    std::string setting{};  ///< as a user writes it, where it is said and not followed; empty: a default that counts
    bool of_step = false;   ///< weights, gradients and states are as we say
    std::optional<Bytes> most{};  ///< by which it moves a rank; none: it is not known
};

}  // namespace pipeweaver::launch
