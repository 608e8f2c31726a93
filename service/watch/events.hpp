// What happens, for who watches: /v1/events, as server-sent events.
//
//   history   what was done so far ({"number", ...} each, oldest first); once, at the beginning
//   done      what was done since
//   state     how things stand, where that has changed: sessions, and the steps that wait with when they are due
//   beat      nothing has happened for a while
//
// A reader is told what holds when it is ready for more: a slow one hears less often of the same.
//
// Threads      one, that which talks.
#pragma once

#include "pipeweaver/base/units.hpp"
#include "service/http/answer.hpp"
#include "service/workers.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::service {

class Planning;

class Events {
public:
    static constexpr std::size_t most_readers = 32;
    static constexpr std::size_t most_queue = 64;  ///< of the steps that wait, those due first

    /// Pre: it outlives this.
    explicit Events(const Planning& planning) : planning_(planning) {}

    /// Begins to tell; ends after that time, if one is given, and when the server ends. None: there are as many readers
    /// as there may be.
    [[nodiscard]] std::optional<Pieces> open(std::optional<Duration> time);

    [[nodiscard]] std::size_t readers();

private:
    struct Reader;
    std::optional<std::string> next(Reader& reader);
    const std::string& state();

    const Planning& planning_;
    TimePoint begun_ = std::chrono::steady_clock::now();
    std::vector<std::weak_ptr<Reader>> readers_;  // each belongs to its connection
    std::string state_;
    std::uint64_t states_ = 0;  // how often it has changed
    TimePoint looked_;          // when it was made last
};

}  // namespace pipeweaver::service
