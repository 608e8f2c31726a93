// What the parts of pipeweaver._core share: a search's clock and interruptions, and the objects that Python holds.
//
// Threads      every call that may take long gives the interpreter lock back. Searches run on threads of their own
//              (on_own_threads), and what the planner makes once is made when the module is imported: a fork at any
//              moment leaves nothing half-made to the child.
#pragma once

#include "pipeweaver/base/deadline.hpp"
#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/planner/plan_options.hpp"
#include "pipeweaver/schedule/solution.hpp"

#include <atomic>
#include <memory>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::python {

namespace nb = nanobind;

/// Says to a search from any thread that it must end.
struct Control {
    std::atomic<bool> stopped = false;
};

/// When the searches of a call must end: by its budget, by its Control, or by what Python says: `stop`, a callable or
/// None, or a signal such as Ctrl-C, both asked about twenty times a second. `progress`, a callable, None or null, is
/// told then, too. The objects must outlive it. The budget runs from the start that is given, or from when it is made.
class Watch {
public:
    Watch(Control& control, const nb::object& stop, const nb::object* progress, std::optional<Duration> time,
          const Stopwatch& start = {})
        : control_(&control), stop_(&stop), progress_(progress), left_(time_left(time, start)) {}

    planner::Time time() const;

private:
    std::optional<schedule::StopReason> ask(const search::Progress& progress) const;

    Control* control_;
    const nb::object* stop_;
    const nb::object* progress_;
    planner::Time::Left left_;
    mutable Stopwatch since_asked_;
};

/// For functions that touch no Python object themselves: they run without the interpreter lock.
inline auto unlocked() { return nb::call_guard<nb::gil_scoped_release>(); }

/// A problem as Python holds it.
struct Problem {
    schedule::ProblemFile file;
};

/// A schedule of a problem with all that its file says.
struct Solution {
    std::shared_ptr<const Problem> problem;
    schedule::Solution content;
};

template <class T>
using Array = nb::ndarray<nb::numpy, T>;

/// A NumPy array that owns its numbers.
template <class T>
Array<T> array(std::vector<T> values, std::initializer_list<std::size_t> shape) {
    auto owned = std::make_unique<std::vector<T>>(std::move(values));
    T* data = owned->data();
    const nb::capsule owner(owned.release(), [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return Array<T>(data, shape, owner);
}

template <class T>
Array<T> array(std::vector<T> values) {
    const std::size_t size = values.size();
    return array(std::move(values), {size});
}

void bind_problem(nb::module_& module);
void bind_search(nb::module_& module);
void bind_plan(nb::module_& module);
void bind_measured(nb::module_& module);
void bind_capacity(nb::module_& module);

}  // namespace pipeweaver::python
