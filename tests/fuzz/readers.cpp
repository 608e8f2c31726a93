#include "tests/fuzz/readers.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/emulator/recipe.hpp"
#include "pipeweaver/partition/partition_file.hpp"
#include "pipeweaver/planner/record.hpp"
#include "pipeweaver/schedule/solution.hpp"
#include "pipeweaver/workloads/batch.hpp"
#include "pipeweaver/workloads/catalogue.hpp"
#include "tests/fuzz/ask.hpp"

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
