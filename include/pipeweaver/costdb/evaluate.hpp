// How good the answers are on shapes that were not measured: leave-out on a database's own points.
//
// Points       every point is asked for once, of a database without its fold (`folds` of them, drawn by seed).
// Planes       GEMM: all points of one n and all of one k are left out together and asked for, each n and each k at
//              least once. Attention: all points of one sequence length.
// Links        point-to-point times that a device has from another are not evaluated again.
// Truth        the tables' own values, which are not better than their noise: 2-6 % between sources of one shape.
// Determinism  a function of the database, the options and nothing else; any number of threads.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/costdb/database.hpp"
#include "pipeweaver/costdb/transfer.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace pipeweaver::costdb {

/// A point that was left out.
struct LeftOut {
    std::string op;    ///< one of evaluated_operators()
    std::string kind;  ///< what is told apart within it: "bf16", "bf16 backward_input", "causal", "all_reduce", ...
    bool plane = false;
    bool big = false;  ///< as in leave_out.hpp; attention by its true time, others never
    Basis basis = Basis::modelled;
    double truth_ns = 0, answer_ns = 0, printed_percent = 0;

    double error_percent() const;
    bool within() const { return error_percent() <= printed_percent; }
};

/// "gemm", "attention", "collective", "p2p", "moe", "gdn".
[[nodiscard]] std::span<const std::string> evaluated_operators();

struct EvaluateOptions {
    std::size_t folds = 10;  ///< 2 or more
    std::uint64_t seed = 1;
};

/// The points of operator `op`, each left out. Throws Error{input} for an unknown operator.
[[nodiscard]] std::vector<LeftOut> evaluate(const CostDatabase& database, const std::string& op,
                                            const EvaluateOptions& options, const Executor& execute);

/// A line of an evaluation: the errors of the points of one kind, size and basis.
struct EvaluationRow {
    std::string op, kind, left_out;  ///< left_out "points" or "planes"
    std::string size;                ///< "big", "small", "all"
    std::string basis;               ///< a basis, or "any"
    std::size_t points = 0;
    Quantiles error;     ///< percent
    double within = 0;   ///< share within the printed error
    double printed = 0;  ///< the printed error in the median, percent
};

/// Every combination that has points, sorted by op, kind, left_out, size, basis.
[[nodiscard]] std::vector<EvaluationRow> summary(std::span<const LeftOut> points);

/// A transfer with the device's table hidden but for the shapes that the tool chooses among its big forward GEMMs.
struct TransferTrial {
    std::vector<TransferReport> reports;  ///< what the transfer itself says, from its own points
    std::vector<EvaluationRow> rows;      ///< of the hidden points, kind the number format
    std::vector<EvaluationRow> by_peak;   ///< the same points by plain peak-ratio scaling; nothing is printed there
};

/// Tries a transfer and returns how far it is off. Throws as transfer() and shapes_to_measure().
[[nodiscard]] TransferTrial try_transfer(const CostDatabase& donor, const CostDatabase& device, std::size_t points);

}  // namespace pipeweaver::costdb
