// Capacity studies for engines that run shards elsewhere: a study's cells, judged one by one, and their merge.
#include "pipeweaver/base/deadline.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/capacity/answer.hpp"
#include "pipeweaver/capacity/run.hpp"
#include "python/binding.hpp"

#include <chrono>
#include <memory>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
#include <optional>

namespace pipeweaver::python {

namespace {

/// Asks about twenty times a second whether a signal came, such as Ctrl-C, whose handler raised something.
class Signals {
public:
    /// Ends where something was raised.
    planner::Time time() {
        return planner::Time::until(nullptr, [this](const search::Progress&) { return ask(); });
    }

    /// Throws what was raised.
    void pass_on() {
        if (raised_) throw nb::python_error(*raised_);
    }

private:
    std::optional<schedule::StopReason> ask() {
        if (!raised_ && since_asked_.elapsed() > std::chrono::milliseconds(50)) {
            const nb::gil_scoped_acquire lock;
            if (PyErr_CheckSignals() != 0) raised_.emplace();
            since_asked_ = {};
        }
        return raised_ ? std::optional(schedule::StopReason::stopped) : std::nullopt;
    }

    std::optional<nb::python_error> raised_;  // its reason, taken from the interpreter
    Stopwatch since_asked_;
};

/// A study, and what its cells share while they are judged in this process.
struct Study {
    explicit Study(const JsonDocument& document) : study(capacity::read_study(document)) {}
    Study(const std::string& name, const std::string& json) : Study(JsonDocument(name, json)) {}

    capacity::Study study;
    capacity::Shared shared;

    std::vector<std::string> files() const {
        std::vector<std::string> names;
        names.reserve(study.cells.size());
        for (const auto& cell : study.cells) names.push_back(capacity::file_name(cell));
        return names;
    }

    /// The cells that the folder lacks; makes it where it is missing. Throws as run_cells_in().
    std::vector<std::size_t> begin(const std::string& folder) {
        const auto no_time = planner::Time::until([] { return Duration{}; });
        const auto present = capacity::run_cells_in(folder, study, {}, in_order, no_time);
        std::vector<std::size_t> missing;
        for (std::size_t cell = 0; cell < present.size(); ++cell)
            if (!present[cell]) missing.push_back(cell);
        return missing;
    }

    /// Writes what the cells of the folder answer, and returns it as a text. Throws Error{limit} where no row meets the
    /// constraints, when all is written.
    std::string merge(const std::string& folder) const {
        Signals signals;
        const auto results = capacity::merged(study, {folder});
        const auto ranking =
            capacity::answer(study, results, on_own_threads(planner::SearchLimits{}.thread_count()), signals.time());
        signals.pass_on();
        const auto files = capacity::answer_files(study, results, ranking, folder);
        write_files(files);
        capacity::remove_old_rows(files, folder);
        if (!ranking.none_meets.empty()) fail(ErrorKind::limit, "{}", ranking.none_meets);
        return capacity::answer_text(study, results, ranking);
    }

    nb::bytes judge(std::size_t number, int threads) {
        if (number >= study.cells.size())
            fail(ErrorKind::input, "cell: is {}, must be 0 to {}", number, study.cells.size() - 1);
        std::string text;
        {
            const nb::gil_scoped_release unlock;
            Signals signals;
            const auto result =
                capacity::judge_cell(study, study.cells[number], shared, on_own_threads(threads), signals.time());
            signals.pass_on();
            text = capacity::to_text(*result);
        }
        return nb::bytes(text.data(), text.size());
    }
};

}  // namespace

void bind_capacity(nb::module_& module) {
    nb::class_<Study>(module, "Study")
        .def(nb::init<const std::string&, const std::string&>(), unlocked(), nb::arg("name"), nb::arg("json"))
        .def_static(
            "read", [](const std::string& path) { return std::make_unique<Study>(JsonDocument::read(path)); },
            unlocked())
        .def_prop_ro("document", [](const Study& of) { return of.study.document; })
        .def_prop_ro("files", &Study::files)
        .def("begin", &Study::begin, unlocked(), nb::arg("folder"))
        .def("merge", &Study::merge, unlocked(), nb::arg("folder"))
        .def("judge", &Study::judge, nb::arg("cell"), nb::arg("threads"));
}

}  // namespace pipeweaver::python
