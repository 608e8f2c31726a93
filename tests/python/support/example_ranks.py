"""An example's processes with what torchrun tells each of them, but from one import of PyTorch: by torchrun every
process takes seconds for its own, and one more for the launcher's."""

import contextlib
import faulthandler
import os
import pathlib
import runpy
import signal
import sys

import torch
from executor_processes import CONTEXT
from served import free_port


def work(rank, ranks, port, folder, script, arguments, log):
    """A rank's process: `python script arguments...` in the folder, what it says in the file `log`."""
    os.setsid()
    said = os.open(log, os.O_WRONLY | os.O_CREAT, 0o600)
    os.dup2(said, 1)
    os.dup2(said, 2)
    faulthandler.enable(2)
    os.chdir(folder)
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks),
                   "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "GLOO_SOCKET_IFNAME": "lo"}
    torch.set_num_threads(1)
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(pathlib.Path(script).resolve().parent))
    runpy.run_path(str(script), run_name="__main__")


def begun(folder, script, arguments, logs):
    """Processes of the script, one for each file of `logs`, which gets what it says."""
    port = free_port()
    # No daemons: these may not have loaders' workers.
    ranks = [CONTEXT.Process(target=work, args=(rank, len(logs), port, str(folder), str(script), arguments, str(log)))
             for rank, log in enumerate(logs)]
    for rank in ranks:
        rank.start()
    return ranks


def end(rank):
    """Kills it and its loaders' workers, if it has not ended by itself."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(rank.pid, signal.SIGKILL)
    rank.kill()
    rank.join()


def printed_by(ranks, folder, script, arguments, logs, seconds=300):
    """What all processes printed, one after the other, each of which has ended well; `logs` is a folder for it."""
    files = [logs / f"rank-{rank}.txt" for rank in range(ranks)]
    processes = begun(folder, script, arguments, files)
    for process in processes:
        process.join(seconds)
    ended = [process.exitcode for process in processes]
    for process in processes:
        end(process)
    said = "".join(file.read_text() for file in files if file.exists())
    assert ended == [0] * ranks, f"{ended}\n{said[-3000:]}"
    return said
