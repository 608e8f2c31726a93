"""Drawn scripts are read as bash runs them, or said to be in doubt: conditions, rows of commands, groups, sums, cases,
loops."""

import json
import random
import subprocess

import pytest
from cli_shared import full

DIGITS = "1248"
LAUNCH = """
torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 16 --hidden-size 1024 --num-attention-heads 16 \\
  --seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 1 --global-batch-size 64 --vocab-size 32000 \\
  --tokenizer-type NullTokenizer --bf16 --tensor-model-parallel-size $N --pipeline-model-parallel-size $M
"""


class Drawn:
    """A script that sets N and M, in ways that are all known."""

    def __init__(self, number):
        self.draw = random.Random(number)
        start = "\n".join(f"{name}={self.digit()}" for name in "ACN")
        self.text = "\n".join([start, f"D={self.draw.choice(['', 'x'])}", "E=", "M=1", "L=(4 2 8)",
                               *(self.line(0) for _ in range(self.draw.randint(1, 4)))])

    def digit(self):
        return self.draw.choice(DIGITS)

    def condition(self):
        a, b = self.digit(), self.digit()
        return self.draw.choice([
            f"[ {a} -lt {b} ]", f"[[ $A == {a} && $C -ge {b} ]]", f"(( A > {a} || C < {b} ))", "[ -n \"$D\" ]",
            f"[[ -n \"$D\" || $A -eq {a} ]]", f"! [ \"$A\" = {a} ]", f"[ -z \"$E\" -a {a} -le {b} ]", "true", "false",
            f"test $(( (A+C)%3 == 1 ? {a} : {b} )) -ge 2", f"[[ ${{N}} != {a} ]]", f"{{ true; [ $N -gt {a} ]; }}"])

    def setting(self):
        value = self.digit()
        return self.draw.choice([
            f"N={value}", f"{{ N={value}; M={self.draw.choice('12')}; }}", f"export N={value}", f": ${{N:={value}}}",
            f"N=${{UNSET:-{value}}}", "N=${L[1]}", "N=${N%x}", f"N=$((N > 4 ? {value} : N))", "echo none", "unset X"])

    def line(self, depth):
        condition, other, setting = self.condition, self.condition, self.setting
        joined = [self.draw.choice(["&&", "||"]) for _ in range(2)]
        inner = self.line(depth + 1) if depth < 2 else setting()
        return self.draw.choice([
            f"{condition()} {joined[0]} {setting()}",
            f"{condition()} && {setting()} || {setting()}",
            f"{condition()} {joined[0]} {other()} {joined[1]} {setting()}",
            f"if {condition()} {joined[0]} {other()}; then\n  {setting()}\nelif {other()}; then {setting()}\n"
            f"else\n  {inner}\nfi",
            f"{condition()} && {{ {other()} && {setting()}; }} || {setting()}",
            f"case $A in 1|2) {setting()} ;; 4)\n  {inner}\n  ;; *) {setting()} ;; esac",
            f"for X in {self.digit()} {self.digit()}; do\n  {inner}\ndone",
            f"f() {{ {setting()}; }}\n{condition()} && f"])


@pytest.mark.parametrize("part", range(8))
def test_a_drawn_script_is_read_as_bash_runs_it(pipeweaver, tmp_path, part):
    of_a_part, doubted = 120 if full() else 12, 0
    for number in range(part * of_a_part, (part + 1) * of_a_part):
        drawn = Drawn(number).text
        ended = subprocess.run(["bash", "-c", f'{drawn}\necho "= $N $M"'], capture_output=True, text=True,
                               timeout=60)
        tp, pp = ended.stdout.rpartition("= ")[2].split()
        (tmp_path / "train.sh").write_text(drawn + LAUNCH)
        done = pipeweaver.run("check", "--json", "--rules-only", "--cluster", "h100-sxm:64", tmp_path / "train.sh")
        if "undecided" in done.stderr or "is set in a branch" in done.stdout:
            doubted += 1
            continue
        read = json.loads(done.stdout)["layout"]
        assert (read["tp"], read["pp"]) == (int(tp), int(pp)), f"{number}:\n{drawn}"
    assert doubted <= of_a_part // 4
