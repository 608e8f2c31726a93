// `pipeweaver replay --trace`: a recorded step replayed.
#pragma once

#include <string>
#include <vector>

namespace pipeweaver::apps {

/// What of a recorded step is asked.
struct TraceQuestion {
    std::vector<std::string> files;
    std::string factors;   ///< "gemm=0.8,nccl=0.5"; empty: none
    std::string emulated;  ///< the trace of an emulated step; empty: none
};

/// Prints the answer on stdout. Throws Error{input} for traces that cannot be replayed together; Error{io}.
void replay_traces(const TraceQuestion& question, bool as_json);

}  // namespace pipeweaver::apps
