// actions.json read back.
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emit/actions.hpp"

#include <fmt/format.h>

namespace pipeweaver::emit {

using namespace schedule;

namespace {

std::size_t count_at(const Json& object, std::string_view key) {
    return static_cast<std::size_t>(object.at(key).integer());
}

// Of a key that may be missing or null.
std::optional<std::int64_t> integer_if_any(const Json& object, std::string_view key) {
    const auto member = object.find(key);
    return member && !member->is_null() ? std::optional(member->integer()) : std::nullopt;
}

template <class Value, class Read>
std::vector<Value> list_of(const Json& list, Read read) {
    std::vector<Value> values;
    for (const Json& one : list.elements()) values.push_back(read(one));
    return values;
}

std::vector<std::int64_t> integers(const Json& list) {
    return list_of<std::int64_t>(list, [](const Json& one) { return one.integer(); });
}

Pass read_pass(const Json& json) {
    return {json.at("stage").integer(), json.at("microbatch").integer(), json.at("item").integer()};
}

bool flag_if_any(const Json& object, std::string_view key) {
    const auto member = object.find(key);
    return member && member->boolean();
}

// Without the keys, and with one copy on all `gpus` of a rank: none.
std::optional<emulator::ModuleLayout> read_layout(const Json& json, std::int64_t gpus) {
    emulator::ModuleLayout layout{gpus, 1};
    if (const auto tp = json.find("tp")) layout.tp = tp->integer(1);
    if (const auto copies = json.find("copies")) layout.copies = copies->integer(1);
    if (const auto sharing = json.find("sharing"))
        layout.sharing = *emulator::sharing_named(sharing->one_of({"dealt", "split", "hybrid"}));
    layout.in_phases = flag_if_any(json, "phase");
    if (layout.tp == gpus && layout.copies == 1 && !layout.in_phases) return std::nullopt;
    return layout;
}

ActionStage read_stage(const Json& json, std::int64_t gpus) {
    ActionStage stage{json.at("stage").integer(), count_at(json, "rank"), {}, {}, read_layout(json, gpus)};
    StageRole& role = stage.role;
    role.chain = json.at("chain").text();
    role.trained = json.at("trainable").boolean();
    role.gradient = json.at("gradient").boolean();
    role.reads_batch = json.at("reads_batch").boolean();
    role.inputs = list_of<std::string>(json.at("inputs"), [](const Json& one) { return one.text(); });
    for (const Json& part : json.at("parts").elements()) {
        stage.parts.push_back(
            {part.at("module").text(), integer_if_any(part, "first_layer"), integer_if_any(part, "layers")});
        const auto trainable = part.find("trainable");
        role.parts_trained.push_back(!trainable || trainable->boolean());
    }
    return stage;
}

Rows read_rows(const Json& json) {
    if (json.size() != 2 || json[0].integer() > json[1].integer())
        json.fail("is no slice: the first row and the end are needed");
    return {json[0].integer(), json[1].integer()};
}

ActionTensor read_tensor(const Json& json, std::size_t place) {
    if (const Json number = json.at("tensor"); number.integer() != static_cast<std::int64_t>(place))
        number.fail(fmt::format("is {}, needed is the tensor's index {}", number.integer(), place));
    ActionTensor tensor;
    tensor.gradient = json.at("kind").one_of({"activation", "gradient"}) == "gradient";
    tensor.from = read_pass(json.at("from"));
    tensor.to = read_pass(json.at("to"));
    if (const Json shape = json.at("shape"); !shape.is_null()) tensor.shape = integers(shape);
    tensor.dtype = json.at("dtype").text();
    if (const auto bytes = integer_if_any(json, "bytes_per_gpu")) tensor.per_gpu = Bytes{*bytes};
    if (tensor.gradient) {
        tensor.reverse = count_at(json, "of");
        return tensor;
    }
    if (const auto gradient = integer_if_any(json, "gradient")) tensor.reverse = static_cast<std::size_t>(*gradient);
    if (const auto join = json.find("join")) tensor.by_item = join->one_of({"previous", "item"}) == "item";
    if (const auto slices = json.find("slices")) tensor.slices = list_of<Rows>(*slices, read_rows);
    return tensor;
}

emulator::Piece read_piece(const Json& json) {
    if (json.size() != 3) json.fail("is no piece: a sequence, its first position and the end are needed");
    return {static_cast<std::size_t>(json[0].integer()), json[1].integer(), json[2].integer()};
}

ItemPlace read_item(const Json& json) {
    if (json.size() != 2) json.fail("is no item: its microbatch and its place there are needed");
    return {json[0].integer(), json[1].integer()};
}

ActionShare read_share(const Json& json) {
    ActionShare share{json.at("chain").text(), json.at("microbatch").integer(), json.at("item").integer()};
    share.stage = integer_if_any(json, "stage");
    share.lengths = integers(json.at("lengths"));
    share.reduction = json.at("reduction").integer();
    share.copies = list_of<std::vector<emulator::Piece>>(
        json.at("copies"), [](const Json& copy) { return list_of<emulator::Piece>(copy, read_piece); });
    if (const auto items = json.find("of")) share.of = list_of<ItemPlace>(*items, read_item);
    return share;
}

Compute read_compute(const Json& json, char op) {
    Compute action;
    action.kind = static_cast<TaskKind>(std::string_view("FBIW").find(op));
    action.task = count_at(json, "task");
    action.pass = read_pass(json);
    if (const auto module = json.find("module")) action.module = module->text();
    if (const auto recompute = json.find("recompute")) {
        const auto mode = emulator::recompute_named(recompute->text());
        if (!mode) recompute->fail(must_be(recompute->text(), one_of(emulator::recompute_names())));
        action.recompute = *mode;
    }
    if (const auto weight = json.find("loss_weight"); weight && !weight->is_null())
        action.loss_weight = weight->number(std::numeric_limits<double>::lowest(), std::numeric_limits<double>::max());
    return action;
}

Action read_action(const Json& json) {
    const std::string op = json.at("op").one_of({"F", "B", "I", "W", "send", "receive", "wait", "reduce"});
    if (op == "reduce") return Reduce{integers(json.at("stages"))};
    if (op == "wait") return Message{Message::Op::wait, count_at(json, "tensor")};
    if (op == "send" || op == "receive")
        return Message{op == "send" ? Message::Op::send : Message::Op::receive, count_at(json, "tensor"),
                       count_at(json, "peer"), json.at("tag").integer()};
    return read_compute(json, op.front());
}

ActionLists from_document(const JsonDocument& document) {
    document.require_format("pipeweaver-actions", 1);
    const Json root = document.root();
    ActionLists actions;
    actions.problem = root.at("problem").text();
    actions.replica = count_at(root, "replica");
    actions.replicas = count_at(root, "replicas");
    actions.most_alive = integers(root.at("most_alive"));
    actions.gpus = integer_if_any(root, "gpus").value_or(1);
    actions.sequence_parallel = flag_if_any(root, "sequence_parallel");
    actions.stages =
        list_of<ActionStage>(root.at("stages"), [&](const Json& stage) { return read_stage(stage, actions.gpus); });
    if (const auto shares = root.find("shares")) actions.shares = list_of<ActionShare>(*shares, read_share);
    for (const Json& tensor : root.at("tensors").elements())
        actions.tensors.push_back(read_tensor(tensor, actions.tensors.size()));
    const Json lists = root.at("actions");
    for (const Json& list : lists.elements()) actions.ranks.push_back(list_of<Action>(list, read_action));
    if (const Json ranks = root.at("ranks"); ranks.integer() != static_cast<std::int64_t>(lists.size()))
        lists.fail(fmt::format("has {} lists, the plan is for {} ranks", lists.size(), ranks.integer()));
    return actions;
}

}  // namespace

ActionLists read_actions(const std::filesystem::path& path) { return from_document(JsonDocument::read_large(path)); }

ActionLists parse_actions(std::string name, std::string_view text) {
    return from_document(JsonDocument(std::move(name), text));
}

}  // namespace pipeweaver::emit
