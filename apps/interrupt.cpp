#include "apps/interrupt.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <string_view>
#include <unistd.h>

namespace pipeweaver::apps {

namespace {

constexpr std::array signals{SIGINT, SIGTERM};

// What a handler may touch must be global, and free of locks.
std::atomic<bool> signal_came = false, says = true;
static_assert(std::atomic<bool>::is_always_lock_free);

using Action = struct sigaction;

void set_default(int signal) {
    Action action{};
    action.sa_handler = SIG_DFL;
    sigaction(signal, &action, nullptr);
}

// A handler may call write() and little else.
void say_at_once() {
    constexpr std::string_view text = "\ninterrupted: finishing with what there is; once more ends at once\n";
    static_cast<void>(!write(STDERR_FILENO, text.data(), text.size()));
}

// The next signal, of either, is the process's end.
void note(int /*signal*/) {
    const int before = errno;
    for (const int signal : signals) set_default(signal);  // before it is said: who reads that may send the next
    if (!signal_came.exchange(true) && says) say_at_once();
    errno = before;
}

}  // namespace

Interrupt::Interrupt(bool quiet) {
    says = !quiet;
    std::signal(SIGPIPE, SIG_IGN);  // who reads may go at the same signal: files are written all the same
    for (const int signal : signals) {
        Action before{};
        sigaction(signal, nullptr, &before);
        if (before.sa_handler == SIG_IGN) continue;
        Action action{};
        action.sa_handler = note;
        action.sa_flags = SA_RESTART;  // a file that is being read or written goes on
        sigaction(signal, &action, nullptr);
    }
}

Interrupt::~Interrupt() {
    std::signal(SIGPIPE, SIG_DFL);
    for (const int signal : signals) {
        Action now{};
        sigaction(signal, nullptr, &now);
        if (now.sa_handler == note) set_default(signal);
    }
}

bool Interrupt::came() { return signal_came; }

void Interrupt::ask() { signal_came = true; }

void Interrupt::forget() { signal_came = false; }

}  // namespace pipeweaver::apps
