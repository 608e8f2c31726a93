// One job's plans beside thousands of connections that say nothing or half of it.
#include "pipeweaver/base/text.hpp"
#include "tests/load/load.hpp"
#include "tests/load/served_process.hpp"
#include "tests/load/service_bench.hpp"
#include "tests/load/silent_clients.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

namespace pipeweaver::load {

namespace {

constexpr std::size_t files_of_its_own = 100;
constexpr std::size_t steps_beside = 12;
constexpr Duration between_steps_beside = std::chrono::milliseconds(600);

void say_plans(const ServiceBench& bench, const std::vector<Collected>& steps, const OnVerdict& on) {
    std::size_t late = 0, absent = 0;
    Duration most = -bench.deadline;
    std::string first;
    for (const Collected& one : steps) {
        if (!one.planned()) {
            if (absent++ == 0) first = ": " + one.why;
            continue;
        }
        late += one.past > bench.past ? 1 : 0;
        most = std::max(most, one.past);
    }
    on({"idle",
        "plans absent beside them",
        fmt::format("{} of {}{}", absent, steps.size(), first),
        "0",
        absent == 0,
        {{"absent", absent}, {"steps", steps.size()}}});
    on({"idle",
        fmt::format("plans late, by more than {}", human(bench.past)),
        fmt::format("{} (most {:.1f} ms past)", late, 1e-6 * static_cast<double>(most.count())),
        "0",
        late == 0,
        {{"late", late}, {"most_ms", 1e-6 * static_cast<double>(most.count())}}});
}

}  // namespace

void bench_idle(const ServiceBench& bench, const OnVerdict& on) {
    const auto wanted = static_cast<std::size_t>(bench.connections);
    allow_files(wanted + files_of_its_own);
    const TemporaryFolder folder;
    ServedProcess server(bench.served_with(), folder / "log");
    const LoadShape shape{.address = {server.url(), {}, {}},
                          .sessions = 1,
                          .steps = steps_beside,
                          .deadline = bench.deadline,
                          .between = between_steps_beside};
    service::Client client(shape.address);
    open_session_of(client, session_of(0), bench.job.session({{"seed", bench.seed}, {"budget", "1s"}}));
    const auto batches = bench.job.batches(7000 + static_cast<std::uint64_t>(bench.seed), steps_beside);
    const std::int64_t before = server.process().memory();
    SilentClients clients(server.url(), wanted);
    const auto steps = put_under_load(shape, batches, [&] { clients.go_on(); });
    const std::size_t open = clients.open();
    on({"idle",
        "silent and slow connections, still open",
        fmt::format("{} of {}", open, wanted),
        "all",
        open == wanted,
        {{"open", open}, {"connections", wanted}}});
    say_plans(bench, steps, on);
    const Bytes more{std::max<std::int64_t>(0, server.process().memory() - before)};
    on({"idle", "memory of the server meanwhile", "+" + human(more), {}, {}, {{"more_bytes", more.count}}});
    const int status = server.process().end_by(SIGTERM);
    on({"idle", "server ended by SIGTERM", fmt::format("exit status {}", status), "0", status == 0});
}

}  // namespace pipeweaver::load
