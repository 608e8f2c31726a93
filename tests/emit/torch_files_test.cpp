// The files beside schedule.csv: messages, receive buffers, names of modules.
#include "emit/targets/module_names.hpp"
#include "emit/targets/torch_csv.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/json.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::schedule;

namespace {

// A chain with whole backwards; ids: (stage * microbatches + microbatch) * 2, behind it the backward.
struct ChainOf {
    std::vector<std::uint32_t> rank_of;  // by stage
    std::uint32_t microbatches = 1;

    TaskId task(std::uint32_t stage, std::uint32_t m, bool forward) const {
        return TaskId{(stage * microbatches + m) * 2 + (forward ? 0 : 1)};
    }

    Problem problem() const {
        Problem all;
        all.name = "chain";
        const auto stages = static_cast<std::uint32_t>(rank_of.size());
        for (std::uint32_t s = 0; s < stages; ++s) {
            if (rank_of[s] >= all.ranks.size()) all.ranks.resize(rank_of[s] + 1);
            all.stages.push_back({s, RankId{rank_of[s]}, {}});
            for (std::uint32_t m = 0; m < microbatches; ++m)
                for (const bool forward : {true, false}) {
                    Task one;
                    one.rank = RankId{rank_of[s]};
                    one.kind = forward ? TaskKind::forward : TaskKind::backward;
                    one.duration = Duration{10};
                    one.label = fmt::format("{}{}{}", s, letter(one.kind), m);
                    one.stage = s;
                    one.microbatch = m;
                    all.tasks.push_back(one);
                }
        }
        for (std::uint32_t s = 0; s < stages; ++s)
            for (std::uint32_t m = 0; m < microbatches; ++m) {
                all.edges.push_back({task(s, m, true), task(s, m, false)});
                if (s + 1 == stages) continue;
                all.edges.push_back({task(s, m, true), task(s + 1, m, true)});
                all.edges.push_back({task(s + 1, m, false), task(s, m, false)});
            }
        return all;
    }

    // Rows of "0F0 0B0".
    Schedule schedule(const std::vector<std::string>& rows) const {
        Schedule made;
        for (const std::string& row : rows) {
            auto& order = made.order.emplace_back();
            for (std::size_t at = 0; at < row.size(); at += 4)
                order.push_back(task(static_cast<std::uint32_t>(row[at] - '0'),
                                     static_cast<std::uint32_t>(row[at + 2] - '0'), row[at + 1] == 'F'));
        }
        return made;
    }
};

Stage stage_of(std::int64_t number, std::vector<StagePart> parts) { return {number, RankId{}, std::move(parts)}; }

}  // namespace

TEST_CASE("every message and reduction of a schedule is in its second file") {
    const ChainOf chain{{0, 1}, 2};
    const auto files = emit::torch_csv(chain.problem(), chain.schedule({"0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"}));
    CHECK(files.comms ==
          "0UNSHARD,0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1,0REDUCE_GRAD,0RESHARD\n"
          "1RECV_F0,1RECV_F1,1UNSHARD,1F0,1B0,1SEND_B0,1F1,1B1,1SEND_B1,1REDUCE_GRAD,1RESHARD\n");
}

TEST_CASE("stages of one rank send each other nothing, and of four the three that come next are whole") {
    const ChainOf chain{{0, 0, 0, 0}, 1};
    const auto files = emit::torch_csv(chain.problem(), chain.schedule({"0F0 1F0 2F0 3F0 3B0 2B0 1B0 0B0"}));
    CHECK(files.comms ==
          "0UNSHARD,1UNSHARD,2UNSHARD,0F0,0RESHARD,3UNSHARD,1F0,2F0,3F0,3B0,3REDUCE_GRAD,3RESHARD,0UNSHARD,2B0,"
          "2REDUCE_GRAD,2RESHARD,1B0,1REDUCE_GRAD,1RESHARD,0B0,0REDUCE_GRAD,0RESHARD\n");
}

TEST_CASE("receive buffers are counted from the earliest arrival to the end of the backward") {
    const ChainOf chain{{0, 1}, 4};
    const auto most = [&](const std::vector<std::string>& rows) {
        const auto schedule = chain.schedule(rows);
        const auto buffers = emit::buffers_in_use(chain.problem(), schedule, replay(chain.problem(), schedule));
        REQUIRE(buffers.size() == 2);
        CHECK(buffers[0].forward == 0);
        CHECK(buffers[1].backward == 0);
        return std::pair(buffers[1].forward, buffers[0].backward);
    };
    // 1F1B: rank 0 is two forwards ahead at most, and a gradient may come while it runs the forward before.
    CHECK(most({"0F0 0F1 0B0 0F2 0B1 0F3 0B2 0B3", "1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3"}) == std::pair{2L, 2L});
    CHECK(most({"0F0 0F1 0F2 0F3 0B0 0B1 0B2 0B3", "1F0 1F1 1F2 1F3 1B0 1B1 1B2 1B3"}) == std::pair{4L, 4L});
    CHECK(most({"0F0 0B0 0F1 0B1 0F2 0B2 0F3 0B3", "1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3"}) == std::pair{1L, 1L});
}

TEST_CASE("stages have the names of torchtitan's and NeMo Automodel's modules, or the rule that they break") {
    const auto text =
        emit::named_stages(emit::torchtitan_names(), {stage_of(0, {{"llm", 0, 2}}), stage_of(1, {{"llm", 2, 1}})});
    CHECK(text.stages == std::vector<std::vector<std::string>>{{"tok_embeddings", "layers.0", "layers.1"},
                                                               {"layers.2", "norm", "lm_head"}});
    const auto vision =
        emit::named_stages(emit::automodel_names(), {stage_of(0, {{"vit", 0, 9}}), stage_of(1, {{"llm", 0, 1}})});
    CHECK(vision.stages == std::vector<std::vector<std::string>>{
                               {"model.visual", "model.language_model.embed_tokens", "model.language_model.rotary_emb"},
                               {"model.language_model.layers.0", "model.language_model.norm", "lm_head",
                                "model.language_model.rotary_emb"}});
    const auto why = [](const std::vector<Stage>& stages) {
        return emit::named_stages(emit::torchtitan_names(), stages).why_not;
    };
    CHECK(why({}) == "the problem lists no stages");
    CHECK(why({stage_of(0, {{"llm", {}, {}}})}) == "stage 0 does not say which layers of 'llm' it has");
    CHECK(why({stage_of(0, {{"vit", 0, 2}}), stage_of(1, {{"vit", 2, 2}, {"llm", 0, 4}})}) ==
          "stage 1 has layers 2 to 3 of 'vit': torchtitan keeps an encoder whole, on the first stage");
    CHECK(why({stage_of(0, {{"vit", 0, 2}, {"aud", 0, 2}, {"llm", 0, 1}})}) ==
          "torchtitan has one encoder, the model has 'aud' and 'vit'");
    CHECK(why({stage_of(0, {{"llm", 0, 2}}), stage_of(1, {{"llm", 2, 0}}), stage_of(2, {{"llm", 2, 2}})}) ==
          "stage 1 has no layers: torchtitan builds no empty stage");
    CHECK(why({stage_of(0, {{"llm", 4, 2}}), stage_of(1, {{"llm", 0, 4}})}) ==
          "stage 0 begins with layer 4 of 'llm', expected is layer 0");
}

TEST_CASE("a placement has the name of a schedule whose stages lie so, or none") {
    CHECK(emit::placement_name({0, 1, 2}, 3) == "PipelineScheduleMulti");
    CHECK(emit::placement_name({0, 1, 0, 1}, 2) == "PipelineScheduleMulti");
    CHECK(emit::placement_name({0, 1, 1, 0}, 2) == "ZBVZeroBubble");
    CHECK(emit::placement_name({0, 1, 0}, 2).empty());
    CHECK(emit::placement_name({0, 0, 1, 1}, 2).empty());
}

TEST_CASE("schedule.json says what torchtitan is launched with, or why it cannot be") {
    const ChainOf chain{{0, 1, 1, 0}, 1};
    Problem problem = chain.problem();
    const auto schedule = chain.schedule({"0F0 3F0 3B0 0B0", "1F0 2F0 2B0 1B0"});
    const auto told = [&] {
        const JsonDocument document("schedule.json", emit::torch_csv(problem, schedule).schedule);
        const Json titan = document.root().at("torchtitan");
        if (const auto why = titan.find("why_not")) return why->text();
        std::string args;
        for (const Json& one : titan.at("args").elements()) args += " " + one.text();
        return args;
    };
    CHECK(told() == "stage 0 does not say which modules it has");
    for (std::int64_t s = 0; s < 4; ++s) problem.stages[static_cast<std::size_t>(s)].parts = {{"llm", s, 1}};
    CHECK(told() ==
          " --parallelism.pipeline_parallel_degree 2 --parallelism.pipeline_parallel_schedule ZBVZeroBubble "
          "--parallelism.pipeline_parallel_schedule_csv schedule.csv --parallelism.pipeline_parallel_microbatch_size 1 "
          "--training.local_batch_size 1 --training.disable_cuda_graphs --parallelism.module_fqns_per_model_part "
          "tok_embeddings,layers.0 layers.1 "
          "layers.2 layers.3,norm,lm_head");
}
