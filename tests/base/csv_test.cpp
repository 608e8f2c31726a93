#include "pipeweaver/base/csv.hpp"

#include "pipeweaver/base/error.hpp"

#include <doctest/doctest.h>

using namespace pipeweaver;

TEST_CASE("a CSV table gives its cells by column name, unquoted and trimmed") {
    const CsvTable table("t.csv", "name, size\r\n\"a, \"\"b\"\"\" , 17\nplain,-2\n\n");

    REQUIRE(table.rows() == 2);
    CHECK(table.text(0, table.column("name")) == "a, \"b\"");
    CHECK(table.integer(0, table.column("size"), 0, 20) == 17);
    CHECK(table.integer(1, 1, -5, 20) == -2);
    CHECK_FALSE(table.find("length"));
}

TEST_CASE("a cell that is not what is asked is named by file, line and column") {
    const CsvTable table("t.csv", "a,b\n1,\"x\ny\"\n2.5,nan\n,inf\n1e3,0\n");

    CHECK(table.line(0) == 2);
    CHECK(table.line(1) == 4);
    CHECK_THROWS_WITH_AS(static_cast<void>(table.integer(1, 0, 0, 9)),
                         "t.csv:4: a: is '2.5', must be a whole number from 0 to 9", Error);
    CHECK_THROWS_WITH_AS(static_cast<void>(table.number(1, 1, 0, 9)),
                         "t.csv:4: b: is 'nan', must be a number above 0 and up to 9", Error);
    CHECK_THROWS_AS(static_cast<void>(table.number(2, 0, 0, 9)), Error);
    CHECK_THROWS_AS(static_cast<void>(table.number(2, 1, 0, 9)), Error);
    CHECK_THROWS_AS(static_cast<void>(table.number(3, 1, 0, 9)), Error);
    CHECK(table.number(3, 0, 0, 2000) == 1000);
}

TEST_CASE("a CSV file that is not a table is refused with its line") {
    CHECK_THROWS_WITH_AS(CsvTable("t", ""), "t: is empty, a header line is needed", Error);
    CHECK_THROWS_WITH_AS(CsvTable("t", "a,,b\n"), "t:1: column 2 has no name", Error);
    CHECK_THROWS_WITH_AS(CsvTable("t", "a,a\n"), "t:1: column 'a' occurs twice", Error);
    CHECK_THROWS_WITH_AS(CsvTable("t", "a,b\n1,2\n1\n"), "t:3: has 1 cells, the header has 2", Error);
    CHECK_THROWS_WITH_AS(CsvTable("t", "a\n\n1\n\"x"), "t:4: a quote is not closed", Error);
    CHECK_THROWS_WITH_AS(CsvTable("t", "a\n\"x\"y\n"), "t:2: text follows a closing quote", Error);
    CHECK_THROWS_WITH_AS(CsvTable("t", std::string("a\0b", 3)), "t: is not text, CSV is needed", Error);
    CHECK_THROWS_WITH_AS(static_cast<void>(CsvTable("t", "latency\n1\n").column("latencies")),
                         "t:1: column 'latencies' is missing; is 'latency' meant to be it?", Error);
}

TEST_CASE("a cell written with csv_cell comes back as it was") {
    for (const std::string cell : {"plain", "a,b", "say \"x\"", "two\nlines"})
        CHECK(CsvTable("t", "c\n" + csv_cell(cell) + "\n").text(0, 0) == cell);
}
