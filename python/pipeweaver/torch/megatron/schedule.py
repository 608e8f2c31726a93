"""What Megatron's train_step calls in place of its own forward_backward function."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch.distributed as dist

from ...errors import PipeweaverError
from ..actions import Actions, Compute, RankActions
from ..check import check
from ..clocks import Clock
from ..failures import Job, close_all, lost_in, one_line
from ..jobs import Jobs
from ..program import Program, program_of
from ..transport import Transport
from ..walk import Timing, timings_by
from .call import Call, Groups, device_of, groups_of, listed
from .fit import check_call, check_passes, check_plan
from .forward_only import forward_only as forwards
from .shapes import shaped
from .step import MegatronStep


class PlannedSchedule:
    """A forward_backward_func of Megatron that runs plans' action lists.

    actions  the replica's lists, or this rank's own; of a plan for one replica, which then all run alike, or for as
             many as there are. Chunk v of pipeline rank r is the plan's stage v * PP + r, microbatch m the m-th batch
             that data_iterator gives.
    timeout  longest wait for another rank, in seconds.

    Losses, their scaling, recomputation and gradient sums are Megatron's; the order of passes is the plan's. The loss
    weights of the plan are not used. With forward_only no plan is needed: microbatches pass in groups.

    Every call is made by all ranks together. Unless all can run what is asked, all raise the same PipeweaverError
    before anything is sent. If one fails in a step, all raise: that one its own error, the others a PipeweaverError
    that names it; the job cannot go on then.

    `timings` and `most_alive` are of this rank's last call: when each action of its list ran, and the most passes with
    activations at once."""

    def __init__(self, actions: Actions | RankActions | None, timeout: float = 600.0) -> None:
        self.actions = actions
        self.timeout = timedelta(seconds=timeout)
        self.jobs: Jobs | None = None
        self._clock: Clock | None = None
        self.most_alive = 0
        self._checked: tuple[Actions | RankActions, str] | None = None

    @property
    def timings(self) -> list[Timing]:
        return timings_by(self._clock) if self._clock is not None else []

    def load(self, actions: Actions | RankActions) -> None:
        """Takes another plan for the calls to come."""
        self.actions = actions

    def __call__(self, *, forward_step_func: Callable[..., Any], data_iterator: Any, model: Any, num_microbatches: int,
                 seq_length: int, micro_batch_size: int, decoder_seq_length: int | None = None,
                 forward_only: bool = False, collect_non_loss_data: bool = False, first_val_step: bool | None = None,
                 adjust_tensor_shapes_fn: Callable[..., Any] | None = None, p2p_communicator: Any = None,
                 pg_collection: Any = None, force_all_reduce: bool | None = False) -> list[Any]:
        """As Megatron's own: on the last stage what the loss function reduced, microbatch by microbatch, elsewhere an
        empty list."""
        chunks = list(model) if isinstance(model, (list, tuple)) else [model]
        groups = groups_of(chunks, p2p_communicator, pg_collection)
        jobs = self._jobs_of(groups, chunks)
        jobs.begin()

        def asked() -> Call:
            return Call(forward_step_func, listed(data_iterator, len(chunks), "data_iterator"), chunks,
                        num_microbatches, seq_length, micro_batch_size, decoder_seq_length, forward_only,
                        collect_non_loss_data, first_val_step, adjust_tensor_shapes_fn, bool(force_all_reduce), groups)

        call, program = self._agreed(asked, jobs)
        transport = Transport(jobs.all[0], jobs.all, self.timeout)
        return self._run(call, MegatronStep(program, transport, call), jobs)

    def _jobs_of(self, groups: Groups, chunks: Sequence[Any]) -> Jobs:
        if self.jobs is None:
            device = device_of(chunks)
            found = [groups.pipeline, groups.experts, groups.tensor, groups.context, groups.data]
            self.jobs = Jobs([Job(group, device) for group in found if group is not None], self.timeout)
        return self.jobs

    def _agreed(self, asked: Callable[[], Call], jobs: Jobs) -> tuple[Call, Program]:
        """Raises on every rank what is wrong on any."""
        call = program = problem = None
        same = ["", ""]
        try:
            call = asked()
            program, whole = self._prepared(call)
            same = [whole, _order(program)]
        except PipeweaverError as error:
            problem = f"rank {jobs.me}: {error}"
        except Exception as error:  # the others wait to hear of it
            problem = f"rank {jobs.me}: {one_line(error)}"
        # Ranks of a replica run one order, those that exchange tokens, too; replicas may differ.
        problem = jobs.agree(problem, [same[0], *[same[1]] * (len(jobs.all) - 2), ""])
        if problem or call is None or program is None:
            raise PipeweaverError(problem)
        return call, program

    def _prepared(self, call: Call) -> tuple[Program, str]:
        """The rank's part, and what tells plans apart."""
        check_call(call)
        rank = int(call.groups.pipeline.rank())
        if call.forward_only:
            lists = forwards(call.groups.stages, len(call.model), call.num_microbatches)
            return program_of(shaped(call, lists.of_rank(rank))), f"{len(lists.tensors)}"
        if self.actions is None:
            raise PipeweaverError("there is no plan")
        check_plan(call, self.actions)
        whole = self._check_once(self.actions)
        own = self.actions.of_rank(rank)
        check_passes(call, own)
        return program_of(shaped(call, own)), whole

    def _check_once(self, actions: Actions | RankActions) -> str:
        """Whether the lists run to their end, and the sum that names them."""
        if self._checked is None or self._checked[0] is not actions:
            check(actions)
            self._checked = (actions, _sum((actions.problem, actions.lists)) if isinstance(actions, Actions)
                             else actions.lists_sha256)
        return self._checked[1]

    def _run(self, call: Call, step: MegatronStep, jobs: Jobs) -> list[Any]:
        config, timers = call.config, call.config.timers
        if timers is not None:
            timers("forward-backward", log_level=1).start(barrier=config.barrier_with_L1_time)
        at = jobs.all[1]  # whose ranks a pass waits for inside its layers
        try:
            self._passes(call, step)
            at = jobs.all[-1]
            if not call.forward_only and config.finalize_model_grads_func is not None:
                config.finalize_model_grads_func(
                    call.model, step.tokens if config.calculate_per_token_loss else None,
                    pg_collection=call.groups.collection, force_all_reduce=call.force_all_reduce)
        except BaseException as error:
            lost = lost_in(jobs.all, at, error, self.timeout)
            jobs.fail(lost or error)
            close_all(call.device)
            if lost is not None:
                raise lost from error
            raise
        if timers is not None:
            timers("forward-backward").stop()
        self._clock, self.most_alive = step.clock, step.most_alive
        return step.data_store()

    def _passes(self, call: Call, step: MegatronStep) -> None:
        if not call.forward_only:
            step.sync.off()
            if call.config.param_sync_func is not None and len(call.model) > 1:
                for chunk, gather in zip(call.model, listed(call.config.param_sync_func, len(call.model), "sync")):
                    gather(chunk.parameters())
        step.run()
        step.transport.finish()
        if not call.forward_only:
            step.sync.finish()


def _order(program: Program) -> str:
    """The same on ranks that run the same passes in the same order."""
    return _sum([(action.op, action.place, action.recompute) for action in program.actions.actions
                 if isinstance(action, Compute)])


def _sum(value: Any) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()
