// A run beside its plan while it goes on.
#include "pipeweaver/measured/drift.hpp"
#include "python/binding.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <tuple>
#include <utility>

namespace pipeweaver::python {

namespace {

using measured::Drift;

// Rank, modules and kind of passes, what they were planned to take and took, in ns.
using Ran = std::tuple<std::int64_t, std::string, std::string, double, double>;
// Rank or none, modules, factor, steps.
using Told = std::tuple<std::optional<std::int64_t>, std::string, double, std::size_t>;

void make_drift(Drift* drift, double noise, std::int64_t window, double least, double strictness) {
    new (drift) Drift({.noise = noise, .window = window, .least = least, .strictness = strictness});
}

std::vector<Told> told_after(Drift& drift, const std::vector<Ran>& ran) {
    measured::RankGroups step;
    for (const auto& [rank, modules, kind, planned, measured] : ran) step[rank][{modules, kind}] = {planned, measured};
    std::vector<Told> told;
    for (const measured::DriftFinding& one : drift.add(std::move(step)))
        told.emplace_back(one.rank, one.modules, one.factor, one.steps);
    return told;
}

}  // namespace

void bind_measured(nb::module_& module) {
    nb::class_<Drift>(module, "Drift")
        .def("__init__", &make_drift)
        .def("add", &told_after)
        .def("forget", &Drift::forget);
}

}  // namespace pipeweaver::python
