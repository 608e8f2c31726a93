#include "pipeweaver/schedule/stage_table.hpp"

#include "pipeweaver/base/csv.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/file_limits.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/text.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace pipeweaver::schedule {

namespace {

constexpr double longest_us = 60e6;
constexpr Duration longest = std::chrono::minutes(1);
constexpr std::int64_t largest_bytes = std::int64_t{1} << 44;
constexpr std::int64_t most_ranks = 65'536;

constexpr std::array<std::string_view, 8> names{
    "stage", "rank", "forward_us", "backward_us", "weight_us", "activation_bytes", "weights_bytes", "send_bytes"};
enum Column { stage, rank, forward_us, backward_us, weight_us, activation_bytes, weights_bytes, send_bytes };

/// The table's columns by name, whatever their order.
class Cells {
public:
    explicit Cells(const CsvTable& table) : table_(table) {
        for (std::size_t c = 0; c < names.size(); ++c) at_[c] = table.column(names[c]);
        const std::vector<std::string> known(names.begin(), names.end());
        for (const std::string& column : table.columns())
            if (std::find(known.begin(), known.end(), column) == known.end())
                fail(ErrorKind::input, "{}:1: {}", table.name(), unknown("column", column, known));
    }

    bool empty(std::size_t row, Column column) const { return table_.text(row, at_[column]).empty(); }

    Duration time(std::size_t row, Column column) const {
        const double us = table_.number(row, at_[column], 0, longest_us);
        const Duration time{std::llround(us * 1e3)};
        if (time < Duration{1}) fail_at(row, column, fmt::format("is {} microseconds, less than a nanosecond", us));
        return time;
    }

    Bytes bytes(std::size_t row, Column column) const { return {integer(row, column, largest_bytes)}; }

    std::int64_t integer(std::size_t row, Column column, std::int64_t high) const {
        return table_.integer(row, at_[column], 0, high);
    }

    [[noreturn]] void fail_at(std::size_t row, Column column, std::string_view message) const {
        table_.fail_at(row, at_[column], message);
    }

private:
    const CsvTable& table_;
    std::array<std::size_t, names.size()> at_{};
};

StageTimes read_row(const Cells& cells, std::size_t row) {
    const std::int64_t number = cells.integer(row, stage, most_stage_tasks);
    if (number != static_cast<std::int64_t>(row))
        cells.fail_at(row, stage,
                      must_be(number, fmt::format("{}: stages are numbered from 0, in order, without holes", row)));
    StageTimes times;
    times.rank = RankId{static_cast<std::uint32_t>(cells.integer(row, rank, most_ranks - 1))};
    times.forward = cells.time(row, forward_us);
    times.backward = cells.time(row, backward_us);
    if (!cells.empty(row, weight_us)) times.weight = cells.time(row, weight_us);
    times.activation = cells.bytes(row, activation_bytes);
    times.weights = cells.bytes(row, weights_bytes);
    times.send = cells.bytes(row, send_bytes);
    return times;
}

// Ranks are 0 ... R-1, each with a stage.
void check_ranks(const StageTable& table, const Cells& cells) {
    std::vector<bool> used(table.ranks(), false);
    std::size_t last = 0;
    for (std::size_t s = 0; s < table.stages.size(); ++s) {
        used[index(table.stages[s].rank)] = true;
        if (table.stages[s].rank > table.stages[last].rank) last = s;
    }
    const auto hole = std::find(used.begin(), used.end(), false);
    if (hole == used.end()) return;
    cells.fail_at(last, rank,
                  fmt::format("is {}, but no stage is on rank {}: ranks are numbered from 0 without holes",
                              index(table.stages[last].rank), hole - used.begin()));
}

}  // namespace

std::size_t StageTable::ranks() const {
    std::size_t most = 0;
    for (const StageTimes& times : stages) most = std::max(most, index(times.rank) + 1);
    return most;
}

StageTable parse_stage_table(std::string name, std::string text) {
    const CsvTable csv(std::move(name), std::move(text));
    const Cells cells(csv);
    StageTable table;
    table.name = csv.name();
    if (csv.rows() == 0) fail(ErrorKind::input, "{}: has no stages, one line for each is needed", table.name);
    for (std::size_t row = 0; row < csv.rows(); ++row) {
        table.stages.push_back(read_row(cells, row));
        table.lines.push_back(csv.line(row));
    }
    check_ranks(table, cells);
    return table;
}

StageTable read_stage_table(const std::filesystem::path& path) {
    return parse_stage_table(path.string(), read_file(path, longest_by_hand));
}

Bytes parse_capacity(std::string_view text) {
    const Bytes size = parse_bytes(text);
    if (size == Bytes{}) fail(ErrorKind::input, "'{}' is no capacity, allowed are sizes above 0", text);
    return size;
}

namespace {

// One step of the table as tasks: ids by stage, microbatch and kind.
class Builder {
public:
    Builder(const StageTable& table, const StageOptions& options) : table_(table), options_(options) {}

    BuiltStages build() {
        check_size();
        problem_.name = std::filesystem::path(table_.name).filename().string();
        problem_.name = problem_.name.substr(0, problem_.name.find(".csv"));
        problem_.name += options_.suffix;
        problem_.source = fmt::format("stage times of {}", std::filesystem::path(table_.name).filename().string());
        if (auto why_not = add_ranks(); !why_not.empty()) return {{}, std::move(why_not)};
        for (std::size_t s = 0; s < table_.stages.size(); ++s) {
            const auto number = static_cast<std::int64_t>(s);
            problem_.stages.push_back({number, table_.stages[s].rank, {{"stage", number, 1}}});
            lags_.push_back(lag_after(s));
        }
        for (std::int64_t m = 0; m < options_.microbatches; ++m) add_microbatch(m);
        validate(problem_);
        return {std::move(problem_), {}};
    }

private:
    void check_size() const {
        std::int64_t tasks = 0;
        for (const StageTimes& times : table_.stages) tasks += times.weight ? 3 : 2;
        if (options_.microbatches > most_stage_tasks / tasks)
            fail(ErrorKind::input,
                 "{} microbatches of {} stages are more than {} tasks, allowed are up to {} microbatches",
                 options_.microbatches, table_.stages.size(), most_stage_tasks, most_stage_tasks / tasks);
    }

    // What a stage receives, for every microbatch: activations from the stage before, gradients from
    // the one after it.
    Bytes receive_buffers(std::size_t s) const {
        if (!options_.buffers_for_all) return {};
        const Bytes before = s > 0 ? table_.stages[s - 1].send : Bytes{};
        const Bytes after = s + 1 < table_.stages.size() ? table_.stages[s].send : Bytes{};
        return options_.microbatches * (before + after);
    }

    // Why one does not fit, if so. A microbatch's last forward on a rank finds all the others of it there; one by one,
    // microbatches need no more.
    std::string add_ranks() {
        problem_.ranks.resize(table_.ranks(), {options_.capacity, {}, {}});
        std::vector<Bytes> passing(problem_.ranks.size());
        for (std::size_t s = 0; s < table_.stages.size(); ++s) {
            const StageTimes& times = table_.stages[s];
            problem_.ranks[index(times.rank)].base += times.weights + receive_buffers(s);
            passing[index(times.rank)] += times.activation;
        }
        for (std::size_t r = 0; options_.capacity && r < passing.size(); ++r) {
            const Bytes base = problem_.ranks[r].base, needs = base + passing[r];
            if (needs <= *options_.capacity) continue;
            return fmt::format(
                "{}: rank {} does not fit: {} held all the time and {} of one microbatch's activations exceed {}: {} "
                "short",
                table_.name, r, human(base), human(passing[r]), human(*options_.capacity),
                human(needs - *options_.capacity));
        }
        return {};
    }

    // Of what stage s sends to the next.
    Duration lag_after(std::size_t s) const {
        const bool crosses = s + 1 < table_.stages.size() && table_.stages[s].rank != table_.stages[s + 1].rank;
        if (!options_.link || !crosses) return {};
        const Bytes send = table_.stages[s].send;
        const double seconds = static_cast<double>(send.count) / static_cast<double>(options_.link->bytes_per_second);
        if (seconds > std::chrono::duration<double>(longest).count())
            fail(ErrorKind::input, "{}:{}: send_bytes: {} take {:.3g} s over the link of {} bytes/s, allowed are 60 s",
                 table_.name, table_.lines[s], send.count, seconds, options_.link->bytes_per_second);
        return send / *options_.link;
    }

    TaskId add(std::size_t s, std::int64_t m, TaskKind kind, TaskCost cost) {
        Task task;
        task.rank = table_.stages[s].rank;
        task.kind = kind;
        task.duration = cost.duration;
        task.acquire = cost.acquire;
        task.release = cost.release;
        task.label = fmt::format("{}{}{}", s, letter(kind), m);
        task.stage = static_cast<std::int64_t>(s);
        task.microbatch = m;
        task.item = 0;
        task.module = "stage";
        problem_.tasks.push_back(std::move(task));
        return TaskId{static_cast<std::uint32_t>(problem_.tasks.size() - 1)};
    }

    Duration slower(Duration part) const {
        return Duration{std::llround(options_.split_slowdown * static_cast<double>(part.count()))};
    }

    Mode mode_of(std::size_t s) const {
        const StageTimes& times = table_.stages[s];
        Mode mode;
        mode.forward = times.forward;
        mode.backward = times.backward;
        mode.held = times.activation;
        if (!times.weight) return mode;
        mode.backward = slower(times.backward);
        mode.weight = slower(*times.weight);
        mode.kept = times.activation;
        if (!options_.first_input_gradient && s == 0) {
            mode.weight = times.backward + *times.weight;  // in one part: no slower than a whole backward
            mode.backward = Duration{1};
        }
        return mode;
    }

    void add_microbatch(std::int64_t m) {
        const std::size_t stages = table_.stages.size();
        const std::size_t first = problem_.pairs.size();
        for (std::size_t s = 0; s < stages; ++s) {
            const Mode mode = mode_of(s);
            Pair pair;
            pair.forward = add(s, m, TaskKind::forward, {mode.forward, mode.held, {}});
            pair.modes = {mode};
            if (s > 0) problem_.edges.push_back({problem_.pairs.back().forward, pair.forward, lags_[s - 1]});
            problem_.pairs.push_back(std::move(pair));
        }
        for (std::size_t s = stages; s-- > 0;) {
            Pair& pair = problem_.pairs[first + s];
            const Mode& mode = pair.modes.front();
            const bool split = table_.stages[s].weight.has_value();
            pair.backward = add(s, m, split ? TaskKind::input_gradient : TaskKind::backward,
                                {mode.backward, {}, mode.held - mode.kept});
            problem_.edges.push_back({pair.forward, pair.backward, {}});
            if (s + 1 < stages)
                problem_.edges.push_back({problem_.pairs[first + s + 1].backward, pair.backward, lags_[s]});
            if (!split) continue;
            pair.weight = add(s, m, TaskKind::weight_gradient, {mode.weight, {}, mode.kept});
            problem_.edges.push_back({pair.backward, *pair.weight, {}});
        }
    }

    const StageTable& table_;
    const StageOptions& options_;
    Problem problem_;
    std::vector<Duration> lags_;
};

}  // namespace

BuiltStages build_stages(const StageTable& table, const StageOptions& options) {
    return Builder(table, options).build();
}

Problem stage_problem(const StageTable& table, const StageOptions& options) {
    BuiltStages built = build_stages(table, options);
    if (!built.why_not.empty()) fail(ErrorKind::limit, "{}", built.why_not);
    return std::move(built.problem);
}

}  // namespace pipeweaver::schedule
