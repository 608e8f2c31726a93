"""What the program says of itself: help pages whose examples run, completion for shells, the installed tree."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess

import pytest
from absent import left_out
from checkout import ROOT
from cli_shared import full

COMMANDS = ["", "plan", "partition", "solve", "replay", "explain", "check", "emit", "emulate", "layers", "analyze",
            "recommend", "support", "capacity", "faults", "share", "groups", "mix", "rl", "fuse", "validate",
            "costdb", "costdb query", "costdb explain", "costdb import", "costdb needs", "costdb stats",
            "costdb evaluate", "costdb calibrate", "costdb export", "serve", "ui", "mcp",
            "bench", "bench plan", "bench replay", "bench search", "bench dip", "bench draft", "bench costdb",
            "bench emulator", "bench service", "bench accuracy", "list", "show", "completion"]


ELSEWHERE = [one for one in COMMANDS if one.startswith("bench ")]  # other programs print their pages


def sections(page):
    """A help page as {title: text}."""
    parts = re.split(r"^([A-Z ]+)$", page, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def examples(page):
    """The command lines of a help page."""
    lines = sections(page).get("EXAMPLES", "").replace(" \\\n", " ").splitlines()
    return [line.strip() for line in lines if line.startswith("    pipeweaver ") or line.startswith("    source ")]


def options(page):
    """The long options that a help page lists."""
    return re.findall(r"^ {4}(?:-\w, )?(--[\w-]+)", sections(page)["OPTIONS"], flags=re.MULTILINE)


@pytest.fixture(scope="session")
def pages(pipeweaver):
    """With all options."""
    return {command: pipeweaver(*command.split(), "--help-all") for command in COMMANDS}


@pytest.fixture(scope="session")
def own_pages(pages):
    """Those that the program prints itself, which completion and the man page know."""
    return {command: page for command, page in pages.items() if command not in ELSEWHERE}


@pytest.mark.parametrize("command", ["plan", "emulate", "partition", "recommend"])
def test_help_lists_what_people_need_and_says_how_much_more_there_is(pipeweaver, pages, command):
    page = pipeweaver(command, "--help")
    shown, whole = options(page), options(pages[command])
    assert set(shown) < set(whole) and len(shown) <= 20 and "--help-all" in shown
    named = re.findall(r"--[a-z][\w-]*", sections(page)["SYNOPSIS"])
    assert set(named) <= set(shown)
    said = re.search(rf"`pipeweaver {command} --help-all` lists (\d+) options more", page)
    assert int(said[1]) == len(whole) - len(shown)
    assert {title: text for title, text in sections(page).items() if title != "OPTIONS"} == {
        title: text for title, text in sections(pages[command]).items() if title != "OPTIONS"}


def test_where_options_are_few_help_lists_all(pipeweaver, pages):
    for command in ("replay", "costdb query", "list"):
        assert pipeweaver(*command.split(), "--help") == pages[command]


@pytest.mark.parametrize("command", ["", "costdb", "bench"])
def test_what_has_commands_says_which_when_it_stands_alone(pipeweaver, pages, command):
    assert pipeweaver(*command.split()) == pages[command]


def test_a_command_that_there_is_not_is_named_whatever_follows(pipeweaver):
    assert pipeweaver.fails("plna", "--model", "dip-vlm-s") == (
        2, "pipeweaver: unknown command 'plna'; did you mean 'plan'?")
    assert pipeweaver.fails("costdb", "qurey") == (2, "pipeweaver: unknown command 'qurey'; did you mean 'query'?")
    status, line = pipeweaver.fails("--modle", "x")
    assert status == 2 and "--modle" in line


def test_list_alone_says_what_can_be_listed(pipeweaver, pages):
    rows = dict(line.split(None, 1) for line in pipeweaver("list").splitlines())
    assert list(rows) == re.search(r"\[(\S+)\]", sections(pages["list"])["SYNOPSIS"])[1].split("|")
    assert [(row["name"], row["about"]) for row in json.loads(pipeweaver("list", "--json"))] == list(rows.items())
    for kind in rows:
        assert pipeweaver("list", kind)


def test_help_has_a_page_for_every_command(pages):
    """COMMANDS above is what the pages name, and no command hides."""
    for command, page in pages.items():
        below = re.findall(r"^  ([a-z]\w+) ", sections(page).get("COMMANDS", ""), flags=re.MULTILINE)
        assert [f"{command} {name}".strip() for name in below] == [
            one for one in COMMANDS if one and one.rpartition(" ")[0] == command]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_page_is_whole_and_fits_a_terminal(pages, command):
    page = pages[command]
    needed = ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "SEE ALSO"]
    assert [title for title in sections(page) if title in needed] == needed
    assert max(map(len, page.splitlines())) <= 100
    if command not in ("costdb", "bench"):  # they only hold commands
        assert len(examples(page)) >= 2
    for line in examples(page) if command else []:  # the top page's are of other commands
        own = re.sub(r"'[^']*'", "", line)  # what is quoted are other programs' options
        assert set(re.findall(r" (--[a-z][\w-]*)", own)) <= set(options(page)), line
    named = set(re.findall(r"--[a-z][\w-]*", sections(page)["SYNOPSIS"]))
    assert named <= set(options(page))


def outputs(line):
    """What an example says that it writes."""
    return re.findall(r"(?:--out|--output|--picture|--report|>) (\S+)", line)


# What makes an example short: few rounds, batches, sizes, layouts.
SHORTER = {" --max-rounds \\d+": " --max-rounds 1",
           " --microbatches (4|8|16)": " --microbatches 2", " --batches \\d": " --batches 1",
           " --sample 101-105": " --sample 101-102", " --gpus 32-128": " --gpus 32", " --gpus 64,128": " --gpus 64",
           " --global-batch 512": " --global-batch 128", " --days 30": " --days 300"}
SHORTER_STUDY = {"gpus: 32-128 ": "gpus: 32 ", "global-batch: 512": "global-batch: 128", "planned: 3": "planned: 1",
                 "{dataset: vlm-mix}": "{dataset: vlm-mix, max-rounds: 1}", "days: 30": "days: 300"}


def shorter(line):
    """An example as it is tried: as printed with PIPEWEAVER_FULL."""
    searches = re.match(r"pipeweaver (bench )?(plan|solve|recommend|partition) ", line)
    if full() or not searches:
        return line
    for printed, tried in SHORTER.items():
        line = re.sub(printed, tried, line)
    if " --dataset " in line and not re.search("--(microbatches|global-batch)", line):
        line += " --microbatches 2"
    if searches[2] == "plan" and " --dataset " in line and " --sample " not in line:
        line += " --sample 101"
    if searches[2] == "recommend" and " --cp " not in line:
        line += " --cp 1"
    limited = re.search("--(max-rounds|budget |policy|served)", line) or searches[2] == "partition" or searches[1]
    return line if limited else f"{line} --max-rounds 1"


def ends_when_told(line, top, environment):
    """What serves says where it listens, runs until it is told once to end, then exits with 0."""
    port = "" if "--http" in line else " --http 127.0.0.1:0"
    process = subprocess.Popen(shlex.split(line + port), cwd=top, env=environment, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        said = next((words for words in process.stderr if "http://" in words), None)
        assert said is not None, f"{line}: ended with {process.wait()} before it listened"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=300) == 0, f"{line}: {process.stderr.read()}"
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


@pytest.fixture(scope="session")
def example(pipeweaver, pages, tmp_path_factory):
    """Runs an example in a copy of the top folder; before it those of other pages that make the files it reads."""
    top = tmp_path_factory.mktemp("examples")
    shutil.copytree(ROOT / "examples", top / "examples")
    study = (top / "examples/study.yaml").read_text()
    for printed, tried in SHORTER_STUDY.items() if not full() else ():
        assert printed in study
        study = study.replace(printed, tried)
    (top / "examples/study.yaml").write_text(study)
    (top / "bin").mkdir()
    (top / "bin/pipeweaver").symlink_to(pipeweaver.path.resolve())
    environment = {**os.environ, "PATH": f"{top / 'bin'}:{os.environ['PATH']}"}
    makers = {}
    for page in pages.values():
        for line in examples(page):
            for output in outputs(line):
                makers.setdefault(output, line)

    def run(line):
        written = outputs(line)
        for word in line.split():
            name = word.split("/")[0]
            if name in makers and name not in written and not (top / name).exists():
                run(makers[name])
        for output in written:  # of an example before
            shutil.rmtree(top / output) if (top / output).is_dir() else (top / output).unlink(missing_ok=True)
        if line.startswith(("pipeweaver serve", "pipeweaver ui")):
            ends_when_told(line, top, environment)
        else:
            done = subprocess.run(["bash", "-c", shorter(line)], cwd=top, env=environment, stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=300)
            assert done.returncode == 0, f"{line}: {done.stderr}"
        for output in written:
            assert (top / output).exists(), line
    return run


@pytest.mark.parametrize("command", [one for one in COMMANDS if one not in ("costdb", "bench")])
def test_the_examples_of_a_page_run(pages, example, command):
    """Of a bench, which repeats with other figures what its own tests run, the last one; with PIPEWEAVER_FULL all."""
    lines = examples(pages[command])
    for line in lines if full() or not command.startswith("bench") else lines[-1:]:
        example(line)


@pytest.fixture(scope="session")
def complete(pipeweaver, tmp_path_factory):
    """Completes the words of a command line, the last of which is being written; returns a set."""
    script = tmp_path_factory.mktemp("completion") / "pipeweaver.bash"
    script.write_text(pipeweaver("completion", "bash"))

    def run(*words, folder=ROOT):
        asked = 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _pipeweaver || exit; ' \
                '((${#COMPREPLY[@]} == 0)) || printf "%s\\n" "${COMPREPLY[@]}"'
        done = subprocess.run(["bash", "--norc", "-c", asked, script, "pipeweaver", *words], cwd=folder,
                              capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        words = done.stdout.splitlines()
        assert len(words) == len(set(words))
        return set(words)
    return run


def test_completion_knows_every_command_and_option_that_help_names(complete, own_pages):
    assert complete("") == {one for one in COMMANDS if one and " " not in one}
    assert complete("costdb", "") == {"query", "explain", "import", "needs", "stats", "evaluate", "calibrate",
                                      "export"}
    assert complete("so") == {"solve"}
    for command, page in own_pages.items():
        assert complete(*command.split(), "--") == set(options(page)), command
    assert complete("bench", "") == {one.split()[1] for one in ELSEWHERE}
    assert complete("bench", "plan", "--") == set()


def names(pipeweaver, kind):
    return {line.split()[0] for line in pipeweaver("list", kind).splitlines() if "not available:" not in line}


def test_completion_knows_the_values_of_options(complete, pipeweaver, tmp_path):
    def values(*words):
        return complete(*words, "", folder=tmp_path)
    assert values("plan", "--model") == names(pipeweaver, "models") | {"hf:"}
    assert values("plan", "--cluster") == {name + ":" for name in names(pipeweaver, "clusters")}
    assert values("plan", "--dataset") == names(pipeweaver, "datasets")
    assert values("plan", "--partition") == {"dip", "modules", "megatron", "balanced", "uniform", "first-stage",
                                             "three-phase"}
    assert values("plan", "--target") == {"torch-actions", "torch-csv", "torchtitan", "megatron", "megatron-mimo",
                                          "fsdp2", "deepspeed", "any"}
    assert values("solve", "--target") == {"torch-csv"}
    assert values("emit", "--target") == names(pipeweaver, "targets")
    assert values("solve", "--policy") == names(pipeweaver, "policies")
    assert values("solve", "--strategy") == names(pipeweaver, "strategies")
    assert values("costdb", "query", "--device") == names(pipeweaver, "devices")
    assert values("costdb", "query", "--op") == {"gemm", "attention", "collective", "p2p", "moe", "elementwise",
                                                 "gdn"}
    assert values("list") == {"models", "clusters", "recipes", "devices", "networks", "datasets", "strategies",
                              "policies", "targets", "rules", "hazards"}
    assert names(pipeweaver, "clusters") | names(pipeweaver, "networks") < values("show")
    assert values("faults", "--network") == names(pipeweaver, "networks") | {"all"}
    assert values("completion") == {"bash", "zsh", "fish", "man"}
    assert values("plan", "--budget") == values("plan", "--cluster", "h100-sxm", ":") == set()


def test_completion_takes_values_apart_and_files_from_the_folder(complete, pipeweaver, tmp_path):
    for name in ("one.json", "two.yaml"):
        (tmp_path / name).touch()
    (tmp_path / "folder").mkdir()
    everything = {"one.json", "two.yaml", "folder"}
    assert complete("plan", "--model", "dip-t2v", folder=tmp_path) == {
        name for name in names(pipeweaver, "models") if name.startswith("dip-t2v")}
    assert complete("plan", "--partition", "=", "meg") == {"megatron"}
    assert complete("plan", "--partition", "=") == {"dip", "modules", "megatron", "balanced", "uniform", "first-stage",
                                                    "three-phase"}
    assert complete("plan", "--config", "t", folder=tmp_path) == {"two.yaml"}
    assert complete("plan", "--model", "on", folder=tmp_path) == {"one.json"}
    assert complete("plan", "--model", "hf", ":", folder=tmp_path) == everything
    assert complete("plan", "--model", "hf", ":", "o", folder=tmp_path) == {"one.json"}
    assert complete("plan", "--out", "", folder=tmp_path) == {"folder"}
    assert complete("solve", "", folder=tmp_path) == everything
    assert complete("replay", "one.json", "t", folder=tmp_path) == {"two.yaml"}
    assert complete("plan", "--dataset", "show", "--part") == {"--partition"}


# Outside of its line editor zsh has no completion: what the script offers is printed, a word a line.
ZSH = """
compdef() { : }
compadd() { shift ${@[(i)--]}; print -rl -- "$@" }
_describe() { [[ $1 == -o ]] && shift; print -rl -- ${(P)2%%:*} }
_files() { print -r -- "files $*" }
compset() { local part=${(M)PREFIX#${~2}}; PREFIX=${PREFIX#$part} }
source $1
shift
words=(pipeweaver "$@") CURRENT=$#words PREFIX=${words[-1]}
_pipeweaver || exit 0
"""


@pytest.fixture(scope="session")
def zsh(pipeweaver, tmp_path_factory):
    """As `complete` below, by zsh's script; "files ..." stands for those of the folder."""
    if shutil.which("zsh") is None:
        left_out("zsh is not installed")
    script = tmp_path_factory.mktemp("zsh") / "_pipeweaver"
    script.write_text(pipeweaver("completion", "zsh"))

    def run(*words):
        done = subprocess.run(["zsh", "-f", "-c", ZSH, "zsh", script, *words], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        return {word.strip() for word in done.stdout.splitlines()}
    return run


def test_zsh_is_offered_what_bash_is(zsh, complete, own_pages, pipeweaver, tmp_path):
    assert zsh("") == {one for one in COMMANDS if one and " " not in one}
    assert zsh("costdb", "") == complete("costdb", "")
    for command, page in own_pages.items():
        assert zsh(*command.split(), "--") == set(options(page)), command
    for asked in (["plan", "--dataset", ""], ["plan", "--target", ""], ["solve", "--policy", ""], ["list", ""],
                  ["completion", ""], ["plan", "--budget", ""]):
        assert zsh(*asked) == complete(*asked, folder=tmp_path), asked
    assert zsh("plan", "--model", "") == names(pipeweaver, "models") | {"hf:", "files"}
    assert zsh("plan", "--partition=") == complete("plan", "--partition", "=")
    assert zsh("plan", "--model", "hf:ex") == zsh("plan", "--config", "") == zsh("solve", "") == {"files"}
    assert zsh("plan", "--out", "") == {"files -/"}
    assert zsh("plan", "--cluster", "h100-sxm:") == set()


@pytest.fixture(scope="session")
def fish(pipeweaver, tmp_path_factory):
    """What fish offers at the end of a line: a word, and what it is."""
    if shutil.which("fish") is None:
        left_out("fish is not installed")
    folder = tmp_path_factory.mktemp("fish")
    script = folder / "pipeweaver.fish"
    script.write_text(pipeweaver("completion", "fish"))
    environment = {**os.environ, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "XDG_DATA_HOME": str(folder)}

    def run(*lines, folder=ROOT):
        asked = "source $argv[1]; for line in $argv[2..]; complete -C $line; echo -e '\\0'; end"
        done = subprocess.run(["fish", "--no-config", "-c", asked, script, *lines], cwd=folder, env=environment,
                              capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        return [dict((line + "\t").split("\t")[:2] for line in answer.splitlines() if line)
                for answer in done.stdout.split("\0")[:-1]]
    return run


def test_fish_is_offered_what_bash_is(fish, complete, own_pages, tmp_path):
    commands, below, some = fish("pipeweaver ", "pipeweaver costdb ", "pipeweaver so")
    assert set(commands) == {one for one in COMMANDS if one and " " not in one}
    assert "plan a training step" in commands["plan"] and set(below) == complete("costdb", "")
    assert set(some) == {"solve"}
    answers = fish(*[f"pipeweaver {command} --" for command in own_pages])
    for (command, page), answer in zip(own_pages.items(), answers, strict=True):
        assert set(answer) == set(options(page)), command
    asked = ["plan --dataset ", "plan --target ", "solve --policy ", "list ", "completion ", "plan --budget "]
    for line, answer in zip(asked, fish(*[f"pipeweaver {line}" for line in asked], folder=tmp_path), strict=True):
        assert set(answer) == complete(*line.split(" "), folder=tmp_path), line


def test_fish_is_offered_files_where_they_go(fish, pipeweaver, tmp_path):
    for name in ("one.json", "two.yaml"):
        (tmp_path / name).touch()
    (tmp_path / "folder").mkdir()
    model, part, file, folder = fish("pipeweaver plan --model ", "pipeweaver plan --model hf:o",
                                     "pipeweaver plan --config t", "pipeweaver plan --out ", folder=tmp_path)
    assert set(model) == names(pipeweaver, "models") | {"hf:", "one.json", "two.yaml", "folder/"}
    assert set(part) == {"hf:one.json"} and set(file) == {"two.yaml"} and set(folder) == {"folder/"}


def test_an_unknown_kind_of_completion_is_one_line(pipeweaver):
    assert pipeweaver.fails("completion", "bsah") == (
        2, "pipeweaver: completion: unknown kind 'bsah'; did you mean 'bash'?")


def test_the_man_page_says_what_help_says(pipeweaver, own_pages):
    if shutil.which("man") is None:
        left_out("man is not installed")
    environment = {**os.environ, "MANWIDTH": "120", "LC_ALL": "C", "MAN_KEEP_FORMATTING": "", "GROFF_NO_SGR": "1"}
    done = subprocess.run(["man", "--warnings", "-l", "-"], input=pipeweaver("completion", "man"), env=environment,
                          capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    shown = [line.strip() for line in re.sub(r".\x08", "", done.stdout).splitlines()]
    for page in own_pages.values():
        assert [line for line in map(str.strip, page.splitlines()) if line not in shown] == []


def test_cmake_installs_a_working_tree(pipeweaver, tmp_path):
    build = pipeweaver.path.resolve().parents[1]
    if not (build / "CMakeCache.txt").exists() or not (build / "apps/pipeweaver.man").exists():
        left_out("the binary does not lie in a whole build folder")
    subprocess.run(["cmake", "--install", build, "--prefix", tmp_path], check=True, capture_output=True)
    installed = subprocess.run([tmp_path / "bin/pipeweaver", "--version"], check=True, capture_output=True, text=True)
    assert installed.stdout == pipeweaver("--version")
    for program in ("pipeweaver-bench", "pipeweaver-load"):  # where they were built
        assert (tmp_path / "bin" / program).exists() == (build / "bin" / program).exists()
    for kind, place in (("bash", "bash-completion/completions/pipeweaver"), ("zsh", "zsh/site-functions/_pipeweaver"),
                        ("fish", "fish/vendor_completions.d/pipeweaver.fish"), ("man", "man/man1/pipeweaver.1")):
        assert (tmp_path / "share" / place).read_text() == pipeweaver("completion", kind)
    assert (tmp_path / "share/doc/pipeweaver/examples/plan.yaml").exists()
    assert (tmp_path / "lib/cmake/pipeweaver/pipeweaver-config.cmake").exists() or list(
        tmp_path.glob("lib/*/cmake/pipeweaver/pipeweaver-config.cmake"))


def test_a_benchmark_whose_program_was_not_built_says_how_to_build_it(pipeweaver, tmp_path):
    alone = type(pipeweaver)(shutil.copy(pipeweaver.path, tmp_path / "pipeweaver"))
    for name, program in (("plan", "pipeweaver-bench"), ("service", "pipeweaver-load")):
        for words in ([], ["--help"], ["--json", "-x", "any"]):
            assert alone.fails("bench", name, *words) == (
                3, f"pipeweaver: {tmp_path}/{program}: is not there; in a checkout "
                   f"`cmake --build --preset release --target {program}` builds it")
    assert alone("bench") == alone("bench", "--help") == pipeweaver("bench", "--help")
    assert alone.fails("bench", "plna") == (2, "pipeweaver: unknown command 'plna'; did you mean 'plan'?")


def test_a_benchmark_is_told_of_as_pipeweaver_bench_however_it_is_called(pipeweaver, pages):
    for name, program in (("plan", "pipeweaver-bench"), ("service", "pipeweaver-load")):
        direct = type(pipeweaver)(pipeweaver.path.with_name(program))
        assert direct(name, "--help") == pages[f"bench {name}"]
        for words in (["--modle", "x"], ["--seed="]):
            assert direct.fails(name, *words) == pipeweaver.fails("bench", name, *words)


def remark_of(pipeweaver, *arguments):
    """What a command says on stderr when it is done."""
    done = subprocess.run([pipeweaver.path, *map(str, arguments)], capture_output=True, text=True, check=True)
    return done.stderr


class Runtime:
    """In place of PyTorch's _PipelineScheduleRuntime: keeps what it was given."""

    def __init__(self, stages, n_microbatches, loss_fn):
        self.n_microbatches, self.path = n_microbatches, None

    def _load_csv(self, path):
        self.path = path


NEXT = {
    "torch-actions": ["plan", "--model", "dip-vlm-s", "--cluster", "h100-sxm:32", "--tp", 4, "--pp", 4, "--dataset",
                      "vlm-mix", "--microbatches", 4],
    "torch-csv": ["plan", "--model", "dip-vlm-s", "--cluster", "h100-sxm:16", "--dataset", "vlm-mix",
                  "--microbatches", 4, "--target", "torch-csv"],
    "stages": ["solve", "--stages", ROOT / "examples/stages.csv", "--microbatches", 6],
}


@pytest.mark.parametrize("target", NEXT)
def test_a_plan_says_what_to_do_next_and_it_works(pipeweaver, tmp_path, target):
    remark = remark_of(pipeweaver, *NEXT[target], "--max-rounds", 1, "--out", tmp_path / "my plan")
    named = {match for match in re.findall(rf"{tmp_path}/my plan/[\w./-]+", remark)}
    expected = ["replica-000/trace.json.gz", "replica-000/actions.json", "assignment.json", "report.html"]
    expected = ["trace.json.gz", "solution.json", "problem.json.gz"] if target == "stages" else expected
    for name in [*expected, "torch/schedule.csv", "torch/schedule.json"]:
        assert str(tmp_path / "my plan" / name) in named
    for path in named:
        assert os.path.isfile(path.rstrip(".:")), path
    code = "\n".join(line.strip() for line in remark.splitlines() if line.strip().startswith("schedule"))
    scope = {"_PipelineScheduleRuntime": Runtime, "stages": [], "loss": None}
    exec(code, scope)  # noqa: S102
    said = json.loads((tmp_path / "my plan/torch/schedule.json").read_text())
    assert scope["schedule"].n_microbatches == said["n_microbatches"]
    assert scope["schedule"].path == str(tmp_path / "my plan/torch/schedule.csv")
    assert ("(and 1 more)" in remark) == (target == "torch-actions")
    if target != "stages":
        assert (remark.index("PyTorch") < remark.index("executor")) == (target == "torch-csv")


def test_quiet_says_nothing_and_a_plan_without_pytorch_does_not_speak_of_it(pipeweaver, tmp_path):
    assert remark_of(pipeweaver, *NEXT["stages"], "--max-rounds", 1, "--quiet", "--out", tmp_path) == ""
    (tmp_path / "s.csv").write_text(
        "stage,rank,forward_us,backward_us,weight_us,activation_bytes,weights_bytes,send_bytes\n"
        "0,0,10,20,,100,1000,900\n1,1,10,20,,100,1000,0\n")
    # 2400 bytes hold weights and activations, but not the receive buffers of PyTorch's runtime.
    remark = remark_of(pipeweaver, "solve", "--stages", tmp_path / "s.csv", "--microbatches", 4, "--capacity", "2400B",
                       "--max-rounds", 1, "--out", tmp_path / "plan")
    assert "PyTorch" not in remark
    assert "pipeweaver replay" in remark
