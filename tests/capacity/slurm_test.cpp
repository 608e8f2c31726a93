// The scripts of a study for Slurm: what they say, read as text. tests/python runs them.
#include "pipeweaver/capacity/slurm.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace pipeweaver;
using namespace pipeweaver::capacity;

namespace {

SlurmJob job(std::size_t shards) {
    return {.program = "/opt/pipeweaver",
            .folder = "/data/job",
            .study = "/data/rent.yaml",
            .results = "/data/rent",
            .shards = shards};
}

std::string script(const SlurmJob& of, std::size_t number) { return slurm_scripts(of).at(number).text; }

}  // namespace

TEST_CASE("a study becomes an array, a merge and what submits them") {
    const auto scripts = slurm_scripts(job(4));
    REQUIRE(scripts.size() == 3);
    CHECK(scripts[0].name == "array.sbatch");
    CHECK(scripts[1].name == "merge.sbatch");
    CHECK(scripts[2].name == "submit.sh");
    for (const auto& one : scripts) CHECK(one.text.starts_with("#!/bin/bash\n"));
    CHECK(contains(scripts[0].text, "#SBATCH --array=0-3\n"));
    CHECK(contains(scripts[0].text, "#SBATCH --requeue\n"));
    CHECK(contains(
        scripts[0].text,
        "program=${PIPEWEAVER:-/opt/pipeweaver}\nstudy=/data/rent.yaml\nresults=/data/rent\ncd -- /data/job "));
    CHECK(contains(scripts[0].text, "shard < 4; shard += 4"));
    CHECK(contains(scripts[0].text, "--shard \"$shard/4\" --threads 1 "));
    CHECK(contains(scripts[1].text, "\"$program\" capacity merge \"$results\" --out \"$results\""));
    CHECK(contains(scripts[2].text, "--dependency=\"afterok:$array\""));
}

TEST_CASE("an array has no more tasks than a controller takes") {
    CHECK(contains(script(job(1000), 0), "#SBATCH --array=0-999\n"));
    CHECK(contains(script(job(1000), 0), "shard < 1000; shard += 1000"));
    const auto many = script(job(2500), 0);
    CHECK(contains(many, "#SBATCH --array=0-999\n"));
    CHECK(contains(many, "shard < 2500; shard += 1000"));
    CHECK(contains(many, "\"$shard/2500\""));
    CHECK(contains(script(job(1), 0), "#SBATCH --array=0-0\n"));
}

TEST_CASE("a task gets the cores that it uses") {
    auto wide = job(2);
    wide.threads = 16;
    CHECK(contains(script(wide, 0), "#SBATCH --cpus-per-task=16\n"));
    CHECK(contains(script(wide, 0), "--threads 16"));
    CHECK(contains(script(wide, 1), "#SBATCH --cpus-per-task=16\n"));
}

TEST_CASE("paths stand as a shell reads them") {
    auto odd = job(2);
    odd.study = "/data/what $to rent's.yaml";
    CHECK(contains(script(odd, 0), "study='/data/what $to rent'\\''s.yaml'\n"));
    odd.results = "/data/100 %";
    CHECK(contains(script(odd, 0), "results='/data/100 %'\n"));
    CHECK(contains(script(odd, 1), "results='/data/100 %'\n"));
    CHECK(contains(script(odd, 2), "results='/data/100 %'\n"));
}

TEST_CASE("what no script can be made of is refused") {
    auto bad = job(0);
    CHECK_THROWS_WITH_AS(slurm_scripts(bad), "--shards: is 0, must be 1 or more", Error);
    bad = job(1);
    bad.threads = 0;
    CHECK_THROWS_WITH_AS(slurm_scripts(bad), "--threads: is 0, must be 1 or more", Error);
    bad = job(1);
    bad.study = "rent.yaml";
    CHECK_THROWS_WITH_AS(slurm_scripts(bad), "--emit-slurm: the path of the study is 'rent.yaml', must be absolute",
                         Error);
    bad = job(1);
    bad.results = "/data\nscancel --user=root";
    CHECK_THROWS_WITH_AS(slurm_scripts(bad),
                         "--emit-slurm: the path of the results has a line break or another control character", Error);
}
