#include "traces/passes.hpp"

#include "pipeweaver/base/options.hpp"

#include <algorithm>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

namespace pipeweaver::traces {

namespace {

constexpr std::int64_t largest_place = 1'000'000'000;

struct Pass {
    std::int64_t stage = 0;
    bool forward = true;
    std::int64_t microbatch = 0, item = 0;
    std::int64_t step = 0;

    auto operator<=>(const Pass&) const = default;
};

// Weight gradients go to no other stage.
std::optional<Pass> pass_named(std::string_view name) {
    if (!name.starts_with("PP:")) return std::nullopt;
    name.remove_prefix(3);
    const auto kind = std::min(name.find_first_of("FBI"), name.size());
    const auto dot = std::min(name.find('.', kind), name.size());
    const auto stage = integer_in(name.substr(0, kind), 0, largest_place);
    if (kind == name.size() || !stage) return std::nullopt;
    const auto microbatch = integer_in(name.substr(kind + 1, dot - kind - 1), 0, largest_place);
    const auto item =
        dot == name.size() ? std::optional<std::int64_t>(0) : integer_in(name.substr(dot + 1), 0, largest_place);
    if (!microbatch || !item) return std::nullopt;
    return Pass{*stage, name[kind] == 'F', *microbatch, *item};
}

}  // namespace

std::vector<Passage> passages_of(const Recording& recording) {
    std::map<Pass, Member> passes;
    if (recording.is_emulated) return {};
    for (std::size_t r = 0; r < recording.ranks.size(); ++r) {
        const auto& works = recording.ranks[r].works;
        std::map<Pass, std::int64_t> seen;
        for (std::uint32_t w = 0; w < works.size(); ++w) {
            if (works[w].kind != Kind::compute) continue;
            auto pass = pass_named(recording.names[works[w].name]);
            if (!pass) continue;
            const std::int64_t step = seen[*pass]++;
            pass->step = step;
            passes.try_emplace(*pass, Member{r, w});
        }
    }
    std::vector<Passage> found;
    for (const auto& [pass, member] : passes) {
        Pass before = pass;
        before.stage += pass.forward ? -1 : 1;
        const auto made = passes.find(before);
        if (made != passes.end() && made->second.rank != member.rank) found.push_back({made->second, member});
    }
    return found;
}

std::uint32_t behind_the_wait(const Recording& recording, const Member& pass) {
    const auto& works = recording.ranks[pass.rank].works;
    std::uint32_t found = pass.work;
    std::int64_t longest = 0;
    for (std::uint32_t w = pass.work; w > 0 && works[w - 1].thread == works[w].thread; --w) {
        const std::int64_t gap = works[w].start_ns - works[w - 1].end_ns();
        if (gap > longest) {
            longest = gap;
            found = w;
        }
        if (recording.names[works[w - 1].name].starts_with("PP:")) break;
    }
    return found;
}

}  // namespace pipeweaver::traces
