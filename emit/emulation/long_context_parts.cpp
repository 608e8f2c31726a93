#include "emit/emulation/long_context_parts.hpp"

#include "pipeweaver/base/or_null.hpp"
#include "pipeweaver/base/text_table.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <utility>

namespace pipeweaver::emit {

using planner::AttentionShare;
using planner::ContextFrom;
using planner::LongContext;
using planner::SparseFrom;
using Writer = nlohmann::ordered_json;

std::string long_context_text(const LongContext& answer) {
    std::string text = "\n";
    for (const AttentionShare& one : answer.shares)
        text += fmt::format("attention takes {:.1f} % of the layers of '{}' at {} positions a clip\n", 100 * one.share,
                            one.module, LongContext::length);
    TextTable table({{"module", true, 16},
                     {"sparsity", false, 10},
                     {"pays from", false, 12},
                     {fmt::format("at {}", LongContext::length), false, 12}},
                    1);
    for (const SparseFrom& one : answer.sparse)
        table.add({one.module, fmt::format("{:g}", one.sparsity), one.from ? std::to_string(*one.from) : "never",
                   fmt::format("x{:.3f}", one.ratio)});
    text += table.text();
    for (const ContextFrom& one : answer.contexts)
        text += fmt::format("from {} positions a clip --module-context {}={}x{} is the fastest\n", one.from, one.module,
                            one.ulysses, one.ring);
    return text;
}

Writer long_context_json(const LongContext& answer) {
    Writer shares = Writer::array(), sparse = Writer::array(), contexts = Writer::array();
    for (const AttentionShare& one : answer.shares)
        shares.push_back({{"module", one.module}, {"attention_share", one.share}});
    for (const SparseFrom& one : answer.sparse)
        sparse.push_back(
            {{"module", one.module}, {"sparsity", one.sparsity}, {"from", or_null(one.from)}, {"ratio", one.ratio}});
    for (const ContextFrom& one : answer.contexts)
        contexts.push_back({{"module", one.module}, {"from", one.from}, {"ulysses", one.ulysses}, {"ring", one.ring}});
    return {{"length", LongContext::length},
            {"shares", std::move(shares)},
            {"sparse", std::move(sparse)},
            {"contexts", std::move(contexts)}};
}

}  // namespace pipeweaver::emit
