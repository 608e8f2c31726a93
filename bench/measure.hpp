// What the benchmarks share.
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

namespace pipeweaver::bench {

/// Pre: not empty. Of an even number, the mean of the two in the middle.
[[nodiscard]] double median(std::vector<double> values);

/// How long one takes over another, a number for each batch.
struct Ratios {
    std::vector<double> values;

    // Pre: not empty.
    [[nodiscard]] double geometric_mean() const;
    [[nodiscard]] double least() const;
    [[nodiscard]] double most() const;
};

/// The problem files (pipeweaver-problem/1, gzip allowed) in a folder, sorted by name; files of other formats are
/// passed over. Throws Error{io} if it is no folder, Error{input} if it has none.
[[nodiscard]] std::vector<std::filesystem::path> problem_files(const std::filesystem::path& folder);

/// CPU time of all threads of this process: what other processes do meanwhile hardly counts.
[[nodiscard]] double cpu_seconds();

/// How often per second of CPU time `work` can be done, measured for about that long.
[[nodiscard]] double rate(const std::function<void()>& work, double seconds);

}  // namespace pipeweaver::bench
