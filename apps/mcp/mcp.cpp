// pipeweaver mcp: plans, checks and explanations as tools of an agent.
#include "apps/command_line.hpp"
#include "apps/commands.hpp"
#include "apps/mcp/server.hpp"

namespace pipeweaver::apps {

namespace {

struct Mcp {
    explicit Mcp(CLI::App& command) : app(&command) {}

    void run() const { serve_agent(program_of(*app)); }

    const CLI::App* app;
};

}  // namespace

void add_mcp(CLI::App& program) {
    add_command<Mcp>(
        program, "mcp", "plan, check, emulate, recommend and explain as tools of an agent",
        {.synopsis = "< MESSAGES",
         .description =
             "Speaks the Model Context Protocol on standard input and output (JSON-RPC 2.0, a message a line; "
             "revisions 2025-06-18 and 2025-03-26) until the input ends. The tools plan, check, emulate, recommend and "
             "explain take the options of these commands, and answer with what --json prints, or with the line of the "
             "refusal and what to ask next.\n"
             "A file is read only where an argument names it, and written only where `out` does. Calls run one after "
             "the other; notifications/cancelled ends a search, and a progressToken asks for notifications/progress.",
         .examples = {{"An agent starts it; here with an input that is empty", "pipeweaver mcp < /dev/null"},
                      {"A session from a file", "pipeweaver mcp < examples/agent.jsonl"}},
         .see_also = {"pipeweaver serve", "docs/agents.md", "docs/skill/SKILL.md"}});
}

}  // namespace pipeweaver::apps
