// A tokenizer whose entries are not known: the verdict with the most and with the fewest of them.
#include "launch/check_parts.hpp"
#include "pipeweaver/launch/check.hpp"
#include "pipeweaver/launch/model.hpp"

#include <fmt/format.h>

namespace pipeweaver::launch {

void decide_vocabulary(const CheckAsked& asked, MegatronLaunch as_said, Checked& checked, const Executor& execute) {
    if (!as_said.least_vocab || checked.verdict == Verdict::fits || checked.verdict == Verdict::undecided) return;
    const auto padded_most = settled(as_said).padded_vocab;
    const std::int64_t most = *as_said.most_vocab;
    as_said.most_vocab = as_said.least_vocab;
    const MegatronLaunch fewest = settled(as_said);
    if (fewest.padded_vocab == padded_most) return;
    const FitAsked of = fit_asked(asked, checked, model_of(fewest).model);
    const Verdict other = verdict_of(fit_of(run_of(fewest, of), of.seed, execute), *checked.error, {});
    if (other == *checked.verdict) return;
    const std::string why = fmt::format(
        "its tokenizer has between {} and {} entries: the verdict is '{}' with the fewest, '{}' with the most",
        *as_said.least_vocab, most, name_of(other), name_of(*checked.verdict));
    decide(Verdict::undecided,
           {{written(as_said.dialect, "vocab-size"), why, "say it, or the padded one", frameworks::Effect::less}},
           checked);
}

}  // namespace pipeweaver::launch
