// What is asked of the service and what it answers, whatever carries it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace pipeweaver::service {

struct Question {
    std::string method;                             ///< "GET", ...
    std::string path;                               ///< without the query, as it came
    std::map<std::string, std::string> query;       ///< decoded
    std::string authorization, content_type, host;  ///< headers
    bool accepts_gzip = false;
    std::string body;
    std::string id;  ///< of the request, in the log
};

/// A body that goes on: gives what there is to say now; empty: nothing yet; none: it ends here. It is asked, on the
/// thread that talks, when what it gave before has left: a slow reader holds one piece, and gets the latest next.
using Pieces = std::function<std::optional<std::string>()>;

struct Answer {
    int status = 200;
    std::string body;
    std::string type = "application/json";
    bool zipped = false;                                            ///< the body is gzip
    std::vector<std::pair<std::string, std::string>> headers = {};  ///< others
    Pieces pieces = {};                                             ///< after the body, if it goes on
    std::string route = {};                                         ///< for metrics and log: the path's pattern
};

/// Takes the answer, once, on any thread. Where nobody waits for it any more nothing happens.
using Respond = std::function<void(Answer)>;

}  // namespace pipeweaver::service
