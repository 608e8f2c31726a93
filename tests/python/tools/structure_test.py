"""tools/check_structure.py on small trees: what it finds, and what it lets pass."""

import re
import subprocess
import sys

import pytest
from checkout import ROOT


@pytest.fixture
def tree(tmp_path):
    def write(files):
        for name, included in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(f'#include "{other}"\n' for other in included))

    return write


def check(folder):
    script = ROOT / "tools/check_structure.py"
    done = subprocess.run([sys.executable, script, folder], capture_output=True, text=True)
    return done.returncode, done.stdout.splitlines()


def test_a_circle_of_three_rooms_is_found_and_one_of_two_passes(tree, tmp_path):
    tree({"search/a.hpp": ["search/b.hpp"], "search/b.hpp": [], "search/b.cpp": ["search/b.hpp", "search/a.hpp"]})
    assert check(tmp_path) == (0, [])
    tree({"search/b.cpp": ["search/b.hpp", "search/deep/c.hpp"], "search/deep/c.hpp": ["../a.hpp"]})
    status, lines = check(tmp_path)
    assert status == 1
    assert lines[0] == "circle of 3 rooms: search/a search/b search/c"
    assert "    search/b includes search/c in search/b.cpp" in lines


def test_a_module_may_include_only_what_is_allowed(tree, tmp_path):
    tree({"search/a.cpp": ["base/a.hpp"], "base/a.hpp": [], "apps/main.cpp": ["search/b.hpp"], "search/b.hpp": []})
    assert check(tmp_path) == (0, [])
    tree({"base/a.hpp": ["search/b.hpp"]})
    assert check(tmp_path) == (1, ["edge base -> search: base/a.hpp includes search/b.hpp"])


def test_a_public_header_has_a_production_user_outside_its_module(tree, tmp_path):
    public = "include/pipeweaver/search/"
    tree({public + "entry.hpp": ["pipeweaver/search/words.hpp"], public + "words.hpp": [],
          "planner/a.cpp": ["pipeweaver/search/entry.hpp"],
          "search/own.cpp": ["pipeweaver/search/entry.hpp", "pipeweaver/search/words.hpp"]})
    assert check(tmp_path) == (0, [])
    tree({public + "inner.hpp": [], "search/inner.cpp": ["pipeweaver/search/inner.hpp"],
          "search/other.cpp": ["pipeweaver/search/inner.hpp"],
          "tests/search/a_test.cpp": ["pipeweaver/search/inner.hpp"], "studies/a.cpp": ["pipeweaver/search/inner.hpp"]})
    assert check(tmp_path) == (1, [f"public header without a production user outside its module: {public}inner.hpp"])


def test_a_public_header_has_two_users_in_production(tree, tmp_path):
    header = "include/pipeweaver/search/entry.hpp"
    user = ["pipeweaver/search/entry.hpp"]
    tree({header: [], "planner/a.cpp": user, "tests/search/a_test.cpp": user})
    assert check(tmp_path) == (1, [f"public header with 1 users in production: {header}"])
    tree({"search/entry.cpp": user})
    assert check(tmp_path) == (0, [])


def test_a_chain_of_includes_has_at_most_15_files(tree, tmp_path):
    headers = [f"search/a{number}.hpp" for number in range(15)]
    tree({"search/a.cpp": headers[1:2], **{header: [after] for header, after in zip(headers, headers[1:])},
          headers[-1]: []})
    assert check(tmp_path) == (0, [])
    tree({"search/b.cpp": headers[:1]})
    assert check(tmp_path) == (1, [f"chain of 16 files: {' -> '.join(['search/b.cpp', *headers])}"])


def test_a_line_has_at_most_120_characters(tmp_path):
    for name, comment in (("search/a.cpp", "//"), ("tools/a.py", "# ")):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(f"\n{comment}{'é' * 118}\n")
    assert check(tmp_path) == (0, [])
    (tmp_path / "tools/a.py").write_text(f"\n# {'a' * 119}\n")
    assert check(tmp_path) == (1, ["line of 121 characters: tools/a.py:2"])


# Each with one body that may be made longer; what a detector by braces could take for something else.
CPP_FUNCTIONS = {
    "plain": "namespace pipeweaver::search {\nint f(int b) {\n@}\n}\n",
    "member": "class A {\npublic:\nA(int b) : a_{b}, c_(b) {\n@}\nint a_ = 0, c_{};\n};\n",
    "template": "struct A {};\ntemplate <class T>\nauto f(T b = {}) -> std::vector<T> {\n@}\n",
    "operator": "bool operator==(const A& a, const A& b) noexcept {\n@}\n",
    "C": 'extern "C" int f() {\n@}\n',
    "text": "char f() {\nauto a = \"}\"; auto b = R\"(}})\"; // }\nauto c = '}'; auto d = 1'000;\n#define X }\n@}\n",
    "test": 'TEST_CASE("a {") {\n@}\n',
}


@pytest.mark.parametrize("text", CPP_FUNCTIONS.values(), ids=CPP_FUNCTIONS)
@pytest.mark.parametrize("folder, most", [("search", 50), ("tests", 60)])
def test_a_function_has_at_most_50_lines_of_tests_60(tmp_path, text, folder, most):
    source = tmp_path / folder / "a.cpp"
    source.parent.mkdir()
    before = text.split("@")[0].splitlines()
    first = next(number for number, line in enumerate(before, 1) if re.search(r"\(|^template", line))
    frame = len(before) - first + 2  # lines beside those of the body
    source.write_text(text.replace("@", "if (true) { a(); }\n" * (most - frame)))
    assert check(tmp_path) == (0, [])
    source.write_text(text.replace("@", "if (true) { a(); }\n" * (most + 1 - frame)))
    assert check(tmp_path) == (1, [f"function of {most + 1} lines: {folder}/a.cpp:{first}"])


def test_a_function_that_is_a_table_may_be_longer(tmp_path):
    source = tmp_path / "search/a.cpp"
    source.parent.mkdir()
    table = "int f() {\nstatic const A all{{\n" + "{1},\n" * 60 + "}};\n}\n"
    source.write_text("// Table: a row each,\n// of some.\n" + table)
    assert check(tmp_path) == (0, [])
    source.write_text("// A function.\n" + table)
    assert check(tmp_path) == (1, ["function of 64 lines: search/a.cpp:2"])


def test_long_tables_are_no_functions_and_python_has_functions_too(tmp_path):
    for folder in ("search", "tools"):
        (tmp_path / folder).mkdir()
    rows = "{1, f(2)},\n" * 70
    (tmp_path / "search/a.cpp").write_text(f"constexpr A table[]{{\n{rows}}};\nconst auto b = make({{\n{rows}}});\n"
                                           f"namespace {{\nstruct B {{\n"
                                           f"{'int c{};' * 5}\n{'int d;' * 9}}};\n{rows}}}\n")
    (tmp_path / "tools/a.py").write_text(f"TABLE = [\n{'    1,' * 9}\n]\n\ndef f():\n" + "    pass\n" * 59)
    assert check(tmp_path) == (0, [])
    (tmp_path / "tools/a.py").write_text("def f():\n" + "    pass\n" * 60)
    assert check(tmp_path) == (1, ["function of 61 lines: tools/a.py:1"])


def test_a_folder_has_at_most_40_sources(tree, tmp_path):
    tree({f"search/a{number}.cpp": [] for number in range(40)})
    assert check(tmp_path) == (0, [])
    tree({"search/one_more.cpp": []})
    assert check(tmp_path) == (1, ["folder with 41 sources: search"])


def test_nothing_uses_the_studies_and_they_may_use_all(tree, tmp_path):
    tree({"studies/a.cpp": ["tests/support/a.hpp", "apps/a.hpp"], "tests/support/a.hpp": [], "apps/a.hpp": [],
          "studies/b.hpp": []})
    assert check(tmp_path) == (0, [])
    tree({"apps/b.cpp": ["studies/b.hpp"]})
    assert check(tmp_path) == (1, ["edge apps -> studies: apps/b.cpp includes studies/b.hpp"])


def test_benches_use_the_command_line_and_it_does_not_use_them(tree, tmp_path):
    tree({"bench/a.cpp": ["apps/a.hpp", "search/a.hpp"], "apps/a.hpp": [], "search/a.hpp": [], "bench/b.hpp": [],
          "tests/load/a.cpp": ["bench/b.hpp"]})
    assert check(tmp_path) == (0, [])
    tree({"apps/b.cpp": ["bench/b.hpp"]})
    assert check(tmp_path) == (1, ["edge apps -> bench: apps/b.cpp includes bench/b.hpp"])


def test_a_file_opens_the_namespace_of_its_module_and_declares_names_of_others_alone(tmp_path):
    def write(name, text):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    write("base/a.hpp", "namespace pipeweaver {\nint f();\n}\n")
    write("tests/search/a_test.hpp", "namespace anything {\nint f();\n}\nusing namespace anything;\n")
    write("search/a.cpp", "namespace pipeweaver::schedule {\nstruct Task;\nenum class Kind : int;\n}\n\n"
                          "namespace pipeweaver::search {\nnamespace {\nint f() { return 1; }\n}\n"
                          "namespace deep {\nint g();\n}\nusing namespace deep;\n}\n\n"
                          "namespace pipeweaver::search::deep {\nint g() { return 2; }\n}\n")
    assert check(tmp_path) == (0, [])
    write("search/a.hpp", "\nnamespace pipeweaver::schedule {\nstruct Task {};\n}\n\n"
                          "namespace pipeweaver::searching {\nint f();\n}\nusing namespace pipeweaver::schedule;\n")
    assert check(tmp_path) == (1, [
        "namespace pipeweaver::schedule in search/a.hpp:2, which is of pipeweaver::search",
        "namespace pipeweaver::searching in search/a.hpp:6, which is of pipeweaver::search",
        "a header opens a namespace: search/a.hpp:9"])


def test_names_of_policies_partitions_and_recomputations_are_spelled_in_their_rows_alone(tmp_path):
    def write(name, text):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    write("search/policies/policies.cpp", 'auto all = {{{"zb-v", "like a V"}, zb_v}};\n')
    write("include/pipeweaver/search/policy_names.hpp", 'constexpr const char* gpipe_policy = "gpipe";\n')
    write("partition/partitioners.cpp", 'auto all = {{.name = "first-stage"}, {.name = "balanced"}};\n')
    write("emulator/step/recompute.cpp",
          'auto all = {{.name = "core-attention"}, {.name = "half"}, {.name = "blocks:"}};\n')
    for user in ("search/b.cpp", "planner/b.cpp"):
        write(user, '#include "pipeweaver/search/policy_names.hpp"\n')
    write("partition/first_stage.cpp", 'auto cut = one_chain("first-stage");\n')
    write("frameworks/words.cpp", 'auto word = "core-attention";  // as the framework spells it\n')
    write("bench/a.cpp", 'auto policy = "zb-v";\n')
    write("planner/a.cpp", 'auto packing = "balanced"; // no "zb-v"\nauto type = "half";\n'
                           'auto sharing = partition::Sharing::named("balanced");\n')
    assert check(tmp_path) == (0, [])
    write("planner/a.cpp", 'auto a = "zb-v";\nauto b = "gpipe";\nauto partition = "balanced";\n'
                           'if (recompute == "half" || name == "blocks:") return;\n')
    assert check(tmp_path) == (1, ['policy "zb-v" spelled outside its row: planner/a.cpp:1',
                                   'policy "gpipe" spelled outside its row: planner/a.cpp:2',
                                   'partition "balanced" spelled outside its row: planner/a.cpp:3',
                                   'recomputation "blocks:" spelled outside its row: planner/a.cpp:4',
                                   'recomputation "half" spelled outside its row: planner/a.cpp:4'])


@pytest.mark.parametrize("caught", ["const Error& error", "const pipeweaver::Error&", "Error &", "Error const& e",
                                    "const ::pipeweaver::Error& e"])
def test_an_error_is_caught_by_commands_and_readers_alone(tmp_path, caught):
    def write(name, text):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    text = f"int f() {{\n    try {{\n    }} catch ({caught}) {{}}\n}}\n"
    for name in ("apps/a.cpp", "service/http/a.cpp", "tests/search/a_test.cpp", "base/files.cpp"):
        write(name, text)
    write("search/other.cpp", "int f() {\n    try {\n    } catch (const std::exception&) {\n"
                              "    } catch (const ErrorOfOthers&) {}\n}\n// catch (const Error& error)\n")
    assert check(tmp_path) == (0, [])
    write("search/a.cpp", "\n" + text)
    write("base/files.cpp", "")
    assert check(tmp_path) == (1, ["a reader that catches no Error any more: base/files.cpp",
                                   "catches an Error, and is no reader: search/a.cpp:4"])


def test_a_link_of_a_page_leads_to_a_file_and_a_heading(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/other.md").write_text("# A `code`, and [a link](../page.md)!\n\n## Twice\n\n## Twice\n\n"
                                            "```\n# none\n```\n")
    good = ["docs/other.md", "docs/other.md#a-code-and-a-link", "docs/other.md#twice-1", "#here", "https://a.b/c.md",
            "docs"]
    page = tmp_path / "page.md"
    page.write_text("## Here\n" + "".join(f"[x]({link})\n" for link in good) +
                    "`[x](code.md)`\n```\n[x](block.md)\n```\n")
    assert check(tmp_path) == (0, [])
    bad = ["docs/gone.md", "docs/other.md#none", "#there", "docs/other.md#twice-2"]
    page.write_text("## Here\n" + "".join(f"![x]({link})\n" for link in bad))
    assert check(tmp_path) == (1, [f"broken link in page.md: {link}" for link in bad])
