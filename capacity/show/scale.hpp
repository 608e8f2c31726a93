// A scale of a plot: from values to parts of its length, and the marks on it.
#pragma once

#include <string>
#include <vector>

namespace pipeweaver::capacity::show {

struct Scale {
    double low = 0, high = 1;
    bool is_logarithmic = false;

    /// Where a value lies: 0 at the low end, 1 at the high one.
    double part(double value) const;
};

/// A scale that holds all values with a margin at both ends; logarithmic where the largest is several times the
/// smallest. Pre: values are above 0, and there is one.
[[nodiscard]] Scale scale_over(const std::vector<double>& values);

/// Marks at 1, 2 and 5 times powers of ten, about so many; on scales of less than that at one distance.
[[nodiscard]] std::vector<double> marks_on(const Scale& scale, std::size_t about);

/// "0.5", "640", "12.5 k", "1.2 M": three digits.
[[nodiscard]] std::string mark_text(double value);

}  // namespace pipeweaver::capacity::show
