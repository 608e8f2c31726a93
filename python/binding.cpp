// pipeweaver._core: errors, the cost database, and the clock of searches.
#include "python/binding.hpp"

#include "pipeweaver/base/csv.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/costdb/database.hpp"
#include "pipeweaver/costdb/import.hpp"
#include "pipeweaver/costdb/query.hpp"
#include "pipeweaver/schedule/gap.hpp"
#include "pipeweaver/search/policies.hpp"
#include "pipeweaver/search/search.hpp"
#include "pipeweaver/workloads/batch.hpp"
#include "pipeweaver/workloads/catalogue.hpp"
#include "pipeweaver/workloads/cluster.hpp"

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
    dict["gap"] = schedule::relative_gap(progress.best, progress.bound);
    dict["found_by"] = std::string(progress.found_by);
    return dict;
}

}  // namespace

std::optional<schedule::StopReason> Watch::ask(const search::Progress& progress) const {
    if (control_->stopped) return schedule::StopReason::stopped;
    if (since_asked_.elapsed() < between_questions) return std::nullopt;
    const nb::gil_scoped_acquire lock;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (progress_ != nullptr && !progress_->is_none() && progress.bound > Duration{}) (*progress_)(as_dict(progress));
    if (!stop_->is_none() && nb::cast<bool>(nb::bool_((*stop_)()))) control_->stopped = true;
    since_asked_ = {};
    return control_->stopped ? std::optional(schedule::StopReason::stopped) : std::nullopt;
}

planner::Time Watch::time() const {
    return planner::Time::until(left_, [this](const search::Progress& progress) { return ask(progress); });
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
    // A message may quote bytes of a file that are no UTF-8.
    const auto text =
        nb::steal(PyUnicode_DecodeUTF8(message.data(), static_cast<Py_ssize_t>(message.size()), "backslashreplace"));
    if (text.is_valid()) PyErr_SetObject(cls.ptr(), text.ptr());
}

std::string answer(const costdb::CostDatabase& database, const std::string& op, const std::string& csv) {
    return costdb::answer_queries(database, op, CsvTable("query", csv));
}

std::size_t import_tables(const std::vector<std::string>& files, const std::string& device, const std::string& origin,
                          const std::string& licence, const std::string& output) {
    std::vector<costdb::TableFile> tables;
    for (const auto& file : files) tables.push_back({file, device, origin, licence});
    return costdb::import_tables(tables, output).points;
}

void bind_costs(nb::module_& module) {
    using costdb::CostDatabase;
    nb::class_<CostDatabase>(module, "CostDatabase")
        .def_static(
            "embedded", [](const std::string& device) { return CostDatabase::embedded(device); }, unlocked())
        .def_static(
            "read", [](const std::string& path, const std::string& device) { return CostDatabase::read(path, device); },
            unlocked())
        .def("answer", &answer, unlocked());
    module.def("import_tables", &import_tables, unlocked());
}

// Makes what the planner makes at first use and keeps: a child that was forked meanwhile would wait for it for ever.
void make_constants() {
    static_cast<void>(workloads::architectures());
    static_cast<void>(workloads::devices());
    static_cast<void>(workloads::datasets());
    static_cast<void>(search::policies());
    static_cast<void>(search::strategies());
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
    make_constants();
    module.attr("__version__") = PIPEWEAVER_VERSION;
    bind_costs(module);
    bind_problem(module);
    bind_search(module);
    bind_plan(module);
    bind_measured(module);
    bind_capacity(module);
}
