"""Ranks as processes on gloo's loopback: started once, then asked to run many things."""

import faulthandler
import multiprocessing
import os
import queue
import signal
import time
import traceback
from datetime import timedelta

import torch
import torch.distributed as dist

# Forked by a process of a single thread: stores leave threads in this one, and a child that was forked while one of
# them held a lock would wait for it for ever. What ranks load is loaded there, once.
CONTEXT = multiprocessing.get_context("forkserver")
PRELOADED = ["torch", "torch._dynamo", "torch.distributed.pipelining._backward", "pytest"]
CONTEXT.set_forkserver_preload(PRELOADED)
LONGEST_S = 300  # to meet: the first of a test program wait for the server's import of PyTorch


def work(rank, ranks, port, job, arguments, answers):
    """A rank's process: puts (rank, what job gives), or (rank, the error's text) and ends with status 1."""
    faulthandler.register(signal.SIGUSR1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    try:
        store = dist.TCPStore("127.0.0.1", port, is_master=False, timeout=timedelta(seconds=LONGEST_S))
        dist.init_process_group("gloo", store=store, rank=rank, world_size=ranks,
                                timeout=timedelta(seconds=LONGEST_S))
        answers.put((rank, job(rank, *arguments)))
    except BaseException:
        answers.put((rank, traceback.format_exc()))
        raise SystemExit(1)
    dist.destroy_process_group()


def say_ended(me):
    """Tells the other processes that this one has got its error."""
    dist.distributed_c10d._get_default_store().set(f"ended/{me}", "1")


def wait_for_the_others(me, ranks):
    """Does nothing until all others have got their errors; they may not need this process for that."""
    dist.distributed_c10d._get_default_store().wait([f"ended/{rank}" for rank in range(ranks) if rank != me],
                                                    timedelta(seconds=200))


class Ranks:
    """`ranks` processes that run job(rank, *arguments); wait() gives {rank: answer} of those that answered."""

    def __init__(self, ranks, job, *arguments):
        self.store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        self.answers = CONTEXT.Queue()
        self.processes = [CONTEXT.Process(target=work, daemon=True,
                                          args=(rank, ranks, self.store.port, job, arguments, self.answers))
                          for rank in range(ranks)]
        for process in self.processes:
            process.start()

    def wait(self, seconds):
        """Answers by rank, once all processes have ended or `seconds` are over; then none is left."""
        found, deadline = {}, time.monotonic() + seconds
        while time.monotonic() < deadline:
            alive = any(process.is_alive() for process in self.processes)
            try:
                rank, answer = self.answers.get(timeout=0.1)
                found[rank] = answer
            except queue.Empty:
                if not alive:
                    break
        self.left = [rank for rank, process in enumerate(self.processes) if process.is_alive()]
        for rank in self.left:
            os.kill(self.processes[rank].pid, signal.SIGUSR1)  # it prints where it is
        time.sleep(0.5 if self.left else 0)
        for process in self.processes:
            process.kill()
            process.join()
        return found
