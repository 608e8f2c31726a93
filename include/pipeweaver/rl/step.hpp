// A step of reinforcement learning: answers are generated, judged by inference (rewards, references), trained on, and
// the new weights go back to who generates. How long it takes in each layout, and how GPUs are best split.
//
// Colocated    all GPUs do each part in turn, and switch between generating and training.
// Moved tail   the same; the last answers go together, and inference of finished ones begins on the GPUs that are free
//              (RLHFuse, arXiv 2409.13221, section 4).
// Split        some GPUs generate, others do inference and train, on all answers of a step at once.
// Streamed     the same, each answer as soon as its group has been generated (StreamRL, arXiv 2504.15930).
// In flight    the same, and generation never waits for a step's last answer: those of steps ahead begin in the slots
//              that are free, and new weights come while answers are decoded (rl/in_flight.hpp). It is played step by
//              step; its time is the mean of the last ones.
// Steps off    generation may be so many steps ahead of training: its weights are that much older. Step n + 1 + k takes
//              those of step n.
// Training     and inference share their work out evenly to their GPUs, answer by answer.
// Steady       every step has the same answers. Generation takes G and weights s, inference and training W; from the
//              beginning of generation to the last training, were nothing before it, A = G + W, in streams less. All
//              sums are of maxima, so a step takes the largest mean of a cycle: G + s, W, or (A + s) / (k + 1). What
//              a step takes beside its answers belongs to W and A.
// Units        Duration is integer nanoseconds; of one GPU where it says GPU time.
// Determinism  functions of their arguments.
#pragma once

#include "pipeweaver/base/units.hpp"
#include "pipeweaver/rl/generation.hpp"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace pipeweaver::rl {

enum class Layout : std::uint8_t { colocated, moved_tail, split, streamed, in_flight };
[[nodiscard]] std::string_view name_of(Layout layout);

/// Whether GPUs generate that do nothing else.
[[nodiscard]] constexpr bool is_apart(Layout layout) { return layout >= Layout::split; }

/// What the best split has least of.
enum class Objective : std::uint8_t {
    time,  ///< of a step, of all GPUs
    usd    ///< of a step, by the prices of its GPUs: some may be left out
};

struct Job {
    std::int64_t gpus = 0;
    std::int64_t instance = 1;  ///< GPUs of one that generates
    std::int64_t trainer = 1;   ///< training and inference have a multiple of so many
    /// Further GPUs, which can generate and no more; all others then train. None: those that generate are of `gpus`.
    std::optional<std::int64_t> generators{};
    /// Of GPUs that generate alone so many, in every layout that has them; none: as many as are best.
    std::optional<std::int64_t> generating{};
    std::int64_t generator_price = 1, trainer_price = 1;  ///< of a GPU, 1 or more, in any unit
    Decoding decoding;
    std::vector<std::int64_t> answers;          ///< tokens, in the order in which they are generated
    std::vector<std::size_t> groups;            ///< of each answer: it is judged when all of its group are there
    std::vector<Duration> inference, training;  ///< of each answer, GPU time
    Duration switching{};                       ///< from generating to training and back, of a step
    Duration weights{};                         ///< new ones to all that generate: the GPUs that train
    Duration weights_apart{};                   ///< to others
    Duration overhead{};                        ///< of training, each step, beside its answers
    Duration move{};                            ///< of the last answers to other instances
    std::int64_t steps_off = 0;
};

/// GPU time of a step in which nothing runs, over all its GPUs: of one GPU in the mean.
struct Bubbles {
    Duration tail{};      ///< other answers are still generated
    Duration samples{};   ///< training has none
    Duration training{};  ///< generation waits for its weights to be trained
    Duration weights{};   ///< those that generate get them
    Duration switching{};

    friend bool operator==(const Bubbles&, const Bubbles&) = default;
};

struct Step {
    Layout layout = Layout::colocated;
    std::int64_t generating = 0, training = 0;  ///< GPUs; colocated: all do both
    Duration time{};                            ///< of a step, in the mean
    Duration generation{};                      ///< in flight: that an instance decodes, in the mean
    Duration work{};                            ///< of inference and training, without waiting
    std::optional<Tail> tail{};
    Bubbles bubbles{};

    std::int64_t gpus() const { return is_apart(layout) ? generating + training : training; }
};

/// All in turn. Pre: `gpus` hold an instance and are a multiple of job.trainer.
[[nodiscard]] Step colocated(const Job& job, std::int64_t gpus);

/// The same with the tail moved as is best of up to 32 sizes of tails, on 1, 2, 4, ... instances; nothing where none
/// makes the step shorter.
[[nodiscard]] std::optional<Step> with_moved_tail(const Job& job, std::int64_t gpus);

/// On GPUs of their own. Pre: `layout` is split or streamed; `generating` a multiple of job.instance, `training` of
/// job.trainer, neither 0; `generation` is what generate() says of so many.
[[nodiscard]] Step apart(const Job& job, Layout layout, const Generation& generation, std::int64_t generating,
                         std::int64_t training);

/// The same in flight. Pre: `generating` and `training` as for apart().
[[nodiscard]] Step in_flight(const Job& job, std::int64_t generating, std::int64_t training);

/// The layout's best step: of all splits that there are, or of the one that is asked for; in flight, where all would
/// take long, of some and those around the best of them. For `time` training has all GPUs that do not generate; for
/// `usd` some may be left out, too. A tail moves on the GPUs of the best colocated step. Of equal ones that which
/// generates on fewer GPUs, then trains on fewer. None: the GPUs are too few, or no tail is worth moving. Pre: layouts
/// on the same GPUs have no `generators`.
[[nodiscard]] std::optional<Step> best_step(const Job& job, Layout layout, Objective objective);

}  // namespace pipeweaver::rl
