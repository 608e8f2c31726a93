#include "search/dip/dip_tree.hpp"

#include <doctest/doctest.h>

#include <set>
#include <vector>

using namespace pipeweaver::search;

TEST_CASE("the tree gives every beginning of a sequence once, and then none") {
    DipTree tree(3);
    std::set<std::vector<std::uint32_t>> seen;
    while (const auto node = tree.select()) {
        CHECK(seen.insert(tree.beginning(*node)).second);
        tree.record(*node, 10);
    }
    CHECK(tree.exhausted());
    CHECK(seen.size() == 3 + 6 + 6);  // of one item, of two, of all three
}

TEST_CASE("a tree without items has nothing to choose") {
    DipTree tree(0);
    CHECK(tree.exhausted());
    CHECK_FALSE(tree.select());
}

TEST_CASE("what led to short schedules is chosen most often") {
    DipTree tree(6);
    std::vector<int> chosen(6, 0);
    for (int k = 0; k < 300; ++k) {
        const auto node = tree.select();
        REQUIRE(node);
        const std::uint32_t first = tree.beginning(*node).front();
        ++chosen[first];
        tree.record(*node, first == 4 ? 100 : 200);
    }
    for (std::size_t item = 0; item < 6; ++item)
        if (item != 4) CHECK(chosen[4] > 4 * chosen[item]);
}
