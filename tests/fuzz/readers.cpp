#include "tests/fuzz/readers.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/emulator/recipe.hpp"
#include "pipeweaver/partition/partition_file.hpp"
#include "pipeweaver/planner/record.hpp"
#include "pipeweaver/schedule/solution.hpp"
#include "pipeweaver/workloads/batch.hpp"
#include "pipeweaver/workloads/catalogue.hpp"
#include "service/routes.hpp"

#include <functional>
#include <optional>
#include <stdexcept>
#include <string>

namespace pipeweaver::fuzz {

namespace {

const workloads::Model& model() {
    static const workloads::Model one = workloads::find_model("dip-vlm-s");
    return one;
}

const emulator::Setup& setup() {
    static const emulator::Setup one{model(), workloads::find_cluster("h100-sxm:16"), {.tp = 4, .pp = 4}, nullptr};
    return one;
}

const schedule::ProblemFile& problem() {
    static const schedule::ProblemFile one = schedule::parse_problem("problem", R"({"format":"pipeweaver-problem/1",
"name":"p","source":"s","ranks":[{"capacity_bytes":null,"base_bytes":0}],"tasks":[{"id":0,"rank":0,"kind":"F",
"duration_ns":1,"acquire_bytes":0,"release_bytes":0,"label":"a"}],"edges":[]})");
    return one;
}

// A server with a session that is never opened: what is asked is read and refused, not planned.
void ask(std::string_view bytes) {
    static std::optional<std::string> moved;
    static service::Metrics metrics;
    static service::Store store("", {}, moved);
    static service::Planning planning(store, metrics, 1, service::Limits{.sessions = 0, .open = {}},
                                      [](const auto&, const auto&) {});
    static service::Routes routes(planning, metrics, "", [](Duration, const std::function<void()>&) {});
    service::Question question;
    const auto line = [&bytes] {
        const std::size_t end = bytes.find('\n');
        std::string text(bytes.substr(0, end));
        bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
        return text;
    };
    question.method = line();
    question.path = line();
    question.host = line();
    question.content_type = "application/json";
    question.query["wait_ms"] = line();
    question.body = bytes;
    bool answered = false;
    routes.answer(question, [&](const service::Answer& answer) {
        answered = true;
        if (answer.status < 200 || answer.status >= 500) throw std::logic_error(answer.body);
    });
    if (!answered) throw std::logic_error("no answer");
}

}  // namespace

const std::map<std::string_view, Reader>& readers() {
    static const std::map<std::string_view, Reader> all{
        {"batch", [](std::string_view bytes) { static_cast<void>(workloads::parse_batch("b", bytes, model())); }},
        {"problem", [](std::string_view bytes) { static_cast<void>(schedule::parse_problem("p", bytes)); }},
        {"solution",
         [](std::string_view bytes) { static_cast<void>(schedule::parse_schedule("s", bytes, problem())); }},
        {"partition",
         [](std::string_view bytes) {
             static_cast<void>(partition::parse_partition(JsonDocument("p", bytes), setup()));
         }},
        {"recipe", [](std::string_view bytes) { static_cast<void>(emulator::parse_recipe(JsonDocument("r", bytes))); }},
        {"model",
         [](std::string_view bytes) {
             if (is_a_document(bytes)) static_cast<void>(workloads::find_model(std::string(bytes)));
         }},
        {"cluster",
         [](std::string_view bytes) {
             if (is_a_document(bytes)) static_cast<void>(workloads::find_cluster(bytes));
         }},
        {"configuration",
         [](std::string_view bytes) {
             planner::PlanConfiguration().configure(JsonDocument::yaml("c.yaml", bytes).root());
         }},
        {"how", [](std::string_view bytes) { static_cast<void>(planner::parse_how("h", bytes)); }},
        {"request", ask}};
    return all;
}

}  // namespace pipeweaver::fuzz
