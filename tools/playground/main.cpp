// The search of Play in the browser.
#include "pipeweaver/base/error.hpp"
#include "service/ui/play_search.hpp"

#include <nlohmann/json.hpp>

#include <string>

/// Answers a question of the page (service/ui/play_search.hpp), or {"error": ...}. The text is good until the next call.
extern "C" const char* pipeweaver_search(const char* question) {
    static std::string answer;
    try {
        answer = pipeweaver::service::search_play(question);
    } catch (const std::exception& error) {
        answer = nlohmann::json{{"error", error.what()}}.dump();
    }
    return answer.c_str();
}
