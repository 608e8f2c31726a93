"""Slurm on one machine: a controller, and nodes that are processes of this machine, on loopback and in a temporary
folder. No systemd, no root and nothing of the system's own configuration is needed. By hand, until Ctrl-C:

    python tests/python/support/slurm_cluster.py
"""

import contextlib
import dataclasses
import getpass
import os
import pathlib
import random
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scontrol", "squeue", "sinfo")
CONFIGURATION = """\
ClusterName=pipeweaver
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdSpoolDir={folder}/%n
SlurmdPidFile={folder}/%n.pid
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0
SlurmdParameters=config_overrides
SlurmdTimeout=5
MessageTimeout=5
ReturnToService=2
JobRequeue=1
KillWait=1
MinJobAge=300
"""


def missing():
    """The programs of Slurm and Munge that are not installed."""
    return [name for name in PROGRAMS if shutil.which(name, path=search_path()) is None]


def search_path():
    """Daemons lie where not every user looks."""
    return f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


class SlurmCluster:
    """Two nodes of one CPU each, "node0" and "node1", in a partition that is the default."""

    def __init__(self, nodes=2):
        # Short, since the path of a socket must be.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="slurm-"))
        self.environment = {**os.environ, "PATH": search_path(), "SLURM_CONF": str(self.folder / "slurm.conf")}
        self.daemons = {}
        ports = free_ports(nodes + 1)
        self.port = ports.pop()
        self.ports = {f"node{n}": port for n, port in enumerate(ports)}
        try:
            self.configure()
            self.begin("munged", "--foreground", f"--socket={self.folder}/munge.socket",
                       f"--key-file={self.folder}/munge.key", f"--pid-file={self.folder}/munge.pid",
                       f"--seed-file={self.folder}/munge.seed", f"--log-file={self.folder}/munge.log", name="munged")
            self.wait("a credential", 60, lambda: (self.folder / "munge.socket").exists())
            self.begin("slurmctld", "-D", name="slurmctld")
            for name in self.ports:
                self.begin_node(name)
            self.wait("idle nodes", 120, lambda: self.nodes_in("idle") == len(self.ports))
        except BaseException:
            self.end()
            raise

    def configure(self):
        """Writes slurm.conf and the key."""
        self.folder.chmod(0o755)  # Munge trusts no folder that others may write
        key = self.folder / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(secrets.token_bytes(64))
        for name in ("state", *self.ports):
            (self.folder / name).mkdir()
        host = socket.gethostname().split(".")[0]
        text = CONFIGURATION.format(host=host, port=self.port, user=getpass.getuser(), folder=self.folder)
        for name, port in self.ports.items():
            text += f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=1 State=UNKNOWN\n"
        text += "PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n"
        (self.folder / "slurm.conf").write_text(text)

    def begin(self, *command, name):
        """Starts a daemon in the foreground, in a process group of its own."""
        with open(self.folder / f"{name}.out", "wb") as log:
            self.daemons[name] = subprocess.Popen(command, env=self.environment, stdin=subprocess.DEVNULL, stdout=log,
                                                  stderr=subprocess.STDOUT, start_new_session=True)

    def begin_node(self, name):
        self.begin("slurmd", "-D", "-N", name, name=name)

    def kill_node(self, name):
        """As when a machine loses power: the daemon and all that it runs are gone at once."""
        daemon = self.daemons.pop(name)
        daemon.kill()
        daemon.wait()
        self.kill_jobs(name)

    def kill_jobs(self, name):
        """What runs on a node, and first the processes that would tell the controller of its end."""
        wanted = {f"SLURM_CONF={self.folder}/slurm.conf".encode(), f"SLURMD_NODENAME={name}".encode()}
        inside = [process for process in processes() if wanted <= process.environment]
        pids = {process.pid for process in inside}
        keepers = {process.parent for process in inside} - pids
        for pid in [*(pid for pid in keepers if b"slurmstepd" in of_process(pid, "cmdline")), *pids]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def __call__(self, *command, **more):
        """Runs a command of Slurm to its end, requires exit status 0 and returns stdout."""
        done = subprocess.run([str(word) for word in command], env=self.environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60, **more)
        assert done.returncode == 0, f"{command}: {done.stderr}{self.logs()}"
        return done.stdout

    def nodes_in(self, state):
        done = subprocess.run(["sinfo", "--noheader", "--Node", "--format=%T"], env=self.environment,
                              capture_output=True, text=True)
        return done.stdout.split().count(state)

    def states(self):
        """{job, or task of an array as "7_2": state}, as far as the controller remembers."""
        text = self("scontrol", "--oneliner", "show", "job")
        found = {}
        for job, line in re.findall(r"^JobId=(\d+) (.*)$", text, flags=re.MULTILINE):
            array = re.search(r"ArrayJobId=(\d+) ArrayTaskId=(\S+)", line)
            found["_".join(array.groups()) if array else job] = re.search(r"JobState=(\S+)", line)[1]
        return found

    def wait(self, what, seconds, is_so):
        """Until it is so."""
        deadline = time.monotonic() + seconds
        while not is_so():
            ended = [name for name, daemon in self.daemons.items() if daemon.poll() is not None]
            assert not ended and time.monotonic() < deadline, f"no {what}; ended: {ended}\n{self.logs()}"
            time.sleep(0.1)

    def logs(self):
        """The last lines of all daemons."""
        return "".join(f"\n--- {log.name}\n" + "\n".join(log.read_text(errors="replace").splitlines()[-15:])
                       for log in sorted([*self.folder.glob("*.log"), *self.folder.glob("*.out")]))

    def end(self):
        """Leaves nothing."""
        for daemon in self.daemons.values():
            daemon.terminate()
        for daemon in self.daemons.values():
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        for name in self.ports:
            self.kill_jobs(name)
        shutil.rmtree(self.folder, ignore_errors=True)


def free_ports(count):
    """Ports below those that the system hands out, so that nobody else gets them meanwhile."""
    found = []
    while len(found) < count:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as there, contextlib.suppress(OSError):
            there.bind(("127.0.0.1", port))
            found += [port] if port not in found else []
    return found


def of_process(pid, what):
    """A file of /proc; empty where the process has ended, or is not ours."""
    try:
        return pathlib.Path(f"/proc/{pid}/{what}").read_bytes()
    except OSError:
        return b""


@dataclasses.dataclass
class Process:
    pid: int
    parent: int
    environment: set


def processes():
    """All of this machine that can be looked at."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if stat := of_process(pid, "stat"):
            parent = int(stat.rpartition(b")")[2].split()[1])
            found.append(Process(int(pid), parent, set(of_process(pid, "environ").split(b"\0"))))
    return found


if __name__ == "__main__":
    if missing():
        sys.exit(f"not installed: {', '.join(missing())}; on Debian: apt install slurmctld slurmd slurm-client munge")
    cluster = SlurmCluster()
    print(f"export SLURM_CONF={cluster.folder}/slurm.conf  # two nodes; Ctrl-C ends them", flush=True)
    try:
        signal.pause()
    except KeyboardInterrupt:
        pass
    finally:
        cluster.end()
