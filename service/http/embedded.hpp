// Files that are part of the binary.
#pragma once

#include <string>

namespace pipeweaver::service {

/// The page for people (page.html).
[[nodiscard]] std::string page_text();

/// The OpenAPI document (openapi.json).
[[nodiscard]] std::string openapi_text();

}  // namespace pipeweaver::service
