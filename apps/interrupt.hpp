// Ctrl-C and SIGTERM while a command searches: the first ends the search, and what was found is still handed over; the
// second ends the command at once, as the signal does by itself.
#pragma once

namespace pipeweaver::apps {

/// For as long as it lives the first of these signals is noted and no more; one that was ignored stays ignored. One at
/// a time: signals are the process's.
class Interrupt {
public:
    explicit Interrupt(bool quiet = false);  ///< else the first signal is answered at once, on stderr
    ~Interrupt();                            ///< a further signal ends the process
    Interrupt(const Interrupt&) = delete;
    Interrupt& operator=(const Interrupt&) = delete;

    /// Whether a signal came. May be asked by any thread, also where nobody waits for signals.
    [[nodiscard]] static bool came();

    // For who runs several commands in one process, one after the other.

    /// Ends the search that runs, as a first signal does; the next signal is still the first. Any thread may call it.
    static void ask();

    /// What came is of the command before.
    static void forget();
};

}  // namespace pipeweaver::apps
