#include "bench/measure.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/json.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

namespace pipeweaver::bench {

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const std::size_t half = values.size() / 2;
    return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double Ratios::geometric_mean() const {
    double sum = 0;
    for (const double value : values) sum += std::log(value);
    return std::exp(sum / static_cast<double>(values.size()));
}

double Ratios::least() const { return *std::min_element(values.begin(), values.end()); }

double Ratios::most() const { return *std::max_element(values.begin(), values.end()); }

// Known by their format, so that a plan's folder may be given, too.
std::vector<std::filesystem::path> problem_files(const std::filesystem::path& folder) {
    if (!std::filesystem::is_directory(folder)) fail(ErrorKind::io, "{}: is not a folder", folder.string());
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        const std::string name = entry.path().filename().string();
        if (!name.ends_with(".json") && !name.ends_with(".json.gz")) continue;
        if (name.find(".solution.") != std::string::npos) continue;
        const auto document = JsonDocument::read_large(entry.path());
        const auto format = document.root().is_object() ? document.root().find("format") : std::nullopt;
        if (format && format->is_string() && format->text().starts_with("pipeweaver-problem/"))
            files.push_back(entry.path());
    }
    if (files.empty()) fail(ErrorKind::input, "{}: has no problem file (pipeweaver-problem/1)", folder.string());
    std::sort(files.begin(), files.end());
    return files;
}

double rate(const std::function<void()>& work, double seconds) {
    std::uint64_t times = 0;
    const double begin = cpu_seconds();
    double now = begin;
    for (std::uint64_t batch = 1; now - begin < seconds; batch *= 2) {
        for (std::uint64_t k = 0; k < batch; ++k) work();
        times += batch;
        now = cpu_seconds();
    }
    return static_cast<double>(times) / (now - begin);
}

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

}  // namespace pipeweaver::bench
