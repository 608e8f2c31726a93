#include "service/open_session.hpp"

#include "pipeweaver/base/deadline.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/planner/record.hpp"
#include "pipeweaver/workloads/catalogue.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

namespace pipeweaver::service {

using nlohmann::json;

namespace {

// Keys of a plan's options that say where files are, how many threads there are, or what a service does not make.
constexpr std::array<std::string_view, 9> not_of_a_session{"out",     "batch",   "deferred", "costs", "anchor",
                                                           "actions", "threads", "target",   "robust"};
constexpr std::array<std::string_view, 7> may_be_documents{"model",  "teacher",   "cluster", "network",
                                                           "recipe", "partition", "loader"};

// A cluster's file may be followed by a number of GPUs.
bool names_a_file(const std::string& value) {
    if (is_a_document(value)) return false;
    return names_a_document(value) || value.find('/') != std::string::npos || value.starts_with("hf:") ||
           names_a_document(std::string_view(value).substr(0, value.rfind(':'))) ||
           value.find(".jsonl") != std::string::npos;
}

// Whatever else it is would be read as names of files.
bool is_seeds_or_batch(const Json& sample) {
    const std::string text = sample.is_string() ? sample.text() : sample.raw().dump();
    return text == "batch" || text.find_first_not_of("0123456789-,") == std::string::npos;
}

void require_no_file(const Json& configuration) {
    for (const auto& [key, value] : configuration.members()) {
        if (std::find(not_of_a_session.begin(), not_of_a_session.end(), key) != not_of_a_session.end())
            value.fail("is not for sessions of a service");
        if ((value.is_string() && names_a_file(value.text())) || (key == "sample" && !is_seeds_or_batch(value)))
            value.fail("names a file; a service reads none: allowed are names, and the file's content as an object");
    }
}

// Objects as texts, as the options take documents.
json with_documents_as_texts(json configuration) {
    for (const std::string_view key : may_be_documents)
        if (const auto found = configuration.find(key); found != configuration.end() && found->is_object())
            *found = found->dump();
    return configuration;
}

std::string lines_of(const Json& samples, const OpenLimits& limits) {
    if (samples.elements().size() > limits.most_samples)
        fail(ErrorKind::limit, "sample: has {}, allowed are {}", samples.elements().size(), limits.most_samples);
    std::string lines;
    for (const Json& one : samples.elements()) lines += one.raw().dump() + "\n";
    return lines;
}

std::vector<std::size_t> owned(const std::vector<std::size_t>& asked, const std::vector<std::size_t>& server) {
    if (server.empty() || asked.empty()) return asked.empty() ? server : asked;
    std::vector<std::size_t> both;
    std::set_intersection(asked.begin(), asked.end(), server.begin(), server.end(), std::back_inserter(both));
    if (both.empty()) fail(ErrorKind::input, "replicas: this server plans none of them");
    return both;
}

// Before anything is made of it: what is too large takes time and memory to be found so.
void require_in_limits(const planner::WorkloadOptions& workload, const OpenLimits& limits) {
    if (workload.cluster.empty()) return;
    const std::int64_t gpus = workloads::find_cluster(workload.cluster).gpus;
    if (gpus > limits.most_gpus)
        fail(ErrorKind::limit, "config: cluster: has {} GPUs, allowed are {}", gpus, limits.most_gpus);
    const std::int64_t drawn =
        std::max(workload.microbatches.value_or(0), workload.global_batch ? workload.global_batch->number : 0);
    if (drawn > static_cast<std::int64_t>(limits.most_samples))
        fail(ErrorKind::limit, "config: {}: {}", workload.global_batch ? "global-batch" : "microbatches",
             must_be(drawn, fmt::format("at most {}", limits.most_samples)));
}

planner::Wanted wanted_of(const planner::SessionOptions& options, const planner::Job& job, const OpenLimits& limits) {
    planner::Wanted wanted = options.asked.plan.wanted(job);
    wanted.targets = wanted.robustness = wanted.opponents = false;
    wanted.replicas = owned(wanted.replicas, limits.replicas);
    const auto replicas = static_cast<std::size_t>(job.setup->layout.dp);
    std::erase_if(wanted.replicas, [&](std::size_t r) { return r >= replicas; });
    if (wanted.replicas.empty() && !limits.replicas.empty())
        fail(ErrorKind::input, "replicas: this server plans none of the {} that the layout has", replicas);
    return wanted;
}

}  // namespace

std::string open_session(std::string_view asked, const OpenLimits& limits, const Executor& execute,
                         const search::KeepGoing& keep_going) {
    const JsonDocument document("session", asked);
    const Json root = document.root();
    root.only_keys({"config", "sample"});
    require_no_file(root.at("config"));
    const auto sample = root.find("sample");
    const auto lines = sample ? std::optional(lines_of(*sample, limits)) : std::nullopt;
    json configuration = with_documents_as_texts(root.at("config").raw());
    const JsonDocument as_texts("config", configuration.dump());
    const planner::SessionOptions options(as_texts.root(), lines);
    require_in_limits(options.asked.plan.workload, limits);
    const auto budget = options.asked.limits.budget;
    if (budget.value_or(limits.most_budget) > limits.most_budget)
        fail(ErrorKind::input, "config: budget: is {} s, must be at most {} s",
             static_cast<double>(budget->count()) / 1e9, static_cast<double>(limits.most_budget.count()) / 1e9);
    const auto request = options.request(execute);
    const auto wanted = wanted_of(options, request.job, limits);
    const auto time = planner::Time::until(time_left(budget.value_or(limits.most_budget)), keep_going);
    const auto plan = options.asked.plan.make_plan(request, execute, time, wanted);
    return planner::keep(configuration.dump(), lines, request.job, plan);
}

}  // namespace pipeweaver::service
