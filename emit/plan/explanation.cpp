#include "pipeweaver/emit/explanation.hpp"

#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/base/or_null.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/base/text_table.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <string_view>

namespace pipeweaver::emit {

using schedule::Activity;
using schedule::ChainLink;
using schedule::Changed;
using schedule::Explanation;
using schedule::Problem;
using schedule::RankWait;
using schedule::Shortening;
using Writer = nlohmann::ordered_json;

namespace {

constexpr std::size_t most_links = 16, longest_name = 24;

std::string_view pass_word(schedule::TaskKind kind) {
    constexpr std::array<std::string_view, 5> words{"forward", "backward", "input gradient", "weight gradient",
                                                    "other"};
    return words.at(static_cast<std::size_t>(kind));
}

std::string shortened_name(std::string name) {
    name = printable(name);
    if (name.size() <= longest_name) return name;
    std::size_t kept = longest_name - 3;
    while (kept > 0 && (static_cast<unsigned char>(name[kept]) & 0xc0) == 0x80) --kept;  // no character is cut
    return name.substr(0, kept) + "...";
}

// Of all tasks like this one: "llm forward".
std::string pass_name(const schedule::Task& task) {
    const std::string_view word = pass_word(task.kind);
    return shortened_name(task.module.empty() ? std::string(word) : fmt::format("{} {}", task.module, word));
}

class Told {
public:
    Told(const Problem& problem, const schedule::Query& asked, const Explanation& all)
        : problem_(problem), asked_(asked), all_(all) {}

    std::string text() const {
        std::string text = fmt::format("{}: makespan {}\n", printable(problem_.name), human(all_.times.makespan));
        if (all_.state) text += state_text();
        if (all_.about) text += about_text();
        text += chain_text() + shortening_text();
        if (!asked_.at && !asked_.task) text += waits_text();
        return text;
    }

    Writer json() const {
        Writer json{{"format", "pipeweaver-schedule-explanation/1"},
                    {"problem", problem_.name},
                    {"makespan_ns", all_.times.makespan.count()},
                    {"at", nullptr},
                    {"about", all_.about ? task_json(*all_.about) : Writer()},
                    {"chain", Writer::array()},
                    {"tail_ns", all_.tail.count()},
                    {"shorter", Writer::array()},
                    {"waits", Writer::array()}};
        if (all_.state) json["at"] = state_json();
        for (const ChainLink& link : all_.chain) json["chain"].push_back(link_json(link));
        for (const Shortening& one : all_.shortening) json["shorter"].push_back(shortening_json(one));
        for (std::size_t r = 0; r < all_.waits.size(); ++r) json["waits"].push_back(waits_json(r));
        return json;
    }

private:
    const schedule::Task& task(TaskId id) const { return problem_.tasks[index(id)]; }
    Duration start(TaskId id) const { return Duration{all_.times.start_ns[index(id)]}; }
    Duration takes(TaskId id) const { return Duration{all_.times.end_ns[index(id)]} - start(id); }

    std::string name(TaskId id) const {
        const std::string& label = task(id).label;
        return shortened_name(label.empty() ? fmt::format("task {}", index(id)) : label);
    }

    std::string microbatch(TaskId id) const {
        const auto& one = task(id).microbatch;
        return one ? std::to_string(*one) : "";
    }

    std::string state_text() const {
        const auto& state = *all_.state;
        const std::string span =
            fmt::format("{} ({} to {})", human(state.to - state.from), human(state.from), human(state.to));
        const std::string at = fmt::format("rank {} at {}: ", index(asked_.at->rank), human(asked_.at->time));
        switch (state.doing) {
            case Activity::runs:
                return at + fmt::format("runs {} for {}\n", name(*state.task), span);
            case Activity::waits:
                return at + fmt::format("waits {} before {}\n", span, name(*state.task));
            case Activity::ends:
                return at + fmt::format("does what follows its last task, {}\n", span);
            default:
                if (asked_.at->time < state.to) return at + fmt::format("is done; others take {} more\n", span);
                return at + fmt::format("is done, and so are all others: the schedule ends at {}\n", human(state.to));
        }
    }

    std::string about_text() const {
        const TaskId id = *all_.about;
        const Duration slack{all_.times.slack_ns[index(id)]};
        const std::string of = task(id).microbatch ? " of microbatch " + microbatch(id) : "";
        return fmt::format("{}: task {}, rank {}, {}{}\n  begins at {}, takes {}; {}\n", name(id), index(id),
                           index(task(id).rank), pass_name(task(id)), of, human(start(id)), human(takes(id)),
                           slack == Duration{} ? std::string("each delay makes the step longer")
                                               : fmt::format("may end {} later", human(slack)));
    }

    std::string behind(const ChainLink& link) const {
        if (!link.cause) return "nothing";
        if (link.cause->is_before_it) return "task before it";
        if (link.cause->lag == Duration{}) return "input";
        return fmt::format("transfer {}", human(link.cause->lag));
    }

    std::string chain_text() const {
        Duration work{}, transfers{};
        for (const ChainLink& link : all_.chain) {
            if (link.task != all_.about) work += takes(link.task);
            if (link.cause) transfers += link.cause->lag;
        }
        std::string text = fmt::format("\n{}: {} of tasks, {} of transfers{}\n",
                                       all_.about ? "from its begin back to the step's" : "what decides the makespan",
                                       human(work), human(transfers),
                                       all_.tail > Duration{} ? fmt::format(", {} after them", human(all_.tail)) : "");
        TextTable table({{"task", true}, {"rank"}, {"pass", true}, {"mb"}, {"begins"}, {"takes"}, {"behind", true}});
        const std::size_t listed = std::min(all_.chain.size(), most_links);
        for (std::size_t i = 0; i < listed; ++i) {
            const ChainLink& link = all_.chain[i];
            table.add({name(link.task), std::to_string(index(task(link.task).rank)), pass_name(task(link.task)),
                       microbatch(link.task), human(start(link.task)), human(takes(link.task)), behind(link)});
        }
        text += table.text();
        if (const std::size_t more = all_.chain.size() - listed; more > 0)
            text += fmt::format("and {} before, back to {} on rank {}\n", plural(more, "task"),
                                name(all_.chain.back().task), index(task(all_.chain.back().task).rank));
        return text;
    }

    std::string change_name(const Shortening& one) const {
        const std::int64_t share = 100 / schedule::shortened_by;
        switch (one.changed) {
            case Changed::task:
                return fmt::format("{} {} % shorter", name(one.task), share);
            case Changed::pass:
                return fmt::format("every {} {} % shorter", pass_name(task(one.task)), share);
            default:
                return fmt::format("no transfer to {} from rank {}", name(one.task), index(task(*one.from).rank));
        }
    }

    std::string shortening_text() const {
        const std::string_view order = "the order stays as it is, others are not searched";
        if (all_.shortening.empty()) return fmt::format("\nnothing on this way shortens it ({})\n", order);
        TextTable table({{"change", true}, {all_.about ? "begins earlier" : ""}, {"step shorter"}, {"makespan"}});
        for (const Shortening& one : all_.shortening)
            table.add(
                {change_name(one), all_.about ? human(one.earlier) : "", human(one.shorter), human(one.makespan)});
        return fmt::format("\nwhat would shorten it; {}\n{}", order, table.text());
    }

    std::string waits_text() const {
        TextTable table({{"rank"}, {"waits"}, {"of it"}, {"from"}, {"before", true}, {"behind", true}});
        for (std::size_t r = 0; r < all_.waits.size(); ++r) {
            const auto& waits = all_.waits[r];
            if (waits.longest.empty()) table.add({std::to_string(r), human(waits.total), "", "", "", ""});
            for (const RankWait& one : waits.longest) {
                const bool is_first = &one == &waits.longest.front();
                table.add({is_first ? std::to_string(r) : "", is_first ? human(waits.total) : "",
                           human(one.to - one.from), human(one.from), name(one.task),
                           fmt::format("{} of rank {}", name(one.cause.task), index(task(one.cause.task).rank))});
            }
        }
        return "\n" + table.text();
    }

    Writer task_json(TaskId id) const {
        const auto& one = task(id);
        return {{"task", index(id)},
                {"label", one.label},
                {"rank", index(one.rank)},
                {"kind", std::string(1, letter(one.kind))},
                {"module", one.module},
                {"stage", or_null(one.stage)},
                {"microbatch", or_null(one.microbatch)},
                {"start_ns", start(id).count()},
                {"end_ns", (start(id) + takes(id)).count()},
                {"slack_ns", all_.times.slack_ns[index(id)]}};
    }

    Writer state_json() const {
        const auto& state = *all_.state;
        return {{"rank", index(asked_.at->rank)},
                {"time_ns", asked_.at->time.count()},
                {"doing", name_of(state.doing)},
                {"from_ns", state.from.count()},
                {"to_ns", state.to.count()}};
    }

    static Writer cause_json(const schedule::Cause& cause) {
        return {{"task", index(cause.task)},
                {"lag_ns", cause.lag.count()},
                {"why", cause.is_before_it ? "order" : "needs"}};
    }

    Writer link_json(const ChainLink& link) const {
        Writer json = task_json(link.task);
        json["behind"] = link.cause ? cause_json(*link.cause) : Writer();
        return json;
    }

    Writer shortening_json(const Shortening& one) const {
        constexpr std::array<std::string_view, 3> names{"task", "pass", "transfer"};
        Writer json{{"change", names.at(static_cast<std::size_t>(one.changed))},
                    {"text", change_name(one)},
                    {"task", index(one.task)},
                    {"from", one.from ? Writer(index(*one.from)) : Writer()},
                    {"makespan_ns", one.makespan.count()},
                    {"shorter_ns", one.shorter.count()},
                    {"earlier_ns", all_.about ? Writer(one.earlier.count()) : Writer()}};
        return json;
    }

    Writer waits_json(std::size_t rank) const {
        const auto& waits = all_.waits[rank];
        Writer json{{"rank", rank},
                    {"waits_ns", waits.total.count()},
                    {"done_ns", waits.done.count()},
                    {"longest", Writer::array()}};
        for (const RankWait& one : waits.longest)
            json["longest"].push_back({{"from_ns", one.from.count()},
                                       {"to_ns", one.to.count()},
                                       {"task", index(one.task)},
                                       {"label", task(one.task).label},
                                       {"behind", cause_json(one.cause)}});
        return json;
    }

    const Problem& problem_;
    const schedule::Query& asked_;
    const Explanation& all_;
};

}  // namespace

std::string explanation_text(const Problem& problem, const schedule::Query& asked, const Explanation& all) {
    return Told(problem, asked, all).text();
}

Writer explanation_json(const Problem& problem, const schedule::Query& asked, const Explanation& all) {
    return Told(problem, asked, all).json();
}

}  // namespace pipeweaver::emit
