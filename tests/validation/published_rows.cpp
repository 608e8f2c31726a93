#include "tests/validation/published_rows.hpp"

#include <map>
#include <string>

namespace pipeweaver::validation::testing {

Prediction predicted(const PublishedRun& run) {
    static std::map<std::string, std::shared_ptr<const costdb::CostDatabase>> known;
    return predict(run, [](const std::string& device) {
        auto& costs = known[device];
        if (!costs) costs = std::make_shared<const costdb::CostDatabase>(costdb::CostDatabase::embedded(device));
        return costs;
    });
}

namespace {

PublishedRun network(std::string model, std::int64_t layers, std::int64_t hidden, std::int64_t ffn, std::int64_t heads,
                     std::int64_t kv_heads, std::int64_t vocab) {
    PublishedRun run;
    run.model = std::move(model);
    run.layers = layers;
    run.hidden = hidden;
    run.ffn = ffn;
    run.heads = heads;
    run.kv_heads = kv_heads;
    run.vocab = vocab;
    return run;
}

PublishedRun on(PublishedRun run, std::string gpu, std::int64_t tp, std::int64_t pp, std::int64_t dp) {
    run.gpu = std::move(gpu);
    run.gpus = tp * pp * dp;
    run.tp = tp;
    run.pp = pp;
    run.dp = dp;
    run.cp = 1;
    return run;
}

PublishedRun with(PublishedRun run, std::int64_t seq, std::int64_t micro_batch, std::int64_t global_batch,
                  std::string recompute, std::string dtype) {
    run.seq = seq;
    run.micro_batch = micro_batch;
    run.global_batch = global_batch;
    run.recompute = std::move(recompute);
    run.dtype = std::move(dtype);
    return run;
}

}  // namespace

PublishedRun gpt_39b() {
    return with(on(network("GPT-39.1B", 48, 8192, 32768, 64, 64, 50257), "A100-SXM", 8, 4, 16), 2048, 2, 1536, "full",
                "fp16");
}

PublishedRun llama_70b_cut() {
    return with(on(network("llama3-70b truncated to 12 layers", 12, 8192, 28672, 64, 8, 128256), "B200", 1, 2, 4), 4096,
                1, 16, "none", "bf16");
}

PublishedRun deepseek_v2_cut() {
    auto run = with(on(network("deepseekv2 truncated to 4 layers", 4, 5120, 12288, 128, 128, 102400), "B200", 1, 2, 4),
                    4096, 1, 32, "none", "bf16");
    run.ep = 4;
    return run;
}

PublishedRun llama_70b_fp8() {
    auto run =
        with(on(network("llama3-70b", 80, 8192, 28672, 64, 8, 128256), "H100", 4, 8, 2), 8192, 1, 256, "", "FP8");
    run.vpp = 5;
    return run;
}

}  // namespace pipeweaver::validation::testing
