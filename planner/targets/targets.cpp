#include "pipeweaver/planner/targets.hpp"

#include "pipeweaver/base/error.hpp"

#include <algorithm>

namespace pipeweaver::planner {

// Each target's rules in a file of its own.
std::optional<std::string> inexpressible_in_torch_csv(const schedule::Problem& problem);
search::Rules rules_of_torch_csv(const schedule::Problem& problem);
std::optional<std::string> breaks_torch_csv(const schedule::Problem& problem, const schedule::Schedule& schedule);

const std::vector<Target>& targets() {
    static const std::vector<Target> all{{.name = "free",
                                          .option = "torch-actions",
                                          .about = "an executor that runs whatever the problem allows",
                                          .folder = ""},
                                         {.name = "torch-csv",
                                          .option = "torch-csv",
                                          .about = "PyTorch's pipeline runtime: one chain, fixed shapes",
                                          .folder = "torch",
                                          .fixed_chain = true,
                                          .input_gradient_frees = false,
                                          .buffers_for_all = true,
                                          .inexpressible = inexpressible_in_torch_csv,
                                          .rules = rules_of_torch_csv,
                                          .breaks = breaks_torch_csv}};
    return all;
}

const Target& target(std::string_view name) {
    const auto& all = targets();
    return *std::find_if(all.begin(), all.end(), [&](const Target& one) { return one.name == name; });
}

std::vector<std::string> target_options() {
    std::vector<std::string> options;
    for (const Target& one : targets()) options.push_back(one.option);
    return options;
}

std::string target_called(std::string_view option) {
    for (const Target& one : targets())
        if (one.option == option) return one.name;
    return targets().front().name;
}

search::Rules rules_of(const Target& target, const schedule::Problem& problem) {
    if (target.inexpressible != nullptr)
        if (const auto why = target.inexpressible(problem)) fail(ErrorKind::limit, "{}: {}", target.name, *why);
    return target.rules == nullptr ? search::Rules{} : target.rules(problem);
}

}  // namespace pipeweaver::planner
