// Action lists as text: actions.json, and the part of it that is one rank's.
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/object_text.hpp"
#include "pipeweaver/emit/actions.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <array>
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
    return {{"stage", stage.stage},      {"rank", stage.rank},        {"chain", role.chain},
            {"trainable", role.trained}, {"gradient", role.gradient}, {"reads_batch", role.reads_batch},
            {"inputs", role.inputs},     {"parts", std::move(parts)}};
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

std::string begun(const Writer& head, const std::vector<ActionStage>& stages) {
    std::string text = head.dump();
    text.pop_back();
    text += ",\n\"stages\":";
    append_lines(text, stages.size(), [&](std::size_t i) { text += written(stages[i]).dump(); });
    return text;
}

void append_tensor(std::string& out, ObjectText& json, const ActionLists& actions, std::size_t number) {
    json.clear();
    describe(json, actions.tensors[number], number);
    json.append_to(out);
}

}  // namespace

std::string to_json(const ActionLists& actions) {
    const Writer head{{"format", "pipeweaver-actions/1"}, {"problem", actions.problem},
                      {"replica", actions.replica},       {"replicas", actions.replicas},
                      {"ranks", actions.ranks.size()},    {"most_alive", actions.most_alive}};
    std::string text = begun(head, actions.stages);
    text += ",\n\"tensors\":";
    ObjectText json;
    append_lines(text, actions.tensors.size(), [&](std::size_t i) { append_tensor(text, json, actions, i); });
    text += ",\n\"actions\":";
    append_lines(text, actions.ranks.size(), [&](std::size_t r) { append_rank(text, actions.ranks[r]); });
    return text + "}\n";
}

RankLists::RankLists(const ActionLists& all) : all_(all), tensors_(all.ranks.size()), freed_(all.tensors.size()) {
    for (std::size_t t = 0; t < all.tensors.size(); ++t) {
        const std::size_t from = rank_of(all.tensors[t].from), to = rank_of(all.tensors[t].to);
        tensors_[from].push_back(t);
        if (to != from) tensors_[to].push_back(t);
    }
    for (const auto& list : all.ranks) add_freed(list);
    sha256_ = sha256(emit::to_json(all));
}

std::size_t RankLists::rank_of(const Pass& pass) const {
    return all_.stages[static_cast<std::size_t>(pass.stage)].rank;
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
    const Writer head{{"format", "pipeweaver-rank-actions/1"},
                      {"problem", all_.problem},
                      {"replica", all_.replica},
                      {"replicas", all_.replicas},
                      {"ranks", all_.ranks.size()},
                      {"rank", rank},
                      {"lists_sha256", sha256_},
                      {"most_alive", all_.most_alive[rank]}};
    std::string text = begun(head, all_.stages);
    text += ",\n\"tensors\":";
    ObjectText json;
    const auto& mine = tensors_[rank];
    append_lines(text, mine.size(), [&](std::size_t i) { append_tensor(text, json, all_, mine[i]); });
    text += ",\n\"actions\":";
    append_rank(text, all_.ranks[rank], &freed_);
    return text + "}\n";
}

}  // namespace pipeweaver::emit
