// Indices that cannot be mixed up: a TaskId is no RankId.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace pipeweaver {

enum class TaskId : std::uint32_t {};  ///< index into Problem::tasks
enum class RankId : std::uint32_t {};  ///< index into Problem::ranks

/// The id as a subscript.
template <class Id>
requires std::is_enum_v<Id>
constexpr std::size_t index(Id id) { return static_cast<std::size_t>(id); }

}  // namespace pipeweaver
