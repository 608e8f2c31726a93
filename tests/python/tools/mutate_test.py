"""tools/mutate.py and tools/mutants.py on a small source: which changes they find, write and draw."""

import subprocess
import sys

import pytest
from checkout import ROOT

sys.path.insert(0, str(ROOT / "tools"))

import mutate  # noqa: E402
import mutants  # noqa: E402

SOURCE = """#include <algorithm>
#include <vector>
namespace sample {
constexpr int spacing = 7 + 1;
constexpr int twice(int n) { return n + n; }
int clipped(const std::vector<int>& all, int least) {
    int sum = 0;
    for (int i = 0; i < static_cast<int>(all.size()); ++i) sum += all[static_cast<std::size_t>(i)];
    if (sum == least && !all.empty()) return -1;
    return std::max(sum, least) * 2 - spacing;  // a + b
}
const char* word(bool yes) { return yes ? "1 + 2" : "no"; }
}  // namespace sample
"""


def found(kind, text=SOURCE):
    return {(one.before, one.after) for one in mutants.Sites("emit/sample.cpp", text).found if one.kind == kind}


def test_every_kind_of_change_is_found_in_bodies_and_nowhere_else():
    assert found("term") == {("std::max(sum, least) * 2 - spacing", "std::max(sum, least) * 2"),
                             ("std::max(sum, least) * 2", "std::max(sum, least)"),
                             ("std::max(sum, least) * 2", "2"),
                             ("sum == least && !all.empty()", "sum == least"),
                             ("sum == least && !all.empty()", "!all.empty()"),
                             ("sum += all[static_cast<std::size_t>(i)];", "sum = all[static_cast<std::size_t>(i)];")}
    bound = "static_cast<int>(all.size())"
    assert found("comparison") == {(f"i < {bound}", f"i <= {bound}"), (f"i < {bound}", f"i > {bound}"),
                                   ("sum == least", "sum != least")}
    whole = "sum == least && !all.empty()"
    assert found("condition") == {(whole, f"!({whole})"), ("yes", "!(yes)")}
    assert found("minmax") == {("std::max(sum, least)", "std::min(sum, least)")}
    assert found("constant") == {("0", "1"), ("1", "0"), ("1", "2"), ("2", "1"), ("2", "3")}
    assert found("statement") == {("sum += all[static_cast<std::size_t>(i)];", ""), ("return -1;", "")}


def body(text):
    return f"int f(int a, int b) {{ {text} }}\n"


@pytest.mark.parametrize("text", ['fail("a + 1", a + 1);', "PIPEWEAVER_ASSERT(a < 3);", "v.reserve(a + 1);",
                                  "static_assert(sizeof(int) == 4);", "constexpr int n = 3 + 4;"])
def test_texts_of_errors_and_what_is_constant_at_compile_time_stay(text):
    assert [one for one in mutants.Sites("emit/a.cpp", body(text)).found if one.kind != "statement"] == []


def test_a_last_return_stays_and_an_early_one_may_go():
    assert found("statement", body("if (a < b) return 1; return a;")) == {("return 1;", "")}
    assert found("statement", body("if (a < b) return 1; else return a;")) == set()


def test_a_block_is_no_statement_but_what_is_in_it_is():
    text = body("if (a < b) { g(a); return a; } h(b); for (;;) { ++a; } return b;")
    assert found("statement", text) == {("g(a);", ""), ("h(b);", ""), ("++a;", "")}


def test_operators_bind_as_in_the_language():
    assert ("a - b * 3 + a", "a - b * 3") in found("term", body("return a - b * 3 + a < 9 && b > 0;"))
    assert ("a - b * 3 + a", "a + a") in found("term", body("return a - b * 3 + a < 9 && b > 0;"))
    assert ("b * 3", "b / 3") in found("sign", body("return a - b * 3 + a < 9 && b > 0;"))


def compiled(text, tmp_path, header):
    (tmp_path / "pipeweaver").mkdir(exist_ok=True)
    (tmp_path / "pipeweaver/mutants.hpp").write_text(header)
    (tmp_path / "sample.cpp").write_text(text + """
#include <cstdio>
int main() { std::printf("%d\\n", sample::clipped({3, 4, 5}, 2)); }
""")
    program = tmp_path / "sample"
    subprocess.run(["g++", "-std=c++20", "-w", "-I", tmp_path, "-o", program, tmp_path / "sample.cpp"], check=True)
    return program


def test_one_build_holds_all_changes_and_a_variable_chooses_one(tmp_path):
    changes = {("sum == least", "sum != least"): "-1", ("std::max(sum, least)", "std::min(sum, least)"): "-4",
               ("sum += all[static_cast<std::size_t>(i)];", ""): "-4", ("0", "1"): "18"}
    sites = mutants.Sites("emit/sample.cpp", SOURCE).found
    numbered = [(number, next(one for one in sites if (one.before, one.after) == change and one.line > 6))
                for number, change in enumerate(changes, 1)]
    program = compiled(mutants.rewritten(SOURCE, numbered), tmp_path, mutate.HEADER)

    def printed(**environment):
        return subprocess.run([program], env=environment, capture_output=True, text=True, check=True).stdout.strip()

    assert printed() == "16"
    assert [printed(PIPEWEAVER_MUTANT=str(number)) for number in range(1, 5)] == list(changes.values())
    reached = tmp_path / "reached"
    printed(PIPEWEAVER_MUTANTS_REACHED=str(reached))
    assert reached.read_text().split() == ["1", "2", "3", "4"]


def test_a_draw_is_a_function_of_its_seed_and_takes_each_line_once():
    sources = {"emit/sample.cpp": SOURCE, "search/other.cpp": SOURCE.replace("least", "most")}
    first, again, other = (mutants.draw(sources, {"emit": 1, "search": 1}, seed) for seed in (3, 3, 4))
    assert first == again != other
    lines = [(one.file, one.line) for one in first["emit"]]
    assert len(lines) == len(set(lines)) == 5
    assert {one.file for one in first["search"]} == {"search/other.cpp"}


def test_sixty_are_shared_out_by_weight():
    assert list(mutate.shares(60).items()) == [("emulator", 17), ("costdb", 7), ("partition", 7), ("search", 13),
                                               ("schedule", 3), ("planner", 10), ("emit", 3)]
    assert sum(mutate.shares(25).values()) == 25
