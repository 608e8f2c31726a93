// The answer of `pipeweaver share` for programs.
#include "apps/capacity/share_tables.hpp"

#include <nlohmann/json.hpp>

namespace pipeweaver::apps {

namespace {

using capacity::QueueResult;
using capacity::Wide;

double weighted_seconds(Wide weighted) { return static_cast<double>(weighted) * 1e-12; }

nlohmann::ordered_json share_json(const SharedOut& found) {
    nlohmann::ordered_json json{{"gpus", found.shares.gpus},
                                {"smallest_gpus", found.shares.smallest_gpus},
                                {"all_run", found.shares.all_run()},
                                {"weighted_completion_s", weighted_seconds(found.shares.weighted)},
                                {"jobs", nlohmann::ordered_json::array()}};
    for (std::size_t j = 0; j < found.cluster.jobs.size(); ++j) {
        nlohmann::ordered_json one{
            {"job", found.cluster.jobs[j].name}, {"gpus", 0}, {"tokens_per_s", nullptr}, {"completion_ns", nullptr}};
        if (const auto share = share_of(found, j)) {
            one["gpus"] = share->gpus;
            one["tokens_per_s"] = share->tokens_per_s;
            one["completion_ns"] = share->time.count();
        }
        json["jobs"].push_back(std::move(one));
    }
    return json;
}

nlohmann::ordered_json queue_json(const SharedOut& found, const QueueResult& queue) {
    nlohmann::ordered_json json{{"policy", name_of(queue.policy)},
                                {"weighted_completion_s", weighted_seconds(queue.weighted)},
                                {"begins_ns", queue.begins.count()},
                                {"ends_ns", queue.ends.count()},
                                {"gpu_hours", gpu_hours(queue.gpu_time)},
                                {"loaned_gpu_hours", gpu_hours(queue.loaned)},
                                {"offered_gpu_hours", gpu_hours(queue.offered)},
                                {"jobs", nlohmann::ordered_json::array()},
                                {"holdings", nlohmann::ordered_json::array()}};
    for (std::size_t j = 0; j < queue.jobs.size(); ++j) {
        const auto& told = queue.jobs[j];
        json["jobs"].push_back({{"job", found.cluster.jobs[j].name},
                                {"starts_ns", told.starts.count()},
                                {"ends_ns", told.ends.count()},
                                {"queued_ns", told.queued.count()},
                                {"gpu_hours", gpu_hours(told.gpu_time)},
                                {"stops", told.stops},
                                {"resizes", told.resizes}});
    }
    for (const auto& held : queue.holdings)
        json["holdings"].push_back({{"job", found.cluster.jobs[held.job].name},
                                    {"gpus", held.gpus},
                                    {"from_ns", held.from.count()},
                                    {"until_ns", held.until.count()}});
    return json;
}

}  // namespace

nlohmann::ordered_json shares_json(const SharedOut& found) {
    nlohmann::ordered_json json{{"format", "pipeweaver-shares/1"},
                                {"restart_ns", found.restart.count()},
                                {"cluster", jobs_document(found.cluster)},
                                {"share", share_json(found)},
                                {"queue", nlohmann::ordered_json::array()}};
    for (const QueueResult& queue : found.queues) json["queue"].push_back(queue_json(found, queue));
    return json;
}

}  // namespace pipeweaver::apps
