// Rows of published runs: what is read, refused and predicted.
#include "pipeweaver/validation/published_run.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/validation/run_errors.hpp"
#include "tests/validation/published_rows.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace pipeweaver;
using namespace pipeweaver::validation;
using namespace pipeweaver::validation::testing;

namespace {

const std::string header =
    "source,model,layers,hidden,ffn,heads,kv_heads,vocab,seq,gpu,gpus,tp,pp,vpp,dp,cp,ep,micro_batch,global_batch,"
    "recompute,dtype,tflops_per_gpu,step_time_s,mfu,memory_gib,note\n";
const std::string row =
    "vTrain,GPT-39.1B,48,8192,32768,64,64,50257,2048,A100-SXM,512,8,4,,16,1,,2,1536,full,fp16,,14.7134,,,\n";

std::vector<PublishedRun> read(const std::string& text) { return read_published_runs(CsvTable("runs.csv", text)); }

std::string without(std::string text, const std::string& column) {
    text.erase(text.find(column + ','), column.size() + 1);
    return text;
}

}  // namespace

TEST_CASE("a row of a published run is read by its columns' names, empty cells as unknown") {
    const auto runs = read(header + row);
    REQUIRE(runs.size() == 1);
    CHECK(runs[0].model == "GPT-39.1B");
    CHECK(runs[0].hidden == 8192);
    CHECK(runs[0].tp == 8);
    CHECK_FALSE(runs[0].vpp);
    CHECK(runs[0].step_time_s == 14.7134);
    CHECK_FALSE(runs[0].memory_gib);
}

TEST_CASE("a whole number may be written with a decimal point, as spreadsheets do") {
    auto text = row;
    text.replace(text.find(",48,"), 4, ",48.0,");
    CHECK(read(header + text)[0].layers == 48);
}

TEST_CASE("vTrain's single-node rows stand for GPTs on A100 with full recomputation") {
    const auto runs = read(
        "# GPUs,global batch,micro batch,hidden size,attention heads,# layers,sequence length,tensor parallelism,"
        "data parallelism,pipeline parallelism,iteration time (ms)\n2,16,8,1024,16,24,1024,1,1,2,372.160408\n");
    REQUIRE(runs.size() == 1);
    CHECK(runs[0].gpu == "A100-SXM");
    CHECK(runs[0].ffn == 4096);
    CHECK(runs[0].kv_heads == 16);
    CHECK(runs[0].vocab == 50257);
    CHECK(runs[0].recompute == "full");
    CHECK(runs[0].dtype == "fp16");
    CHECK(*runs[0].step_time_s == doctest::Approx(0.372160408));
}

TEST_CASE("a table without a column that is needed, or with impossible numbers, is refused by place") {
    CHECK_THROWS_WITH_AS(read(without(header, "hidden")), "runs.csv:1: column 'hidden' is missing", Error);
    CHECK_THROWS_WITH_AS(read("predicted_step_time_s," + header),
                         "runs.csv:1: column 'predicted_step_time_s' is one that predictions add, allowed is a table "
                         "without it",
                         Error);
    const auto with = [](const std::string& cell) {
        auto text = row;
        return header + text.replace(text.find(",8192,"), 6, "," + cell + ",");
    };
    for (const char* bad : {"-8192", "0", "1e30", "many"}) CHECK_FALSE(read(with(bad))[0].unreadable.empty());
    CHECK(read(with("8192.5"))[0].unreadable ==
          "runs.csv:2: hidden: is '8192.5', must be a whole number from 1 to 262144");
}

TEST_CASE("a cell that cannot be read refuses its own row") {
    auto bad = row;
    bad.replace(bad.find(",8192,"), 6, ",wide,");
    const auto runs = read(header + row + bad + row);
    REQUIRE(runs.size() == 3);
    const auto predictions = predict_all(runs);
    CHECK_FALSE(predictions[0].refused());
    CHECK(predictions[1].refused());
    CHECK(predictions[1].reason == "runs.csv:3: hidden: is 'wide', must be a number above 0 and up to 262144");
    CHECK(predictions[2].step_time_s == predictions[0].step_time_s);
}

TEST_CASE("rates stand for the step that they are measured of, counted as the row says") {
    const auto predicted = predict_all(read(header + row)).front();
    REQUIRE(predicted.step_time_s);
    const double step = 14.7134;
    CHECK(predicted.gpus == 512);
    CHECK(predicted.tokens == 1536 * 2048);
    CHECK(predicted.peak_flops == doctest::Approx(512 * 312e12));
    PublishedRun run = read(header + row).front();
    CHECK(*measured_step(run, predicted) == step);
    run.step_time_s.reset();
    CHECK_FALSE(measured_step(run, predicted));
    run.tokens_per_s = 1536 * 2048 / step;
    CHECK(*measured_step(run, predicted) == doctest::Approx(step));
    run.tokens_per_s.reset();
    run.tokens_per_s_per_gpu = 1536 * 2048 / step / 512;
    CHECK(*measured_step(run, predicted) == doctest::Approx(step));
    run.tokens_per_s_per_gpu.reset();
    for (std::size_t k = 0; k < flops_counted; ++k) {
        run.flops = static_cast<FlopsCounted>(k);
        CAPTURE(name_of(*run.flops));
        REQUIRE(predicted.flops.at(k));
        run.tflops_per_gpu = *predicted.flops.at(k) / step / 512 / 1e12;
        run.mfu.reset();
        CHECK(*measured_step(run, predicted) == doctest::Approx(step));
        run.tflops_per_gpu.reset();
        run.mfu = *predicted.flops.at(k) / step / predicted.peak_flops;
        CHECK(*measured_step(run, predicted) == doctest::Approx(step));
    }
    run.flops.reset();
    CHECK_FALSE(measured_step(run, predicted));  // nobody says what it counts
}

TEST_CASE("what FLOPs count is what Narayanan et al. (arXiv 2104.04473, eq. 3) and 6 N D count") {
    // All recomputed: 96 B s l h^2 (1 + s / 6 h + V / 16 l h), with the vocabulary padded as the run has it.
    const auto predicted = predict_all(read(header + row)).front();
    const double h = 8192, s = 2048, l = 48, batch = 1536, vocab = 51200;
    const double paper = 96 * batch * s * l * h * h * (1 + s / (6 * h) + vocab / (16 * l * h));
    CHECK(*predicted.flops[static_cast<std::size_t>(FlopsCounted::hardware)] == doctest::Approx(paper).epsilon(0.001));
    const double parameters = 12 * l * h * h + vocab * h;
    CHECK(*predicted.flops[static_cast<std::size_t>(FlopsCounted::parameters)] ==
          doctest::Approx(6 * parameters * batch * s).epsilon(0.001));
    const double square = 72 * batch * s * l * h * h * (1 + s / (6 * h)) + 6 * batch * s * h * vocab;
    CHECK(*predicted.flops[static_cast<std::size_t>(FlopsCounted::full_attention)] ==
          doctest::Approx(square).epsilon(0.001));
    CHECK(predicted.flops[0] == predicted.model_flops);
    auto unread = header;
    unread.insert(unread.size() - 1, ",flops");
    auto cells = row;
    cells.insert(cells.size() - 1, ",palm");
    CHECK(read(unread + cells)[0].unreadable ==
          "runs.csv:2: flops: is 'palm', must be one of model, full-attention, hardware, parameters");
}

TEST_CASE("measured values play no part in a prediction") {
    auto run = gpt_39b();
    const auto expected = predicted(run);
    run.step_time_s.reset();
    run.memory_gib = 1;
    run.note = "anything";
    CHECK(predicted(run).step_time_s == expected.step_time_s);
    CHECK(expected.step_time_s > 10);
}

TEST_CASE("columns win over the model's name, which adds what they lack") {
    const auto expected = predicted(llama_70b_cut());
    REQUIRE(expected.step_time_s);

    SUBCASE("a figure that the name knows may be missing") {
        auto run = llama_70b_cut();
        run.hidden.reset();
        run.kv_heads.reset();
        CHECK(predicted(run).step_time_s == expected.step_time_s);
    }
    SUBCASE("half the layers take less time, whatever the name says") {
        auto run = llama_70b_cut();
        run.layers = 6;
        CHECK(*predicted(run).step_time_s < 0.7 * *expected.step_time_s);
    }
    SUBCASE("without a name the shape of the feed-forward tells of a gate, and that is said") {
        auto run = llama_70b_cut();
        run.model.clear();
        CHECK(predicted(run).step_time_s == expected.step_time_s);
        CHECK(predicted(run).reason.find("a gated feed-forward") != std::string::npos);
    }
}

TEST_CASE("the unknown degree of parallelism follows from the others") {
    auto run = gpt_39b();
    const auto expected = predicted(run).step_time_s;
    SUBCASE("dp") { run.dp.reset(); }
    SUBCASE("cp") { run.cp.reset(); }
    SUBCASE("gpus") { run.gpus.reset(); }
    CHECK(predicted(run).step_time_s == expected);
}

TEST_CASE("a row that lacks a figure, contradicts itself or is of an unknown kind is refused with the reason") {
    auto run = gpt_39b();
    std::string reason;
    SUBCASE("micro-batch") {
        run.micro_batch.reset();
        reason = "unknown: micro_batch";
    }
    SUBCASE("two degrees") {
        run.dp.reset();
        run.cp.reset();
        reason = "unknown: dp, cp";
    }
    SUBCASE("recomputation") {
        run.recompute.clear();
        reason = "unknown: recompute";
    }
    SUBCASE("a width that nothing gives") {
        run.model = "mine";
        run.ffn.reset();
        reason = "unknown: ffn";
    }
    SUBCASE("device") {
        run.gpu = "GB301";
        reason = "nothing is known of the device 'GB301'";
    }
    SUBCASE("device without a fit") {
        run.gpu = "GB300";
        reason = "no published run was fitted on gb300";
    }
    SUBCASE("number format") {
        run.dtype = "NVFP4";
        reason = "dtype 'NVFP4': allowed are bf16, fp16 and fp8";
    }
    SUBCASE("GPUs") {
        run.gpus = 500;
        reason = "tp * pp * dp * cp of the row is 512, its gpus are 500";
    }
    SUBCASE("microbatches") {
        run.micro_batch = 5;
        reason = "global_batch 1536 is no whole number of microbatches: dp 16 * micro_batch 5";
    }
    SUBCASE("stages") {
        run.pp = 5;
        run.gpus = 640;
        reason = "48 layers cannot be cut into pp 5 * vpp 1 equal stages";
    }
    SUBCASE("experts that nothing is known of") {
        run.model = "my-moe";
        run.ep = 8;
        reason = "ep is 8, but nothing is known of the experts of 'my-moe'";
    }
    SUBCASE("adapters") {
        run.source = "LoRA Performance";
        reason = "adapters (LoRA): no such run was fitted";
    }
    const auto prediction = predicted(run);
    CHECK(prediction.refused());
    CHECK_FALSE(prediction.memory_gib);
    CHECK(prediction.reason == reason);
}

TEST_CASE("full recomputation, a smaller network and fewer GPUs change a step as they must") {
    const auto base = *predicted(gpt_39b()).step_time_s;
    auto run = gpt_39b();
    SUBCASE("no recomputation saves a fifth to a quarter") {
        run.recompute = "none";
        CHECK(*predicted(run).step_time_s < 0.82 * base);
        CHECK(*predicted(run).step_time_s > 0.70 * base);
    }
    SUBCASE("selective recomputation is between none and full") {
        run.recompute = "selective";
        const auto selective = *predicted(run).step_time_s;
        run.recompute = "none";
        CHECK(selective > *predicted(run).step_time_s);
        CHECK(selective < base);
    }
    SUBCASE("twice the batch takes a little less than twice as long: the bubble stays") {
        run.global_batch = 3072;
        CHECK(*predicted(run).step_time_s < 2 * base);
        CHECK(*predicted(run).step_time_s > 1.8 * base);
    }
    SUBCASE("virtual stages shorten the bubble") {
        run.global_batch = 64;
        const auto plain = *predicted(run).step_time_s;
        run.vpp = 4;
        CHECK(*predicted(run).step_time_s < plain);
    }
}
