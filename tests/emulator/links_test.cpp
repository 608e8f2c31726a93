// The cluster's links carry the traffic of a step: halved, each kind of it takes as much longer as its curve says.
#include "emulator/pricing/price.hpp"
#include "pipeweaver/emulator/in_situ.hpp"
#include "pipeweaver/emulator/step.hpp"
#include "pipeweaver/emulator/step_operators.hpp"
#include "pipeweaver/search/policies.hpp"
#include "tests/support/small_workload.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::emulator;

namespace {

enum class Link { none, node, network };

struct Case {
    std::string name;
    Layout layout;
    std::int64_t gpus_per_node;
    Stream stream;  // host: transfers between ranks
    Link carries;   // or both, where `both` says so
    bool both = false;
};

const std::vector<Case>& cases() {
    static const std::vector<Case> all{
        {"tensor parallel, in a node", {.tp = 8}, 8, Stream::tensor, Link::node},
        // The nodes' own links take longer, and hide what crosses the network.
        {"tensor parallel, across nodes", {.tp = 8}, 4, Stream::tensor, Link::node},
        {"context parallel, in a node", {.cp = 8}, 8, Stream::context, Link::node},
        {"context parallel, across nodes", {.cp = 8}, 4, Stream::context, Link::network, true},
        {"a ring in a node", {.cp = 4, .context = ContextParallel::ring}, 8, Stream::context, Link::node},
        {"a ring across nodes", {.cp = 4, .context = ContextParallel::ring}, 1, Stream::context, Link::network},
        {"replicas in a node", {.dp = 8}, 8, Stream::data, Link::node},
        {"replicas across nodes", {.dp = 8}, 4, Stream::data, Link::network, true},
        {"pipeline in a node", {.pp = 2}, 8, Stream::host, Link::node},
        {"pipeline across nodes", {.pp = 2}, 1, Stream::host, Link::network},
    };
    return all;
}

// Of one kind of traffic in a step.
struct Traffic {
    Duration spent{};     // in tasks, tails and lags
    Duration asked{};     // what the database says of all its operators, as in a step
    Duration makespan{};  // with 1F1B
};

Traffic traffic_of(const Case& one, Link halved) {
    testing::SmallWorkload setup(one.layout);
    // A GPU's part of the network stays.
    setup.cluster.network.bytes_per_second = setup.cluster.network.bytes_per_second * one.gpus_per_node / 8;
    setup.cluster.gpus_per_node = one.gpus_per_node;
    if (halved == Link::node) setup.cluster.node_link.bytes_per_second /= 2;
    if (halved == Link::network) setup.cluster.network.bytes_per_second /= 2;
    setup.recipe.execution.tensor_overlap = TensorOverlap::none;
    const auto input = setup.input(setup.cut("megatron"));
    const auto step = require_step(build_step(input));
    Traffic all;
    if (one.stream == Stream::host)
        for (const Edge& edge : step.problem.edges) all.spent += edge.lag;
    else
        for (const std::uint32_t cost : step.cost)
            all.spent += step.costs[cost].exposed[static_cast<std::size_t>(one.stream)];
    if (one.stream == Stream::data)
        for (const auto& rank : step.problem.ranks) all.spent += rank.tail;
    const auto factors = in_situ_factors(*setup.costs, setup.cluster.device);
    visit_operators(input, step, [&](const Operator& op, std::int64_t times) {
        const bool transfer = op.name == "transfer";
        if (transfer != (one.stream == Stream::host) || (!transfer && op.stream != one.stream)) return;
        const double factor = transfer ? 1 : in_situ_factor(op, factors, setup.recipe);
        const auto alone = static_cast<double>(ask(*setup.costs, op).duration.count());
        all.asked += times * Duration{std::llround(alone * factor)};
    });
    const auto applied = search::apply_policy("1f1b", Replayer(step.problem));
    REQUIRE_MESSAGE(applied.schedule, applied.why_not);
    all.makespan = applied.replay.makespan;
    return all;
}

}  // namespace

TEST_CASE("half the bandwidth lengthens the traffic that goes over a link as its curve says, and no other") {
    for (const Case& one : cases()) {
        CAPTURE(one.name);
        const Traffic whole = traffic_of(one, Link::none);
        REQUIRE(whole.spent > Duration{0});
        // A ring hides beside attention.
        const bool exposed = one.layout.context != ContextParallel::ring;
        if (exposed) CHECK(whole.spent == whole.asked);
        for (const Link link : {Link::node, Link::network}) {
            const Traffic half = traffic_of(one, link);
            const bool carried = link == one.carries || one.both;
            CAPTURE(carried);
            if (exposed) CHECK(half.spent == half.asked);
            CHECK((half.asked > whole.asked) == carried);
            CHECK((half.makespan > whole.makespan) == carried);
            // Start-up times stay.
            CHECK(half.asked < 2 * whole.asked);
        }
    }
}
