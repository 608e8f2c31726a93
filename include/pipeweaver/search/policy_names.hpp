// Names of policies() by which code asks for one: spelled here and in no other file, so that a wrong one does not
// compile. A test holds each against the rows.
#pragma once

namespace pipeweaver::search {

inline constexpr const char* gpipe_policy = "gpipe";
inline constexpr const char* one_f_one_b_policy = "1f1b";
inline constexpr const char* interleaved_policy = "interleaved";
inline constexpr const char* dual_queue_policy = "dual-queue";

}  // namespace pipeweaver::search
