#include "apps/traces/replay_traces.hpp"

#include "apps/console.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/traces/graph.hpp"
#include "pipeweaver/traces/report.hpp"

#include <nlohmann/json.hpp>

#include <optional>

namespace pipeweaver::apps {

void replay_traces(const TraceQuestion& question, bool as_json) {
    std::optional<traces::Graph> emulated;
    if (!question.emulated.empty()) {
        const std::vector<std::string> file{question.emulated};
        emulated = traces::read_graph(file);
        if (!emulated->is_emulated)
            fail(ErrorKind::input, "{}: is no trace of an emulated step (trace.json.gz of emulate --out)",
                 question.emulated);
    }
    const auto found =
        traces::findings_of(traces::read_graph(question.files), question.factors, emulated ? &*emulated : nullptr);
    if (as_json)
        print_json(traces::findings_json(found));
    else
        print_text("{}", traces::findings_text(found));
}

}  // namespace pipeweaver::apps
