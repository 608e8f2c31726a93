// Which settings that nobody says would make a launch construct: each is tried.
#include "launch/read/megatron_table.hpp"
#include "launch/read/titan_table.hpp"
#include "pipeweaver/launch/spellings.hpp"
#include "pipeweaver/launch/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

namespace pipeweaver::launch {

namespace {

constexpr std::size_t most_named = 3;

// Values to try, by the kind of member: each is read where it is said. None where only the framework knows any.
template <class Launch>
struct Values {
    using Texts = std::vector<std::string>;

    std::string_view choices;

    Texts operator()(bool Launch::*) const { return {"true", "false"}; }
    Texts operator()(std::int64_t Launch::*) const { return {"1", "2", "4", "8", "16", "32", "64"}; }
    Texts operator()(typename Launch::Number Launch::*) const { return {"1", "2", "4", "8", "16", "32", "64"}; }
    template <class Other>
    Texts operator()(Other Launch::*) const {
        Texts some;
        for (std::size_t at = 0; !choices.empty() && at <= choices.size();) {
            const std::size_t end = std::min(choices.find('|', at), choices.size());
            some.emplace_back(choices.substr(at, end - at));
            at = end + 1;
        }
        return some;
    }
};

// A layout that has all layers, as even as they go.
std::vector<std::string> layouts_of(const MegatronLaunch& l) {
    if (!l.layers || l.pp < 2) return {};
    Split split{.ranks = l.pp};
    for (std::int64_t rank = 0; rank < l.pp; ++rank)
        split.layers.push_back(*l.layers / l.pp + (rank < *l.layers % l.pp ? 1 : 0));
    const Spelled spelled = spell_pipeline_layout(split);
    return spelled.says() && !spelled.flags.empty() ? std::vector{spelled.flags.front().value}
                                                    : std::vector<std::string>();
}

using Candidates = std::vector<std::vector<Setting>>;  // of each setting, its values

bool is_said(const SaidLaunch& said, std::string_view name) {
    return std::any_of(said.settings.begin(), said.settings.end(),
                       [&](const Setting& one) { return one.name == name; });
}

void add(std::string_view name, const std::vector<std::string>& values, Candidates& all) {
    std::vector<Setting> some;
    for (const std::string& value : values) some.push_back({std::string(name), {value}, "tried"});
    if (!some.empty()) all.push_back(std::move(some));
}

Candidates candidates_of(const SaidLaunch& said, const MegatronLaunch* launch) {
    Candidates all;
    if (launch == nullptr) {
        for (const TitanRow& row : titan_rows())
            if (!is_said(said, row.name)) add(row.name, std::visit(Values<TitanLaunch>{row.choices}, row.member), all);
        return all;
    }
    for (const MegatronRow& row : megatron_rows()) {
        const std::string_view name = said.dialect == Dialect::bridge_overrides ? row.field : row.flag;
        if (name.empty() || row.of_model || is_said(said, name)) continue;
        const bool is_layout = row.flag == "pipeline-model-parallel-layout";
        const bool is_attention = row.flag == "attention-backend";
        add(name,
            is_layout      ? layouts_of(*launch)
            : is_attention ? std::vector<std::string>{"flash", "fused", "unfused", "local", "null"}
                           : std::visit(Values<MegatronLaunch>{row.choices}, row.member),
            all);
    }
    return all;
}

class Mending {
public:
    Mending(const BrokenRule& rule, const BrokenWith& broken_with) : rule_(rule), broken_with_(broken_with) {}

    // Whether the rule is met with these, and holds.
    bool holds(const std::vector<Setting>& more) const {
        const auto broken = broken_with_(more);
        if (broken.empty()) return true;
        return broken.front().phase >= rule_.phase &&
               std::none_of(broken.begin(), broken.end(), [&](const BrokenRule& one) { return one.id == rule_.id; });
    }

    bool any_holds(const std::vector<Setting>& values) const {
        return std::any_of(values.begin(), values.end(), [&](const Setting& one) { return holds({one}); });
    }

    bool any_holds(const std::vector<Setting>& a, const std::vector<Setting>& b) const {
        for (const Setting& one : a)
            for (const Setting& other : b)
                if (holds({one, other})) return true;
        return false;
    }

private:
    const BrokenRule& rule_;
    const BrokenWith& broken_with_;
};

// The settings of which one value or a pair mends the rule.
std::vector<std::string> mending(const Candidates& all, const Mending& rule) {
    std::vector<std::string> names;
    for (const auto& values : all)
        if (names.size() < most_named && rule.any_holds(values)) names.push_back(values.front().name);
    if (!names.empty()) return names;
    for (std::size_t i = 0; i < all.size(); ++i)
        for (std::size_t j = i + 1; j < all.size(); ++j)
            if (rule.any_holds(all[i], all[j])) return {all[i].front().name, all[j].front().name};
    return {};
}

}  // namespace

std::vector<std::string> settings_that_mend(const SaidLaunch& said, const MegatronLaunch* launch,
                                            const std::vector<BrokenRule>& broken, const BrokenWith& broken_with) {
    const Candidates all = candidates_of(said, launch);
    std::vector<std::string> names;
    for (const BrokenRule& rule : broken) {
        const auto some = mending(all, Mending(rule, broken_with));
        if (some.empty()) return {};
        for (const std::string& name : some)
            if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
    return names;
}

}  // namespace pipeweaver::launch
