// pipeweaver's search for the pipelines of Play, as the server answers it and as tools/playground compiles it to
// WebAssembly for the page without a server.
//
// Question     {"ranks", "chunks", "sizes": of microbatches, "forward", "backward", "weight" and "link" in ms, "split",
//              "most": microbatches' activations a rank may hold, 0 for any, "seed", "rounds"}
// Answer       {"lists": by rank [kind, stage, microbatch] in order, null where none fits; "end" and "bound" in ms,
//              "rounds"}
#pragma once

#include <string>

namespace pipeweaver::service {

/// Takes some hundred milliseconds at most. Throws Error{input} for what is no such question, or too large.
[[nodiscard]] std::string search_play(const std::string& question);

}  // namespace pipeweaver::service
