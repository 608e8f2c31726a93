// The settings of Megatron Core by name: a table.
#pragma once

#include "pipeweaver/launch/megatron.hpp"

#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace pipeweaver::launch {

/// Where a setting goes. A bool is set to `value`; of numbers `least` is the smallest allowed.
struct MegatronRow {
    using L = MegatronLaunch;
    using Member =
        std::variant<std::int64_t L::*, L::Number L::*, bool L::*, std::string L::*, std::vector<std::string> L::*>;

    std::string_view flag;   ///< of Megatron-LM; empty: it has none
    std::string_view field;  ///< of a Bridge recipe; empty: it has none
    Member member;
    std::string_view choices{};  ///< "a|b"; empty: any
    bool value = true;           ///< what the flag sets a bool to
    std::int64_t least = 1;
    bool of_model = false;  ///< a size of the language model
};

[[nodiscard]] std::span<const MegatronRow> megatron_rows();

/// The first row that sets a member: how our files spell it. Pre: there is one.
[[nodiscard]] const MegatronRow& row_that_sets(const MegatronRow::Member& member);

/// Its flag, with dashes. Pre: it has one.
[[nodiscard]] std::string flag_of(const MegatronRow::Member& member);

}  // namespace pipeweaver::launch
