// A session of the service, small enough for a test.
#pragma once

#include <fmt/format.h>

#include <string>

namespace pipeweaver::testing {

/// Samples as JSON; other ones for each seed.
inline std::string small_samples(int seed = 0, const std::string& between = ",") {
    std::string all;
    for (int i = 0; i < 8; ++i) {
        std::string images;
        for (int n = 0; n < (7 * i + 3 * seed) % 6; ++n)
            images += fmt::format(R"({}{{"width":448,"height":448}})", n == 0 ? "" : ",");
        all += fmt::format(R"({}{{"id":"s{}-{}","text_tokens":{},"images":[{}]}})", i == 0 ? "" : between, seed, i,
                           4500 + 137 * ((seed + i) % 5), images);
    }
    return all;
}

/// As a batch file.
inline std::string small_lines(int seed = 0) { return small_samples(seed, "\n") + "\n"; }

/// What is asked for, with a configuration's further members; on one partition, unless they say which: to choose among
/// all of them takes seconds.
inline std::string small_session(const std::string& more = "") {
    const bool says_partition = more.find("\"partition\"") != std::string::npos;
    return fmt::format(R"({{"config":{{"model":"dip-vlm-s","cluster":"h100-sxm:16","tp":4,"pp":4,"max-rounds":3{}{}}},)"
                       R"("sample":[{}]}})",
                       says_partition ? "" : R"(,"partition":"balanced")", more, small_samples());
}

}  // namespace pipeweaver::testing
