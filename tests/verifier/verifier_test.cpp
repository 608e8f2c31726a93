// The verifier against hand-worked numbers, random instances, the referee, and the emulator against both.
#include "tests/support/verifier.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/schedule/replay.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/mutate.hpp"
#include "tests/support/random_problem.hpp"
#include "tests/support/referee.hpp"
#include "tests/support/shared.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

using namespace pipeweaver;
using namespace pipeweaver::testing;

namespace {

// Instances, and mutants as many.
testing::Cases tried() { return cases(300, 100); }

// The one of that seed, from 1 on, made once for all tests.
const Instance& instance(std::uint64_t seed) {
    static const std::vector<Instance> all = [] {
        std::vector<Instance> made;
        for (std::uint64_t n = 1; n <= tried().count; ++n) made.push_back(random_instance(n));
        return made;
    }();
    return all.at(seed - 1);
}

// rank 0: F 10 -> (lag 2) rank 1: F 20 -> B 40 -> (lag 2) rank 0: B 20, tail 1; base 5, F takes 8, B 2 more.
const std::string two_rank_problem = R"({"format":"pipeweaver-problem/1","name":"two","source":"",
"ranks":[{"capacity_bytes":15,"base_bytes":5,"tail_ns":1},{"capacity_bytes":null,"base_bytes":5}],
"tasks":[{"id":0,"rank":0,"kind":"F","duration_ns":10,"acquire_bytes":8,"release_bytes":0,"label":"F0"},
{"id":1,"rank":1,"kind":"F","duration_ns":20,"acquire_bytes":8,"release_bytes":0,"label":"F1"},
{"id":2,"rank":1,"kind":"B","duration_ns":40,"acquire_bytes":2,"release_bytes":10,"label":"B1"},
{"id":3,"rank":0,"kind":"B","duration_ns":20,"acquire_bytes":2,"release_bytes":10,"label":"B0"}],
"edges":[[0,1,2],[1,2,0],[2,3,2]]})";

std::string two_rank_solution(const std::string& rest) {
    return R"({"format":"pipeweaver-solution/1","problem":"two","order":[[0,3],[1,2]])" + rest + "}";
}

struct Mutant {
    std::size_t kind;
    Instance instance;
};

// All kinds in turn, each of another instance; made once for all tests.
const std::vector<Mutant>& mutants() {
    static const std::vector<Mutant> all = [] {
        std::vector<Mutant> made;
        for (std::uint64_t seed = 1; made.size() < tried().count; ++seed) {
            const std::size_t kind = seed % mutation_kinds();
            if (auto mutated = mutate(random_instance(seed), kind, seed)) made.push_back({kind, std::move(*mutated)});
        }
        return made;
    }();
    return all;
}

std::vector<std::int64_t> counts(const std::vector<Duration>& times) {
    std::vector<std::int64_t> all;
    all.reserve(times.size());
    for (const Duration time : times) all.push_back(time.count());
    return all;
}

std::vector<std::int64_t> counts(const std::vector<Bytes>& sizes) {
    std::vector<std::int64_t> all;
    all.reserve(sizes.size());
    for (const Bytes size : sizes) all.push_back(size.count);
    return all;
}

bool is_ok(const std::string& line) { return line.starts_with("ok "); }

}  // namespace

TEST_CASE("the verifier gives the hand-worked times and peaks") {
    const auto verdict =
        verify(two_rank_problem, two_rank_solution(R"(,"start_ns":[0,12,32,74],"makespan_ns":95,"peak_bytes":[15,15],)"
                                                   R"("lower_bound_ns":76)"));

    CHECK(line(verdict) == "ok makespan_ns=95 gap=25.000% peak=15,15");
}

TEST_CASE("a replay recomputes all but the order") {
    const auto verdict = verify(two_rank_problem, two_rank_solution(R"(,"makespan_ns":1)"), Check::replay);

    CHECK(line(verdict) == "ok makespan_ns=95 gap=unknown peak=15,15");
    CHECK(verdict.start_ns == std::vector<std::int64_t>{0, 12, 32, 74});
}

TEST_CASE("the verifier names what is wrong") {
    const auto says = [](const std::string& rest, const char* violation) {
        CHECK(verify(two_rank_problem, two_rank_solution(rest)).violation == violation);
    };
    const std::string peaks = R"(,"peak_bytes":[15,15])";
    says(R"(,"start_ns":[0,11,32,74],"makespan_ns":95)" + peaks, "task 1 starts before task 0 and the lag allow");
    says(R"(,"start_ns":[0,12,31,74],"makespan_ns":95)" + peaks, "task 2 starts before task 1 ends");
    says(R"(,"start_ns":[0,12,32,74],"makespan_ns":94)" + peaks, "makespan_ns is 94, the tasks end at 95");
    says(R"(,"start_ns":[0,12,32,74],"makespan_ns":95,"peak_bytes":[15,14])",
         "peak_bytes is [15,14], recomputed 15,15");
    CHECK_FALSE(verify(two_rank_problem, "[").ok);
    CHECK_FALSE(verify("null", "null").ok);
}

TEST_CASE("the random instances are many kinds of problem, and valid") {
    std::set<char> kinds;
    std::map<std::string, int> with;
    for (std::uint64_t seed = 1; seed <= tried().count; ++seed) {
        CAPTURE(seed);
        const auto& [problem, solution] = instance(seed);

        CHECK(line(verify(problem, solution)).substr(0, 3) == "ok ");

        const auto file = schedule::parse_problem("random", problem).problem;
        for (const auto& task : file.tasks) kinds.insert(letter(task.kind));
        with["pairs"] += !file.pairs.empty();
        with["no pairs"] += file.pairs.empty();
        for (const auto& rank : file.ranks) with[rank.capacity ? "capacity" : "no capacity"]++;
        for (const auto& rank : file.ranks) with["tail"] += rank.tail.count() > 0;
        for (const auto& pair : file.pairs) {
            with["modes"] += pair.modes.size() > 1;
            with["split"] += pair.weight.has_value();
            with["forward transient"] += pair.modes[0].forward_transient.count > 0;
        }
        with["ranks " + std::to_string(file.ranks.size())]++;
    }
    CHECK(kinds == std::set<char>{'F', 'B', 'I', 'W', 'X'});
    CHECK(with.size() == 12);
    for (const auto& entry : with) {
        CAPTURE(entry.first);
        CHECK(static_cast<std::uint64_t>(entry.second) >= tried().share(30));
    }
}

TEST_CASE("every kind of mutation is noticed, and what is harmless is not") {
    std::map<std::size_t, int> kinds;
    for (const auto& mutant : mutants()) {
        const Expect expect = mutation_expects(mutant.kind);
        CAPTURE(mutation_name(mutant.kind));
        CAPTURE(mutant.instance.solution);
        const auto verdict = verify(mutant.instance.problem, mutant.instance.solution);
        ++kinds[mutant.kind];
        if (expect != Expect::either) CHECK(verdict.ok == (expect == Expect::accepted));
    }
    // Some find a place in few instances.
    CHECK(kinds.size() >= full_or_short(mutation_kinds(), mutation_kinds() * 9 / 10));
}

TEST_CASE("verifier and referee agree on valid instances and on as many mutated ones") {
    const auto shared = shared_folder();
    if (!shared) {
        left_out("the agreement of verifier and referee, whose folder is not there");
        return;
    }
    std::vector<Question> questions;
    for (std::uint64_t seed = 1; seed <= tried().count; ++seed) {
        const auto& [problem, solution] = instance(seed);
        questions.push_back({problem, solution, Check::everything});
    }
    for (const auto& mutant : mutants())
        questions.push_back({mutant.instance.problem, mutant.instance.solution, Check::everything});
    REQUIRE(questions.size() == 2 * tried().count);
    for (std::size_t i = 0; i < 2 * tried().count; ++i)
        questions.push_back({questions[i].problem, questions[i].solution, Check::replay});

    const auto answers = ask_referee(*shared, questions);

    for (std::size_t i = 0; i < questions.size(); ++i) {
        CAPTURE(i);
        CAPTURE(answers[i].line);
        const auto own = verify(questions[i].problem, questions[i].solution, questions[i].check);
        CHECK(own.ok == is_ok(answers[i].line));
        if (own.ok) CHECK(line(own) == answers[i].line);
    }
}

TEST_CASE("the emulator replays every valid instance to the verifier's times and peaks") {
    for (std::uint64_t seed = 1; seed <= tried().count; ++seed) {
        CAPTURE(seed);
        const auto& [problem, solution] = instance(seed);
        const auto file = schedule::parse_problem("random", problem);
        const auto schedule = schedule::parse_schedule("solution", solution, file);

        const auto replay = schedule::replay(file.problem, schedule);
        const auto verdict = verify(problem, solution, Check::replay);

        CHECK(replay.outcome == schedule::Outcome::completed);
        CHECK(replay.makespan.count() == verdict.makespan_ns);
        CHECK(counts(replay.peak) == verdict.peak_bytes);
        CHECK(counts(replay.start) == verdict.start_ns);
    }
}

TEST_CASE("the emulator refuses or fails to replay what the verifier refuses to replay") {
    for (const auto& mutant : mutants()) {
        const Instance& instance = mutant.instance;
        CAPTURE(mutation_name(mutant.kind));
        CAPTURE(instance.solution);
        const bool ok = verify(instance.problem, instance.solution, Check::replay).ok;
        bool replayed = false;
        try {
            const auto file = schedule::parse_problem("random", instance.problem);
            const auto schedule = schedule::parse_schedule("solution", instance.solution, file);
            replayed = schedule::replay(file.problem, schedule).outcome == schedule::Outcome::completed;
        } catch (const Error&) {
            replayed = false;
        }
        // A reader of the order does not look at the bound; a cycle in the edges is the reader's error already.
        if (mutation_name(mutant.kind) != "claim a bound above the makespan") CHECK(replayed == ok);
    }
}

TEST_CASE("what the emulator writes it reads again, and the verifier accepts") {
    const auto shared = shared_folder();
    std::vector<Question> questions;
    std::vector<std::string> digests;
    for (std::uint64_t seed = 1; seed <= tried().count; ++seed) {
        CAPTURE(seed);
        const auto& [problem, solution] = instance(seed);
        const auto first = schedule::parse_problem("random", problem);
        const auto written = to_json(first.problem);
        const auto again = schedule::parse_problem("again", written);
        const auto schedule = schedule::parse_schedule("solution", solution, first);
        const auto replay = schedule::replay(first.problem, schedule);
        const auto text = to_json(schedule::Solution{again.problem.name, again.sha256, schedule, replay.start,
                                                     replay.makespan, replay.makespan, replay.peak, "list"});

        CHECK(to_json(again.problem) == written);
        CHECK(schedule::parse_schedule("text", text, again) == schedule);
        CHECK(line(verify(written, text)).substr(0, 3) == "ok ");
        questions.push_back({written, text, Check::everything});
        digests.push_back(again.sha256);
        questions.push_back({problem, solution, Check::everything});
        digests.push_back(first.sha256);
    }
    if (!shared) {
        left_out("the comparison with the referee, whose folder is not there");
        return;
    }

    const auto answers = ask_referee(*shared, questions);

    for (std::size_t i = 0; i < questions.size(); ++i) {
        CHECK(answers[i].line.substr(0, 3) == "ok ");
        CHECK(answers[i].problem_sha256 == digests[i]);
    }
}

TEST_CASE("all reference schedules verify, and replay to what they claim") {
    const auto shared = shared_folder();
    if (!shared) {
        left_out("the reference schedules, whose folder is not there");
        return;
    }
    int seen = 0;
    for (const auto& entry : std::filesystem::directory_iterator(*shared / "data/schedules")) {
        const std::string name = entry.path().filename().string();
        const std::string ending = ".solution.json.gz";
        if (!name.ends_with(ending)) continue;
        CAPTURE(name);
        const auto problem_path =
            entry.path().parent_path() / (name.substr(0, name.size() - ending.size()) + ".json.gz");
        const auto verdict = verify(read_file(problem_path), read_file(entry.path()));
        CHECK(line(verdict).substr(0, 3) == "ok ");

        const auto file = schedule::read_problem(problem_path);
        const auto replay = schedule::replay(file.problem, schedule::read_schedule(entry.path(), file));
        CHECK(replay.makespan.count() <= verdict.makespan_ns);
        CHECK(counts(replay.peak) == verdict.peak_bytes);
        ++seen;
    }
    CHECK(seen >= 20);
}
