// A clock and what happens at its ticks: fixed programs of ranks and the messages between them, run event by event. For
// tests that hold a step's time to something that shares no code with the library.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <tuple>
#include <vector>

namespace pipeweaver::testing {

/// What a work sends when it ends. Of messages that are ready for a port, the one that has been longest goes first,
/// then the one with the smaller number.
struct Message {
    std::size_t to = 0;     ///< a work
    std::int64_t lag = 0;   ///< ns from when it goes until it has arrived
    std::int64_t wire = 0;  ///< of it, how long it holds the sender's and the receiver's port; 0: no port
    int link = 0;           ///< which ports
};

struct Work {
    std::size_t rank = 0;
    std::int64_t duration = 0;
    std::vector<std::size_t> sends{};  ///< numbers of messages
};

class EventClock {
public:
    std::vector<Work> works;
    std::vector<Message> messages;

    /// Per work, when it ended; each rank does its row of works one after the other.
    std::vector<std::int64_t> run(const std::vector<std::vector<std::size_t>>& programs) {
        ends_.assign(works.size(), -1);
        missing_.assign(works.size(), 0);
        next_.assign(programs.size(), 0);
        busy_.assign(programs.size(), false);
        sender_.assign(messages.size(), 0);
        for (std::size_t w = 0; w < works.size(); ++w)
            for (const std::size_t m : works[w].sends) {
                ++missing_[messages[m].to];
                sender_[m] = works[w].rank;
            }
        programs_ = &programs;
        for (std::size_t r = 0; r < programs.size(); ++r) start(r);
        while (!events_.empty()) {
            const auto [time, kind, number] = *events_.begin();
            events_.erase(events_.begin());
            now_ = time;
            if (kind == port_is_free)
                for (const auto& port : ports_of(number)) held_.erase(port);
            if (kind == work_ends) end(number);
            if (kind == message_arrives && --missing_[messages[number].to] == 0) start(works[messages[number].to].rank);
            send_what_can_go();
        }
        return ends_;
    }

private:
    enum Kind { port_is_free, work_ends, message_arrives };
    using Port = std::tuple<bool, std::size_t, int>;  // whether it receives, its rank, its link

    std::vector<Port> ports_of(std::size_t message) const {
        const Message& one = messages[message];
        return {{false, sender_[message], one.link}, {true, works[one.to].rank, one.link}};
    }

    void start(std::size_t rank) {
        const auto& program = (*programs_)[rank];
        if (busy_[rank] || next_[rank] == program.size() || missing_[program[next_[rank]]] > 0) return;
        busy_[rank] = true;
        const std::size_t work = program[next_[rank]++];
        events_.insert({now_ + works[work].duration, work_ends, work});
    }

    void end(std::size_t work) {
        ends_[work] = now_;
        for (const std::size_t m : works[work].sends) {
            if (messages[m].wire > 0)
                waiting_.insert({now_, m});
            else
                events_.insert({now_ + messages[m].lag, message_arrives, m});
        }
        busy_[works[work].rank] = false;
        start(works[work].rank);
    }

    void send_what_can_go() {
        for (auto one = waiting_.begin(); one != waiting_.end();) {
            const std::size_t m = one->second;
            const auto ports = ports_of(m);
            const bool blocked =
                std::any_of(ports.begin(), ports.end(), [&](const Port& port) { return held_.contains(port); });
            if (blocked) {
                ++one;
                continue;
            }
            held_.insert(ports.begin(), ports.end());
            events_.insert({now_ + messages[m].wire, port_is_free, m});
            events_.insert({now_ + messages[m].lag, message_arrives, m});
            one = waiting_.erase(one);
        }
    }

    const std::vector<std::vector<std::size_t>>* programs_ = nullptr;
    std::int64_t now_ = 0;
    std::set<std::tuple<std::int64_t, Kind, std::size_t>> events_;
    std::set<std::pair<std::int64_t, std::size_t>> waiting_;  // messages, since when
    std::set<Port> held_;
    std::vector<std::int64_t> ends_;
    std::vector<std::size_t> missing_, next_, sender_;
    std::vector<bool> busy_;
};

}  // namespace pipeweaver::testing
