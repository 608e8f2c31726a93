// Files that are part of the binary.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace pipeweaver::service {

/// The page for people (page.html).
[[nodiscard]] std::string page_text();

/// The page to plan with, and its scripts.
struct UiFile {
    std::string_view path, type, text;
};
[[nodiscard]] std::span<const UiFile> ui_files();

/// The OpenAPI document (openapi.json).
[[nodiscard]] std::string openapi_text();

}  // namespace pipeweaver::service
