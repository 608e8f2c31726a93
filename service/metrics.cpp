#include "service/metrics.hpp"

#include <algorithm>
#include <array>
#include <prometheus/text_serializer.h>

namespace pipeweaver::service {

namespace {

using namespace prometheus;

const std::vector<double> second_limits{0.005, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 1, 2, 5, 10, 30};
const std::vector<double> gap_limits{0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1};

template <class Builder>
auto& family(Registry& registry, Builder builder, const char* name, const char* help) {
    return builder.Name(name).Help(help).Register(registry);
}

Counter& counter(Registry& registry, const char* name, const char* help) {
    return family(registry, BuildCounter(), name, help).Add({});
}

Gauge& gauge(Registry& registry, const char* name, const char* help) {
    return family(registry, BuildGauge(), name, help).Add({});
}

Metrics::Distribution distribution(const Histogram& histogram, const std::vector<double>& limits) {
    Metrics::Distribution result{limits, {}};
    std::uint64_t before = 0;
    for (const auto& bucket : histogram.Collect().histogram.bucket) {
        result.counts.push_back(bucket.cumulative_count - before);
        before = bucket.cumulative_count;
    }
    return result;
}

// A caller may send whatever text as a method, and each label is kept for good.
std::string_view known_method(std::string_view method) {
    constexpr std::array<std::string_view, 7> known{"GET", "PUT", "DELETE", "POST", "PATCH", "HEAD", "OPTIONS"};
    return std::find(known.begin(), known.end(), method) == known.end() ? "other" : method;
}

}  // namespace

Metrics::Metrics()
    : requests_(
          family(registry_, BuildCounter(), "pipeweaver_requests_total", "requests answered, by route and status")),
      refusals_(family(registry_, BuildCounter(), "pipeweaver_refused_total", "requests refused for load, by why")),
      plans_(family(registry_, BuildCounter(), "pipeweaver_plans_total", "plans made, by how they were found")),
      submissions_(counter(registry_, "pipeweaver_submitted_total", "batches taken for planning")),
      late_(counter(registry_, "pipeweaver_late_total", "plans that were there after their deadline")),
      failures_(counter(registry_, "pipeweaver_failed_total", "batches that could not be planned")),
      not_stored_(counter(registry_, "pipeweaver_not_stored_total",
                          "plans that could not be stored, and were served all the same")),
      connections_(gauge(registry_, "pipeweaver_connections", "open connections")),
      sessions_(gauge(registry_, "pipeweaver_sessions", "open sessions")),
      unfinished_(gauge(registry_, "pipeweaver_unfinished", "batches that wait or are searched")),
      drafts_(family(registry_, BuildHistogram(), "pipeweaver_first_plan_seconds", "from submission to plan by policy")
                  .Add({}, second_limits)),
      seconds_(family(registry_, BuildHistogram(), "pipeweaver_plan_seconds", "from submission to plan")
                   .Add({}, second_limits)),
      gaps_(family(registry_, BuildHistogram(), "pipeweaver_plan_gap", "(makespan - bound) / bound of served plans")
                .Add({}, gap_limits)) {}

void Metrics::answered(std::string_view method, std::string_view route, int status) {
    requests_
        .Add({{"method", std::string(known_method(method))},
              {"route", std::string(route)},
              {"status", std::to_string(status)}})
        .Increment();
}

void Metrics::submitted() { submissions_.Increment(); }
void Metrics::refused(std::string_view why) { refusals_.Add({{"why", std::string(why)}}).Increment(); }

void Metrics::drafted(double seconds) { drafts_.Observe(seconds); }

void Metrics::planned(std::string_view how, double seconds, double gap, bool late) {
    plans_.Add({{"how", std::string(how)}}).Increment();
    if (late) late_.Increment();
    seconds_.Observe(seconds);
    gaps_.Observe(gap);
}

void Metrics::failed() { failures_.Increment(); }
void Metrics::not_stored() { not_stored_.Increment(); }
void Metrics::connections(std::size_t now) { connections_.Set(static_cast<double>(now)); }
void Metrics::sessions(std::size_t now) { sessions_.Set(static_cast<double>(now)); }
void Metrics::unfinished(std::size_t now) { unfinished_.Set(static_cast<double>(now)); }

std::string Metrics::text() const { return TextSerializer().Serialize(registry_.Collect()); }

Metrics::Distribution Metrics::seconds() const { return distribution(seconds_, second_limits); }
Metrics::Distribution Metrics::gaps() const { return distribution(gaps_, gap_limits); }

}  // namespace pipeweaver::service
