#include "pipeweaver/capacity/jobs.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "tests/support/temporary.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <filesystem>

using namespace pipeweaver;
using namespace pipeweaver::capacity;
using namespace std::chrono_literals;

namespace {

SharedCluster parsed(const std::string& text, const std::filesystem::path& folder = {}) {
    return parse_jobs(JsonDocument("j.json", R"({"format":"pipeweaver-jobs/1",)" + text + "}"), folder);
}

constexpr const char* speed = R"("speed":[{"gpus":8,"tokens_per_s":1000},{"gpus":4,"tokens_per_s":600.5}])";

// A job of 1 G tokens with these keys beside its speeds.
std::string with_job(const std::string& keys) {
    return R"("gpus":16,"jobs":[{"name":"a","tokens":1000000000,)" + keys + speed + "}]";
}

void check_refused(const std::string& text, const std::string& message, ErrorKind kind = ErrorKind::input,
                   const std::filesystem::path& folder = {}) {
    CAPTURE(text);
    try {
        (void)parsed(text, folder);
        FAIL_CHECK("was taken");
    } catch (const Error& error) {
        CHECK(std::string(error.what()) == message);
        CHECK(error.kind() == kind);
    }
}

}  // namespace

TEST_CASE("a cluster and its jobs are read, in YAML as in JSON") {
    const auto document = JsonDocument::yaml("j.yaml", R"(format: pipeweaver-jobs/1
gpus: 16
night: {from: "20:00", until: 08:30, gpus: 4}
jobs:
  - name: a
    weight: 1.5
    tokens: 300B
    arrives: 2.5
    max_gpus: 8
    speed: [{gpus: 16, tokens_per_s: 1500000}, {gpus: 8, tokens_per_s: 1000000}, {gpus: 4, tokens_per_s: 600000.5}]
)");
    const SharedCluster cluster = parse_jobs(document, {});
    CHECK(cluster.gpus == 16);
    CHECK(cluster.loans == std::vector<LoanWindow>{{20h, 32h + 30min, 4}});
    CHECK(cluster.jobs == std::vector<TrainingJob>{
                              {"a", 1500, 300'000'000'000, 2h + 30min, 8, {{4, 600'000'500}, {8, 1'000'000'000}}}});

    const JsonDocument again("again.json", jobs_document(cluster).dump());
    CHECK(parse_jobs(again, {}) == cluster);
}

TEST_CASE("a job asks for the most GPUs of the cluster, or says how many") {
    CHECK(parsed(with_job("")).jobs[0].asked == 8);
    CHECK(parsed(with_job(R"("gpus":4,)")).jobs[0].asked == 4);
    const SharedCluster tight = parsed(R"("gpus":5,"jobs":[{"name":"a","tokens":1,)" + std::string(speed) + "}]");
    CHECK(tight.jobs[0].asked == 4);
    CHECK(tight.jobs[0].speeds.size() == 2);  // GPUs on loan may make the others
}

TEST_CASE("the speeds of a study are those of its best rows") {
    const testing::TemporaryFolder folder("jobs");
    write_files({{folder.path() / "s.csv",
                  "model,cluster,gpus,tp,tokens_per_s,status\nm,h100,8,1,900,ok\nm,h100,8,2,1000,ok\nm,h100,16,1,,does "
                  "not fit\nm,h200,8,1,3000,ok\nn,h100,8,1,5000,ok\nm,h100,4,1,700.25,ok\n"}});
    const auto text = [](const std::string& keys) {
        return R"("gpus":16,"jobs":[{"name":"a","tokens":1000000000,"study":"s.csv")" + keys + "}]";
    };
    const auto job = parsed(text(R"(,"model":"m","cluster":"h100")"), folder.path()).jobs[0];
    CHECK(job.speeds == std::vector<Speed>{{4, 700'250}, {8, 1'000'000}});

    const std::string file = (folder.path() / "s.csv").string();
    check_refused(text(R"(,"model":"m")"),
                  "j.json: jobs[0].study: " + file +
                      " has rows of several in its column cluster: h100, h200; the key 'cluster' says which",
                  ErrorKind::input, folder.path());
    check_refused(text(R"(,"model":"o","cluster":"h100")"),
                  "j.json: jobs[0].model: is 'o', of which " + file + " has no row: allowed are m, n", ErrorKind::input,
                  folder.path());
    check_refused(text(R"(,"model":"n","cluster":"h200")"),
                  "j.json: jobs[0].study: " + file + " has no row with a speed of this job", ErrorKind::input,
                  folder.path());
}

TEST_CASE("a study without the columns, or without a file, is refused by name") {
    const testing::TemporaryFolder folder("jobs");
    write_files({{folder.path() / "s.csv", "model,gpus,tokens_per_second\nm,8,1\n"}});
    const std::string job = R"("gpus":16,"jobs":[{"name":"a","tokens":1000000000,"study":")";
    check_refused(job + "s.csv\"}]",
                  (folder.path() / "s.csv").string() +
                      ":1: column 'tokens_per_s' is missing; is 'tokens_per_second' meant to be it?",
                  ErrorKind::input, folder.path());
    check_refused(job + "t.csv\"}]", (folder.path() / "t.csv").string() + ": cannot be read: No such file or directory",
                  ErrorKind::io, folder.path());
}

TEST_CASE("what is wrong with a job is said with its place") {
    check_refused(with_job(R"("wieght":1,)"), "j.json: jobs[0]: unknown key 'wieght'; did you mean 'weight'?");
    const std::string weight = ", must be a number above 0 and up to 1000 with at most three decimals";
    check_refused(with_job(R"("weight":0,)"), "j.json: jobs[0].weight: is 0" + weight);
    check_refused(with_job(R"("weight":0.0001,)"), "j.json: jobs[0].weight: is 0.0001" + weight);
    check_refused(with_job(R"("weight":-1,)"), "j.json: jobs[0].weight: is -1, must be a number from 0 to 1000");
    check_refused(with_job(R"("arrives":-1,)"), "j.json: jobs[0].arrives: is -1, must be a number from 0 to 87600");
    check_refused(with_job(R"("gpus":5,)"),
                  "j.json: jobs[0].gpus: is 5, must be one of the job's GPU counts on this cluster: 4, 8");
    check_refused(with_job(R"("min_gpus":6,"max_gpus":5,)"),
                  "j.json: jobs[0]: min_gpus is 6 and max_gpus is 5: at least as many are needed");
    check_refused(with_job(R"("min_gpus":5,"max_gpus":6,)"),
                  "j.json: jobs[0]: has no speed for 5 to 6 GPUs, but for 4, 8");
    check_refused(with_job(R"("study":"s.csv",)"),
                  "j.json: jobs[0]: has the keys 'speed' and 'study', allowed is one of them");
    check_refused(with_job(R"("model":"m",)"), "j.json: jobs[0].model: is for the key 'study', which is missing");
    check_refused(R"("gpus":16,"jobs":[{"name":"a","tokens":5}])",
                  "j.json: jobs[0]: has no speeds: the key 'speed' or 'study' is needed");
    check_refused(R"("gpus":16,"jobs":[{"name":"a","tokens":5,"speed":[]}])",
                  "j.json: jobs[0].speed: is empty: the job needs at least one speed");
    check_refused(R"("gpus":16,"jobs":[{"name":"a","tokens":"5X","speed":[]}])",
                  "j.json: jobs[0].tokens: is '5X', must be a number of tokens up to 10000T, like 300B");
    check_refused(R"("gpus":16,"jobs":[])", "j.json: jobs: has 0 jobs, allowed are 1 to 1000");
}

TEST_CASE("speeds that say nothing, or too little, are refused") {
    const auto job = [](const std::string& speeds) {
        return R"("gpus":16,"jobs":[{"name":"a","tokens":1000000000,"speed":)" + speeds + "}]";
    };
    check_refused(job(R"([{"gpus":8,"tokens_per_s":0}])"),
                  "j.json: jobs[0].speed[0].tokens_per_s: is 0, must be a number from 0.001 to 1000000000000");
    check_refused(job(R"([{"gpus":8,"tokens_per_s":5},{"gpus":8,"tokens_per_s":6}])"),
                  "j.json: jobs[0].speed[1].gpus: is 8, for which there is a speed already");
    check_refused(job(R"([{"gpus":8,"tokens_per_s":3}])"),
                  "j.json: jobs[0]: takes over 10 years on 8 GPUs, allowed is up to that", ErrorKind::limit);
}

TEST_CASE("a job that the cluster is too small for, and names that come twice") {
    check_refused(R"("gpus":3,"jobs":[{"name":"a","tokens":1000000000,)" + std::string(speed) + "}]",
                  "j.json: jobs[0]: its smallest GPU count is 4, the cluster has 3", ErrorKind::limit);
    const std::string one = R"({"name":"a","tokens":1000000000,)" + std::string(speed) + "}";
    check_refused(R"("gpus":16,"jobs":[)" + one + "," + one + "]",
                  "j.json: jobs[1].name: is 'a', which jobs[0] is named already");
}

TEST_CASE("loans are hours of the day, one at a time") {
    const auto with_night = [](const std::string& night) { return R"("night":)" + night + "," + with_job(""); };
    CHECK(parsed(with_night(R"([{"from":"20:00","until":"24:00","gpus":1},{"from":"00:00","until":"08:00","gpus":2}])"))
              .loans.size() == 2);
    check_refused(
        with_night(R"([{"from":"20:00","until":"08:00","gpus":1},{"from":"07:00","until":"09:00","gpus":2}])"),
        "j.json: night[1]: 07:00 to 09:00 overlaps night[0], 20:00 to 08:00: allowed is one loan at a time");
    check_refused(with_night(R"({"from":"8pm","until":"08:00","gpus":1})"),
                  "j.json: night.from: is '8pm', must be a time of day like 08:00 or 20:30");
    check_refused(with_night(R"({"from":"24:00","until":"08:00","gpus":1})"),
                  "j.json: night.from: is '24:00', must be a time of day like 08:00 or 20:30");
    check_refused(with_night(R"({"from":"08:00","until":"08:00","gpus":1})"),
                  "j.json: night: from and until are both 08:00: a whole day is 00:00 to 24:00");
    check_refused(with_night(R"({"from":"20:00","until":"08:00"})"), "j.json: night: the key 'gpus' is missing");
}
