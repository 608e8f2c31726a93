#include "tests/load/acknowledged.hpp"

#include "pipeweaver/base/files.hpp"
#include "tests/load/served_job.hpp"

#include <fmt/format.h>

namespace pipeweaver::load {

namespace {

constexpr Duration to_give = std::chrono::minutes(1);

}  // namespace

void Acknowledged::opened(const std::string& name) {
    const std::lock_guard lock(mutex_);
    open_.insert(name);
}

void Acknowledged::closing(const std::string& name) {
    const std::lock_guard lock(mutex_);
    open_.erase(name);
}

void Acknowledged::closed(const std::string& name) {
    const std::lock_guard lock(mutex_);
    closed_.insert(name);
}

void Acknowledged::part(const std::string& path, const std::string& content) {
    auto sum = sha256(content);
    const std::lock_guard lock(mutex_);
    sha256_by_path_[path] = std::move(sum);
}

std::vector<std::string> Acknowledged::lost(service::Client& client) {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> lost;
    for (const std::string& name : open_) {
        const auto reply = client.ask("GET", path_of(name), {}, to_give);
        const auto answer = nlohmann::json::parse(reply.body, nullptr, false);
        const bool ready = reply.status == 200 && answer.is_object() && answer.value("ready", false);
        if (!ready) lost.push_back(fmt::format("session {}: status {}: {}", name, reply.status, reply.body));
    }
    for (const std::string& name : closed_)
        if (client.ask("GET", path_of(name), {}, to_give).status != 404)
            lost.push_back(fmt::format("session {}: was closed, and is there again", name));
    for (const auto& [path, sum] : sha256_by_path_) {
        const auto reply = client.ask("GET", path, {}, to_give);
        if (reply.status != 200)
            lost.push_back(fmt::format("{}: status {}", path, reply.status));
        else if (sha256(reply.body) != sum)
            lost.push_back(fmt::format("{}: is not what it was", path));
    }
    looked_at_.sessions += open_.size() + closed_.size();
    looked_at_.parts += sha256_by_path_.size();
    return lost;
}

}  // namespace pipeweaver::load
