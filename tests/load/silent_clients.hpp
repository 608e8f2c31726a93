// Clients that cost a server connections: they say nothing, half of a question, or a letter now and then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace pipeweaver::load {

/// Lets this process open so many files. Throws Error{limit} where the system allows fewer.
void allow_files(std::size_t count);

class SilentClients {
public:
    /// Opens connections to the server at `url` on 127.0.0.1: of ten five say nothing, four half of a question, and one
    /// goes on by a letter whenever it is told to. Throws Error{io}. Pre: allow_files() of a few more.
    SilentClients(const std::string& url, std::size_t count);
    SilentClients(const SilentClients&) = delete;
    SilentClients& operator=(const SilentClients&) = delete;
    ~SilentClients();

    /// The slow ones say one letter more.
    void go_on();

    /// Connections that the server has not closed.
    [[nodiscard]] std::size_t open() const;

    std::size_t count() const { return sockets_.size(); }

private:
    std::vector<int> sockets_;
};

}  // namespace pipeweaver::load
