// SQLite itself, for tests that include the playground's reader instead of its header.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace real_sqlite {

/// A database that this SQL makes, as the bytes of its file.
[[nodiscard]] std::string made(const std::string& sql);

/// The rows that a query gives of such bytes, each value as text, after each a '|'.
[[nodiscard]] std::vector<std::string> rows(std::string_view bytes, const std::string& sql);

}  // namespace real_sqlite
