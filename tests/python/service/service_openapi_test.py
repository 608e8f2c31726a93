"""What the server answers is what /openapi.json says: schemathesis on all of it, on a session with plans, and on
sequences of requests that lead from one to the next. The full form (PIPEWEAVER_FULL=1) draws many more of each."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from absent import left_out
from checkout import ROOT
from cli_shared import full
from served import Server

DOCUMENT = json.loads((ROOT / "service/openapi.json").read_text())
SCHEMATHESIS = pathlib.Path(sys.executable).with_name("schemathesis")
# All but two: that no status of 500 and above comes, and none, no type, no header and no body that the document has
# not; that wrong data, methods and tokens are refused, and what was closed is gone. Which configurations can be planned
# no schema says; all sessions belong to whoever has the token.
NO_CHECKS = "positive_data_acceptance,object_level_authorization"
TOKEN = "0123456789abcdef"
# Events go on as long as the server does, where nobody says how long they shall.
BRIEF = '[parameters]\n"query.for_ms" = 100\n'


class Guarded(Server):
    """A server that asks for a token, as the document says."""

    def __init__(self, binary, folder):
        token = folder / "token"
        token.write_text(TOKEN)
        token.chmod(0o600)
        super().__init__(binary, "--state", folder / "state", "--token-file", token, "--quiet")

    def ask(self, method, path, body=None, **headers):
        return super().ask(method, path, body, Authorization=f"Bearer {TOKEN}", **headers)


@pytest.fixture
def server(pipeweaver, tmp_path):
    one = Guarded(pipeweaver.path, tmp_path)
    yield one
    one.kill()


def conforms(server, folder, examples, *options, configuration="", seed=1, hooks=None):
    """Runs schemathesis and returns what it said; `examples`: how many of each kind it draws, in the full form and in
    the short one."""
    program = shutil.which(SCHEMATHESIS) or left_out("schemathesis is not installed")
    (folder / "schemathesis.toml").write_text(BRIEF + configuration)
    command = [program, "--config-file", "schemathesis.toml", "run", server.url + "/openapi.json", "--header",
               f"Authorization: Bearer {TOKEN}", "--checks", "all", "--exclude-checks", NO_CHECKS,
               "--max-examples", str(examples[0 if full() else 1]), "--seed", str(seed), "--request-timeout", "120",
               *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests/python/support"),
                   **({"SCHEMATHESIS_HOOKS": hooks} if hooks else {})}
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200, cwd=folder, env=environment)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert server.ask("GET", "/healthz")[0] == 200
    return done.stdout


def test_the_answers_of_a_server_are_documented(server, tmp_path):
    said = conforms(server, tmp_path, (60, 4), "--phases", "examples,coverage,fuzzing")
    operations = sum(len(methods) for path, methods in DOCUMENT["paths"].items() if path != "/openapi.json")
    assert f"Tested: {operations}\n" in said


def test_the_answers_about_a_session_with_plans_are_documented(server, tmp_path):
    server.open()
    for step in range(3):
        assert server.submit(step, seed=step, deadline_ms=300)[0] == 202
    conforms(server, tmp_path, (60, 4), "--phases", "coverage,fuzzing", "--exclude-method", "DELETE",
             configuration='"path.session" = "job"\n"path.step" = 1\n"path.replica" = 0\n"path.rank" = 2\n')
    assert server.ask("GET", "/v1/sessions/job")[0] == 200


def test_what_follows_from_an_answer_is_documented(server, tmp_path):
    # What is drawn ends soon, however many examples are asked for: more seeds follow more links.
    covered = 0
    for seed in range(1, 31 if full() else 2):
        said = conforms(server, tmp_path, (20, 12), "--phases", "stateful", "--mode", "positive", seed=seed,
                        hooks="openapi_hooks")
        covered += int(re.search(r"API Links: +(\d+) covered", said).group(1))
    assert covered >= (60 if full() else 5), said
