"""An example's processes with what torchrun tells each of them, but from one import of PyTorch: by torchrun every
process takes seconds for its own, and one more for the launcher's."""

import os
import pathlib
import runpy
import sys

import torch
from executor_processes import CONTEXT
from served import free_port


def work(rank, ranks, port, folder, script, arguments, log):
    """A rank's process: `python script arguments...` in the folder, what it says in the file `log`."""
    said = os.open(log, os.O_WRONLY | os.O_CREAT, 0o600)
    os.dup2(said, 1)
    os.dup2(said, 2)
    os.chdir(folder)
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks),
                   "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "GLOO_SOCKET_IFNAME": "lo"}
    torch.set_num_threads(1)
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(pathlib.Path(script).resolve().parent))
    runpy.run_path(str(script), run_name="__main__")


def printed_by(ranks, folder, script, arguments, logs, seconds=120):
    """What all processes printed, one after the other, each of which has ended well; `logs` is a folder for it."""
    port = free_port()
    files = [logs / f"rank-{rank}.txt" for rank in range(ranks)]
    # No daemons: these may not have loaders' workers.
    processes = [CONTEXT.Process(target=work, args=(rank, ranks, port, str(folder), str(script), arguments, str(file)))
                 for rank, file in enumerate(files)]
    try:
        for process in processes:
            process.start()
        for process in processes:
            process.join(seconds)
        ended = [process.exitcode for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.join()
    said = "".join(file.read_text() for file in files if file.exists())
    assert ended == [0] * ranks, f"{ended}\n{said[-3000:]}"
    return said
