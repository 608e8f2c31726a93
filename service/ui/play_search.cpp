#include "service/ui/play_search.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/schedule/problem.hpp"
#include "pipeweaver/schedule/replay.hpp"
#include "pipeweaver/search/search.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace pipeweaver::service {

namespace playing {

namespace {

using nlohmann::json;
using namespace schedule;

// As Play.problem() of play.js has it.
struct PlayPipeline {
    std::size_t ranks = 1, chunks = 1;
    std::vector<double> sizes;  // by microbatch, with mean one
    double forward = 1, backward = 1, weight = 1, link = 0, most = 0;
    bool split = false;
};

Duration play_time_of(double milliseconds) {
    return Duration{std::max<std::int64_t>(1, std::llround(milliseconds * 1e6))};
}

Bytes held_bytes_of(double microbatches) {
    return Bytes{std::llround(microbatches * static_cast<double>(std::int64_t{1} << 30))};
}

class PlayBuilding {
public:
    explicit PlayBuilding(const PlayPipeline& from) : from_(from), stages_(from.ranks * from.chunks) {}

    Problem build() {
        problem_.name = "play";
        problem_.source = "the page's sliders";
        problem_.ranks.resize(from_.ranks);
        if (from_.most > 0)
            for (Rank& rank : problem_.ranks) rank.capacity = held_bytes_of(from_.most);
        for (std::size_t s = 0; s < stages_; ++s)
            problem_.stages.push_back({static_cast<std::int64_t>(s), rank_of(s), {}});
        for (std::size_t m = 0; m < from_.sizes.size(); ++m) add_microbatch(m);
        return std::move(problem_);
    }

private:
    RankId rank_of(std::size_t stage) const { return RankId{static_cast<std::uint32_t>(stage % from_.ranks)}; }

    Mode mode_of(std::size_t m) const {
        const double share = from_.sizes[m] / static_cast<double>(from_.chunks);
        Mode mode;
        mode.forward = play_time_of(from_.forward * share);
        mode.backward = play_time_of((from_.split ? from_.backward : from_.backward + from_.weight) * share);
        mode.held = held_bytes_of(share);
        if (!from_.split) return mode;
        mode.weight = play_time_of(from_.weight * share);
        mode.kept = mode.held;
        return mode;
    }

    TaskId add(std::size_t stage, std::size_t m, TaskKind kind, const TaskCost& cost) {
        Task task;
        task.rank = rank_of(stage);
        task.kind = kind;
        apply(task, cost);
        task.label = std::to_string(stage) + letter(kind) + std::to_string(m);
        task.stage = static_cast<std::int64_t>(stage);
        task.microbatch = static_cast<std::int64_t>(m);
        task.item = 0;
        task.module = "stage";
        problem_.tasks.push_back(std::move(task));
        return TaskId{static_cast<std::uint32_t>(problem_.tasks.size() - 1)};
    }

    void join(TaskId from, TaskId to) {
        const bool crosses = problem_.tasks[index(from)].rank != problem_.tasks[index(to)].rank;
        const bool takes = crosses && from_.link > 0;
        problem_.edges.push_back({from, to, takes ? play_time_of(from_.link) : Duration{}});
    }

    void add_microbatch(std::size_t m) {
        const Mode mode = mode_of(m);
        const std::size_t first = problem_.pairs.size();
        for (std::size_t s = 0; s < stages_; ++s) {
            Pair pair;
            pair.forward = add(s, m, TaskKind::forward, {mode.forward, mode.held, {}});
            pair.modes = {mode};
            if (s > 0) join(problem_.pairs.back().forward, pair.forward);
            problem_.pairs.push_back(std::move(pair));
        }
        for (std::size_t s = stages_; s-- > 0;) {
            Pair& pair = problem_.pairs[first + s];
            pair.backward = add(s, m, from_.split ? TaskKind::input_gradient : TaskKind::backward,
                                {mode.backward, {}, mode.held - mode.kept});
            join(pair.forward, pair.backward);
            if (s + 1 < stages_) join(problem_.pairs[first + s + 1].backward, pair.backward);
            if (!from_.split) continue;
            pair.weight = add(s, m, TaskKind::weight_gradient, {mode.weight, {}, mode.kept});
            join(pair.backward, *pair.weight);
        }
    }

    const PlayPipeline& from_;
    std::size_t stages_;
    Problem problem_;
};

double number_of(const json& question, const char* key, double low, double high) {
    const auto found = question.find(key);
    if (found == question.end() || !found->is_number() || found->get<double>() < low || found->get<double>() > high)
        fail(ErrorKind::input, "question: {}: must be a number from {} to {}", key, low, high);
    return found->get<double>();
}

template <class Integer>
Integer count_of(const json& question, const char* key, double most) {
    const double number = number_of(question, key, 1, most);
    if (number != std::floor(number)) fail(ErrorKind::input, "question: {}: must be a whole number", key);
    return static_cast<Integer>(number);
}

std::vector<double> sizes_of(const json& question) {
    constexpr std::size_t most_sizes = 64;
    constexpr double largest_size = 1000;
    const auto found = question.find("sizes");
    const bool is_list = found != question.end() && found->is_array() && !found->empty() && found->size() <= most_sizes;
    const bool are_sizes = is_list && std::all_of(found->begin(), found->end(), [](const json& one) {
                               return one.is_number() && one.get<double>() > 0 && one.get<double>() <= largest_size;
                           });
    if (!are_sizes) fail(ErrorKind::input, "question: sizes: must be 1 to {} numbers above 0", most_sizes);
    return found->get<std::vector<double>>();
}

PlayPipeline play_pipeline_of(const json& question) {
    constexpr double most_ranks = 16, most_chunks = 4, longest = 1000, most_held = 1000;
    PlayPipeline one;
    one.ranks = count_of<std::size_t>(question, "ranks", most_ranks);
    one.chunks = count_of<std::size_t>(question, "chunks", most_chunks);
    one.sizes = sizes_of(question);
    one.forward = number_of(question, "forward", 0, longest);
    one.backward = number_of(question, "backward", 0, longest);
    one.weight = number_of(question, "weight", 0, longest);
    one.link = number_of(question, "link", 0, longest);
    one.most = number_of(question, "most", 0, most_held);
    const auto split = question.find("split");
    one.split = split != question.end() && split->is_boolean() && split->get<bool>();
    return one;
}

json lists_of(const Problem& problem, const Schedule& schedule) {
    json lists = json::array();
    for (const auto& order : schedule.order) {
        json list = json::array();
        for (const TaskId id : order) {
            const Task& task = problem.tasks[index(id)];
            const char kind = letter(task.kind);
            list.push_back({std::string(1, kind == 'I' ? 'B' : kind), *task.stage, *task.microbatch});
        }
        lists.push_back(std::move(list));
    }
    return lists;
}

json play_answer_of(const json& question) {
    const PlayPipeline from = play_pipeline_of(question);
    const Problem problem = PlayBuilding(from).build();
    if (check(problem)) return {{"lists", nullptr}, {"bound", nullptr}, {"rounds", 0}};
    search::Options options;
    constexpr double most_rounds = 20, most_seed = 1e9;
    options.seed = count_of<std::uint64_t>(question, "seed", most_seed);
    options.max_rounds = count_of<std::uint64_t>(question, "rounds", most_rounds);
    const Replayer replayer(problem);
    const search::Found found = search::solve(replayer, options, in_order);
    const auto milliseconds = [](Duration time) { return static_cast<double>(time.count()) / 1e6; };
    json answer{{"lists", nullptr}, {"bound", milliseconds(found.bound)}, {"rounds", found.rounds}};
    if (!found.schedule) return answer;
    answer["lists"] = lists_of(problem, *found.schedule);
    answer["end"] = milliseconds(found.replay.makespan);
    return answer;
}

}  // namespace

}  // namespace playing

std::string search_play(const std::string& question) {
    using namespace playing;
    const json read = json::parse(question, nullptr, false);
    if (!read.is_object()) fail(ErrorKind::input, "question: is no JSON object");
    return play_answer_of(read).dump();
}

}  // namespace pipeweaver::service
