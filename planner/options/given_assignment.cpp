#include "planner/options/given_assignment.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/json.hpp"

#include <fmt/format.h>

#include <map>

namespace pipeweaver::planner {

namespace {

// Places of the batch's samples by id, each taken once.
class Samples {
public:
    explicit Samples(const Batch& batch) : taken_(batch.samples.size(), false) {
        for (std::size_t i = 0; i < batch.samples.size(); ++i) places_.emplace(batch.samples[i].id, i);
    }

    std::size_t take(const Json& id) {
        const auto found = places_.find(id.text());
        if (found == places_.end()) id.fail(fmt::format("sample '{}' is not in the batch", id.text()));
        if (taken_[found->second]) id.fail(fmt::format("sample '{}' is in the assignment twice", id.text()));
        taken_[found->second] = true;
        return found->second;
    }

    void require_all(const Json& root, const Batch& batch) const {
        for (std::size_t i = 0; i < taken_.size(); ++i)
            if (!taken_[i])
                root.fail(fmt::format("lacks sample '{}' of the batch, which has {}", batch.samples[i].id,
                                      batch.samples.size()));
    }

private:
    std::map<std::string, std::size_t, std::less<>> places_;
    std::vector<bool> taken_;
};

workloads::Microbatch read_microbatch(const Json& given, Samples& samples, const Job& job, const Batch& batch) {
    std::vector<std::size_t> members;
    for (const Json& sample : given.at("samples").elements()) members.push_back(samples.take(sample.at("id")));
    if (members.empty()) given.fail("has no samples, allowed are one or more");
    if (const auto why = workloads::why_no_microbatch(members, batch.samples, job.setup->model)) given.fail(*why);
    return workloads::microbatch_of(members, batch.samples, job.setup->model);
}

}  // namespace

void take_assignment(const std::filesystem::path& file, const Job& job, Batch& batch) {
    const auto document = JsonDocument::read_large(file);
    document.require_format("pipeweaver-assignment", 1);
    const auto replicas = document.root().at("replicas");
    const auto wanted = static_cast<std::size_t>(job.setup->layout.dp);
    if (replicas.size() != wanted)
        replicas.fail(fmt::format("are {}, allowed are as many as --dp, {}", replicas.size(), wanted));
    Samples samples(batch);
    batch.microbatches.clear();
    auto& shares = batch.shares.emplace(wanted);
    for (std::size_t r = 0; r < wanted; ++r) {
        const auto mine = replicas[r].at("microbatches");
        if (mine.size() == 0) mine.fail("are none, each replica needs one");
        for (const Json& one : mine.elements()) {
            shares[r].push_back(batch.microbatches.size());
            batch.microbatches.push_back(read_microbatch(one, samples, job, batch));
        }
    }
    samples.require_all(document.root(), batch);
}

}  // namespace pipeweaver::planner
