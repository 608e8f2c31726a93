// What a client may send to a server: a request of HTTP/1.1, byte by byte.
#pragma once

#include <string_view>

namespace pipeweaver::fuzz {

/// Reads the request as a connection does and has it answered by a server with a session "job", whose step 1 is planned
/// (token "0123456789abcdef", where the request has an Authorization). Throws std::logic_error for an answer that is of
/// a status of 500 and above, of one that the OpenAPI document has not, or of an error without its line.
void ask(std::string_view bytes);

}  // namespace pipeweaver::fuzz
