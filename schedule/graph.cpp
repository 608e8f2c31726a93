#include "schedule/graph.hpp"

#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/depth_first_search.hpp>

#include <algorithm>

namespace pipeweaver::schedule {

namespace {

using Graph = boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, boost::no_property,
                                                 boost::no_property, std::uint32_t, std::uint32_t>;

// Collects vertices as they finish and, at the first edge back to an open vertex, the way from there.
class Visitor : public boost::default_dfs_visitor {
public:
    Visitor(Sorted& sorted, std::vector<std::uint32_t>& open) : sorted_(&sorted), open_(&open) {}

    void discover_vertex(std::uint32_t vertex, const Graph&) { open_->push_back(vertex); }

    void finish_vertex(std::uint32_t vertex, const Graph&) {
        open_->pop_back();
        sorted_->order.push_back(vertex);
    }

    void back_edge(const Graph::edge_descriptor& edge, const Graph& graph) {
        if (!sorted_->cycle.empty()) return;
        const auto begin = std::find(open_->begin(), open_->end(), target(edge, graph));
        sorted_->cycle.assign(begin, open_->end());
    }

private:
    Sorted* sorted_;  // pointers: Boost copies visitors
    std::vector<std::uint32_t>* open_;
};

}  // namespace

Sorted sort_topologically(std::uint32_t vertices, const std::vector<std::pair<std::uint32_t, std::uint32_t>>& edges) {
    const Graph graph(boost::edges_are_unsorted_multi_pass, edges.begin(), edges.end(), vertices);
    Sorted sorted;
    std::vector<std::uint32_t> open;
    std::vector<boost::default_color_type> colors(vertices);
    boost::depth_first_search(graph, Visitor(sorted, open),
                              boost::make_iterator_property_map(colors.begin(), get(boost::vertex_index, graph)));
    if (!sorted.cycle.empty()) sorted.order.clear();
    std::reverse(sorted.order.begin(), sorted.order.end());
    return sorted;
}

}  // namespace pipeweaver::schedule
