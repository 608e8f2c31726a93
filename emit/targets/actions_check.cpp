// Whether action lists can be run; says what python/pipeweaver/torch/check.py says of the same lists.
#include "emit/targets/actions_layouts.hpp"

#include <fmt/format.h>

#include <map>
#include <set>

namespace pipeweaver::emit {

using schedule::TaskKind;

namespace {

using Why = std::optional<std::string>;

std::string name_of(const Pass& pass) {
    return fmt::format("stage {}, microbatch {}, item {}", pass.stage, pass.microbatch, pass.item);
}

std::string_view name_of(Message::Op op) {
    return op == Message::Op::send ? "send" : op == Message::Op::receive ? "receive" : "wait";
}

std::string name_of(const Compute& action) {
    return fmt::format("{} of {}", letter(action.kind), name_of(action.pass));
}

// The lists with what every check looks up.
class Checked {
public:
    explicit Checked(const ActionLists& actions) : actions_(actions) {
        for (const ActionStage& stage : actions.stages) stages_[stage.stage] = &stage;
    }

    Why why_not() const {
        if (Why why = wrong_reference()) return why;
        if (Why why = wrong_message()) return why;
        if (Why why = wrong_order()) return why;
        return wrong_reduction();
    }

    const ActionLists& lists() const { return actions_; }

    std::size_t rank_of(const Pass& pass) const { return stages_.at(pass.stage)->rank; }

private:
    // A stage that is not among the plan's.
    Why unknown_stage(const Pass& pass) const {
        if (stages_.contains(pass.stage)) return std::nullopt;
        return fmt::format("stage {} is not among the plan's stages", pass.stage);
    }

    Why wrong_reference() const {
        if (actions_.most_alive.size() != actions_.ranks.size())
            return fmt::format("the plan has lists for {} ranks and activation counts for {}", actions_.ranks.size(),
                               actions_.most_alive.size());
        for (std::size_t t = 0; t < actions_.tensors.size(); ++t)
            if (Why why = wrong_tensor(t)) return why;
        for (std::size_t r = 0; r < actions_.ranks.size(); ++r)
            for (const Action& action : actions_.ranks[r])
                if (Why why = wrong_reference(r, action)) return why;
        return std::nullopt;
    }

    Why wrong_tensor(std::size_t t) const {
        const ActionTensor& tensor = actions_.tensors[t];
        for (const Pass& pass : {tensor.from, tensor.to})
            if (Why why = unknown_stage(pass)) return why;
        if (!tensor.reverse) return std::nullopt;
        const std::size_t number = *tensor.reverse;
        if (number < actions_.tensors.size()) {
            const ActionTensor& other = actions_.tensors[number];
            if (other.gradient != tensor.gradient && other.reverse == t && other.from == tensor.to &&
                other.to == tensor.from)
                return std::nullopt;
        }
        return fmt::format("tensor {}: {} is not its gradient or activation", t, number);
    }

    Why wrong_reference(std::size_t rank, const Action& action) const {
        if (const auto* message = std::get_if<Message>(&action);
            message != nullptr && message->tensor >= actions_.tensors.size())
            return fmt::format("rank {}: {} of tensor {}, which does not exist", rank, name_of(message->op),
                               message->tensor);
        const auto* compute = std::get_if<Compute>(&action);
        if (compute == nullptr) return std::nullopt;
        if (Why why = unknown_stage(compute->pass)) return why;
        if (rank_of(compute->pass) != rank)
            return fmt::format("rank {}: {}: the stage is on another rank", rank, name_of(*compute));
        return std::nullopt;
    }

    struct End {
        std::size_t rank, peer;
        std::int64_t tag;
    };

    // Every tensor between two ranks is sent once and received once, by the right ranks, with one tag.
    Why wrong_message() const {
        std::vector<std::optional<End>> sent(actions_.tensors.size()), received(actions_.tensors.size());
        for (std::size_t r = 0; r < actions_.ranks.size(); ++r)
            for (const Action& action : actions_.ranks[r]) {
                const auto* message = std::get_if<Message>(&action);
                if (message == nullptr || message->op == Message::Op::wait) continue;
                auto& end = (message->op == Message::Op::send ? sent : received)[message->tensor];
                if (end)
                    return fmt::format("rank {}: tensor {} has a second {}", r, message->tensor, name_of(message->op));
                end = End{r, message->peer, message->tag};
            }
        for (std::size_t t = 0; t < actions_.tensors.size(); ++t)
            if (Why why = wrong_ends(t, sent[t], received[t])) return why;
        return std::nullopt;
    }

    Why wrong_ends(std::size_t t, const std::optional<End>& sent, const std::optional<End>& received) const {
        const std::size_t from = rank_of(actions_.tensors[t].from), to = rank_of(actions_.tensors[t].to);
        if (from == to) {
            if (!sent && !received) return std::nullopt;
            return fmt::format("tensor {} stays on rank {}, but is sent or received", t, from);
        }
        if (!sent || !received)
            return fmt::format("tensor {} from rank {} to rank {} has no {}", t, from, to, sent ? "receive" : "send");
        if (sent->rank == from && sent->peer == to && received->rank == to && received->peer == from &&
            sent->tag == received->tag)
            return std::nullopt;
        return fmt::format("tensor {} goes from rank {} to rank {}, but its send and receive have other ranks or tags",
                           t, from, to);
    }

    // Between two ranks, sends and receives stand in the same order on both sides. Pre: nothing else is wrong with
    // them.
    Why wrong_order() const {
        std::map<std::pair<std::size_t, std::size_t>, std::vector<std::size_t>> posted;
        for (std::size_t r = 0; r < actions_.ranks.size(); ++r)
            for (const Action& action : actions_.ranks[r])
                if (const auto* message = std::get_if<Message>(&action);
                    message != nullptr && message->op != Message::Op::wait)
                    posted[{r, message->peer}].push_back(message->tensor);
        for (const auto& [ranks, mine] : posted) {
            const auto& theirs = posted[{ranks.second, ranks.first}];
            for (std::size_t i = 0; i < mine.size(); ++i)
                if (mine[i] != theirs[i])
                    return fmt::format("ranks {} and {} post tensors {} and {} in another order", ranks.first,
                                       ranks.second, mine[i], theirs[i]);
        }
        return std::nullopt;
    }

    // Each trained stage is reduced once on its rank, after its last backward.
    Why wrong_reduction() const {
        std::set<std::int64_t> reduced;
        for (std::size_t r = 0; r < actions_.ranks.size(); ++r)
            for (const Action& action : actions_.ranks[r]) {
                const auto* compute = std::get_if<Compute>(&action);
                if (compute != nullptr && compute->kind != TaskKind::forward && reduced.contains(compute->pass.stage))
                    return fmt::format("rank {}: {} comes behind the stage's reduce", r, name_of(*compute));
                const auto* reduce = std::get_if<Reduce>(&action);
                if (reduce == nullptr) continue;
                for (const std::int64_t stage : reduce->stages) {
                    const auto known = stages_.find(stage);
                    if (known == stages_.end() || known->second->rank != r || !reduced.insert(stage).second)
                        return fmt::format("rank {}: reduces stage {} twice, or does not have it", r, stage);
                }
            }
        for (const auto& [number, stage] : stages_)
            if (stage->role.trained && !reduced.contains(number))
                return fmt::format("stage {} is trained, but its gradients are never reduced", number);
        return std::nullopt;
    }

    const ActionLists& actions_;
    std::map<std::int64_t, const ActionStage*> stages_;
};

// Runs the lists with no more than their order: sends and receives never wait, a wait needs the send.
class Simulation {
public:
    explicit Simulation(const Checked& checked)
        : checked_(checked),
          actions_(checked.lists()),
          at_(actions_.ranks.size()),
          sent_(actions_.tensors.size()),
          received_(actions_.tensors.size()),
          made_(actions_.tensors.size()),
          waited_(actions_.tensors.size()) {
        for (std::size_t t = 0; t < actions_.tensors.size(); ++t) {
            const ActionTensor& tensor = actions_.tensors[t];
            into_[{!tensor.gradient, tensor.to}].push_back(t);
            out_of_[{!tensor.gradient, tensor.from}].push_back(t);
        }
    }

    Why why_not() {
        for (bool moved = true; moved;) {
            moved = false;
            for (std::size_t rank = 0; rank < at_.size(); ++rank)
                while (advance(rank)) moved = true;
            if (wrong_) return wrong_;
        }
        for (std::size_t rank = 0; rank < at_.size(); ++rank)
            if (at_[rank] < actions_.ranks[rank].size())
                return fmt::format("the plan has a cycle: {}", cycle_from(rank));
        return incomplete();
    }

private:
    using Kinds = std::set<std::pair<TaskKind, Pass>>;

    // Does the rank's next action unless it has to wait, none is left, or something is wrong.
    bool advance(std::size_t rank) {
        if (wrong_ || at_[rank] == actions_.ranks[rank].size()) return false;
        const Action& action = actions_.ranks[rank][at_[rank]];
        if (const auto* message = std::get_if<Message>(&action)) {
            if (message->op == Message::Op::wait && !sent_[message->tensor]) return false;
            wrong_ = pass_on(rank, *message);
        } else if (const auto* compute = std::get_if<Compute>(&action)) {
            wrong_ = run(rank, *compute);
        }
        ++at_[rank];
        return !wrong_;
    }

    Why pass_on(std::size_t rank, const Message& message) {
        const std::size_t t = message.tensor;
        switch (message.op) {
            case Message::Op::send:
                if (!made_[t]) return fmt::format("rank {}: sends tensor {} before it is made", rank, t);
                sent_[t] = true;
                break;
            case Message::Op::receive:
                received_[t] = true;
                break;
            case Message::Op::wait:
                if (!received_[t]) return fmt::format("rank {}: waits for tensor {} without receiving it", rank, t);
                waited_[t] = true;
                break;
        }
        return std::nullopt;
    }

    bool done(TaskKind kind, const Pass& pass) const { return done_.contains({kind, pass}); }

    Why out_of_turn(const Compute& action, const std::string& where) const {
        using enum TaskKind;
        const auto [kind, pass] = std::pair(action.kind, action.pass);
        if (done(kind, pass)) return fmt::format("{} comes twice", where);
        if (kind == forward) return std::nullopt;
        const TaskKind before = kind == weight_gradient ? input_gradient : forward;
        if (!done(before, pass)) return fmt::format("{} comes before its {}", where, letter(before));
        if (kind != weight_gradient && done(kind == backward ? input_gradient : backward, pass))
            return fmt::format("{}: the pass has had its backward", where);
        return std::nullopt;
    }

    Why run(std::size_t rank, const Compute& action) {
        const std::string where = fmt::format("rank {}: {}", rank, name_of(action));
        if (Why why = out_of_turn(action, where)) return why;
        done_.emplace(action.kind, action.pass);
        if (action.kind == TaskKind::weight_gradient) return std::nullopt;
        const std::pair key(action.kind == TaskKind::forward, action.pass);
        for (const std::size_t t : into_[key]) {
            const bool local = checked_.rank_of(actions_.tensors[t].from) == rank;
            if (!(local ? made_ : waited_)[t])
                return fmt::format("{} comes before tensor {}, which it needs, is there", where, t);
        }
        for (const std::size_t t : out_of_[key]) made_[t] = true;
        return std::nullopt;
    }

    // The ranks that wait for each other, from `rank` on. Pre: its next action is a wait.
    std::string cycle_from(std::size_t rank) const {
        std::set<std::size_t> seen;
        std::string words;
        while (seen.insert(rank).second) {
            if (at_[rank] == actions_.ranks[rank].size())
                return words + fmt::format(", which has ended: rank {} never sends it", rank);
            const std::size_t t = std::get<Message>(actions_.ranks[rank][at_[rank]]).tensor;
            const std::size_t sender = checked_.rank_of(actions_.tensors[t].from);
            words +=
                fmt::format("{}rank {} waits for tensor {} of rank {}", words.empty() ? "" : ", ", rank, t, sender);
            rank = sender;
        }
        return words;
    }

    Why incomplete() const {
        for (const auto& [kind, pass] : done_)
            if (kind == TaskKind::input_gradient && !done(TaskKind::weight_gradient, pass))
                return fmt::format("I of {} has no W", name_of(pass));
        std::set<Pass> joined;
        for (std::size_t t = 0; t < actions_.tensors.size(); ++t) {
            const ActionTensor& tensor = actions_.tensors[t];
            if (!made_[t]) return fmt::format("tensor {} is never made: {}", t, name_of(tensor.from));
            if (!tensor.gradient && !tensor.by_item && !joined.insert(tensor.to).second)
                return fmt::format("{}: tensor {} is the second that comes from the stage before", name_of(tensor.to),
                                   t);
        }
        return std::nullopt;
    }

    const Checked& checked_;
    const ActionLists& actions_;
    std::vector<std::size_t> at_;
    std::vector<bool> sent_, received_, made_, waited_;  // per tensor
    Kinds done_;
    std::map<std::pair<bool, Pass>, std::vector<std::size_t>> into_, out_of_;  // tensors by direction and pass
    Why wrong_;
};

}  // namespace

std::optional<std::string> why_not_runnable(const ActionLists& actions) {
    const Checked checked(actions);
    if (Why why = checked.why_not()) return why;
    if (Why why = why_not_shared(actions)) return why;
    return Simulation(checked).why_not();
}

}  // namespace pipeweaver::emit
