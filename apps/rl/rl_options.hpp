// What `pipeweaver rl` is asked: a step's answers, and what generating and training them take.
#pragma once

#include "apps/command_line.hpp"
#include "pipeweaver/base/units.hpp"
#include "pipeweaver/rl/costs.hpp"
#include "pipeweaver/rl/step.hpp"
#include "pipeweaver/workloads/batch.hpp"
#include "pipeweaver/workloads/cluster.hpp"
#include "pipeweaver/workloads/model.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::apps {

/// A part of a step as it was measured: "120s:64", on so many GPUs.
struct MeasuredPart {
    Duration time{};
    std::int64_t gpus = 0;
};

/// A question, and what its answer rests on.
struct RlQuestion {
    workloads::Cluster cluster;
    rl::Job job;
    std::optional<workloads::Cluster> others{};  ///< GPUs of another kind, which generate alone
    std::optional<rl::Job> with_others{};        ///< the job with these
    std::vector<std::string> notes;              ///< a line each: what was assumed, and what nobody said
};

class RlOptions {
public:
    void add_to(Options& options);

    /// Pre: the options are set. Throws Error{input} for what is missing or cannot be, Error{limit} where an instance
    /// does not hold the model.
    [[nodiscard]] RlQuestion question() const;

    /// Layouts on GPUs of their own may be ahead of training; on policy these are 0 steps.
    std::int64_t steps_off = 0;
    std::string objective = "time";

private:
    void add_answers(Options& options);
    void add_gpus(Options& options);
    void add_speeds(Options& options);
    [[nodiscard]] workloads::Sample one_prompt(const workloads::Model& of) const;
    [[nodiscard]] std::int64_t prompt_tokens() const;
    void price_generation(const workloads::Cluster& on, rl::Job& job, std::vector<std::string>& notes) const;
    void price_work(RlQuestion& question) const;
    [[nodiscard]] std::optional<Bytes> handed_over() const;
    [[nodiscard]] Duration weights_time(const workloads::Cluster& to, std::int64_t instance_gpus,
                                        Bandwidth usual_speed) const;
    void add_others(RlQuestion& question) const;

    std::string cluster, generation_cluster, model, lengths, items, precision = "bf16";
    std::int64_t answers = 512, group = 1, prompt = 512, seed = 1;
    std::optional<std::int64_t> instance, trainer, slots, generating;
    std::optional<MeasuredPart> generation, inference, training;
    double decode_share = rl::usual_decode_share, mfu = rl::usual_mfu, inference_passes = 2, price = 0,
           generation_price = 0;
    std::optional<Duration> switching, move, host, overhead;
    std::optional<Bandwidth> weights_speed;
    std::optional<Bytes> weights;
};

}  // namespace pipeweaver::apps
