// What a command in this process tells of its progress, taken from its standard error.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <thread>

namespace pipeweaver::apps {

struct ProgressTold {
    std::string message;          ///< for a person
    std::optional<double> share;  ///< of all that is done, from 0 to 1, where it is known
};

using OnProgress = std::function<void(const ProgressTold&)>;

/// While it lives, standard error is read: `on` is told of each line of Console's `progress_json`, by a thread of its
/// own, and all else is dropped. Once it has ended `on` is told no more. One at a time.
class TakenProgress {
public:
    /// Throws Error{io} where standard error cannot be taken.
    explicit TakenProgress(OnProgress on);
    ~TakenProgress();
    TakenProgress(const TakenProgress&) = delete;
    TakenProgress& operator=(const TakenProgress&) = delete;

private:
    int before_;
    std::jthread reader_;
};

}  // namespace pipeweaver::apps
