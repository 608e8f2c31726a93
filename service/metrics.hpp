// What the service counts, as Prometheus reads it.
//
// Threads      any number.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::service {

class Metrics {
public:
    Metrics();

    void answered(std::string_view method, std::string_view route, int status);
    void submitted();
    void refused(std::string_view why);  ///< "queue", "rate", ...
    /// A plan by policy is there, so long after its submission.
    void drafted(double seconds);
    /// A plan is there: `how` is "search" or "policy".
    void planned(std::string_view how, double seconds, double gap, bool late);
    void failed();
    void not_stored();

    void connections(std::size_t now);
    void sessions(std::size_t now);
    void unfinished(std::size_t now);

    /// Writes all figures in Prometheus' text format.
    [[nodiscard]] std::string text() const;

    /// Counts below each limit, of seconds or of gaps, for the page.
    struct Distribution {
        std::vector<double> limits;  ///< upper limit of each but the last
        std::vector<std::uint64_t> counts;
    };
    [[nodiscard]] Distribution seconds() const;
    [[nodiscard]] Distribution gaps() const;

private:
    prometheus::Registry registry_;
    prometheus::Family<prometheus::Counter>& requests_;
    prometheus::Family<prometheus::Counter>& refusals_;
    prometheus::Family<prometheus::Counter>& plans_;
    prometheus::Counter& submissions_;
    prometheus::Counter& late_;
    prometheus::Counter& failures_;
    prometheus::Counter& not_stored_;
    prometheus::Gauge& connections_;
    prometheus::Gauge& sessions_;
    prometheus::Gauge& unfinished_;
    prometheus::Histogram& drafts_;
    prometheus::Histogram& seconds_;
    prometheus::Histogram& gaps_;
};

}  // namespace pipeweaver::service
