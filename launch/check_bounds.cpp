// Launches of Megatron Core of which a size is not known: the verdict with the least and with the most that it may be.
#include "launch/check_parts.hpp"
#include "pipeweaver/launch/check.hpp"
#include "pipeweaver/launch/model.hpp"
#include "pipeweaver/workloads/batch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

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

namespace {

// What no launch holds less than: text of the shortest samples, one in a microbatch, as its degrees divide them.
MegatronLaunch with_least_samples(MegatronLaunch l) {
    constexpr std::int64_t shortest = 128;
    const std::int64_t multiple = 2 * l.cp * l.tp;
    l.seq_length = (shortest + multiple - 1) / multiple * multiple;
    l.micro_batch = 1;
    return l;
}

// Whether the first stage has encoders and no layer: a batch of text alone leaves it empty, which is not emulated.
bool has_encoders_alone(const Run& run) {
    const std::string& layers = run.options.layers;  // the first number is the first stage's
    return layers.starts_with('0') && layers.find_first_not_of("0123456789") == 1;
}

// The fit with these; none: it fits, is not emulated, or something else decides.
std::optional<Fit> short_with_least(const CheckAsked& asked, const MegatronLaunch& as_said,
                                    const workloads::Model& model, Checked& checked, const Executor& execute) {
    const MegatronLaunch least = with_least_samples(as_said);
    if (!asked.fits || !broken_rules(least, checked.gpus, *checked.framework).empty()) return std::nullopt;
    if (why_not_emulated(settled(least), model)) return std::nullopt;
    FitAsked of = fit_asked(asked, checked, model);
    of.dataset = fmt::format("constant-{}", *least.seq_length);
    of.batch.clear();
    of.assigned.clear();
    const Run run = run_of(settled(least), of);
    if (has_encoders_alone(run)) return std::nullopt;
    Fit fit = fit_of(run, of.seed, execute);
    std::vector<Open> open = not_modelled(asked.said, {!asked.model.empty(), model.backbone() > 0});
    append(open_of(fit.doubts), open);
    if (!asked.said.named.empty()) append(memory_set_elsewhere(asked.said), open);
    const MemoryError& error = memory_error_of(fit.recipe, checked.entry, model, fit.ranks.size() > 1);
    if (verdict_of(fit, error, open) != Verdict::does_not_fit) return std::nullopt;
    checked.error = error;
    checked.assumed.push_back(fmt::format(
        "samples of {} tokens of text, one in a microbatch: it does not fit with these already", *least.seq_length));
    return fit;
}

}  // namespace

bool is_short_with_least(const CheckAsked& asked, const MegatronLaunch& as_said, const workloads::Model& model,
                         Checked& checked, const Executor& execute) {
    std::optional<Fit> fit = short_with_least(asked, as_said, model, checked, execute);
    if (!fit) return false;
    checked.assumed.insert(checked.assumed.end(), fit->assumed.begin(), fit->assumed.end());
    checked.fit = std::move(fit);
    decide(Verdict::does_not_fit, {}, checked);
    return true;
}

void decide_samples(const CheckAsked& asked, const MegatronLaunch& as_said, const workloads::Model& model,
                    Checked& checked, const Executor& execute) {
    const bool is_open = checked.verdict == Verdict::undecided && checked.open.size() == 1 &&
                         (checked.open[0].setting == "--dataset" || checked.open[0].setting == "--assigned");
    if (is_open && short_with_least(asked, as_said, model, checked, execute))
        decide(Verdict::does_not_fit, {}, checked);
}

std::string counted_as(const LongestSamples& longest) {
    return fmt::format("all are counted as the longest that {} allows, {} tokens", longest.says, longest.tokens);
}

namespace {

// Whether no sample is longer than the launch says, items among its positions.
bool bounds_samples(const SaidLaunch& said, const workloads::Model& model) {
    if (said.entry == nullptr || !said.entry->bounds_items) return false;
    if (!model.family.empty() && model.family == said.entry->unbounded_family) return false;
    const auto is = [&](std::string_view name, std::optional<std::string_view> value) {
        return std::any_of(said.settings.begin(), said.settings.end(), [&](const Setting& one) {
            return one.name == name && (!value || (!one.values.empty() && one.values.front() == *value));
        });
    };
    const auto& always = said.entry->unbounds;
    const auto& unless = said.entry->unbounds_unless;
    return std::none_of(always.begin(), always.end(), [&](const auto& one) { return is(one.first, one.second); }) &&
           std::none_of(unless.begin(), unless.end(), [&](const frameworks::Default& one) {
               return is(one.setting, one.value) && !is(one.unless, std::nullopt);
           });
}

std::string lines_of(const workloads::Sample& sample, std::int64_t count) {
    std::vector<workloads::Sample> samples(static_cast<std::size_t>(count), sample);
    for (std::size_t i = 0; i < samples.size(); ++i) samples[i].id += std::to_string(i);
    return workloads::to_jsonl(samples);
}

// Of the same the one that may move a rank by more.
void add_new(const Doubt& doubt, std::vector<Doubt>& to) {
    const auto there = std::find_if(to.begin(), to.end(), [&](const Doubt& one) {
        return one.setting == doubt.setting && one.phrase == doubt.phrase;
    });
    if (there == to.end())
        to.push_back(doubt);
    else if (there->most && (!doubt.most || *doubt.most > *there->most))
        there->most = doubt.most;
}

// The fullest with samples of one thing alone: what a step holds grows as their positions do, and mixtures hold less.
// What may move a rank with samples of another thing may move it, too.
struct Fullest {
    Fit fit;
    workloads::Modality with = workloads::Modality::text;
};
std::optional<Fullest> fullest_of(const FitAsked& asked, const LongestSamples& longest, const RunWith& run,
                                  const Executor& execute) {
    std::optional<Fullest> most;
    std::vector<Doubt> doubts;
    for (const auto& [with, sample] : workloads::filled_samples(asked.model, longest.tokens)) {
        FitAsked of = asked;
        of.dataset.clear();
        of.assigned.clear();
        of.batch = "the longest samples";
        of.samples = lines_of(sample, longest.count);
        const Run with_these = run(of);
        if (with == workloads::Modality::text && has_encoders_alone(with_these)) continue;
        MadeFit made = try_fit(with_these, of.seed, execute);
        if (!made.fit) return std::nullopt;
        for (const Doubt& one : made.fit->doubts) add_new(one, doubts);
        const auto peak = [](const Fit& fit) { return fit.ranks[fit.fullest].peak; };
        if (!most || peak(*made.fit) > peak(most->fit)) most = Fullest{std::move(*made.fit), with};
    }
    if (most) most->fit.doubts = std::move(doubts);
    return most;
}

}  // namespace

bool is_decided_by_longest(const CheckAsked& asked, const workloads::Model& model, const LongestSamples& longest,
                           const RunWith& run, const OpenOf& open_of_fit, Checked& checked, const Executor& execute) {
    constexpr std::int64_t most_samples = 20'000;
    if (longest.tokens < 1) return false;
    if (!asked.fits || !bounds_samples(asked.said, model) || longest.count > most_samples) return false;
    auto most = fullest_of(fit_asked(asked, checked, model), longest, run, execute);
    if (!most) return false;
    const MemoryError& error = memory_error_of(most->fit.recipe, checked.entry, model, most->fit.ranks.size() > 1);
    if (verdict_of(most->fit, error, {}) == Verdict::does_not_fit) return false;
    const std::vector<Open> open = open_of_fit(most->fit);
    checked.error = error;
    checked.assumed.push_back(fmt::format("what samples hold is not known: {} of {}, with which most is held",
                                          counted_as(longest), name_of(most->with)));
    checked.assumed.insert(checked.assumed.end(), most->fit.assumed.begin(), most->fit.assumed.end());
    decide(verdict_of(most->fit, error, open), turning(most->fit, error, open), checked);
    checked.fit = std::move(most->fit);
    return true;
}

}  // namespace pipeweaver::launch
