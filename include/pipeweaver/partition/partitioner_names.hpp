// Names of partitioners() by which code asks for one: spelled here and in its own row, so that a wrong one does not
// compile. A test holds each against the rows.
#pragma once

namespace pipeweaver::partition {

inline constexpr const char* dip_partition = "dip";
inline constexpr const char* modules_partition = "modules";
inline constexpr const char* megatron_partition = "megatron";
inline constexpr const char* balanced_partition = "balanced";
inline constexpr const char* uniform_partition = "uniform";
inline constexpr const char* first_stage_partition = "first-stage";

}  // namespace pipeweaver::partition
