"""What docs/service.md gives to keep a server running: the systemd unit, and the container's packages."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest
from absent import left_out
from checkout import ROOT


def block(language):
    text = (ROOT / "docs/service.md").read_text()
    found, = re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
    return found


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_systemd_takes_the_unit_as_it_stands(pipeweaver, tmp_path):
    if shutil.which("systemd-analyze") is None:
        left_out("there is no systemd-analyze")
    unit = block("ini")
    started, = re.findall(r"^ExecStart=(\S+) (.*)$", unit, re.MULTILINE)
    assert started[0] == "/usr/local/bin/pipeweaver"
    # The binary need not be installed where the unit has it, or this one may not be run by systemd's check.
    program = tmp_path / "pipeweaver"
    program.symlink_to(pathlib.Path(pipeweaver.path).resolve())
    file = tmp_path / "pipeweaver.service"
    file.write_text(unit.replace(started[0], str(program)))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", file], capture_output=True, text=True)
    of_ours = [line for line in (done.stdout + done.stderr).splitlines() if "pipeweaver" in line]
    assert done.returncode == 0 and of_ours == [], done.stderr
    broken = tmp_path / "broken.service"
    broken.write_text(unit.replace(started[0], str(tmp_path / "absent")))
    assert subprocess.run(["systemd-analyze", "verify", "--man=no", broken], capture_output=True).returncode != 0


def test_the_options_of_unit_and_container_are_those_of_the_command(pipeweaver, tmp_path):
    known = set(re.findall(r"--[a-z-]+", pipeweaver("serve", "--help")))
    commands = block("ini") + block("dockerfile").split("ENTRYPOINT")[1]
    assert set(re.findall(r"(?<=[ \"])--[a-z]+(?:-[a-z]+)*", commands)) <= known
    assert "StateDirectory=pipeweaver" in block("ini") and "/var/lib/pipeweaver" in block("ini")


@pytest.fixture(scope="module")
def installed():
    """Packages of the container's last stage: those that are named, and what its image has."""
    if shutil.which("apt-cache") is None or shutil.which("dpkg") is None:
        left_out("there is no apt")
    named = re.search(r"apt-get install -y --no-install-recommends (.*)$", block("dockerfile").split("FROM ")[-1],
                      re.MULTILINE).group(1).split()
    release = pathlib.Path("/etc/os-release").read_text()
    if 'VERSION_ID="12"' not in release or "ID=debian" not in release:
        left_out("this is no Debian 12")
    if not any(path.name.endswith("_Packages") or "_Packages." in path.name
               for path in pathlib.Path("/var/lib/apt/lists").glob("*")):
        left_out("apt has no lists of packages here (apt-get update)")
    return named


def test_the_packages_of_the_container_exist(installed):
    shown = output("apt-cache", "show", "--no-all-versions", *installed)
    assert set(re.findall(r"^Package: (.*)$", shown, re.MULTILINE)) == set(installed)


def test_the_container_has_the_libraries_that_the_program_needs(installed, pipeweaver):
    libraries = re.findall(r"=> (/\S+)", output("ldd", str(pipeweaver.path)))
    assert len(libraries) > 8
    # apt is of every image of Debian, and with it what it needs.
    depends = output("apt-cache", "depends", "--recurse", "--no-recommends", "--no-suggests", "--no-conflicts",
                     "--no-breaks", "--no-replaces", "--no-enhances", "apt", *installed)
    there = {line.split(":")[0] for line in depends.splitlines() if line and not line.startswith((" ", "|", "<"))}
    # Packages have a file below /lib or below /usr/lib, which are one folder.
    names = {library: {library, os.path.realpath(library), library.removeprefix("/usr"), f"/usr{library}"}
             for library in libraries}
    said = subprocess.run(["dpkg", "-S", *set().union(*names.values())], capture_output=True, text=True).stdout
    owners = {line.rpartition(": ")[2]: line.split(":")[0] for line in said.splitlines()}
    needed = {}
    for library in libraries:
        owner = next((owners[name] for name in names[library] if name in owners), None)
        assert owner is not None, f"{library}: is of no package"
        needed[owner] = library
    assert needed.keys() <= there, {owner: library for owner, library in needed.items() if owner not in there}
    # And nothing beside: what is named serves the program.
    assert set(installed) <= needed.keys(), set(installed) - needed.keys()
