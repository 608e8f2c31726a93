#include "emulator/step/phases.hpp"

#include "emulator/pricing/stage_memory.hpp"
#include "emulator/step/step_parts.hpp"
#include "pipeweaver/workloads/module_roles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <queue>

namespace pipeweaver::emulator {

using namespace schedule;

DealtCosts::DealtCosts(const StepInput& input)
    : input_(input), modules_(phase_modules(input.layouts)), layers_(*input.setup, input.layouts, input.replica) {}

const std::vector<PassShape>& DealtCosts::shapes(const DealtItem& item) const {
    return input_.units[item.microbatch][input_.chains.size() + item.phase][item.unit].shapes;
}

StageLayers DealtCosts::stage(const DealtItem& item, RankId rank) const {
    const std::size_t module = modules_[item.phase];
    return {rank, {{module, 0, input_.setup->model.modules[module].architecture.layers}}};
}

PassCost DealtCosts::cost(RankId rank, std::span<const DealtItem> items, PassKind pass, Recompute recompute) {
    // What is fetched ahead for one item runs beside the one before.
    if (!layers_.recipe().is_serial() || recompute == Recompute::offload)
        return cost_of(pieces(rank, items, pass, recompute), layers_.recipe());
    PassCost sum;
    for (const DealtItem& item : items)
        sum += &item == items.data() ? layers_.task(stage(item, rank), shapes(item), pass, recompute)
                                     : layers_.stage(stage(item, rank), shapes(item), pass, recompute);
    return sum;
}

std::vector<PassPiece> DealtCosts::pieces(RankId rank, std::span<const DealtItem> items, PassKind pass,
                                          Recompute recompute) const {
    std::vector<PassPiece> all;
    for (const DealtItem& item : items) {
        auto more = &item == items.data() ? layers_.task_pieces(stage(item, rank), shapes(item), pass, recompute)
                                          : layers_.pieces(stage(item, rank), shapes(item), pass, recompute);
        std::move(more.begin(), more.end(), std::back_inserter(all));
    }
    return all;
}

PassCost DealtCosts::blocks_forward(RankId rank, std::span<const DealtItem> items) {
    PassCost sum;
    for (const DealtItem& item : items) sum += layers_.blocks_forward(stage(item, rank), shapes(item), Recompute::full);
    return sum;
}

namespace {

// Of all outputs that leave the modules in phases.
std::int64_t bytes_of_outputs(const StepInput& input) {
    const auto phases = phase_modules(input.layouts);
    const workloads::Model& model = input.setup->model;
    std::int64_t sum = 0;
    for (std::size_t d = 0; d < phases.size(); ++d)
        for (const auto& edge : model.edges) {
            if (edge.from != phases[d] || input.layouts[edge.to].in_phases) continue;
            const auto& module = model.modules[edge.from];
            const std::int64_t columns = edge.projector_out > 0 ? edge.projector_out : module.architecture.hidden;
            const std::int64_t value = input.setup->recipe.execution_of(module).value_bytes();
            for (const auto& microbatch : input.units)
                for (const Unit& item : microbatch[input.chains.size() + d])
                    sum += value * columns * (item.shapes[edge.from].positions() / edge.token_reduction);
        }
    return sum;
}

// Of it, what each GPU of rank 0 takes in.
Bytes arriving(const StepInput& input) { return Bytes{bytes_of_outputs(input) / input.setup->layout.gpus_of_rank()}; }

class PhaseBuilder {
public:
    PhaseBuilder(const StepInput& input, StepProblem& step)
        : in_(input), out_(step), costs_(input), ends_(ends_of_chain()), lag_(lag_of(input)) {
        const auto& model = in_.setup->model;
        const auto reached = workloads::gradient_reaches(model);
        for (const std::size_t m : costs_.modules()) {
            has_backward_ = has_backward_ || reached[m] || trains(model, {m, 0, model.modules[m].architecture.layers});
            name_ += (name_.empty() ? "" : "+") + model.modules[m].name;
        }
    }

    void run() {
        const auto gpus = out_.dealt = deal();
        const auto of_rank = static_cast<std::size_t>(in_.setup->layout.gpus_of_rank());
        for (std::size_t r = 0; r < gpus.size() / of_rank; ++r) {
            std::vector<Items> mine(gpus.begin() + static_cast<std::ptrdiff_t>(r * of_rank),
                                    gpus.begin() + static_cast<std::ptrdiff_t>((r + 1) * of_rank));
            std::erase_if(mine, [](const Items& items) { return items.empty(); });
            if (!mine.empty()) add_rank(RankId{static_cast<std::uint32_t>(r)}, mine);
        }
        out_.memory.front().buffers += arriving(in_);
    }

private:
    using Items = std::vector<DealtItem>;  // of a GPU

    // First tasks of the chain and its last, a pair for each microbatch.
    struct Ends {
        std::vector<TaskId> forwards, backwards;
    };

    static TransferLag lag_of(const StepInput& input) {
        const auto sent = exchange_of(input);
        return sent ? transfer_lag(*input.setup, *sent, input.setup->layout.tp) : TransferLag{};
    }

    Ends ends_of_chain() const {
        std::map<std::pair<std::int64_t, TaskKind>, TaskId> first;
        const auto& tasks = out_.problem.tasks;
        for (std::uint32_t i = 0; i < tasks.size(); ++i) {
            const auto [place, added] = first.try_emplace({*tasks[i].microbatch, tasks[i].kind}, TaskId{i});
            if (!added && *tasks[i].stage < *tasks[index(place->second)].stage) place->second = TaskId{i};
        }
        Ends ends;
        for (const auto& [key, task] : first)
            (key.second == TaskKind::forward ? ends.forwards : ends.backwards).push_back(task);
        return ends;
    }

    // Per GPU of the replica.
    std::vector<Items> deal() {
        Items items;
        for (std::size_t mb = 0; mb < in_.units.size(); ++mb)
            for (std::size_t d = 0; d < costs_.modules().size(); ++d)
                for (std::size_t u = 0; u < in_.units[mb][in_.chains.size() + d].size(); ++u)
                    items.push_back({d, mb, u});
        std::vector<std::int64_t> time;
        const Recompute mode = in_.modes_on(RankId{0}).front();
        for (const DealtItem& item : items)
            time.push_back((costs_.cost(RankId{0}, {&item, 1}, PassKind::forward, mode).time +
                            costs_.cost(RankId{0}, {&item, 1}, PassKind::backward, mode).time)
                               .count());
        std::vector<std::size_t> order(items.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return time[a] > time[b]; });
        const Layout& layout = in_.setup->layout;
        std::vector<Items> gpus(static_cast<std::size_t>(layout.gpus_of_rank() * layout.pp));
        using Load = std::pair<std::int64_t, std::size_t>;  // of a GPU, and which; ties go to the first
        std::priority_queue<Load, std::vector<Load>, std::greater<>> loads;
        for (std::size_t g = 0; g < gpus.size(); ++g) loads.push({0, g});
        for (const std::size_t i : order) {
            const auto [load, gpu] = loads.top();
            loads.pop();
            gpus[gpu].push_back(items[i]);
            loads.push({load + time[i], gpu});
        }
        return gpus;
    }

    struct Longest {
        const Items* items = nullptr;
        PassCost cost;
    };

    Longest longest(RankId rank, const std::vector<Items>& gpus, PassKind pass, Recompute recompute) {
        Longest found;
        for (const Items& items : gpus) {
            const PassCost cost = costs_.cost(rank, items, pass, recompute);
            if (found.items == nullptr || cost.time > found.cost.time) found = {&items, cost};
        }
        return found;
    }

    // Where passes may choose, one is no shorter for what it copies, as in a chain.
    Duration time_of(const Longest& one, RankId rank, const std::vector<Items>& gpus, PassKind pass,
                     Recompute recompute) {
        if (!recompute.copies() || in_.modes_on(rank).size() == 1) return std::max(Duration{1}, one.cost.time);
        const Duration keeping = longest(rank, gpus, pass, Recompute::none).cost.time;
        return std::max({Duration{1}, one.cost.time, keeping});
    }

    Mode memory_of(RankId rank, const std::vector<Items>& gpus, Recompute recompute) const {
        Mode mode;
        for (const Items& items : gpus) {
            Bytes held;
            for (const DealtItem& item : items) {
                const auto pass =
                    pass_memory(in_, costs_.stage(item, rank), costs_.shapes(item), recompute, has_backward_);
                held += pass.held;
                mode.forward_transient = std::max(mode.forward_transient, pass.forward_transient);
                mode.transient = std::max(mode.transient, pass.transient);
            }
            mode.held = std::max(mode.held, held);
        }
        return mode;
    }

    TaskId add_task(RankId rank, TaskKind kind, std::vector<Longest> by_mode) {
        const TaskId id{static_cast<std::uint32_t>(out_.problem.tasks.size())};
        Task task;
        task.rank = rank;
        task.kind = kind;
        task.module = name_;
        task.label = fmt::format("{}.r{}.{}", name_, index(rank), letter(kind));
        out_.problem.tasks.push_back(std::move(task));
        const Longest& usual = by_mode.front();
        const bool again = kind == TaskKind::backward && by_mode.size() > 1;
        out_.recompute.push_back(again ? out_.keep(costs_.blocks_forward(rank, *usual.items)) : 0);
        out_.mix.push_back(mix_of(*usual.items, rank));
        out_.cost.push_back(out_.keep(usual.cost));
        out_.unit.push_back(0);
        out_.chain.push_back(in_.chains.size());
        auto& phase = out_.phases.emplace_back(PhasePass{id, {}});
        for (const Longest& one : by_mode) phase.longest.push_back(*one.items);
        return id;
    }

    std::uint32_t mix_of(const Items& items, RankId rank) {
        if (costs_.modules().size() == 1) return static_cast<std::uint32_t>(costs_.modules().front());
        std::map<std::size_t, double> time;
        double whole = 0;
        for (const DealtItem& item : items) {
            const auto ns = costs_.cost(rank, {&item, 1}, PassKind::forward, in_.modes_on(rank).front()).time.count();
            time[costs_.modules()[item.phase]] += static_cast<double>(ns);
            whole += static_cast<double>(ns);
        }
        ModuleMix mix;
        for (const auto& [module, ns] : time) mix.push_back({module, ns / whole});
        out_.mixes.push_back(std::move(mix));
        return static_cast<std::uint32_t>(out_.mixes.size() - 1);
    }

    void connect(TaskId from, TaskId to) {
        out_.transfers.push_back(
            {out_.problem.edges.size(), arriving_, 0, 0, std::nullopt, lag_.error, lag_.time, Duration{0}});
        out_.problem.edges.push_back({from, to, lag_.time});
    }

    void add_rank(RankId rank, const std::vector<Items>& gpus) {
        std::vector<Longest> forward, backward;
        std::vector<Mode> modes;
        for (const Recompute recompute : in_.modes_on(rank)) {
            forward.push_back(longest(rank, gpus, PassKind::forward, recompute));
            modes.push_back(memory_of(rank, gpus, recompute));
            modes.back().forward = time_of(forward.back(), rank, gpus, PassKind::forward, recompute);
            if (!has_backward_) continue;
            backward.push_back(longest(rank, gpus, PassKind::backward, recompute));
            modes.back().backward = time_of(backward.back(), rank, gpus, PassKind::backward, recompute);
        }
        const TaskId first = add_task(rank, TaskKind::forward, std::move(forward));
        for (const TaskId task : ends_.forwards) connect(first, task);
        if (!has_backward_) {
            const Bytes passing = modes.front().forward_transient;
            apply(out_.problem.tasks[index(first)], {modes.front().forward, passing, passing});
            return;
        }
        const TaskId last = add_task(rank, TaskKind::backward, std::move(backward));
        for (const TaskId task : ends_.backwards) connect(task, last);
        Pair pair{first, last, {}, std::move(modes)};
        const auto costs = costs_in(pair, pair.modes.front());
        apply(out_.problem.tasks[index(first)], costs[0]);
        apply(out_.problem.tasks[index(last)], costs[1]);
        out_.problem.pairs.push_back(std::move(pair));
        if (in_.priced_split) out_.split.emplace_back();
    }

    const StepInput& in_;
    StepProblem& out_;
    DealtCosts costs_;
    Ends ends_;
    TransferLag lag_;
    Bytes arriving_ = arriving(in_);
    bool has_backward_ = false;
    std::string name_;
};

}  // namespace

std::optional<costdb::PointToPoint> exchange_of(const StepInput& input) {
    const Layout& layout = input.setup->layout;
    const Bytes message = arriving(input);
    if (layout.gpus_of_rank() * layout.pp == 1 || message == Bytes{}) return std::nullopt;
    return between_ranks(*input.setup, RankId{static_cast<std::uint32_t>(layout.pp - 1)}, RankId{0}, message);
}

void add_phases(const StepInput& input, StepProblem& step) { PhaseBuilder(input, step).run(); }

}  // namespace pipeweaver::emulator
