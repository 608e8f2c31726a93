"""What the server answers is what /openapi.json says: schemathesis on all of it, and on a session with plans."""

import pathlib
import shutil
import subprocess
import sys

import pytest
from absent import left_out
from cli_shared import full
from served import Server

SCHEMATHESIS = pathlib.Path(sys.executable).with_name("schemathesis")
# No status of 500 and above, and none, no type and no body that the document has not.
CHECKS = ("not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance")


@pytest.fixture
def server(pipeweaver, tmp_path):
    one = Server(pipeweaver.path, "--state", tmp_path / "state", "--quiet")
    yield one
    one.kill()


def conforms(server, folder, *options):
    program = shutil.which(SCHEMATHESIS) or left_out("schemathesis is not installed")
    done = subprocess.run([program, *options[:2], "run", server.url + "/openapi.json", "--checks", ",".join(CHECKS),
                           "--max-examples", "15" if full() else "4", "--seed", "1", *options[2:]],
                          capture_output=True, text=True, timeout=300, cwd=folder)
    assert done.returncode == 0, done.stdout[-5000:]
    assert server.ask("GET", "/healthz")[0] == 200
    return done.stdout


def test_the_answers_of_a_fresh_server_are_documented(server, tmp_path):
    (tmp_path / "none.toml").write_text("")
    said = conforms(server, tmp_path, "--config-file", "none.toml")
    assert "Tested: 23" in said


def test_the_answers_about_a_session_with_plans_are_documented(server, tmp_path):
    server.open()
    for step in range(3):
        assert server.submit(step, seed=step, deadline_ms=300)[0] == 202
    (tmp_path / "job.toml").write_text('[parameters]\n"path.session" = "job"\n"path.step" = 1\n'
                                       '"path.replica" = 0\n"path.rank" = 2\n')
    conforms(server, tmp_path, "--config-file", "job.toml", "--exclude-method", "DELETE")
    assert server.ask("GET", "/v1/sessions/job")[0] == 200
