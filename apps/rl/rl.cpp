// pipeweaver rl: how long a step of reinforcement learning takes in each layout, and how GPUs are best split.
#include "apps/command_line.hpp"
#include "apps/commands.hpp"
#include "apps/console.hpp"
#include "apps/optional_figures.hpp"
#include "apps/rl/rl_options.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/base/or_null.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/base/text_table.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <numeric>

namespace pipeweaver::apps {

namespace {

using rl::Layout;
using rl::Objective;
using rl::Step;

// Longest first; which group each is of stays.
rl::Job longest_first(const rl::Job& job) {
    std::vector<std::size_t> order(job.answers.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return job.answers[a] > job.answers[b]; });
    rl::Job sorted = job;
    for (std::size_t i = 0; i < order.size(); ++i) {
        sorted.answers[i] = job.answers[order[i]];
        sorted.groups[i] = job.groups[order[i]];
        sorted.inference[i] = job.inference[order[i]];
        sorted.training[i] = job.training[order[i]];
    }
    return sorted;
}

// A layout's best step, with answers as they come and with the longest first.
struct Row {
    Step step;
    std::optional<Duration> longest_first;  // none: no tail is worth moving
    bool others_generate = false;

    std::optional<std::int64_t> longest_first_ns() const {
        return longest_first ? std::optional(longest_first->count()) : std::nullopt;
    }
};

struct Rl {
    explicit Rl(CLI::App& app) : options(app) {
        console.add_to(app);
        options.with_configuration();
        asked.add_to(options);
    }

    void run() {
        options.apply();
        question = asked.question();
        add_rows(question.job, {Layout::colocated, Layout::moved_tail, Layout::split, Layout::streamed});
        if (asked.steps_off > 0) add_rows(question.job, {Layout::in_flight});
        if (question.with_others) add_rows(*question.with_others, {Layout::split, Layout::streamed});
        if (question.with_others && asked.steps_off > 0) add_rows(*question.with_others, {Layout::in_flight});
        if (rows.empty())
            fail(ErrorKind::limit, "{} GPUs hold no instance of {} and training on a multiple of {}: allowed are more",
                 question.job.gpus, question.job.instance, question.job.trainer);
        if (console.json)
            print_json(as_json());
        else
            print_text("{}", head() + table() + best() + notes());
    }

private:
    void add_rows(const rl::Job& job, std::initializer_list<Layout> layouts) {
        const auto objective = asked.objective == "usd" ? Objective::usd : Objective::time;
        const rl::Job sorted = longest_first(job);
        for (const Layout layout : layouts) {
            const auto step = rl::best_step(job, layout, objective);
            if (!step) continue;
            const auto other = rl::best_step(sorted, layout, objective);
            rows.push_back({*step, other ? std::optional(other->time) : std::nullopt, job.generators.has_value()});
        }
    }

    const workloads::Cluster& generating_on(const Row& row) const {
        return row.others_generate ? *question.others : question.cluster;
    }

    std::string label(const Row& row) const {
        const std::string_view name = name_of(row.step.layout);
        return row.others_generate ? fmt::format("{}, {}", name, question.others->name) : std::string(name);
    }

    std::optional<double> usd_of(const Row& row) const {
        const Step& step = row.step;
        const double price = question.cluster.price_per_gpu_hour, other = generating_on(row).price_per_gpu_hour;
        if (price <= 0 || other <= 0) return {};
        const auto training = static_cast<double>(step.training);
        const auto others = static_cast<double>(step.gpus() - step.training);
        return (training * price + others * other) * static_cast<double>(step.time.count()) / 3.6e12;
    }

    const Row& best_row() const {
        return *std::min_element(rows.begin(), rows.end(), [&](const Row& a, const Row& b) {
            return asked.objective == "usd" ? *usd_of(a) < *usd_of(b) : a.step.time < b.step.time;
        });
    }

    std::string head() const {
        const auto& answers = question.job.answers;
        const auto [least, most] = std::minmax_element(answers.begin(), answers.end());
        const std::int64_t sum = std::accumulate(answers.begin(), answers.end(), std::int64_t{0});
        const std::string others = question.others ? fmt::format(", and {} of {} that generate alone",
                                                                 question.others->gpus, question.others->name)
                                                   : "";
        return fmt::format("{} of {} to {} tokens, in the mean {}; {} of {}{}, {}\n", plural(answers.size(), "answer"),
                           *least, *most, sum / static_cast<std::int64_t>(answers.size()),
                           plural(question.job.gpus, "GPU"), question.cluster.name, others, policy());
    }

    std::string policy() const {
        return asked.steps_off == 0 ? "on policy" : fmt::format("up to {} off policy", plural(asked.steps_off, "step"));
    }

    std::string table() const {
        TextTable table({{"layout", true, 10},
                         {"generate", false},
                         {"train", false},
                         {"step", false, 9},
                         {"USD", false},
                         {"generation", false},
                         {"the rest", false},
                         {"idle: tail", false},
                         {"for samples", false},
                         {"for training", false},
                         {"for weights", false},
                         {"switching", false},
                         {"longest first", false}});
        for (const Row& row : rows) {
            const Step& step = row.step;
            const auto of_step = [&](Duration idle) {
                const double share = static_cast<double>(idle.count()) / static_cast<double>(step.time.count());
                return fmt::format("{:.1f} %", 100 * share);
            };
            const auto usd = usd_of(row);
            table.add({label(row), std::to_string(step.generating), std::to_string(step.training), human(step.time),
                       usd ? fmt::format("{:.2f}", *usd) : "", human(step.generation), human(step.work),
                       of_step(step.bubbles.tail), of_step(step.bubbles.samples), of_step(step.bubbles.training),
                       of_step(step.bubbles.weights), of_step(step.bubbles.switching),
                       row.longest_first ? human(*row.longest_first) : "-"});
        }
        return table.text();
    }

    std::string best() const {
        const Row& row = best_row();
        const Step& step = row.step;
        const auto usd = usd_of(row);
        std::string text = fmt::format("best: {}, {} a step", label(row), human(step.time));
        if (usd) text += fmt::format(", {:.2f} USD", *usd);
        if (rl::is_apart(step.layout))
            text += fmt::format("; {} GPUs generate, {} train", step.generating, step.training);
        if (step.tail)
            text += fmt::format("; the last {} answers on {} of {} instances", step.tail->answers, step.tail->instances,
                                step.generating / question.job.instance);
        return text + "\n";
    }

    std::string notes() const {
        std::string text;
        for (const std::string& note : question.notes) text += "note: " + note + "\n";
        return text;
    }

    nlohmann::ordered_json as_json() const {
        nlohmann::ordered_json json{{"gpus", question.job.gpus},
                                    {"answers", question.job.answers.size()},
                                    {"steps_off", question.job.steps_off},
                                    {"objective", asked.objective},
                                    {"best", label(best_row())},
                                    {"layouts", nlohmann::ordered_json::array()},
                                    {"notes", question.notes}};
        for (const Row& row : rows) json["layouts"].push_back(row_json(row));
        return json;
    }

    nlohmann::ordered_json row_json(const Row& row) const {
        const Step& step = row.step;
        nlohmann::ordered_json json{{"layout", name_of(step.layout)},
                                    {"generating_on", generating_on(row).name},
                                    {"generating_gpus", step.generating},
                                    {"training_gpus", step.training},
                                    {"step_ns", step.time.count()},
                                    {"usd", or_null(usd_of(row))},
                                    {"generation_ns", step.generation.count()},
                                    {"work_ns", step.work.count()},
                                    {"idle_ns",
                                     {{"tail", step.bubbles.tail.count()},
                                      {"samples", step.bubbles.samples.count()},
                                      {"training", step.bubbles.training.count()},
                                      {"weights", step.bubbles.weights.count()},
                                      {"switching", step.bubbles.switching.count()}}},
                                    {"longest_first_step_ns", or_null(row.longest_first_ns())}};
        if (step.tail) json["tail"] = {{"answers", step.tail->answers}, {"instances", step.tail->instances}};
        return json;
    }

    Options options;
    Console console;
    RlOptions asked;
    RlQuestion question;
    std::vector<Row> rows;
};

}  // namespace

void add_rl(CLI::App& program) {
    add_command<Rl>(
        program, "rl", "what a step of reinforcement learning takes, and how GPUs are best split",
        {.synopsis = "--cluster CLUSTER --lengths FILE|QUANTILES [--model MODEL] [--generation TIME:GPUS] "
                     "[--training TIME:GPUS] [--steps-off N] [OPTION...]",
         .description =
             "A step generates answers, judges them by inference of rewards and references, trains on them and hands "
             "the new weights on. Layouts: colocated, all in turn on all GPUs; moved tail, where the last answers go "
             "together and inference begins on the GPUs that are free (RLHFuse, arXiv 2409.13221); split, with GPUs "
             "for generation alone; streamed, where training takes answers as they come (StreamRL, arXiv 2504.15930); "
             "with --steps-off also in flight, where generation never waits for a step's last answer. "
             "Generation is replayed answer by answer, on the roofline of decoding or as slow as it was measured; the "
             "split is the best of all. What GPUs wait for is of all GPUs and of the whole step.",
         .examples = {{"From three measured times",
                       "pipeweaver rl --cluster h100-sxm:64 --lengths 0:256,50:2k,90:6k,100:16k --instance 8 "
                       "--generation 90s:64 --inference 12s:64 --training 60s:64 --weights 65GB --switching 8s"},
                      {"From a model, a step off policy, with the least USD",
                       "pipeweaver rl --model qwen3-30b-a3b --cluster h100-sxm:64 --lengths 0:256,50:2k,100:16k "
                       "--steps-off 1 --objective usd --price 2.5"}},
         .files = {},
         .see_also = {"pipeweaver analyze", "pipeweaver emulate", "docs/rl.md"},
         .usual = {"lengths", "answers", "cluster", "instance", "steps-off", "objective", "price", "model",
                   "generation", "inference", "training", "overhead", "switching", "weights"}});
}

}  // namespace pipeweaver::apps
