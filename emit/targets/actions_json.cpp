// Action lists as text: actions.json, and the part of it that is one rank's.
#include "emit/targets/actions_layouts.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/object_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <array>
#include <numeric>
#include <set>
#include <utility>

namespace pipeweaver::emit {

using namespace schedule;
using Writer = nlohmann::ordered_json;

namespace {

constexpr std::array<std::string_view, 3> message_names{"send", "receive", "wait"};

template <class Number>
std::string list_text(const std::vector<Number>& all) {
    return fmt::format("[{}]", fmt::join(all, ","));
}

void describe(ObjectText& json, const Pass& pass) {
    json.integer("stage", pass.stage).integer("microbatch", pass.microbatch).integer("item", pass.item);
}

std::string written(const Pass& pass) {
    ObjectText json;
    describe(json, pass);
    std::string text;
    json.append_to(text);
    return text;
}

Writer written(const ActionStage& stage) {
    const StageRole& role = stage.role;
    Writer parts = Writer::array();
    for (std::size_t k = 0; k < stage.parts.size(); ++k) {
        const StagePart& part = stage.parts[k];
        Writer entry{{"module", part.module}};
        if (part.first_layer) entry["first_layer"] = *part.first_layer;
        if (part.layers) entry["layers"] = *part.layers;
        entry["trainable"] = static_cast<bool>(role.parts_trained[k]);
        parts.push_back(std::move(entry));
    }
    Writer json{{"stage", stage.stage}, {"rank", stage.rank}};
    if (stage.layout) {
        json["tp"] = stage.layout->tp;
        json["copies"] = stage.layout->copies;
        if (stage.layout->copies > 1) json["sharing"] = name_of(stage.layout->sharing);
        if (stage.layout->in_phases) json["phase"] = true;
    }
    json["chain"] = role.chain;
    json["trainable"] = role.trained;
    json["gradient"] = role.gradient;
    json["reads_batch"] = role.reads_batch;
    json["inputs"] = role.inputs;
    json["parts"] = std::move(parts);
    return json;
}

std::string written(const ActionShare& share) {
    Writer copies = Writer::array(), items = Writer::array();
    for (const auto& pieces : share.copies) {
        Writer& copy = copies.emplace_back(Writer::array());
        for (const emulator::Piece& piece : pieces) copy.push_back({piece.sequence, piece.first, piece.end});
    }
    Writer json{{"chain", share.chain}, {"microbatch", share.microbatch}, {"item", share.item}};
    if (share.stage) json["stage"] = *share.stage;
    json["lengths"] = share.lengths;
    json["reduction"] = share.reduction;
    json["copies"] = std::move(copies);
    for (const ItemPlace& one : share.of) items.push_back({one.microbatch, one.place});
    if (share.stage) json["of"] = std::move(items);
    return json.dump();
}

void describe(ObjectText& json, const ActionTensor& tensor, std::size_t number) {
    json.integer("tensor", number).text("kind", tensor.gradient ? "gradient" : "activation");
    json.raw("from", written(tensor.from)).raw("to", written(tensor.to));
    json.raw("shape", tensor.shape.empty() ? "null" : list_text(tensor.shape));
    json.raw(tensor.gradient ? "of" : "gradient", tensor.reverse ? std::to_string(*tensor.reverse) : "null");
    if (!tensor.gradient) {
        json.text("join", tensor.by_item ? "item" : "previous");
        if (!tensor.slices.empty()) json.raw("slices", Writer(tensor.slices).dump());
    }
    json.text("dtype", tensor.dtype);
    if (tensor.per_gpu) json.integer("bytes_per_gpu", tensor.per_gpu->count);
}

// Per tensor that a rank waits for: see RankLists.
using Freed = std::vector<std::vector<std::size_t>>;

void describe(ObjectText& json, const Compute& action, const Freed*) {
    const char op = letter(action.kind);
    json.text("op", {&op, 1}).integer("task", action.task);
    describe(json, action.pass);
    json.text("module", action.module);
    if (action.kind != TaskKind::weight_gradient) json.text("recompute", name_of(action.recompute));
    if (action.loss_weight) json.number("loss_weight", *action.loss_weight);
}

void describe(ObjectText& json, const Message& action, const Freed* freed) {
    json.text("op", message_names[static_cast<std::size_t>(action.op)]).integer("tensor", action.tensor);
    if (action.op != Message::Op::wait)
        json.integer("peer", action.peer).integer("tag", action.tag);
    else if (freed != nullptr && !(*freed)[action.tensor].empty())
        json.raw("freed", list_text((*freed)[action.tensor]));
}

void describe(ObjectText& json, const Reduce& action, const Freed*) {
    json.text("op", "reduce").raw("stages", list_text(action.stages));
}

void append_rank(std::string& out, const std::vector<Action>& list, const Freed* freed = nullptr) {
    ObjectText json;
    out += '[';
    for (const Action& action : list) {
        if (&action != list.data()) out += ",\n ";
        json.clear();
        std::visit([&](const auto& one) { describe(json, one, freed); }, action);
        json.append_to(out);
    }
    out += ']';
}

// A list with an entry a line; `append` adds entry i.
template <class Append>
void append_lines(std::string& out, std::size_t count, Append append) {
    out += '[';
    for (std::size_t i = 0; i < count; ++i) {
        out += i == 0 ? "\n" : ",\n";
        append(i);
    }
    out += count == 0 ? "]" : "\n]";
}

// What the whole lists and those of a rank begin with.
Writer head_of(const ActionLists& actions, std::string_view format) {
    Writer head{{"format", format},
                {"problem", actions.problem},
                {"replica", actions.replica},
                {"replicas", actions.replicas},
                {"ranks", actions.ranks.size()}};
    if (actions.gpus == 1) return head;
    head["gpus"] = actions.gpus;
    head["sequence_parallel"] = actions.sequence_parallel;
    return head;
}

// The head, the stages, and of the shares those in `shares`.
std::string begun(const Writer& head, const ActionLists& actions, const std::vector<std::size_t>& shares) {
    std::string text = head.dump();
    text.pop_back();
    text += ",\n\"stages\":";
    append_lines(text, actions.stages.size(), [&](std::size_t i) { text += written(actions.stages[i]).dump(); });
    if (actions.shares.empty()) return text;
    text += ",\n\"shares\":";
    append_lines(text, shares.size(), [&](std::size_t i) { text += written(actions.shares[shares[i]]); });
    return text;
}

void append_tensor(std::string& out, ObjectText& json, const ActionLists& actions, std::size_t number) {
    json.clear();
    describe(json, actions.tensors[number], number);
    json.append_to(out);
}

}  // namespace

std::string to_json(const ActionLists& actions) {
    Writer head = head_of(actions, "pipeweaver-actions/1");
    head["most_alive"] = actions.most_alive;
    std::vector<std::size_t> shares(actions.shares.size());
    std::iota(shares.begin(), shares.end(), std::size_t{0});
    std::string text = begun(head, actions, shares);
    text += ",\n\"tensors\":";
    ObjectText json;
    append_lines(text, actions.tensors.size(), [&](std::size_t i) { append_tensor(text, json, actions, i); });
    text += ",\n\"actions\":";
    append_lines(text, actions.ranks.size(), [&](std::size_t r) { append_rank(text, actions.ranks[r]); });
    text += "}\n";
    return text;
}

RankLists::RankLists(const ActionLists& all)
    : all_(all), tensors_(all.ranks.size()), shares_(all.ranks.size()), freed_(all.tensors.size()) {
    for (std::size_t t = 0; t < all.tensors.size(); ++t) {
        const std::size_t from = rank_of(all.tensors[t].from), to = rank_of(all.tensors[t].to);
        tensors_[from].push_back(t);
        if (to != from) tensors_[to].push_back(t);
    }
    for (const auto& list : all.ranks) add_freed(list);
    add_shares();
    sha256_ = sha256(emit::to_json(all));
}

std::size_t RankLists::rank_of(const Pass& pass) const {
    return all_.stages[static_cast<std::size_t>(pass.stage)].rank;
}

// Of what a rank runs, and of what comes to it.
void RankLists::add_shares() {
    const ShareOf shares(all_);
    std::vector<std::set<std::size_t>> mine(all_.ranks.size());
    const auto add = [&](std::size_t rank, const Pass& pass) {
        if (const auto found = shares.find(all_.stages[static_cast<std::size_t>(pass.stage)], pass))
            mine[rank].insert(*found);
    };
    for (std::size_t r = 0; r < all_.ranks.size(); ++r)
        for (const Action& action : all_.ranks[r])
            if (const auto* compute = std::get_if<Compute>(&action)) add(r, compute->pass);
    for (const ActionTensor& tensor : all_.tensors) add(rank_of(tensor.to), tensor.from);
    for (std::size_t r = 0; r < mine.size(); ++r) shares_[r].assign(mine[r].begin(), mine[r].end());
}

// What a rank has waited for by the time that it sends something to the one that it came from.
void RankLists::add_freed(const std::vector<Action>& list) {
    std::vector<std::vector<std::size_t>> waited(all_.ranks.size());  // since the last message to each rank
    for (const Action& action : list) {
        const auto* message = std::get_if<Message>(&action);
        if (message == nullptr) continue;
        if (message->op == Message::Op::wait)
            waited[rank_of(all_.tensors[message->tensor].from)].push_back(message->tensor);
        else if (message->op == Message::Op::send)
            freed_[message->tensor] = std::exchange(waited[message->peer], {});
    }
}

std::string RankLists::to_json(std::size_t rank) const {
    Writer head = head_of(all_, "pipeweaver-rank-actions/1");
    head["rank"] = rank;
    head["lists_sha256"] = sha256_;
    head["most_alive"] = all_.most_alive[rank];
    std::string text = begun(head, all_, shares_[rank]);
    text += ",\n\"tensors\":";
    ObjectText json;
    const auto& mine = tensors_[rank];
    append_lines(text, mine.size(), [&](std::size_t i) { append_tensor(text, json, all_, mine[i]); });
    text += ",\n\"actions\":";
    append_rank(text, all_.ranks[rank], &freed_);
    text += "}\n";
    return text;
}

}  // namespace pipeweaver::emit
