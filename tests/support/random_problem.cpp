#include "tests/support/random_problem.hpp"

#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/random.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace pipeweaver::testing {

namespace {

using nlohmann::json;
using Count = std::int64_t;

struct Item {  // a task; drafts number tasks in a topological order
    std::size_t rank;
    char kind;
    Count duration, acquire, release;
    std::optional<std::size_t> stage;
    std::size_t job, part;
    std::string module;
};

struct Way {  // a mode
    Count forward, backward, weight, held, passing, transient, kept;
};

struct Trio {  // a pair
    std::size_t forward, backward;
    std::optional<std::size_t> weight;
    std::vector<Way> ways;
};

struct Draft {
    std::size_t ranks = 1;
    std::vector<Count> bases, tails;
    std::vector<std::optional<Count>> capacities;
    std::vector<Item> items;
    std::vector<std::tuple<std::size_t, std::size_t, Count>> edges;
    std::vector<Trio> trios;
};

struct Sizes {  // the largest of each
    Count base = 1000, tail = 5000, lag = 800;
    Count forward = 9000, backward = 15000, slower = 4000;
    Count held = 500, passing = 300, more_passing = 50, transient = 200, more_transient = 100;
};

constexpr Sizes small{5, 6, 2, 9, 15, 6, 9, 2, 1, 3, 1};  // many schedules tie

class Maker {
public:
    explicit Maker(std::uint64_t seed) : seed_(seed), random_(seed, 1) {}
    Maker(const Shape& shape, std::uint64_t seed) : seed_(seed), random_(seed, 77), shape_(shape), sizes_(small) {}

    std::string make_shaped() {
        draft_.ranks = shape_->ranks;
        add_ranks();
        pairs_ = shape_->modes;
        for (std::size_t job = 0; job < shape_->microbatches; ++job) shaped_microbatch(job);
        if (shape_->capped)
            cap();
        else
            draft_.capacities.resize(draft_.ranks);
        number_of_ = job_by_job();
        return problem_json().dump();
    }

    Instance make() {
        draft_.ranks = 1 + random_.below(4);
        add_ranks();
        pairs_ = chance(75);
        if (chance(30))
            loose_graph();
        else
            modules();
        choose_modes();
        const auto safe = job_by_job();
        bound_memory(safe);
        return written(list_schedule(safe));
    }

private:
    Count number(Count low, Count high) {
        return low + static_cast<Count>(random_.below(static_cast<std::uint64_t>(high - low + 1)));
    }
    bool chance(std::uint64_t percent) { return random_.below(100) < percent; }

    void add_ranks() {
        for (std::size_t r = 0; r < draft_.ranks; ++r) {
            draft_.bases.push_back(number(0, sizes_.base));
            draft_.tails.push_back(chance(30) ? number(1, sizes_.tail) : 0);
        }
    }

    std::size_t add(Item item) {
        draft_.items.push_back(std::move(item));
        return draft_.items.size() - 1;
    }
    void join(std::size_t from, std::size_t to) {
        draft_.edges.emplace_back(from, to, chance(50) ? 0 : number(1, sizes_.lag));
    }

    // Any DAG: pairs and loose tasks on random ranks, edges from earlier to later.
    void loose_graph() {
        const auto jobs = static_cast<std::size_t>(number(2, 20));
        for (std::size_t job = 0; job < jobs; ++job) {
            const auto first = draft_.items.size();
            if (chance(70))
                backward_of(forward(random_.below(draft_.ranks), std::nullopt, job, 0, "", true));
            else
                loose_task(random_.below(draft_.ranks), job);
            for (std::size_t task = first; task < draft_.items.size(); ++task)
                while (task > 0 && chance(40)) join(random_.below(task), task);
        }
    }

    // Microbatches through an optional encoder (several items each, or none), then a chain; each module maybe frozen.
    void modules() {
        const bool encoder = chance(60), encoder_trains = chance(70), split = chance(40);
        const std::size_t segments = 1 + random_.below(2), first_stage = encoder ? draft_.ranks : 0;
        const auto jobs = static_cast<std::size_t>(number(1, 4));
        for (std::size_t job = 0; job < jobs; ++job) {
            std::vector<std::vector<std::size_t>> encoders;
            for (std::size_t part = encoder ? random_.below(4) : 0; part > 0; --part)
                encoders.push_back(forwards(0, draft_.ranks, job, part - 1, "encoder", encoder_trains));
            const auto chain = forwards(first_stage, segments * draft_.ranks, job, 0, "chain", true);
            for (const auto& one : encoders) join(one.back(), chain.front());
            const std::size_t last = backwards(chain, std::nullopt, split);
            if (encoder_trains)
                for (const auto& one : encoders) backwards(one, last, split && chance(50));
            if (chance(20)) loose_task(random_.below(draft_.ranks), job);
        }
    }

    // The items of the first stage (one, unless the shape has items), then a chain of all other stages.
    void shaped_microbatch(std::size_t job) {
        std::vector<std::vector<std::size_t>> items;
        const std::size_t first = shape_->stages > 1 ? 1 : 0;
        for (Count part = shape_->items ? number(0, 2) : static_cast<Count>(first); part > 0; --part)
            items.push_back(forwards(0, 1, job, static_cast<std::size_t>(part - 1), "encoder", true));
        const auto chain = forwards(first, shape_->stages - first, job, 0, "body", true);
        for (const auto& one : items) join(one.back(), chain.front());
        const std::size_t last = backwards(chain, std::nullopt, shape_->split);
        for (const auto& one : items) backwards(one, last, shape_->split);
    }

    // Between what the largest task needs alone and what a few microbatches need.
    void cap() {
        std::vector<Count> alone(draft_.ranks), together(draft_.ranks);
        for (const Item& item : draft_.items) {
            alone[item.rank] = std::max(alone[item.rank], item.acquire + sizes_.held + sizes_.transient);
            together[item.rank] += item.kind == 'F' ? item.acquire : 0;
        }
        for (std::size_t r = 0; r < draft_.ranks; ++r)
            draft_.capacities.emplace_back(draft_.bases[r] + alone[r] + number(0, std::max<Count>(1, together[r] / 2)));
    }

    std::vector<std::size_t> forwards(std::size_t first_stage, std::size_t stages, std::size_t job, std::size_t part,
                                      const std::string& module, bool trains) {
        std::vector<std::size_t> row;
        for (std::size_t s = first_stage; s < first_stage + stages; ++s) {
            row.push_back(forward(s % draft_.ranks, s, job, part, module, trains));
            if (row.size() > 1) join(row[row.size() - 2], row.back());
        }
        return row;
    }

    // Backwards of a row of forwards, last first; the first of them waits for `after`. Returns the last.
    std::size_t backwards(const std::vector<std::size_t>& row, std::optional<std::size_t> after, bool split) {
        for (auto forward = row.rbegin(); forward != row.rend(); ++forward) {
            const std::size_t task = split ? split_backward_of(*forward) : backward_of(*forward);
            if (after) join(*after, task);
            after = task;
        }
        return *after;
    }

    std::size_t forward(std::size_t rank, std::optional<std::size_t> stage, std::size_t job, std::size_t part,
                        const std::string& module, bool trains) {
        const Count held = trains ? number(shape_ ? 1 : 0, sizes_.held) : 0,
                    passing = chance(50) ? number(0, sizes_.passing) : 0;
        return add({rank, 'F', number(1, sizes_.forward), held + passing, passing, stage, job, part, module});
    }

    void loose_task(std::size_t rank, std::size_t job) {
        const Count memory = number(0, 400);
        add({rank, 'X', number(1, 5000), memory, memory, std::nullopt, job, 0, ""});
    }

    Item like(std::size_t forward, char kind) {
        Item item = draft_.items[forward];
        item.kind = kind;
        item.duration = number(1, sizes_.backward);
        item.acquire = kind == 'W' ? 0 : number(0, sizes_.transient);
        return item;
    }

    std::size_t backward_of(std::size_t forward) {
        Item item = like(forward, 'B');
        const Item& before = draft_.items[forward];
        item.release = before.acquire - before.release + item.acquire;
        const std::size_t task = add(item);
        join(forward, task);
        if (pairs_ && (shape_ || chance(80))) pair(forward, task, std::nullopt);
        return task;
    }

    std::size_t split_backward_of(std::size_t forward) {
        Item input = like(forward, 'I'), weight = like(forward, 'W');
        const Item& before = draft_.items[forward];
        const Count all = before.acquire - before.release + input.acquire;
        weight.release = number(0, all);
        input.release = all - weight.release;
        const std::size_t task = add(input), last = add(weight);
        join(forward, task);
        join(task, last);
        if (pairs_ && (shape_ || chance(80))) pair(forward, task, last);
        return task;
    }

    void pair(std::size_t forward, std::size_t backward, std::optional<std::size_t> weight) {
        const Item &f = draft_.items[forward], &b = draft_.items[backward];
        const Count last = weight ? draft_.items[*weight].duration : 0;
        const Count kept = weight ? draft_.items[*weight].release : 0;
        Trio trio{forward, backward, weight, {}};
        trio.ways.push_back({f.duration, b.duration, last, f.acquire - f.release, f.release, b.acquire, kept});
        for (std::size_t more = shape_ ? 2 : random_.below(3); more > 0; --more) {
            Way way = trio.ways.front();
            way.backward += number(1, sizes_.slower);
            way.passing += number(0, sizes_.more_passing);
            way.transient += number(0, sizes_.more_transient);
            way.held = number(0, way.held);
            way.kept = std::min(way.kept, way.held + way.transient);
            trio.ways.push_back(way);
        }
        draft_.trios.push_back(std::move(trio));
    }

    struct Cost {
        Count duration, acquire, release;
    };

    void choose_modes() {
        for (const Item& item : draft_.items) costs_.push_back({item.duration, item.acquire, item.release});
        for (const Trio& trio : draft_.trios) {
            modes_.push_back(random_.below(trio.ways.size()));
            const Way& way = trio.ways[modes_.back()];
            costs_[trio.forward] = {way.forward, way.held + way.passing, way.passing};
            costs_[trio.backward] = {way.backward, way.transient, way.held + way.transient - way.kept};
            if (trio.weight) costs_[*trio.weight] = {way.weight, 0, way.kept};
        }
    }

    // One job after the other: needs as little memory as any order of whole jobs.
    std::vector<std::size_t> job_by_job() const {
        std::vector<std::size_t> sequence(draft_.items.size());
        std::iota(sequence.begin(), sequence.end(), std::size_t{0});
        return sequence;
    }

    std::vector<Count> peaks(const std::vector<std::size_t>& sequence) const {
        auto used = draft_.bases, peak = draft_.bases;
        for (const std::size_t task : sequence) {
            const std::size_t rank = draft_.items[task].rank;
            used[rank] += costs_[task].acquire;
            peak[rank] = std::max(peak[rank], used[rank]);
            used[rank] -= costs_[task].release;
        }
        return peak;
    }

    void bound_memory(const std::vector<std::size_t>& safe) {
        const auto least = peaks(safe);
        for (const Count bytes : least) {
            draft_.capacities.emplace_back();
            if (chance(70)) draft_.capacities.back() = bytes + (chance(50) ? 0 : number(0, 1500));
        }
    }

    bool fits(const std::vector<std::size_t>& sequence) const {
        const auto needed = peaks(sequence);
        for (std::size_t r = 0; r < needed.size(); ++r)
            if (needed[r] > draft_.capacities[r].value_or(needed[r])) return false;
        return true;
    }

    // Draws ready tasks at random, each only if the rest can still follow job by job; the next task of the safe
    // sequence always can, so this never gets stuck.
    std::vector<std::size_t> list_schedule(std::vector<std::size_t> sequence) {
        const bool eager = chance(80);
        for (std::size_t place = 0; eager && place < sequence.size(); ++place)
            for (int attempt = 0; attempt < 3; ++attempt) {
                const std::size_t from = place + random_.below(sequence.size() - place);
                if (!may_move(sequence, from, place)) continue;
                auto moved = sequence;
                std::rotate(moved.begin() + static_cast<Count>(place), moved.begin() + static_cast<Count>(from),
                            moved.begin() + static_cast<Count>(from) + 1);
                if (!fits(moved)) continue;
                sequence = std::move(moved);
                break;
            }
        return sequence;
    }

    bool may_move(const std::vector<std::size_t>& sequence, std::size_t from, std::size_t to) const {
        for (const auto& [before, after, lag] : draft_.edges)
            if (after == sequence[from] &&
                std::find(sequence.begin() + static_cast<Count>(to), sequence.begin() + static_cast<Count>(from),
                          before) != sequence.begin() + static_cast<Count>(from))
                return false;
        return true;
    }

    std::vector<Count> starts(const std::vector<std::size_t>& sequence) {
        const bool idles = chance(20);
        std::vector<Count> start(draft_.items.size()), free(draft_.ranks);
        for (const std::size_t task : sequence) {
            Count& time = free[draft_.items[task].rank];
            for (const auto& [before, after, lag] : draft_.edges)
                if (after == task) time = std::max(time, start[before] + costs_[before].duration + lag);
            if (idles && chance(10)) time += number(1, 500);
            start[task] = time;
            time += costs_[task].duration;
        }
        return start;
    }

    // ---- texts; `number_of` hides the topological order behind shuffled task numbers

    void shuffle_numbers() {
        number_of_ = job_by_job();
        for (std::size_t i = number_of_.size(); i > 1; --i) std::swap(number_of_[i - 1], number_of_[random_.below(i)]);
    }

    json task_json(std::size_t task) {
        const Item& item = draft_.items[task];
        json written{{"id", number_of_[task]},
                     {"rank", item.rank},
                     {"kind", std::string(1, item.kind)},
                     {"duration_ns", item.duration},
                     {"acquire_bytes", item.acquire},
                     {"release_bytes", item.release},
                     {"label", fmt::format("m{}.{}{}.r{}.{}", item.job, item.module, item.part, item.rank, item.kind)}};
        if (item.stage) {
            written["stage"] = *item.stage;
            written["microbatch"] = item.job;
            written["item"] = item.part;
            written["module"] = item.module;
        }
        return written;
    }

    json pair_json(const Trio& trio) {
        json written{{"forward", number_of_[trio.forward]}, {"backward", number_of_[trio.backward]}};
        if (trio.weight) written["weight"] = number_of_[*trio.weight];
        for (const Way& way : trio.ways) {
            json mode{{"forward_ns", way.forward},
                      {"backward_ns", way.backward},
                      {"held_bytes", way.held},
                      {"transient_bytes", way.transient}};
            if (way.passing > 0 || chance(50)) mode["forward_transient_bytes"] = way.passing;
            if (trio.weight) {
                mode["weight_ns"] = way.weight;
                mode["kept_bytes"] = way.kept;
            }
            written["modes"].push_back(mode);
        }
        return written;
    }

    json problem_json() {
        json problem{{"format", "pipeweaver-problem/1"},
                     {"name", fmt::format("random-{}", seed_)},
                     {"source", "Zuf\xc3\xa4llig \"random\"\t\x7f\n"},  // what canonical bytes must get right
                     {"ranks", json::array()},
                     {"edges", json::array()}};
        for (std::size_t r = 0; r < draft_.ranks; ++r) {
            json rank{{"base_bytes", draft_.bases[r]}, {"capacity_bytes", nullptr}};
            if (draft_.capacities[r]) rank["capacity_bytes"] = *draft_.capacities[r];
            if (draft_.tails[r] > 0 || chance(30)) rank["tail_ns"] = draft_.tails[r];
            problem["ranks"].push_back(rank);
        }
        problem["tasks"] = json::array();
        for (std::size_t i = 0; i < draft_.items.size(); ++i) problem["tasks"].push_back(nullptr);
        for (std::size_t i = 0; i < draft_.items.size(); ++i) problem["tasks"][number_of_[i]] = task_json(i);
        for (const auto& [from, to, lag] : draft_.edges)
            problem["edges"].push_back({number_of_[from], number_of_[to], lag});
        if (!draft_.trios.empty() || chance(50)) problem["pairs"] = json::array();
        for (const Trio& trio : draft_.trios) problem["pairs"].push_back(pair_json(trio));
        return problem;
    }

    Instance written(const std::vector<std::size_t>& sequence) {
        shuffle_numbers();
        const json problem = problem_json();
        const auto start = starts(sequence);
        json order = std::vector<json>(draft_.ranks, json::array()), times = std::vector<Count>(start.size());
        Count makespan = 0;
        for (const std::size_t task : sequence) {
            const std::size_t rank = draft_.items[task].rank;
            order[rank].push_back(number_of_[task]);
            times[number_of_[task]] = start[task];
            makespan = std::max(makespan, start[task] + costs_[task].duration + draft_.tails[rank]);
        }
        json solution{{"format", "pipeweaver-solution/1"},
                      {"problem", problem["name"]},
                      {"order", order},
                      {"start_ns", times},
                      {"makespan_ns", makespan},
                      {"peak_bytes", peaks(sequence)},
                      {"lower_bound_ns", nullptr}};
        if (!modes_.empty() || problem.contains("pairs")) solution["mode"] = modes_;
        if (chance(70)) solution["lower_bound_ns"] = number(1, makespan);
        if (chance(80)) solution["problem_sha256"] = sha256(problem.dump());
        return {problem.dump(chance(50) ? 1 : -1), solution.dump()};
    }

    std::uint64_t seed_;
    Random random_;
    std::optional<Shape> shape_;
    Sizes sizes_;
    bool pairs_ = true;
    Draft draft_;
    std::vector<Cost> costs_;         // per task, under modes_
    std::vector<std::size_t> modes_;  // per pair
    std::vector<std::size_t> number_of_;
};

}  // namespace

Instance random_instance(std::uint64_t seed) { return Maker(seed).make(); }

std::string random_problem_text(const Shape& shape, std::uint64_t number) { return Maker(shape, number).make_shaped(); }

}  // namespace pipeweaver::testing
