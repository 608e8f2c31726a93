#include "apps/mcp/server.hpp"

#include "apps/interrupt.hpp"
#include "apps/mcp/call.hpp"
#include "apps/mcp/lines.hpp"
#include "apps/mcp/progress.hpp"
#include "apps/mcp/tools.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstddef>
#include <deque>
#include <exception>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace pipeweaver::apps {

namespace {

using Message = nlohmann::ordered_json;

constexpr std::size_t most_waiting = 256, deepest = 64;
constexpr std::array<std::string_view, 2> revisions{"2025-06-18", "2025-03-26"};  // the newest first

enum class RpcError {
    parse = -32700,
    request = -32600,
    method = -32601,
    params = -32602,
    internal = -32603,
    busy = -32000
};

Message error_message(const Message& id, RpcError code, const std::string& text) {
    return {{"jsonrpc", "2.0"}, {"id", id}, {"error", {{"code", static_cast<int>(code)}, {"message", as_line(text)}}}};
}

Message result_message(const Message& id, Message result) {
    return {{"jsonrpc", "2.0"}, {"id", id}, {"result", std::move(result)}};
}

// The value of a key; null where there is none.
Message value_at(const Message& object, std::string_view key) {
    const auto found = object.find(key);
    return found == object.end() ? Message() : *found;
}

bool is_text(const Message& object, std::string_view key) { return value_at(object, key).is_string(); }

bool is_id(const Message& id) { return id.is_string() || id.is_number_integer(); }

// Whether arrays and objects lie in each other deeper than any message's, strings left out.
bool is_too_deep(std::string_view line) {
    std::size_t depth = 0;
    bool in_string = false;
    for (std::size_t i = 0; i < line.size(); ++i) {
        const char c = line[i];
        if (in_string && c == '\\')
            ++i;
        else if (c == '"')
            in_string = !in_string;
        else if (!in_string && (c == '[' || c == '{') && ++depth > deepest)
            return true;
        else if (!in_string && (c == ']' || c == '}') && depth > 0)
            --depth;
    }
    return false;
}

// Standard input and output, kept from the commands: they read nothing, and what they print is taken.
class Streams {
public:
    Streams() : in_(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)), out_(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)) {
        const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
        const bool taken = in_ >= 0 && out_ >= 0 && nothing >= 0 && ::dup2(nothing, STDIN_FILENO) >= 0;
        if (nothing >= 0) ::close(nothing);
        if (!taken) fail(ErrorKind::io, "standard input and output cannot be taken");
    }

    ~Streams() {
        ::close(in_);
        ::close(out_);
    }

    Streams(const Streams&) = delete;
    Streams& operator=(const Streams&) = delete;

    int in() const { return in_; }

    // A line; whether who reads is still there does not matter: the input ends as well.
    void write(const Message& message) const {
        const std::string line = message.dump(-1, ' ', false, Message::error_handler_t::replace) + '\n';
        const std::scoped_lock lock(mutex_);
        for (std::size_t done = 0; done < line.size();) {
            const ssize_t wrote = ::write(out_, line.data() + done, line.size() - done);
            if (wrote < 0 && errno != EINTR) return;
            done += wrote > 0 ? static_cast<std::size_t>(wrote) : 0;
        }
    }

private:
    int in_, out_;
    mutable std::mutex mutex_;
};

// Progress as the side that asked for it reads it: the number rises with each and stays below 100, which is all where
// the share is known.
class ProgressCount {
public:
    // `token` as that side gave it.
    explicit ProgressCount(Message token) : token_(std::move(token)) {}

    Message notification(const ProgressTold& told) {
        constexpr double most = 99, least_part_of_rest = 0.001;
        const double share = std::min(most, 100 * told.share.value_or(0));
        last_ = last_ ? std::max(share, *last_ + least_part_of_rest * (100 - *last_)) : share;
        Message params{{"progressToken", token_}, {"progress", *last_}, {"message", told.message}};
        if (told.share) params["total"] = 100;
        return {{"jsonrpc", "2.0"}, {"method", "notifications/progress"}, {"params", std::move(params)}};
    }

private:
    Message token_;
    std::optional<double> last_;
};

class AgentServer {
public:
    explicit AgentServer(const CommandShape& program) : program_(program) {}

    void run() {
        std::signal(SIGPIPE, SIG_IGN);
        std::jthread worker([this] { work(); });
        LineSource lines(streams_.in());
        while (const auto line = lines.next()) take(*line);
        const std::scoped_lock lock(mutex_);
        ended_ = true;
        more_.notify_all();
    }

private:
    void take(const std::string& line) {
        if (line.find_first_not_of(" \t\r") == std::string::npos) return;
        if (line.size() > longest_message)
            return streams_.write(error_message({}, RpcError::parse, "the message is longer than 1 MiB"));
        Message message =
            is_too_deep(line) ? Message(Message::value_t::discarded) : Message::parse(line, nullptr, false);
        if (message.is_discarded())
            return streams_.write(error_message({}, RpcError::parse, "no JSON in UTF-8, or deeper than 64"));
        const bool is_batch = message.is_array() && !message.empty() && takes_batches();
        if (is_batch || is_call(message)) return put_off(std::move(message));
        if (const auto answer = answer_to(message)) streams_.write(*answer);
    }

    // What else names this method is answered at once: the error needs no worker, and its id is not kept.
    static bool is_call(const Message& message) {
        return message.is_object() && value_at(message, "jsonrpc") == "2.0" &&
               value_at(message, "method") == "tools/call" && is_id(value_at(message, "id")) &&
               (!message.contains("params") || message["params"].is_object());
    }

    // For the worker.
    void put_off(Message message) {
        const Message id = message.is_object() ? value_at(message, "id") : Message();
        const Message batch = message.is_array() ? message : Message::array({message});
        {
            const std::scoped_lock lock(mutex_);
            if (waiting_.size() < most_waiting) {
                for (const Message& one : batch)
                    if (is_call(one)) cancelled_[value_at(one, "id").dump()] = false;
                waiting_.push_back(std::move(message));
                more_.notify_all();
                return;
            }
        }
        streams_.write(error_message(id, RpcError::busy, fmt::format("{} calls are waiting already", most_waiting)));
    }

    void work() {
        for (;;) {
            std::unique_lock lock(mutex_);
            more_.wait(lock, [this] { return ended_ || !waiting_.empty(); });
            if (waiting_.empty()) return;
            const Message message = std::move(waiting_.front());
            waiting_.pop_front();
            lock.unlock();
            if (!message.is_array()) {
                if (const auto answer = answer_to(message)) streams_.write(*answer);
                continue;
            }
            Message answers = Message::array();
            for (const Message& one : message)
                if (auto answer = answer_to(one)) answers.push_back(std::move(*answer));
            if (!answers.empty()) streams_.write(answers);
        }
    }

    // None for a notification, an answer of the other side, and a call that was cancelled.
    std::optional<Message> answer_to(const Message& message) {
        if (!message.is_object()) return error_message({}, RpcError::request, "a message is a JSON object");
        const Message id = value_at(message, "id");
        if (message.contains("id") && !is_id(id))
            return error_message({}, RpcError::request, "id: must be a text or a whole number");
        if (!message.contains("method") && (message.contains("result") || message.contains("error"))) return {};
        if (value_at(message, "jsonrpc") != "2.0" || !is_text(message, "method"))
            return error_message(id, RpcError::request, R"(a request has "jsonrpc": "2.0" and a method)");
        const auto method = message["method"].get<std::string>();
        const Message params = message.contains("params") ? message["params"] : Message::object();
        if (!is_id(id)) {
            if (method == "notifications/cancelled" && params.is_object()) cancel(value_at(params, "requestId"));
            return {};
        }
        if (!params.is_object()) return error_message(id, RpcError::params, "params: must be an object");
        if (method == "tools/call") return call(id, params);
        return answer_at_once(id, method, params);
    }

    Message answer_at_once(const Message& id, const std::string& method, const Message& params) {
        if (method == "ping") return result_message(id, Message::object());
        if (method == "tools/list") return result_message(id, {{"tools", tools_}});
        if (method != "initialize") return error_message(id, RpcError::method, "unknown method '" + method + "'");
        if (!is_text(params, "protocolVersion"))
            return error_message(id, RpcError::params, "protocolVersion: must be a text like 2025-06-18");
        const auto asked = params["protocolVersion"].get<std::string>();
        const auto known = std::find(revisions.begin(), revisions.end(), asked);
        const std::string_view revision = known == revisions.end() ? revisions.front() : *known;
        {
            const std::scoped_lock lock(mutex_);
            revision_ = revision;
        }
        return result_message(
            id, {{"protocolVersion", revision},
                 {"capabilities", {{"tools", {{"listChanged", false}}}}},
                 {"serverInfo", {{"name", "pipeweaver"}, {"version", PIPEWEAVER_VERSION}}},
                 {"instructions",
                  "Say the verdict or the number first, then what was assumed. Gains are predictions: no GPU has run a "
                  "plan yet. An error says what to ask the user next."}});
    }

    std::optional<Message> call(const Message& id, const Message& params) {
        const Message name = value_at(params, "name");
        const Tool* tool = name.is_string() ? tool_called(name.get<std::string>()) : nullptr;
        const Message arguments = params.contains("arguments") ? params["arguments"] : Message::object();
        std::optional<Message> answer;
        if (tool == nullptr)
            answer = error_message(id, RpcError::params, "name: " + must_be_a_tool(name));
        else if (!arguments.is_object())
            answer = error_message(id, RpcError::params, "arguments: must be an object");
        else if (begins(id))
            answer = run(id, *tool, arguments, value_at(params, "_meta"));
        return ends(id) ? std::nullopt : answer;
    }

    Message run(const Message& id, const Tool& tool, const Message& arguments, const Message& meta) {
        try {
            return result_message(id, call_tool(tool, command_of(tool), arguments, has_structure(), telling(id, meta)));
        } catch (const std::exception& error) {
            return error_message(id, RpcError::internal, error.what());
        }
    }

    // Null: nobody asked to be told.
    OnProgress telling(const Message& id, const Message& meta) {
        const Message token = meta.is_object() ? value_at(meta, "progressToken") : Message();
        if (!is_id(token)) return nullptr;
        return [this, id, count = ProgressCount(token)](const ProgressTold& told) mutable {
            if (!is_cancelled(id)) streams_.write(count.notification(told));
        };
    }

    static std::string must_be_a_tool(const Message& name) {
        std::vector<std::string> names;
        for (const Tool& tool : tools()) names.push_back(tool.name);
        return name.is_string() ? must_be(std::string_view(name.get<std::string>()), one_of(names))
                                : "must be " + one_of(names);
    }

    const CommandShape& command_of(const Tool& tool) const {
        return *std::find_if(program_.commands.begin(), program_.commands.end(),
                             [&](const CommandShape& one) { return one.name == tool.name; });
    }

    // False: it was cancelled while it waited.
    bool begins(const Message& id) {
        const std::scoped_lock lock(mutex_);
        if (cancelled_[id.dump()]) return false;
        Interrupt::forget();
        running_ = id.dump();
        return true;
    }

    // Whether it was cancelled. A signal that ended its search ends the server, too.
    bool ends(const Message& id) {
        const std::scoped_lock lock(mutex_);
        const bool was_cancelled = std::exchange(cancelled_[id.dump()], false);
        cancelled_.erase(id.dump());
        const bool ran = std::exchange(running_, std::nullopt).has_value();
        std::signal(SIGPIPE, SIG_IGN);  // a search sets it to its default
        if (ran && !was_cancelled && Interrupt::came()) std::raise(SIGTERM);
        return was_cancelled;
    }

    bool is_cancelled(const Message& id) {
        const std::scoped_lock lock(mutex_);
        const auto found = cancelled_.find(id.dump());
        return found != cancelled_.end() && found->second;
    }

    void cancel(const Message& id) {
        const std::scoped_lock lock(mutex_);
        const auto found = cancelled_.find(id.dump());
        if (found == cancelled_.end()) return;
        found->second = true;
        if (running_ == found->first) Interrupt::ask();
    }

    bool takes_batches() {
        const std::scoped_lock lock(mutex_);
        return revision_ == revisions.back();
    }

    // Results have their JSON beside its text since then.
    bool has_structure() {
        const std::scoped_lock lock(mutex_);
        return revision_ == revisions.front();
    }

    Message all_tools_json() const {
        Message all = Message::array();
        for (const Tool& tool : tools()) all.push_back(tool_json(tool, command_of(tool)));
        return all;
    }

    const CommandShape& program_;
    const Message tools_ = all_tools_json();
    Streams streams_;
    std::mutex mutex_;
    std::condition_variable more_;
    std::deque<Message> waiting_;
    std::map<std::string, bool> cancelled_;  // by the id of each call that waits or runs
    std::optional<std::string> running_;     // its id
    std::string_view revision_ = revisions.front();
    bool ended_ = false;
};

}  // namespace

void serve_agent(const CommandShape& program) { AgentServer(program).run(); }

}  // namespace pipeweaver::apps
