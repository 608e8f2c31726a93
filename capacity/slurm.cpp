// The scripts of a study for Slurm.
#include "pipeweaver/capacity/slurm.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/option_values.hpp"
#include "pipeweaver/base/text.hpp"

#include <algorithm>
#include <string_view>

namespace pipeweaver::capacity {

namespace {

// In single quotes a shell takes all as it is, but a line break would end a comment.
void check_path(std::string_view what, std::string_view path) {
    const auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' '; };
    if (std::any_of(path.begin(), path.end(), is_control))
        fail(ErrorKind::input, "--emit-slurm: the path of {} has a line break or another control character", what);
    if (!path.starts_with('/'))
        fail(ErrorKind::input, "--emit-slurm: the path of {} {}", what, must_be(path, "absolute"));
}

void check(const SlurmJob& job) {
    check_path("the program", job.program);
    check_path("the working folder", job.folder);
    check_path("the study", job.study);
    check_path("the results", job.results);
    if (job.shards < 1) fail(ErrorKind::input, "--shards: {}", must_be(0, "1 or more"));
    if (job.threads < 1) fail(ErrorKind::input, "--threads: {}", must_be(job.threads, "1 or more"));
}

std::string array_script(const SlurmJob& job) {
    const std::size_t tasks = std::min(job.shards, most_array_tasks);
    return fmt::format(
        "#!/bin/bash\n"
        "# Judges the cells of a capacity study: {shards} shards in {tasks} tasks. submit.sh submits it.\n"
        "# A task that is requeued, or submitted again, leaves out the cells that are judged.\n"
        "#SBATCH --job-name=pipeweaver-shards\n"
        "#SBATCH --array=0-{last}\n"
        "#SBATCH --nodes=1\n"
        "#SBATCH --ntasks=1\n"
        "#SBATCH --cpus-per-task={threads}\n"
        "#SBATCH --requeue\n"
        "#SBATCH --open-mode=append\n"
        "set -euo pipefail\n"
        "program=${{PIPEWEAVER:-{program}}}\n"
        "study={study}\n"
        "results={results}\n"
        "cd -- {folder}  # from where paths in the study go\n"
        "for ((shard = SLURM_ARRAY_TASK_ID; shard < {shards}; shard += {tasks})); do\n"
        "  \"$program\" capacity \"$study\" --out \"$results\" --shard \"$shard/{shards}\" --threads {threads} "
        "--quiet\n"
        "done\n",
        fmt::arg("shards", job.shards), fmt::arg("tasks", tasks), fmt::arg("last", tasks - 1),
        fmt::arg("threads", job.threads), fmt::arg("folder", quoted_for_shell(job.folder)),
        fmt::arg("program", quoted_for_shell(job.program)), fmt::arg("study", quoted_for_shell(job.study)),
        fmt::arg("results", quoted_for_shell(job.results)));
}

std::string merge_script(const SlurmJob& job) {
    return fmt::format(
        "#!/bin/bash\n"
        "# Merges the cells that array.sbatch judged into tables and a report. submit.sh submits it.\n"
        "#SBATCH --job-name=pipeweaver-merge\n"
        "#SBATCH --nodes=1\n"
        "#SBATCH --ntasks=1\n"
        "#SBATCH --cpus-per-task={}\n"
        "#SBATCH --requeue\n"
        "#SBATCH --open-mode=append\n"
        "set -euo pipefail\n"
        "program=${{PIPEWEAVER:-{}}}\n"
        "results={}\n"
        "cd -- {}\n"
        "\"$program\" capacity merge \"$results\" --out \"$results\" --threads {}\n",
        job.threads, quoted_for_shell(job.program), quoted_for_shell(job.results), quoted_for_shell(job.folder),
        job.threads);
}

std::string submit_script(const SlurmJob& job) {
    return fmt::format(
        "#!/bin/bash\n"
        "# Submits the shards of a capacity study, and their merge, which begins when all have succeeded.\n"
        "# Options are sbatch's, for both jobs:\n"
        "#   bash submit.sh --partition=cpu --time=2:00:00\n"
        "# Where it should go on after a time limit or a lost node, submit it again: what is judged stays.\n"
        "set -euo pipefail\n"
        "here=$(cd -- \"$(dirname -- \"${{BASH_SOURCE[0]}}\")\" && pwd -P)\n"
        "results={}\n"
        "mkdir -p -- \"$results/logs\"\n"
        "logs=${{results//%/%%}}/logs  # sbatch takes a percent sign for a number of the job\n"
        "array=$(sbatch --parsable --output=\"$logs/shards-%A-%a.log\" \"$@\" \"$here/array.sbatch\")\n"
        "array=${{array%%;*}}  # behind it is the name of a cluster where there are several\n"
        "merge=$(sbatch --parsable --dependency=\"afterok:$array\" --kill-on-invalid-dep=yes \\\n"
        "  --output=\"$logs/merge-%j.log\" \"$@\" \"$here/merge.sbatch\")\n"
        "echo \"shards: job $array, merge: job ${{merge%%;*}}, results and logs: $results\"\n",
        quoted_for_shell(job.results));
}

}  // namespace

std::vector<SlurmScript> slurm_scripts(const SlurmJob& job) {
    check(job);
    return {
        {"array.sbatch", array_script(job)}, {"merge.sbatch", merge_script(job)}, {"submit.sh", submit_script(job)}};
}

}  // namespace pipeweaver::capacity
