// Launches as they are read: words, scripts, and their settings.
#include "launch/read/shell/arithmetic.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/launch/megatron.hpp"
#include "pipeweaver/launch/model.hpp"
#include "pipeweaver/launch/said.hpp"
#include "pipeweaver/launch/titan.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace pipeweaver;
using launch::Dialect;

namespace {

launch::MegatronLaunch arguments(const std::string& text) {
    return launch::read_megatron(launch::read_words(Dialect::megatron_arguments, text, "--megatron-args"));
}

launch::MegatronLaunch script(const std::string& text, const launch::Variables& given = {}) {
    return launch::read_megatron(launch::read_script(text, "train.sh", std::nullopt, given));
}

}  // namespace

TEST_CASE("arguments are read with and without '=', with dashes or underscores, and the last of a name counts") {
    const auto l = arguments(
        "--num-layers 64 --hidden-size=8192 --tensor_model_parallel_size 2 "
        "--tensor-model-parallel-size 4 --swiglu --sequence_parallel true --lr 1e-4 --seed -1");
    CHECK(l.layers == 64);
    CHECK(l.hidden == 8192);
    CHECK(l.tp == 4);
    CHECK(l.swiglu);
    CHECK(l.sequence_parallel);
    CHECK(l.not_read == std::vector<std::string>{"lr", "seed"});
}

TEST_CASE("flags that turn a default off turn it off, and `false` after them on again") {
    CHECK(arguments("--num-layers 1").overlap_p2p);
    CHECK_FALSE(arguments("--no-overlap-p2p-communication").overlap_p2p);
    CHECK_FALSE(arguments("--disable-bias-linear").linear_bias);
    CHECK(arguments("--disable-bias-linear false").linear_bias);
}

TEST_CASE(
    "overrides are read with their sections, null takes a value away, and their defaults are the configuration's") {
    const auto l = launch::read_megatron(launch::read_words(
        Dialect::bridge_overrides,
        "scripts/run_recipe.py --recipe x model.num_layers=4 +model.kv_channels=null model.overlap_p2p_comm=True "
        "train.micro_batch_size=2 model.recompute_modules=[layernorm,moe_act] ddp.grad_reduce_in_fp32=False "
        "model.share_embeddings_and_output_weights=false",
        "--bridge-overrides"));
    CHECK(l.layers == 4);
    CHECK_FALSE(l.kv_channels.has_value());
    CHECK(l.overlap_p2p);
    CHECK(l.batch_p2p);
    CHECK(l.micro_batch == 2);
    CHECK(l.recompute_modules == std::vector<std::string>{"layernorm", "moe_act"});
    CHECK(l.grads_in_bf16);
    CHECK(l.untied);
}

TEST_CASE("a script's variables, arrays, defaults and sums are put in") {
    const auto l = script(
        "#!/bin/bash\n"
        "TP=4  # tensor parallel\n"
        "PP=${PP:-$((TP * 2))}\n"
        "GPT=(\n    --num-layers 64 \\\n    # a comment\n    --hidden-size \"8192\"\n)\n"
        "GPT+=(--swiglu)\n"
        "MORE=\"--tensor-model-parallel-size $TP \\\n --bf16\"\n"
        "MORE=\"$MORE --pipeline-model-parallel-size ${PP}\"\n"
        "torchrun --nproc_per_node 8 pretrain_gpt.py ${GPT[@]} $MORE --recompute-modules moe layernorm\n");
    CHECK(l.layers == 64);
    CHECK(l.hidden == 8192);
    CHECK(l.swiglu);
    CHECK(l.tp == 4);
    CHECK(l.pp == 8);
    CHECK(l.bf16);
    CHECK(l.recompute_modules == std::vector<std::string>{"moe", "layernorm"});
}

TEST_CASE("an array without items is no word, also in quotes; a text without letters in quotes is one") {
    const auto l = script(
        "SPLIT=()\nMORE=(--swiglu)\nNONE=\"\"\n"
        "python pretrain_gpt.py --num-layers 4 \"${SPLIT[@]}\" \"${MORE[@]}\" --use-distributed-optimizer "
        "\"${SPLIT[@]}\" --hidden-size 64\n");
    CHECK(l.layers == 4);
    CHECK(l.swiglu);
    CHECK(l.hidden == 64);
    CHECK_THROWS_WITH_AS(
        script("NONE=\"\"\npython pretrain_gpt.py --num-layers 4 --use-distributed-optimizer \"$NONE\"\n"),
        doctest::Contains("use-distributed-optimizer: is ''"), Error);
}

TEST_CASE("what stands between $(( and )) is worked out where it is a sum of whole numbers that is in bounds") {
    const auto worked_out = [](const std::string& text) {
        return launch::worked_out(text, [](const std::string& word) {
            return word == "N" ? std::string("7") : word == "LEAST" ? std::string("-9223372036854775808") : word;
        });
    };
    CHECK(worked_out("1 + 2 * (N - 3) % 5") == 4);
    CHECK(worked_out("${N}/2") == 3);
    CHECK(worked_out("$N") == 7);
    CHECK(worked_out(" N > 6 && N % 2 != 0 ") == 1);
    CHECK(worked_out("!(N >= 8) || N / 0") == std::nullopt);  // more than bash, which works out no more than it needs
    CHECK(worked_out("N <= 6 ? 1 : N == 7 ? 2 : 3") == 2);
    CHECK(worked_out(std::string(99, '(') + "1" + std::string(99, ')')) == 1);
    for (const std::string bad :
         {"", "M", "1 +", "1 / 0", "2 ** 3", "N << 2", "N = 3", "1 ? 2", "(1", "1)", "9223372036854775807 + 1",
          "LEAST + 1", "1000000 * 1000000 * 1000000", "99999999999999999999"})
        CHECK_FALSE(worked_out(bad).has_value());
    CHECK_FALSE(worked_out(std::string(1'000'000, '(')).has_value());
}

TEST_CASE("what a script leaves to its caller is said beside it, or is known to be left open") {
    const std::string text = "ARGS=\"--num-layers $1\"\npython pretrain_gpt.py $ARGS --seq-length $SEQ --swiglu\n";
    const auto said = launch::read_script(text, "train.sh");
    REQUIRE(said.unset.size() == 2);
    CHECK(said.unset[0].setting == "--num-layers");
    CHECK(said.unset[0].variable == "$1");
    CHECK(said.unset[0].where == "train.sh:2");
    CHECK(said.unset[1].setting == "--seq-length");
    REQUIRE(said.settings.size() == 1);
    CHECK(said.settings[0].name == "swiglu");
    const auto l = script(text, {{"1", "8"}, {"SEQ", "4096"}});
    CHECK(l.layers == 8);
    CHECK(l.seq_length == 4096);
    CHECK(script("N=${N:-2}\npython train.py --num-layers $N\n", {{"N", "3"}}).layers == 3);
    CHECK(script("N=$(nvidia-smi -L | wc -l)\npython train.py --num-layers $N\n", {{"N", "3"}}).layers == 3);
}

TEST_CASE("what a script sets itself, or does not have, is not said beside it") {
    const std::string text = "N=2\npython train.py --num-layers $N\n";
    CHECK(script(text, {{"N", "2"}}).layers == 2);
    CHECK_THROWS_WITH_AS(script(text, {{"N", "3"}}),
                         "train.sh:1: N is set to '2', so that --set N=3 does not reach it: change it there", Error);
    CHECK_THROWS_WITH_AS(script(text, {{"NUM", "3"}}), "--set: train.sh has no variable 'NUM'", Error);
}

TEST_CASE(
    "of several commands the one with the most settings counts; here-documents and here-strings are no commands") {
    const auto said = launch::read_script(
        "cat <<EOF\n--num-layers 1 --hidden-size 1 --swiglu\nEOF\n"
        "IFS=, read -r A B <<< \"1,2\"\n"
        "python convert.py --tensor-model-parallel-size 2\n"
        "if [ -z \"$X\" ]; then LAYERS=24; fi\n"
        "CMD=\"python train.py --num-layers $LAYERS --hidden-size 64 --swiglu\"\n"
        "srun bash -c \"$CMD\" 2>&1 | tee log\n",
        "train.sh");
    const auto l = launch::read_megatron(said);
    CHECK(l.layers == 24);
    CHECK(l.tp == 1);
    REQUIRE(said.notes.size() == 1);
    CHECK(said.notes[0] == "train.sh:6: LAYERS is set in a branch: what is set last is taken");
}

TEST_CASE("here-documents that a shell is given, or that are written and run, are scripts") {
    const std::string launch = "python pretrain_gpt.py --num-layers 8 --tensor-model-parallel-size $TP ";
    const auto sent = script("TP=4\nsbatch <<EOT\n#SBATCH --nodes=2\n" + launch +
                             "--pipeline-model-parallel-size \\$SLURM_NNODES\nEOT\n");
    CHECK(sent.tp == 4);
    CHECK(sent.pp == 2);
    CHECK(script("TP=4\nbash <<'END'\n" + launch + "\nEND\necho done\n").tp == 4);
    CHECK(script("cat > run.sh <<'EOF'\n" + launch + "\nEOF\nTP=4 bash run.sh\n").tp == 4);
    CHECK(script("TP=4\nsrun bash -c '" + launch + "'\n").tp == 4);
    CHECK(script("TP=4\nCMD=\"\ncd a;\n" + launch + "\"\nsbatch <<EOF\nsrun bash -x -c \"${CMD}\" 2>&1 | tee b\nEOF\n")
              .tp == 4);
    const auto said = launch::read_script("TP=2\nbash <<END\n\n" + launch + "\nEND\n", "a.sh");
    CHECK(said.settings.front().where == "a.sh:4");
}

TEST_CASE("arguments that nobody gives are none: defaults count, and loops over them are left out") {
    const std::string launch = "python t.py --num-layers 8 --tensor-model-parallel-size $TP ";
    const std::string two = "TP=${1:-2}\nshift\nPP=${1:-4}\n" + launch + "--pipeline-model-parallel-size $PP\n";
    CHECK(script(two).tp == 2);
    CHECK(script(two).pp == 4);
    CHECK(script(two, {{"1", "8"}, {"2", "1"}}).tp == 8);
    CHECK(script(two, {{"1", "8"}, {"2", "1"}}).pp == 1);
    const std::string loop =
        "TP=2\nwhile [[ $# -gt 0 ]]; do\n  case $1 in\n    --tp) TP=\"$2\"; shift 2 ;;\n  esac\ndone\n";
    const auto said = launch::read_script(loop + launch + "\"$@\"\n", "a.sh");
    CHECK(said.unset.empty());
    REQUIRE(said.notes.size() == 1);
    CHECK(said.notes.front() == "a.sh:7: '$@' is set to no plain text in the script: it is taken as empty");
    CHECK(launch::read_megatron(said).tp == 2);
}

TEST_CASE("a function runs where it is called, with what it is given, and without a call as it stands") {
    const std::string body =
        "() {\n  local tp=$1\n  if [ -n \"$2\" ]; then\n    PP=${2}\n  fi\n  python t.py --num-layers 8 "
        "--tensor-model-parallel-size $tp --pipeline-model-parallel-size $PP \"${@}\"\n}\n";
    CHECK(script("PP=1\nrun" + body + "run 4 2\n").tp == 4);
    CHECK(script("PP=1\nrun" + body + "run 4 2\n").pp == 2);
    CHECK(script("function run" + body + "if ! run 2 4; then exit 1; fi\n").pp == 4);
    CHECK(script("log() { echo \"$1\"; }\nPP=1\nlog a; run () {\n" + body.substr(5) + "run 4 2 2>&1 | tee log\n").tp ==
          4);
    CHECK(script("T=2\nrun() {\n  python t.py --num-layers 8 --tensor-model-parallel-size $T\n}\n").tp == 2);
    CHECK(script("read -r -d '' INNER <<'EOF' || true\npython t.py --num-layers 8 --tensor-model-parallel-size $T\n"
                 "EOF\nsrun bash -c \"export T=4; ${INNER}\"\n")
              .tp == 4);
}

TEST_CASE("of a loop over rows the first is taken, or the one that is given") {
    const std::string text =
        "for row in 2,1 4,2; do\n  IFS=, read -r TP PP <<< \"$row\"\n  python t.py --num-layers 8 "
        "--tensor-model-parallel-size $TP --pipeline-model-parallel-size $PP\ndone\n";
    CHECK(script(text).tp == 2);
    CHECK(script(text, launch::parse_variables("row=4,2")).tp == 4);
    CHECK(script(text, launch::parse_variables("row=4,2")).pp == 2);
    const auto said = launch::read_script(text, "a.sh", std::nullopt, {{"row", "4,2"}});
    REQUIRE(said.notes.size() == 1);
    CHECK(said.notes.front() == "a.sh:1: of the 2 rows of a loop the given one is taken: row is '4,2'");
    CHECK(launch::parse_variables("A=1,2,B=3") == launch::Variables{{"A", "1,2"}, {"B", "3"}});
    CHECK_THROWS_AS(launch::parse_variables("4,A=1"), Error);
}

TEST_CASE("Slurm's directives say the script's GPUs") {
    const auto gpus = [](const std::string& text) {
        return launch::read_script(text + " pretrain_gpt.py --num-layers 8\n", "a.sh").gpus;
    };
    CHECK(gpus("#!/bin/bash\n#SBATCH --nodes=4\n#SBATCH --gpus-per-node=h100:8  # all\nsrun python") == 32);
    CHECK(gpus("#SBATCH -N 2 --gres gpu:4\nsrun python") == 8);
    CHECK(gpus("#SBATCH -N 2\ntorchrun --nnodes $SLURM_NNODES --nproc_per_node 8") == 16);
    CHECK(gpus("#SBATCH -N 2\nsrun python") == 0);
}

TEST_CASE("a script says which dialect it is in") {
    CHECK(launch::read_script("torchrun train.py --parallelism.tensor_parallel_degree 4", "a").dialect ==
          Dialect::titan_settings);
    CHECK(launch::read_script("uv run run_recipe.py model.num_layers=4 train.global_batch_size=8", "a").dialect ==
          Dialect::bridge_overrides);
    CHECK_THROWS_AS(launch::read_script("echo hello", "a"), Error);
}

TEST_CASE("values that are none are errors that say where, what and what is allowed") {
    CHECK_THROWS_WITH_AS(arguments("--num-layers many"),
                         "--megatron-args: num-layers: is 'many', must be a whole number from 1 to 1000000000", Error);
    CHECK_THROWS_WITH_AS(arguments("--recompute-granularity some"),
                         "--megatron-args: recompute-granularity: is 'some', must be one of full, selective, none",
                         Error);
    CHECK_THROWS_WITH_AS(arguments("--num-layers"), "--megatron-args: num-layers: has 0 values, allowed is one", Error);
    CHECK_THROWS_AS(arguments("--num-layers $N"), Error);
    CHECK_THROWS_WITH_AS(arguments("--a 'b"), "--megatron-args: a quote ' is not closed", Error);
    CHECK_THROWS_WITH_AS(script("A=(1 2\n"), "train.sh:2: an array is not closed", Error);
}

TEST_CASE("patterns of layers: a number, lists, sums and products") {
    using Pattern = std::vector<bool>;
    CHECK(launch::layer_pattern("2", 4, "f") == Pattern{true, false, true, false});
    CHECK(launch::layer_pattern("[0]*1+[1]*3", 4, "f") == Pattern{false, true, true, true});
    CHECK(launch::layer_pattern("([0,1]*1+[1])*2", 6, "f") == Pattern{false, true, true, false, true, true});
    CHECK_THROWS_WITH_AS(launch::layer_pattern("[0,1]", 4, "f"), "f: is of 2 layers, the model has 4", Error);
    CHECK_THROWS_AS(launch::layer_pattern("[0,2]", 2, "f"), Error);
    CHECK_THROWS_AS(launch::layer_pattern("0", 2, "f"), Error);
    CHECK_THROWS_AS(launch::layer_pattern("[1]*99999999999", 2, "f"), Error);
}

TEST_CASE("parts of variables and the script's own folder are as bash has them") {
    const auto layers = [](const std::string& text) {
        return script(text + "\npython train.py --num-layers $N\n").layers;
    };
    CHECK(layers("A=(8 4)\nN=${A[0]}") == 8);
    CHECK(layers("S=model-8.sh\nS=${S%.sh}\nN=${S#model-}") == 8);
    CHECK(layers("S=a/b/8\nN=${S##*/}") == 8);
    CHECK(layers("S=8/a/b\nN=${S%%/*}") == 8);
    CHECK(layers("X=1\nN=8${X:+}${UNSET:+7}") == 8);
    CHECK(layers("X=1\nN=${X:+8}") == 8);
    CHECK(layers("D=$(dirname \"$0\")\n[ \"$D\" = . ] && N=8") == 8);
    CHECK(layers("D=$(cd \"$(dirname \"${BASH_SOURCE[0]}\")\" && pwd)\n[ \"$D\" = . ] && N=8") == 8);
    CHECK(layers("N=$(basename 8.sh .sh)") == 8);
}

TEST_CASE("of `a && b || c` what bash runs is run, and what follows a test that is not known may not have run") {
    const auto layers = [](const std::string& text) {
        return script(text + "\npython train.py --num-layers $N\n").layers;
    };
    CHECK(layers("[[ 8 -gt 4 ]] && N=4 || N=2") == 4);
    CHECK(layers("[[ 8 -lt 4 ]] && N=4 || N=2") == 2);
    CHECK(layers("[ 8 -gt 4 ] && export N=4 || export N=2") == 4);
    CHECK(layers("N=2; [ 8 -lt 4 ] && { M=1; N=4; }") == 2);
    CHECK(layers("[ 8 -gt 4 ] && { M=1; N=4; } || { N=2; M=3; }") == 4);
    CHECK(layers("[ 8 -lt 4 ] || [ 3 -gt 2 ] && N=4") == 4);
    CHECK(layers("cd folder && N=4") == 4);
    CHECK(layers("cd folder && { N=2; [ 8 -lt 4 ] && N=4; }") == 2);
    CHECK(layers("N=4 || N=2") == 4);
    CHECK(layers("N=4; unset X || N=2") == 4);
    CHECK(layers("N=4; : ${N:=8} || N=2") == 4);
    CHECK(layers("N=4; false && N=2; ! true && N=2") == 4);
    CHECK(layers("if [ 8 -gt 4 ] && { true; [ 8 -lt 4 ]; }; then N=2; else N=4; fi") == 4);
    CHECK(layers("if { true; [ 8 -lt 4 ]; } || [ 8 -gt 4 ]; then N=4; else N=2; fi") == 4);
    CHECK(layers("N=2; cd folder && [ 8 -lt 4 ] && N=4") == 2);
    CHECK(layers("N=2; [ -f file ] && { if [ 8 -gt 4 ]; then N=4; else N=2; fi; }") == 4);
    const auto noted = [](const std::string& text) {
        return launch::read_script(text + "\npython train.py --num-layers $N\n", "train.sh").notes;
    };
    CHECK(noted("N=2; [ 8 -gt 4 ] && N=4").empty());
    CHECK(noted("N=2; cd folder && [ 8 -gt 4 ] && N=4").empty());
    CHECK(noted("N=2; cd folder || N=8 && N=4").empty());
    CHECK(noted("[ -z \"$N\" ] && N=4").empty());  // as ${N:-4}
    CHECK(noted("[[ -n ${N} ]] || export N=4").empty());
    CHECK(noted("N=2; [ -z \"$M\" ] && N=4").size() == 1);
    for (const std::string text :
         {"N=2; [ -f file ] && N=4", "[ -f file ] && N=4 || N=2", "grep -q x y && N=4 || N=2",
          "N=2; [ -f file ] && { M=1; N=4; }", "grep -q x y && { N=4; M=1; } || N=2", "N=$(cat file) || N=2"})
        CHECK_MESSAGE(noted(text).size() == 1, text);
}

TEST_CASE("conditions of several tests and of sums choose their branch") {
    const auto branch = [](const std::string& condition) {
        const auto said = launch::read_script(
            "A=8\nif " + condition + "; then N=4; else N=2; fi\npython train.py --num-layers $N\n", "train.sh");
        CHECK_MESSAGE(said.notes.empty(), condition);
        return launch::read_megatron(said).layers;
    };
    for (const std::string holds : {"[ $A -gt 4 ] && [ $A -lt 9 ]", "[[ $A -gt 4 && $A -lt 9 ]]",
                                    "[[ $A -gt 4 &&\n $A -lt 9 ]]", "[ $A = 1 -o $A -gt 2 ]", "(( A > 4 ))",
                                    "((A % 3 != 0 && A >= 8))", "! (( A < 4 ))", "[ $A = 8 ] || [ -f x ]"})
        CHECK_MESSAGE(branch(holds) == 4, holds);
    for (const std::string fails : {"[ $A -gt 4 ] && [ $A -gt 9 ]", "[[ $A -gt 4 && $A -gt 9 ]]", "(( A <= 4 ))",
                                    "[[ -n \"\" && $UNKNOWN == 1 ]]", "! [ $A = 8 ]"})
        CHECK_MESSAGE(branch(fails) == 2, fails);
    CHECK(script("G=2\nB=$((2 * 4))\nif (( G % B != 0 )); then\n  G=$B\nfi\npython t.py --num-layers $G\n").layers ==
          8);
    CHECK(script("((G = 4))\n((N=8))\npython t.py --num-layers $N\n").layers == 8);
    CHECK(script("for ((i=0; i<8; i++)); do N=8; done\npython t.py --num-layers $N\n").layers == 8);
}

TEST_CASE("a default that is assigned stays, and an array is one word by its star between quotes") {
    CHECK(script(": ${N:=4}\npython t.py --num-layers $N\n").layers == 4);
    CHECK(script("N=8\n: \"${N:=4}\"\npython t.py --num-layers ${N}\n").layers == 8);
    CHECK(script(": ${N:=4}\npython t.py --num-layers $N\n", {{"N", "6"}}).layers == 6);
    CHECK(script(": ${A:=\"--num-layers 4\"}\npython t.py $A\n").layers == 4);
    CHECK(script("f() {\n  local X=${N:=4}\n}\nf\npython t.py --num-layers $N\n").layers == 4);
    CHECK(script("set -- x\nf() {\n  N=$((2 * 4 / $1))\n}\nf 1 5\npython t.py --num-layers $N\n").layers == 8);
    const std::string rows = "A=(\n  --num-layers 8\n  --hidden-size 64\n  --swiglu\n)\n";
    for (const std::string run : {"srun bash -c \"cd x\n python t.py ${A[*]}\n\"", "eval \"python t.py ${A[*]}\"",
                                  "bash -c \"python t.py ${A[*]}\""}) {
        const auto l = script(rows + run + "\n");
        CHECK_MESSAGE(l.layers == 8, run);
        CHECK(l.hidden == 64);
        CHECK(l.swiglu);
    }
}

TEST_CASE("redirections and the files that they name are no values, and a flag behind them counts") {
    CHECK(script("python t.py --num-layers 8 --recompute-modules moe layernorm 2>&1 | tee log\n").recompute_modules ==
          std::vector<std::string>{"moe", "layernorm"});
    CHECK(script("python t.py --num-layers 8 >log\n").layers == 8);
    const std::string tags = "T='--special-tokens <a> b> >c'\npython t.py $T --num-layers 8\n";
    CHECK(launch::read_script(tags, "a.sh").settings.front().values == std::vector<std::string>{"<a>", "b>", ">c"});
    CHECK(script("python t.py --load <FOLDER> --num-layers 8\n").layers == 8);
    CHECK(script("python t.py --num-layers 8 > log --tensor-model-parallel-size 4\n").tp == 4);
}

TEST_CASE("numbers out of bounds and lists without items end nothing") {
    CHECK(script("IFS=()\nread -r A B <<< \"8 4\"\npython t.py --num-layers $A\n").layers == 8);
    const std::string rows = "N=$(seq -9223372036854775000 9223372036854775000)\n";
    CHECK(launch::read_script(rows + "python t.py --num-layers $N\n", "a.sh").unset.size() == 1);
}

TEST_CASE("a function that nobody calls does not stand for the one that is called") {
    const std::string launch = "python t.py --num-layers 8 --hidden-size 64 --tensor-model-parallel-size ";
    CHECK(script("big() {\n  " + launch + "8 --swiglu\n}\nsmall() {\n  " + launch + "2\n}\nsmall\n").tp == 2);
    CHECK(script("big() {\n  " + launch + "8 --swiglu\n}\npython a.py --num-layers 1\n").tp == 8);
}

TEST_CASE("functions and shells of their own leave the caller's variables, and `return` ends a function") {
    const std::string launch = "python t.py --num-layers 8 --tensor-model-parallel-size $TP\n";
    CHECK(script("TP=2\nf() { local TP=8; }\nf\n" + launch).tp == 2);
    CHECK(script("TP=2\nf() { local TP\n  TP=8\n}\nf\n" + launch).tp == 2);
    CHECK(script("TP=2\nf() { TP=8; }\nf\n" + launch).tp == 8);
    CHECK(script("f() { local N=${1}\n  TP=$N\n}\nf 4\n" + launch).tp == 4);
    CHECK(script("TP=2\nf() {\n  if [ -n \"$1\" ]; then\n    return\n  fi\n  TP=8\n}\nf 1\n" + launch).tp == 2);
    CHECK(script("TP=2\nf() {\n  a || { echo b; return 1; }\n  TP=8\n}\nf\n" + launch).tp == 8);
    CHECK(script("TP=2\nf() {\n  a || return\n  TP=8\n}\nf\n" + launch).tp == 8);
    CHECK(script("TP=2\ncat > a.sh <<'EOF'\nTP=8\nEOF\nbash a.sh\n" + launch).tp == 2);
    CHECK(script("TP=2\ncat > a.sh <<'EOF'\nTP=8\nEOF\nsource a.sh\n" + launch).tp == 8);
    CHECK(script("TP=2\nbash <<'EOF'\nTP=8\nEOF\n" + launch).tp == 2);
    CHECK(script("TP=2\n( TP=8; echo $TP )\n" + launch).tp == 2);
    const std::string own = "python t.py --num-layers 8 --tensor-model-parallel-size ${TP:-2}\n";
    for (const char* apart : {"bash <<'EOF'\nTP=8\nEOF\n", "cat <<'EOF' | bash\nTP=8\nEOF\n",
                              "cat > a.sh <<'EOF'\nTP=8\nEOF\nbash a.sh\n"}) {
        CAPTURE(apart);
        CHECK(script(apart + own).tp == 2);
    }
    CHECK(script("f() {\n  TP=8\n}\nTP=2\n(f)\n" + launch).tp == 2);
    CHECK(script("TP=2\n(\n  cd a\n  TP=8\n  " + launch + ")\n").tp == 8);
    CHECK(script("TP=2; ((N=1)); TP=4\n" + launch).tp == 4);
}

TEST_CASE("variables in front of a command are its own, and its words have the script's") {
    const std::string launch = "python t.py --num-layers 8 --tensor-model-parallel-size $TP\n";
    CHECK(script("TP=2\nTP=8 python prepare.py\n" + launch).tp == 2);
    CHECK(script("TP=2\nTP=8 " + launch).tp == 2);
    CHECK(script("TP=2\nif true; then TP=8 python prepare.py; fi\n" + launch).tp == 2);
    CHECK(script("f() {\n  " + launch + "}\nTP=2\nTP=8 f\n").tp == 8);
    CHECK(script("TP=2\nTP=8 bash -c '" + launch + "'\n").tp == 8);
    CHECK(script("TP=2\nTP=8 bash <<'EOF'\n" + launch + "EOF\n").tp == 8);
    CHECK(script("TP=2\nTP=8 bash <<EOF\n" + launch + "EOF\n").tp == 2);
    CHECK(script("TP=2 PP=3\n" + launch).tp == 2);
    CHECK(script("export TP=2\n" + launch).tp == 2);
    const auto said = [](const std::string& text) { return launch::read_script(text, "t.sh").variables; };
    CHECK(said("CUDA_DEVICE_MAX_CONNECTIONS=8 python p.py\nCUDA_DEVICE_MAX_CONNECTIONS=1 \\\n  python t.py "
               "--num-layers 8 --hidden-size 4 --seq-length 8\n")
              .at("CUDA_DEVICE_MAX_CONNECTIONS") == "1");
    const std::string other = "python t.py --num-layers 8 --hidden-size 4 --seq-length 8\n";
    CHECK(said("f() {\n  " + other + "}\nA=8 f\n").at("A") == "8");
    CHECK(said("A=8 bash <<'EOF'\n" + other + "EOF\n").at("A") == "8");
    CHECK(said("A=8 bash -c '" + other + "'\n").at("A") == "8");
    CHECK(said("A=2\nA=8 srun sh -c '" + other + "'\n").at("A") == "8");
    CHECK(said("A=8 eval '" + other + "'\n").at("A") == "8");
    CHECK(said("A=8 bash -c 'A=4 " + other + "'\n").at("A") == "4");
    CHECK(said("A=8 bash -c 'export A=4; " + other + "'\n").at("A") == "4");
    CHECK_FALSE(said("A=8 bash -c 'unset A; " + other + "'\n").contains("A"));
    CHECK_FALSE(said("A=8 python p.py; " + other).contains("A"));
    CHECK_FALSE(said("A=8 python p.py\npython t.py --num-layers 8 --hidden-size 4 --seq-length 8\n").contains("A"));
}

TEST_CASE("a variable that is unset or empty has its default, and defaults may lie deep") {
    const std::string launch = "python t.py --num-layers 8 --tensor-model-parallel-size ${TP:-4}\n";
    CHECK(script("TP=2\nunset TP\n" + launch).tp == 4);
    CHECK(script("TP=\n" + launch).tp == 4);
    std::string deep = "A=";
    for (int i = 0; i < 12'000; ++i) deep += "${a:-";
    deep += "1" + std::string(12'000, '}') + "\n";
    CHECK(script(deep + launch).tp == 4);
}

TEST_CASE("here-documents are added to a file, are called by any path, and end at a line that is their tag") {
    const std::string launch = "python t.py --num-layers 8 \\\n";
    const std::string more = "cat >> run.sh <<EOF\n --tensor-model-parallel-size 4\nEOF\nbash ./run.sh\n";
    CHECK(script("cat > run.sh <<'EOF'\n" + launch + "EOF\n" + more).tp == 4);
    CHECK(script("cat <<'EOF' | tee -a ./run.sh\n" + launch + "EOF\n" + more).tp == 4);
    CHECK(script("bash <<EOF\necho \\\n EOF\npython t.py --num-layers 8\nEOF\n").layers == 8);
    CHECK(script("bash <<-EOF\n\tpython t.py --num-layers 8\n\tEOF\n").layers == 8);
}

TEST_CASE("a prompt and the answer that ms-swift generates are one sequence, which an engine may hold to less") {
    const std::string grpo = "megatron rlhf --rlhf_type grpo --model M --max_length 1024 ";
    CHECK(script(grpo).seq_length == 1536);
    CHECK(script(grpo + "--max_completion_length 2048").seq_length == 3072);
    const std::string held = grpo + "--max_completion_length 2048 --vllm_max_model_len 2048 ";
    CHECK(script(held).seq_length == 2048);
    CHECK(script(held + "--vllm_mode server").seq_length == 3072);
    CHECK(script("megatron rlhf --rlhf_type dpo --model M --max_length 1024").seq_length == 1024);
    const std::string gkd = "megatron rlhf --rlhf_type gkd --model M --max_length 1024 ";
    CHECK(script(gkd).seq_length == 1536);
    CHECK(script(gkd + "--lmbda 0").seq_length == 1024);  // answers are those of the data
    CHECK(script(gkd + "--use_vllm false").seq_length == 1024);
    CHECK_THROWS_AS(script(gkd + "--lmbda 2"), Error);
}

TEST_CASE("a YAML file of ms-swift says flags, which those of the command override, and variables") {
    const std::string file =
        "cat <<'EOF' > a.yaml\nmodel: M\ntensor_model_parallel_size: 4\nmax_length: 2048\nmicro_batch_size: 2\n"
        "target_modules: [linear_qkv, linear_proj]\npacking: true\nseed: null\nENV:\n  MAX_PIXELS: '1003520'\nEOF\n";
    for (const char* command : {"megatron sft --config a.yaml --tensor_model_parallel_size 2\n",
                                "megatron sft a.yaml --tensor_model_parallel_size 2\n"}) {
        CAPTURE(command);
        const auto said = launch::read_script(file + command, "train.sh");
        CHECK(said.named_model == "M");
        CHECK(said.variables.at("MAX_PIXELS") == "1003520");
        const auto l = launch::read_megatron(said);
        CHECK(l.tp == 2);
        CHECK(l.seq_length == 2048);
        CHECK(l.micro_batch == 2);
        CHECK(l.packs);
        CHECK(l.lora_targets == std::vector<std::string>{"linear_qkv", "linear_proj"});
    }
    CHECK_THROWS_AS(launch::read_script("megatron sft --config b.yaml\n", "train.sh"), Error);
    CHECK(script("megatron sft --model M --max_length 2048 --custom_register_path b.json\n").seq_length == 2048);
}

TEST_CASE("what cat prints of a here-document is a variable's text, and arrays have items by number and by key") {
    const std::string launch = "python t.py --num-layers 8 --tensor-model-parallel-size ";
    CHECK(script("CMD=$(cat <<'EOF'\n" + launch + "4 \\\n --bf16\nEOF\n)\neval \"$CMD\"\n").tp == 4);
    CHECK(script("TP=4\nCMD=$(cat <<EOF\n" + launch + "$TP\nEOF\n)\nsrun bash -c \"${CMD}\"\n").tp == 4);
    CHECK(script("CMD=$(cat <<EOF\npython t.py --num-layers 8 \\\n  --bf16\nEOF\n)\neval $CMD\n").layers == 8);
    CHECK(script("SIZES=(1 2 4)\n" + launch + "${SIZES[2]}\n").tp == 4);
    CHECK(script("I=1\nSIZES=(1 2 4)\n" + launch + "${SIZES[$I]}\n").tp == 2);
    CHECK(script("declare -A OF=([8b]=2 [70b]=8)\nM=70b\n" + launch + "${OF[$M]}\n").tp == 8);
    CHECK(script("declare -A OF\nOF[8b]=2\nOF[70b]=8\n" + launch + "${OF[70b]}\n").tp == 8);
    CHECK(script("declare -A OF=([a]=--bf16 [b]=--swiglu)\n" + launch + "4 ${OF[@]}\n").swiglu);
    CHECK(script("declare -A OF=([\"8b\"]=2)\nM=70b\nOF[\"70b\"]=8\n" + launch + "${OF[\"$M\"]}\n").tp == 8);
    CHECK(script("N=(2 --num-layers)\nN[0]=4\n" + launch + "${N[@]} 16\n").tp == 4);
    CHECK(script("N[0]=2\nN[1]=--bf16\nN[0]=4\n" + launch + "${N[@]}\n").tp == 4);
    const auto unset = launch::read_script("CMD=$(cat <<EOF\n" + launch + "$2 --bf16\nEOF\n)\n$CMD\n", "a.sh").unset;
    REQUIRE(unset.size() == 1);
    CHECK(unset[0].setting == "--tensor-model-parallel-size");
    CHECK_FALSE(launch::read_script("M=$1\nOF[a]=2\nOF[$M]=4\n" + launch + "${OF[a]} --bf16\n", "a.sh").unset.empty());
    CHECK_FALSE(launch::read_script("SIZES=(1 2)\n" + launch + "${SIZES[5]} --bf16\n", "a.sh").unset.empty());
}
