#include "pipeweaver/validation/run_errors.hpp"

#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/base/error.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace pipeweaver::validation {

namespace {

// The element of `all` that is so, added if there is none.
template <class T, class Is>
T& find_or_add(std::vector<T>& all, const T& fresh, const Is& is) {
    const auto known = std::find_if(all.begin(), all.end(), is);
    if (known != all.end()) return *known;
    all.push_back(fresh);
    return all.back();
}

void add_error(const std::optional<double>& predicted, const std::optional<double>& measured,
               std::vector<double>& errors) {
    if (predicted && measured) errors.push_back(*predicted / *measured - 1);
}

// Errors of one kind of rows, while they are collected.
struct Kind {
    std::string device;
    bool experts = false, multimodal = false;
    std::size_t rows = 0;
    std::vector<double> step_time{}, memory{};
    std::array<std::vector<double>, 3> memory_of{};

    PredictedRows done() const {
        PredictedRows all{device, experts, multimodal, rows, errors_of(step_time), errors_of(memory)};
        for (std::size_t kind = 0; kind < memory_of.size(); ++kind) all.memory_of[kind] = errors_of(memory_of[kind]);
        return all;
    }
};

}  // namespace

std::size_t SourceErrors::refused_rows() const {
    std::size_t sum = 0;
    for (const RefusedRows& one : refused) sum += one.rows;
    return sum;
}

std::optional<double> measured_step(const PublishedRun& run, const Prediction& prediction) {
    if (run.step_time_s || prediction.refused()) return run.step_time_s;
    const auto tokens = static_cast<double>(prediction.tokens);
    const auto gpus = static_cast<double>(prediction.gpus);
    if (run.tokens_per_s) return tokens / *run.tokens_per_s;
    if (run.tokens_per_s_per_gpu) return tokens / (*run.tokens_per_s_per_gpu * gpus);
    const auto counted = run.flops               ? run.flops
                         : prediction.multimodal ? std::optional(FlopsCounted::model)
                                                 : std::nullopt;
    if (!counted) return std::nullopt;
    const auto flops = prediction.flops.at(static_cast<std::size_t>(*counted));
    if (flops && run.tflops_per_gpu) return *flops / (1e12 * *run.tflops_per_gpu * gpus);
    if (flops && run.mfu) return *flops / (*run.mfu * prediction.peak_flops);
    return std::nullopt;
}

Errors errors_of(std::vector<double> relative) {
    Errors errors;
    errors.rows = relative.size();
    if (relative.empty()) return errors;
    const auto n = static_cast<double>(relative.size());
    errors.bias_percent = 100 * std::accumulate(relative.begin(), relative.end(), 0.) / n;
    for (double& one : relative) one = 100 * std::abs(one);
    std::sort(relative.begin(), relative.end());
    errors.mean_percent = std::accumulate(relative.begin(), relative.end(), 0.) / n;
    const std::size_t half = relative.size() / 2;
    errors.median_percent = relative.size() % 2 ? relative[half] : (relative[half - 1] + relative[half]) / 2;
    errors.p90_percent = relative[(9 * relative.size() + 9) / 10 - 1];
    errors.max_percent = relative.back();
    return errors;
}

std::vector<SourceErrors> errors_by_source(std::span<const PublishedRun> runs,
                                           std::span<const Prediction> predictions) {
    PIPEWEAVER_ASSERT(runs.size() == predictions.size());
    std::vector<SourceErrors> sources;
    std::vector<std::vector<Kind>> kinds;
    for (std::size_t i = 0; i < runs.size(); ++i) {
        const Prediction& one = predictions[i];
        auto& source = find_or_add(sources, SourceErrors{.source = runs[i].source},
                                   [&](const auto& s) { return s.source == runs[i].source; });
        kinds.resize(sources.size());
        ++source.rows;
        if (one.refused()) {
            ++find_or_add(source.refused, RefusedRows{one.reason}, [&](const auto& r) {
                  return r.reason == one.reason;
              }).rows;
            continue;
        }
        auto& kind = find_or_add(
            kinds[static_cast<std::size_t>(&source - sources.data())],
            Kind{.device = one.device, .experts = one.experts, .multimodal = one.multimodal}, [&](const Kind& k) {
                return k.device == one.device && k.experts == one.experts && k.multimodal == one.multimodal;
            });
        ++kind.rows;
        add_error(one.step_time_s, measured_step(runs[i], one), kind.step_time);
        add_error(one.compared_gib, runs[i].memory_gib, kind.memory);
        add_error(one.compared_gib, runs[i].memory_gib, kind.memory_of[static_cast<std::size_t>(one.memory_kind)]);
    }
    for (std::size_t s = 0; s < sources.size(); ++s) {
        for (const Kind& kind : kinds[s]) sources[s].predicted.push_back(kind.done());
        std::stable_sort(sources[s].refused.begin(), sources[s].refused.end(),
                         [](const auto& a, const auto& b) { return a.rows > b.rows; });
    }
    return sources;
}

std::vector<PredictedRows> errors_of_all(std::span<const PublishedRun> runs, std::span<const Prediction> predictions) {
    std::vector<PublishedRun> nameless(runs.begin(), runs.end());
    for (PublishedRun& run : nameless) run.source.clear();
    const auto sources = errors_by_source(nameless, predictions);
    return sources.empty() ? std::vector<PredictedRows>{} : sources.front().predicted;
}

bool StepRatio::same_sign() const { return predicted && (measured < 1) == (*predicted < 1); }

std::vector<StepRatio> ratios_of(std::span<const PublishedRun> runs, std::span<const Prediction> predictions) {
    PIPEWEAVER_ASSERT(runs.size() == predictions.size());
    std::vector<StepRatio> ratios;
    ratios.reserve(runs.size());
    for (std::size_t i = 0; i < runs.size(); ++i) {
        if (runs[i].against.empty()) continue;
        const auto other =
            std::find_if(runs.begin(), runs.end(), [&](const PublishedRun& run) { return run.id == runs[i].against; });
        if (other == runs.end())
            fail(ErrorKind::input, "against: no row has the id '{}', which '{}' names", runs[i].against, runs[i].id);
        const auto j = static_cast<std::size_t>(other - runs.begin());
        StepRatio ratio{runs[i].id, runs[i].against};
        const auto own = measured_step(runs[i], predictions[i]), theirs = measured_step(*other, predictions[j]);
        if (!runs[i].step_ratio && !(own && theirs)) continue;
        ratio.measured = runs[i].step_ratio ? *runs[i].step_ratio : *own / *theirs;
        if (predictions[i].step_time_s && predictions[j].step_time_s)
            ratio.predicted = *predictions[i].step_time_s / *predictions[j].step_time_s;
        ratios.push_back(std::move(ratio));
    }
    return ratios;
}

}  // namespace pipeweaver::validation
