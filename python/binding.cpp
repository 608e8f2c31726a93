// pipeweaver._core: errors, the cost database, and the clock of searches.
#include "python/binding.hpp"

#include "pipeweaver/base/csv.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/costdb/database.hpp"
#include "pipeweaver/costdb/query.hpp"
#include "pipeweaver/search/bounds.hpp"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace pipeweaver::python {

namespace {

constexpr auto between_questions = std::chrono::milliseconds(50);

nb::dict as_dict(const search::Progress& progress) {
    nb::dict dict;
    dict["rounds"] = progress.rounds;
    dict["evaluations"] = progress.evaluations;
    dict["best_ns"] = progress.best.count();
    dict["bound_ns"] = progress.bound.count();
    dict["gap"] = search::relative_gap(progress.best, progress.bound);
    dict["found_by"] = std::string(progress.found_by);
    return dict;
}

}  // namespace

std::optional<emulator::StopReason> Watch::ask(const search::Progress& progress) const {
    if (control_->stopped) return emulator::StopReason::stopped;
    const auto now = Clock::now();
    if (now - asked_ < between_questions) return std::nullopt;
    const nb::gil_scoped_acquire lock;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!progress_->is_none() && progress.bound > Duration{}) (*progress_)(as_dict(progress));
    if (!stop_->is_none() && nb::cast<bool>(nb::bool_((*stop_)()))) control_->stopped = true;
    asked_ = Clock::now();
    return control_->stopped ? std::optional(emulator::StopReason::stopped) : std::nullopt;
}

planner::Allowance Watch::allowance() const {
    return [this](double share) -> search::KeepGoing {
        const auto begun = Clock::now();
        return [this, begun, share](const search::Progress& progress) -> std::optional<emulator::StopReason> {
            if (const auto reason = ask(progress)) return reason;
            if (time_ && Clock::now() - begun >= share * std::chrono::duration<double, std::nano>(*time_))
                return emulator::StopReason::budget;
            return std::nullopt;
        };
    };
}

namespace {

// The package's class for a kind of error.
const char* class_of(ErrorKind kind) {
    switch (kind) {
        case ErrorKind::input:
            return "InputError";
        case ErrorKind::io:
            return "FileError";
        default:
            return "LimitError";
    }
}

void raise(const Error& error) {
    std::string message = error.what();
    for (char& c : message)
        if (c == '\n') c = ' ';
    const nb::object cls = nb::module_::import_("pipeweaver.errors").attr(class_of(error.kind()));
    PyErr_SetString(cls.ptr(), message.c_str());
}

std::string answer(const costdb::CostDatabase& database, const std::string& op, std::string csv) {
    const nb::gil_scoped_release unlocked;
    return costdb::answer_queries(database, op, CsvTable("query", std::move(csv)));
}

void bind_costs(nb::module_& module) {
    using costdb::CostDatabase;
    nb::class_<CostDatabase>(module, "CostDatabase")
        .def_static("embedded", [](const std::string& device) { return CostDatabase::embedded(device); })
        .def_static("read", [](const std::filesystem::path& path,
                               const std::string& device) { return CostDatabase::read(path, device); })
        .def_prop_ro("device", [](const CostDatabase& database) { return database.device(); })
        .def("answer", &answer);
}

}  // namespace

}  // namespace pipeweaver::python

NB_MODULE(_core, module) {
    using namespace pipeweaver::python;
    nb::set_leak_warnings(false);  // what an interpreter holds at its end is its own affair
    nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
        try {
            std::rethrow_exception(thrown);
        } catch (const pipeweaver::Error& error) {
            raise(error);
        }
    });
    module.attr("__version__") = PIPEWEAVER_VERSION;
    nb::class_<Control>(module, "Control")
        .def(nb::init<>())
        .def("stop", [](Control& control) { control.stopped = true; })
        .def_prop_ro("stopped", [](const Control& control) { return control.stopped.load(); });
    bind_costs(module);
    bind_problem(module);
    bind_search(module);
    bind_plan(module);
}
