"""The folder of a plan is of one run, whole: killed at any rename it is the old plan, the new one, or refused."""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess

import pytest
from checkout import ROOT
from cli_shared import digests, full

SMALL = ["plan", "--model", ROOT / "examples/small-vlm.json", "--cluster", "h100-sxm:4", "--tp", "1", "--pp", "2",
         "--dataset", "vlm-mix", "--microbatches", "2", "--partition", "dip", "--max-rounds", "1", "--quiet"]

# Ends the process before its N-th rename, as SIGKILL would.
KILLER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
static int left = -1;
static void count(void) {
    if (left < 0) left = atoi(getenv("KILL_AT"));
    if (left-- == 0) kill(getpid(), SIGKILL);
}
int rename(const char* from, const char* to) {
    count();
    return ((int (*)(const char*, const char*))dlsym(RTLD_NEXT, "rename"))(from, to);
}
"""


@pytest.fixture(scope="module")
def killer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("killer")
    (folder / "killer.c").write_text(KILLER)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "killer.so", folder / "killer.c", "-ldl"], check=True)
    return folder / "killer.so"


def parts(folder):
    """What says whether the folder is a plan, and which one."""
    hashes = json.loads((folder / "plan.json").read_text())["files"]
    found = {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
             for path in folder.rglob("*") if path.is_file()}
    return hashes, found


def test_plan_json_says_the_hash_of_every_other_file(pipeweaver, tmp_path):
    pipeweaver(*SMALL, "--out", tmp_path / "plan")
    hashes, found = parts(tmp_path / "plan")
    assert set(found) - set(hashes) == {"plan.json", "run.json"}
    assert all(found[name] == hash_ for name, hash_ in hashes.items())


def test_killed_at_any_rename_a_folder_is_old_or_new_or_refused(pipeweaver, killer, tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    pipeweaver(*SMALL, "--seed", "1", "--out", old)
    pipeweaver(*SMALL, "--seed", "2", "--out", new)
    expected = {"old": digests(old), "new": digests(new)}
    renames, seen = len(parts(new)[1]), set()
    for at in [*range(0, renames, 1 if full() else 3), renames]:
        folder = tmp_path / "killed"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(old, folder)
        ended = subprocess.run([pipeweaver.path, *SMALL, "--seed", "2", "--out", folder], capture_output=True,
                               env={**os.environ, "LD_PRELOAD": str(killer), "KILL_AT": str(at)}, timeout=600)
        assert ended.returncode == (0 if at == renames else -9)
        left = [path for path in folder.rglob("*.tmp")]
        assert bool(left) == (at < renames)
        emitted = pipeweaver.run("emit", "--plan", folder, "--target", "torch-actions", "--out", tmp_path / "e")
        replayed = pipeweaver.run("replay", folder)
        assert emitted.returncode in (0, 2)
        if emitted.returncode == 0:
            now = {name: hash_ for name, hash_ in digests(folder).items() if not name.endswith(".tmp")}
            seen.add("new" if now == expected["new"] else "old")
            assert now in expected.values()
        else:
            seen.add("refused")
            assert "plan again" in emitted.stderr and len(emitted.stderr.splitlines()) == 1
            assert not (tmp_path / "e").exists()
            assert replayed.returncode == 2 and "plan again" in replayed.stderr
        shutil.rmtree(tmp_path / "e", ignore_errors=True)
        pipeweaver(*SMALL, "--seed", "2", "--out", folder)
        assert digests(folder) == expected["new"]  # the next run makes it whole, and removes what was left
    assert seen >= {"refused", "new"}


def test_a_file_of_another_run_is_refused_by_every_reader(pipeweaver, tmp_path):
    for seed in ("1", "2"):
        pipeweaver(*SMALL, "--dp", "2", "--seed", seed, "--out", tmp_path / seed)
    mixed = tmp_path / "mixed"
    shutil.copytree(tmp_path / "1", mixed)
    # A file of another content under the same name.
    file = mixed / "replica-001/solution.json"
    file.write_bytes(file.read_bytes() + b"\n")
    for command in (["emit", "--plan", mixed, "--target", "torch-actions", "--out", tmp_path / "e"],
                    ["emulate", *SMALL[1:SMALL.index("--partition")], "--schedule", mixed],
                    ["replay", mixed, "--replica", "1"]):
        status, line = pipeweaver.fails(*command)
        assert status == 2 and line.endswith("solution.json: is not the file that plan.json is of; plan again"), line
    file.unlink()
    status, line = pipeweaver.fails("emit", "--plan", mixed, "--target", "torch-actions", "--out", tmp_path / "e")
    assert status == 2 and line.endswith("solution.json: is missing, which plan.json names; plan again")


def test_the_package_reads_no_lists_of_an_unfinished_plan(pipeweaver, tmp_path):
    package = pytest.importorskip("pipeweaver._whole_plan")
    from pipeweaver.errors import PipeweaverError

    pipeweaver(*SMALL, "--out", tmp_path / "plan")
    lists = tmp_path / "plan/replica-000/actions.json"
    package.require_whole(lists, lists.read_bytes())
    with pytest.raises(PipeweaverError, match="is not the file that plan.json is of"):
        package.require_whole(lists, b"{}")
    (tmp_path / "link").symlink_to("plan/replica-000")
    with pytest.raises(PipeweaverError, match="is not the file that plan.json is of"):
        package.require_whole(tmp_path / "link/actions.json", b"{}")
    whole = (tmp_path / "plan/plan.json").read_text()
    (tmp_path / "plan/plan.json").write_text("[]")
    with pytest.raises(PipeweaverError, match="is no plan's"):
        package.require_whole(lists, lists.read_bytes())
    (tmp_path / "plan/plan.json").write_text(whole)
    (tmp_path / "plan/plan.json").unlink()
    with pytest.raises(PipeweaverError, match="was not written to its end"):
        package.require_whole(lists, lists.read_bytes())
    alone = tmp_path / "actions.json"
    package.require_whole(alone, b"{}")


def test_replicas_planned_one_by_one_into_a_folder_all_stay(pipeweaver, tmp_path):
    several = [*SMALL, "--dp", "2"]
    alone = {}
    for replica in (0, 1):
        pipeweaver(*several, "--replicas", replica, "--out", tmp_path / f"alone-{replica}")
        alone[replica] = digests(tmp_path / f"alone-{replica}/replica-{replica:03}")
    for replica in (0, 1):
        pipeweaver(*several, "--replicas", replica, "--out", tmp_path / "common")
    for replica in (0, 1):
        assert digests(tmp_path / f"common/replica-{replica:03}") == alone[replica]
    hashes, found = parts(tmp_path / "common")
    assert set(found) - set(hashes) == {"plan.json", "run.json"} and all(found[name] == hashes[name] for name in hashes)
    pipeweaver("emit", "--plan", tmp_path / "common", "--target", "torch-actions", "--out", tmp_path / "e")
    assert {path.parent.name for path in (tmp_path / "e").rglob("actions*.json*")} == {"replica-000", "replica-001"}
    # At the same time.
    jobs = [subprocess.Popen([pipeweaver.path, *several, "--replicas", str(replica), "--out", tmp_path / "both"])
            for replica in (0, 1)]
    assert [job.wait(timeout=600) for job in jobs] == [0, 0]
    assert {name for name in parts(tmp_path / "both")[0] if name.startswith("replica")} == \
        {name for name in hashes if name.startswith("replica")}
    # Nothing stays of an older plan that is damaged, or whose files are not there.
    for damage in ({"replicas": 5}, {"replicas": [{"x": 1}]}):
        broken = tmp_path / "broken"
        shutil.copytree(tmp_path / "alone-1", broken, dirs_exist_ok=True)
        old = json.loads((broken / "assignment.json").read_text())
        (broken / "assignment.json").write_text(json.dumps({**old, **damage}))
        pipeweaver(*several, "--replicas", "0", "--out", broken)
        assert not (broken / "replica-001").exists()
    (tmp_path / "alone-1/replica-001/actions.json").unlink()
    pipeweaver(*several, "--replicas", "0", "--out", tmp_path / "alone-1")
    assert not (tmp_path / "alone-1/replica-001").exists()
    # Of other samples nothing stays.
    pipeweaver(*several, "--seed", "9", "--replicas", "0", "--out", tmp_path / "common")
    assert not (tmp_path / "common/replica-001").exists()


def test_a_folder_in_the_place_of_a_file_is_found_before_anything_is_written(pipeweaver, tmp_path):
    pipeweaver(*SMALL, "--seed", "1", "--out", tmp_path / "plan")
    (tmp_path / "plan/report.html").unlink()
    (tmp_path / "plan/report.html").mkdir()
    before = digests(tmp_path / "plan")
    status, line = pipeweaver.fails(*SMALL, "--seed", "2", "--out", tmp_path / "plan")
    assert (status, pathlib.Path(line.split(": ")[1]).name) == (3, "report.html")
    assert digests(tmp_path / "plan") == before
