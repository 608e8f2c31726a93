// What is told apart among the points of one operator.
#pragma once

#include "pipeweaver/costdb/measurements.hpp"

#include <string>

namespace pipeweaver::costdb {

inline std::string with_pass(const std::string& kind, Pass pass) {
    return pass == Pass::forward ? kind : kind + ' ' + std::string(name_of(pass));
}

inline std::string kind_of(const GemmPoint& p) { return with_pass(std::string(name_of(p.dtype)), p.pass); }
inline std::string kind_of(const AttentionPoint& p) { return with_pass(p.causal ? "causal" : "encoder", p.pass); }
inline std::string kind_of(const CollectivePoint& p) {
    return std::string(name_of(p.kind)) + (p.source == LinkSource::nodes ? " sweep with nodes" : "");
}
inline std::string kind_of(const PointToPointPoint& p) {
    return p.gpus_per_node == 1 ? "across nodes" : "inside a node";
}
inline std::string kind_of(const MoePoint& p) { return std::string(name_of(p.dtype)); }
inline std::string kind_of(const ElementwisePoint& p) { return with_pass(std::string(name_of(p.kind)), p.pass); }
inline std::string kind_of(const LinearPoint& p) { return std::string(name_of(p.kernel)); }

}  // namespace pipeweaver::costdb
