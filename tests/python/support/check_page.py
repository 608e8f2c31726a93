"""docs/check.md: made of the program's answers. `python tests/python/support/check_page.py BINARY` writes it anew."""

import json
import re
import shlex
import subprocess
import sys

from checkout import ROOT

PAGE = ROOT / "docs/check.md"


def frameworks(binary):
    """Names of the frameworks that have rules."""
    done = subprocess.run([binary, "list", "rules", "--json"], capture_output=True, text=True, check=True)
    return {row["name"].split("/")[0] for row in json.loads(done.stdout)}


def examples(text):
    """(command, answer) of every block that begins with '$ pipeweaver'."""
    for block in re.findall(r"^```\n\$ (pipeweaver .*?)^```", text, flags=re.MULTILINE | re.DOTALL):
        command, _, answer = block.replace(" \\\n", " ").partition("\n")
        yield command, answer


def answer(binary, command):
    """What the command prints, and its exit status."""
    done = subprocess.run([binary, *shlex.split(command)[1:]], capture_output=True, text=True)
    return done.stdout, done.returncode


def renewed(binary, text):
    """The page with the program's answers of today."""
    def block(match):
        command = match.group(1)
        return f"```\n$ {command}\n{answer(binary, command.replace(chr(92) + chr(10), ' '))[0]}```"

    return re.sub(r"^```\n\$ (pipeweaver (?:[^\n]*\\\n)*[^\n]*)\n.*?^```", block, text, flags=re.MULTILINE | re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(renewed(sys.argv[1], PAGE.read_text()))
