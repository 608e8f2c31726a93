// What checks of all frameworks are made of.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/launch/verdict.hpp"
#include "pipeweaver/workloads/model.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::launch {

struct CheckAsked;
struct Checked;
struct FitAsked;
struct MegatronLaunch;
struct Run;
struct SaidLaunch;

/// Whether a launch says that its samples are text, or names the data that it trains on and all is known to be text.
[[nodiscard]] bool names_text_alone(const SaidLaunch& said);

/// Images of a sample of the data that a launch names, at most; it has nothing else beside text. None: a data set is
/// not known, or samples are made of it in another way.
[[nodiscard]] std::optional<std::int64_t> most_images(const SaidLaunch& said);

/// Of the data that a launch names, what no sample is longer than.
struct LongestNamed {
    std::int64_t tokens = 0;
    std::string_view data_set{}, source{};  ///< of the longest
    bool of_questions = false;
};

/// Of its samples, or of their questions alone, behind which a model generates answers. None: a data set or their
/// length is not known, or depends on what else is said or on the tokenizer.
[[nodiscard]] std::optional<LongestNamed> longest_named(const SaidLaunch& said, const workloads::Model& model,
                                                        bool of_questions = false);

/// "no sample of 'owner/name' has more than 643 tokens (SOURCE): all are counted as long"; or no question.
[[nodiscard]] std::string counted_as(const LongestNamed& longest);

/// With what is known before anything is read.
[[nodiscard]] Checked begun(const CheckAsked& asked);

/// What is passed over, and what of it says nothing of memory.
void put_not_read(const SaidLaunch& said, std::vector<std::string> names, Checked& checked);

/// What a person does about a model that nobody says, or that the launch calls `named` and the catalogue does not know.
[[nodiscard]] std::string how_to_name_a_model(const std::string& named);

void decide(Verdict verdict, std::vector<Open> open, Checked& checked);

void append(std::vector<Open> more, std::vector<Open>& open);

/// What of a launch with adapters, which the setting says, is not counted.
[[nodiscard]] std::vector<Open> open_adapters(const std::string& setting, const workloads::Model& model);

[[nodiscard]] FitAsked fit_asked(const CheckAsked& asked, const Checked& checked, workloads::Model model);

/// Where a tokenizer has between so many entries and the most are counted: undecided, if the fewest turn the verdict.
/// Pre: it is decided, and its fit is there.
void decide_vocabulary(const CheckAsked& asked, MegatronLaunch as_said, Checked& checked, const Executor& execute);

/// Whether it does not fit with the shortest samples already, and decides so; what samples hold is not known.
[[nodiscard]] bool is_short_with_least(const CheckAsked& asked, const MegatronLaunch& as_said,
                                       const workloads::Model& model, Checked& checked, const Executor& execute);

/// The same of a fit that samples shorter than the longest could turn, and nothing else. Pre: its fit is there.
void decide_samples(const CheckAsked& asked, const MegatronLaunch& as_said, const workloads::Model& model,
                    Checked& checked, const Executor& execute);

/// The longest samples that a launch allows, whatever they hold; of known data no more images than a sample of it has.
struct LongestSamples {
    std::int64_t tokens = 0;
    std::int64_t count = 0;                ///< of the step that is emulated, on all replicas
    std::string says{};                    ///< the setting that says how long
    std::optional<std::int64_t> images{};  ///< of a sample, at most, which has nothing else beside text
};

/// "all are counted as the longest that --max_length allows, 4096 tokens".
[[nodiscard]] std::string counted_as(const LongestSamples& longest);

using RunWith = std::function<Run(const FitAsked&)>;
using OpenOf = std::function<std::vector<Open>(const Fit&)>;

/// Whether it fits with the longest samples, so that what they hold does not matter, or rests on what else is not
/// known; decides so. What they hold is not known, and the shortest fit.
[[nodiscard]] bool is_decided_by_longest(const CheckAsked& asked, const workloads::Model& model,
                                         const LongestSamples& longest, const RunWith& run, const OpenOf& open_of_fit,
                                         Checked& checked, const Executor& execute);

[[nodiscard]] Checked check_sharded(const CheckAsked& asked, const Executor& execute);

/// Of modules on GPUs of their own, as MegatronMIMO's grids say them.
[[nodiscard]] Checked check_grids(const CheckAsked& asked);

}  // namespace pipeweaver::launch
