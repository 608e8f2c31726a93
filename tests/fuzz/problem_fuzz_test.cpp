// Files with damaged bytes: a reader either takes them or throws Error; anything else fails the test (or the
// sanitizers under which this runs as well).
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/random.hpp"
#include "pipeweaver/schedule/replay.hpp"
#include "tests/support/random_problem.hpp"
#include "tests/support/verifier.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <vector>

using namespace pipeweaver;

namespace {

// Tokens that turn one JSON into another more often than single bytes do.
constexpr std::array<std::string_view, 14> tokens{
    "-", "0", "9", "99999999999999999999", "null", "true", "[", "]", "{", "}", ",", "\"", "1e9", "\xff"};

std::string damaged(std::string text, Random& random) {
    for (std::uint64_t changes = 1 + random.below(3); changes > 0; --changes) {
        const std::size_t place = random.below(text.size());
        const std::size_t length = std::min<std::size_t>(text.size() - place, random.below(4));
        switch (random.below(7)) {
            case 0:
                text[place] = static_cast<char>(random.below(256));
                break;
            case 1:
                text.replace(place, length, tokens[random.below(tokens.size())]);
                break;
            case 2:  // one piece of the file over another
                text.replace(place, length, text.substr(random.below(text.size()), random.below(30)));
                break;
            case 3:
                if (random.below(10) == 0) text.resize(place + 1);
                break;
            default:  // a digit for a digit keeps a file readable
                if (const auto digit = text.find_first_of("0123456789", place); digit != std::string::npos)
                    text[digit] = static_cast<char>('0' + random.below(10));
        }
    }
    return text;
}

// Instances whose solutions do not name the problem's digest: with it, any damage to a problem is refused at once.
std::vector<testing::Instance> instances() {
    std::vector<testing::Instance> all;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        all.push_back(testing::random_instance(seed));
        auto& text = all.back().solution;
        const std::string key = ",\"problem_sha256\":\"";
        if (const auto place = text.find(key); place != std::string::npos) text.erase(place, key.size() + 65);
    }
    return all;
}

}  // namespace

TEST_CASE("damaged problems and solutions are read or refused, never worse") {
    constexpr int rounds = 2000;
    const auto whole = instances();
    int read = 0, refused = 0;
    for (int round = 0; round < rounds; ++round) {
        CAPTURE(round);
        Random random(7, static_cast<std::uint64_t>(round));
        const auto& instance = whole[random.below(whole.size())];
        const bool in_problem = random.below(2) == 0;
        const auto problem = in_problem ? damaged(instance.problem, random) : instance.problem;
        const auto solution = in_problem ? instance.solution : damaged(instance.solution, random);
        CAPTURE(in_problem);
        CAPTURE(problem);
        CAPTURE(solution);
        const auto verdict = testing::verify(problem, solution, testing::Check::replay);
        try {
            const auto file = schedule::parse_problem("p", problem);
            const auto schedule = schedule::parse_schedule("s", solution, file);
            const auto replay = schedule::replay(file.problem, schedule);
            ++read;
            // Whoever takes the same file gives the same answer (the bound is not the replay's business).
            if (verdict.ok) CHECK(replay.makespan.count() == verdict.makespan_ns);
        } catch (const Error& error) {
            CHECK(error.kind() != ErrorKind::io);
            CHECK(std::string_view(error.what()).find('\n') == std::string_view::npos);
            ++refused;
        }
    }
    CHECK(read > rounds / 20);  // both ways have to be taken, or this proves little
    CHECK(refused > rounds / 2);
}

TEST_CASE("damaged gzip data is unzipped or refused, never worse") {
    const auto zipped = gzip(testing::random_instance(3).problem);
    int refused = 0;
    for (std::uint64_t round = 0; round < 2000; ++round) {
        Random random(8, round);
        auto bytes = zipped;
        bytes[random.below(bytes.size())] = static_cast<char>(random.below(256));
        if (random.below(2) == 0) bytes.resize(random.below(bytes.size()));
        try {
            static_cast<void>(gunzip(bytes));
        } catch (const Error& error) {
            CHECK(error.kind() == ErrorKind::input);
            ++refused;
        }
    }
    CHECK(refused > 1000);
}
