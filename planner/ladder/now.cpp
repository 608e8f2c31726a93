// What a job's users say that they run.
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/options.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/partition/partitioners.hpp"
#include "pipeweaver/planner/ladder.hpp"
#include "pipeweaver/search/policies.hpp"

#include <fmt/ranges.h>

#include <algorithm>

namespace pipeweaver::planner {

namespace {

bool has(const std::vector<std::string>& all, const std::string& one) {
    return std::find(all.begin(), all.end(), one) != all.end();
}

std::vector<std::string> policy_names() {
    std::vector<std::string> names;
    for (const search::Policy& one : search::policies()) names.push_back(one.name);
    return names;
}

[[noreturn]] void fail_of_two(std::string_view what, const std::string& one, const std::string& other) {
    fail(ErrorKind::input, "--now: names two {}: {} and {}", what, one, other);
}

void take(std::string& place, const std::string& word, std::string_view what) {
    if (!place.empty()) fail_of_two(what, place, word);
    place = word;
}

void take_packing(NowWanted& now, const std::string& name) {
    if (now.packing) fail_of_two("packings", std::string(name_of(*now.packing)), name);
    std::vector<std::string> names;
    for (const workloads::Packing one : workloads::packings()) {
        if (name == workloads::name_of(one)) now.packing = one;
        names.emplace_back(workloads::name_of(one));
    }
    if (!now.packing)
        fail(ErrorKind::input, "--now: packing {}", must_be(name, fmt::format("one of {}", fmt::join(names, ", "))));
}

}  // namespace

NowWanted parse_now(const std::string& text, const std::string& layers) {
    constexpr std::string_view chunks = "chunks:", packing = "packing:";
    NowWanted now;
    if (!layers.empty()) now.layers = partition::parse_layers(layers);
    if (text.empty()) return now;
    for (const std::string& word : parts_of(text)) {
        if (has(partition::partitioner_names(), word))
            take(now.partition, word, "partitions");
        else if (has(policy_names(), word))
            take(now.policy, word, "policies");
        else if (const auto recompute = step_recompute_named(word); recompute && now.recompute)
            fail_of_two("recomputations", name_of(*now.recompute), word);
        else if (recompute)
            now.recompute = recompute;
        else if (word.starts_with(chunks) && !now.chunks)
            now.chunks = parse_integers("--now: chunks", word.substr(chunks.size()), 1, 1024, 1).front();
        else if (word.starts_with(packing))
            take_packing(now, word.substr(packing.size()));
        else
            fail(ErrorKind::input,
                 "--now: '{}' is unknown, allowed are a partition ({}), a policy ({}), a recomputation ({}), "
                 "chunks:N and packing:WAY, separated by commas",
                 word, fmt::join(partition::partitioner_names(), ", "), fmt::join(policy_names(), ", "),
                 fmt::join(step_recompute_names(), ", "));
    }
    if (!now.layers.empty() && (!now.partition.empty() || now.chunks))
        fail(ErrorKind::input, "--layers: says partition and chunks; --now names policy and recomputation beside it");
    return now;
}

}  // namespace pipeweaver::planner
