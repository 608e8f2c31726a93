// A server of the Model Context Protocol on standard input and output: JSON-RPC 2.0, a message a line
// (modelcontextprotocol.io, revisions 2025-06-18 and 2025-03-26).
#pragma once

#include "apps/manual.hpp"

namespace pipeweaver::apps {

/// Answers until the input ends, then what was asked before. Calls run one after the other; all else is answered
/// meanwhile. A call with a progressToken is told of by notifications/progress, and notifications/cancelled ends its
/// search. Whatever is no message is answered by an error of JSON-RPC. `program` has the commands. Throws Error{io}
/// where standard streams cannot be taken.
void serve_agent(const CommandShape& program);

}  // namespace pipeweaver::apps
