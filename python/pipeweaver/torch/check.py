"""Whether action lists can be run: checked before anything is posted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..errors import PipeweaverError
from .actions import Action, Actions, Compute, Message, Place, RankActions, Reduce, Stage, Tensor
from .crossings import share_at


def check(actions: Actions | RankActions) -> None:
    """Raises PipeweaverError unless every list runs to its end: references exist, every send has its receive, every
    tensor is there when it is used, no gradient comes after its reduction, and no ranks wait for each other in a cycle.
    Of a rank alone, as far as it can tell: what comes from others comes. Time O(actions)."""
    _check_layouts(actions)
    known = _known(actions)
    _check_references(known)
    _check_messages(known)
    _check_reductions(known)
    _Simulation(known).run()


def _check_layouts(actions: Actions | RankActions) -> None:
    """Copies of a chain's stages fill the GPUs of a rank, and every unit of theirs has its share."""
    gpus = actions.gpus
    of_chain: dict[str, int] = {}
    for number, stage in sorted(actions.stages.items()):
        whole = gpus * actions.ranks if stage.phase else gpus
        if stage.copies > 1 and stage.tp * stage.copies != whole:
            raise PipeweaverError(f"stage {number}: {stage.copies} copies of {stage.tp} GPUs are not the {whole} GPUs "
                                  f"that {'the replica' if stage.phase else 'a rank'} has")
        if not stage.phase and of_chain.setdefault(stage.chain, stage.copies) != stage.copies:
            raise PipeweaverError(f"stage {number} has {stage.copies} copies, others of {stage.chain} have "
                                  f"{of_chain[stage.chain]}")
    for share in actions.shares.values():
        copies = gpus if share.stage is not None else of_chain.get(share.chain, 1)
        if len(share.copies) != copies:
            raise PipeweaverError(f"the share of {share.chain}, microbatch {share.microbatch}, item {share.item} is of "
                                  f"{len(share.copies)} copies, the plan has {copies}")
    _check_shared(actions, of_chain)


def _check_shared(actions: Actions | RankActions, copies: Mapping[str, int]) -> None:
    for row in [actions.actions] if isinstance(actions, RankActions) else actions.lists:
        for action in row:
            if not isinstance(action, Compute) or action.place.stage not in actions.stages:
                continue
            stage, place = actions.stages[action.place.stage], action.place
            needed = stage.phase or copies[stage.chain] > 1
            if needed and share_at(actions, place) is None:
                raise PipeweaverError(f"{place}: its stage has copies, and the plan has no share for this unit")


@dataclass
class _Known:
    """The lists that are known, by rank: all of a replica's, or one."""

    rows: Mapping[int, Sequence[Action]]
    tensors: Mapping[int, Tensor]
    stages: Mapping[int, Stage]


def _known(actions: Actions | RankActions) -> _Known:
    if isinstance(actions, RankActions):
        if actions.rank >= actions.ranks:
            raise PipeweaverError(f"the plan is for {actions.ranks} ranks, and this list for rank {actions.rank}")
        for number, tensor in actions.tensors.items():
            if actions.rank not in (_rank_at(actions.stages, tensor.source), _rank_at(actions.stages, tensor.target)):
                raise PipeweaverError(f"tensor {number} is of other ranks than {actions.rank}")
        return _Known({actions.rank: actions.actions}, actions.tensors, actions.stages)
    if len(actions.lists) != actions.ranks or len(actions.most_alive) != actions.ranks:
        raise PipeweaverError(f"the plan is for {actions.ranks} ranks, but has lists for {len(actions.lists)} and "
                              f"activation counts for {len(actions.most_alive)}")
    for number, tensor in enumerate(actions.tensors):
        if tensor.tensor != number:
            raise PipeweaverError(f"tensors[{number}] has the number {tensor.tensor}")
    return _Known(dict(enumerate(actions.lists)), dict(enumerate(actions.tensors)), actions.stages)


def _check_references(actions: _Known) -> None:
    for tensor in actions.tensors.values():
        _check_partner(actions, tensor)
    for rank, row in actions.rows.items():
        for action in row:
            if isinstance(action, Message) and action.tensor not in actions.tensors:
                raise PipeweaverError(f"rank {rank}: {action.op} of tensor {action.tensor}, which does not exist")
            if isinstance(action, Compute) and _rank_of(actions, action.place) != rank:
                raise PipeweaverError(f"rank {rank}: {action.op} of {action.place}: the stage is on another rank")


def _check_partner(actions: _Known, tensor: Tensor) -> None:
    partner = tensor.gradient if tensor.kind == "activation" else tensor.of
    if partner is None:
        return
    other = actions.tensors.get(partner)
    back = other and (other.of if tensor.kind == "activation" else other.gradient)
    if other is None or back != tensor.tensor or (other.source, other.target) != (tensor.target, tensor.source):
        raise PipeweaverError(f"tensor {tensor.tensor}: {partner} is not its gradient or activation")


def _rank_of(actions: _Known, place: Place) -> int:
    return _rank_at(actions.stages, place)


def _rank_at(stages: Mapping[int, Stage], place: Place) -> int:
    if place.stage not in stages:
        raise PipeweaverError(f"stage {place.stage} is not among the plan's stages")
    return stages[place.stage].rank


def _check_messages(actions: _Known) -> None:
    """Every tensor between two ranks is sent once and received once, by the right ranks, with one tag."""
    found: dict[tuple[str, int], tuple[int, int, int]] = {}
    for rank, row in actions.rows.items():
        for action in row:
            if not isinstance(action, Message) or action.op == "wait":
                continue
            if (action.op, action.tensor) in found:
                raise PipeweaverError(f"rank {rank}: tensor {action.tensor} has a second {action.op}")
            found[action.op, action.tensor] = (rank, action.peer, action.tag)
    for tensor in actions.tensors.values():
        ends = _rank_of(actions, tensor.source), _rank_of(actions, tensor.target)
        sent, received = found.get(("send", tensor.tensor)), found.get(("receive", tensor.tensor))
        if ends[0] == ends[1]:
            if sent or received:
                raise PipeweaverError(f"tensor {tensor.tensor} stays on rank {ends[0]}, but is sent or received")
            continue
        for what, message, rank in (("send", sent, ends[0]), ("receive", received, ends[1])):
            if message is None and rank in actions.rows:
                raise PipeweaverError(f"tensor {tensor.tensor} from rank {ends[0]} to rank {ends[1]} has no {what}")
        wrong = sent and sent[:2] != ends or received and received[1::-1] != ends
        if wrong or (sent and received and sent[2] != received[2]):
            raise PipeweaverError(f"tensor {tensor.tensor} goes from rank {ends[0]} to rank {ends[1]}, but its send "
                                  "and receive have other ranks or tags")


def _check_reductions(actions: _Known) -> None:
    """Each trained stage is reduced once on its rank, after its last backward."""
    reduced: set[int] = set()
    for rank, row in actions.rows.items():
        for action in row:
            if isinstance(action, Compute) and action.op != "F" and action.place.stage in reduced:
                raise PipeweaverError(f"rank {rank}: {action.op} of {action.place} comes behind the stage's reduce")
            for stage in action.stages if isinstance(action, Reduce) else ():
                if stage in reduced or stage not in actions.stages or actions.stages[stage].rank != rank:
                    raise PipeweaverError(f"rank {rank}: reduces stage {stage} twice, or does not have it")
                reduced.add(stage)
    left = [number for number, stage in actions.stages.items()
            if stage.trainable and stage.rank in actions.rows and number not in reduced]
    if left:
        raise PipeweaverError(f"stage {min(left)} is trained, but its gradients are never reduced")


class _Simulation:
    """Runs the lists with no more than their order: sends and receives never wait, `wait` needs the send. What comes
    from ranks whose lists are not known has come."""

    def __init__(self, actions: _Known) -> None:
        self.actions = actions
        self.at = dict.fromkeys(actions.rows, 0)
        self.sent: set[int] = set()
        self.received: set[int] = set()
        self.made: set[int] = set()
        self.waited: set[int] = set()
        self.freed: set[int] = set()
        self.done: set[tuple[str, Place]] = set()
        self.into: dict[tuple[bool, Place], list[Tensor]] = {}
        self.out_of: dict[tuple[bool, Place], list[Tensor]] = {}
        for tensor in actions.tensors.values():
            if _rank_of(actions, tensor.source) not in actions.rows:
                self.sent.add(tensor.tensor)
            forward = tensor.kind == "activation"
            self.into.setdefault((forward, tensor.target), []).append(tensor)
            self.out_of.setdefault((forward, tensor.source), []).append(tensor)

    def run(self) -> None:
        moved = True
        while moved:
            moved = False
            for rank in self.actions.rows:
                while self._advance(rank):
                    moved = True
        stuck = [rank for rank, row in self.actions.rows.items() if self.at[rank] < len(row)]
        if stuck:
            raise PipeweaverError(f"the plan has a cycle: {self._cycle(stuck[0])}")
        self._check_complete()

    def _advance(self, rank: int) -> bool:
        """Does the rank's next action unless it has to wait or none is left."""
        row = self.actions.rows[rank]
        if self.at[rank] == len(row):
            return False
        action = row[self.at[rank]]
        if isinstance(action, Message):
            if action.op == "wait" and action.tensor not in self.sent:
                return False
            self._message(rank, action)
        elif isinstance(action, Compute):
            self._compute(rank, action)
        self.at[rank] += 1
        return True

    def _message(self, rank: int, action: Message) -> None:
        if action.op == "send":
            if action.tensor not in self.made:
                raise PipeweaverError(f"rank {rank}: sends tensor {action.tensor} before it is made")
            self.sent.add(action.tensor)
        elif action.op == "receive":
            self.received.add(action.tensor)
        elif action.tensor not in self.received:
            raise PipeweaverError(f"rank {rank}: waits for tensor {action.tensor} without receiving it")
        else:
            self.waited.add(action.tensor)
            self._free(rank, action)

    def _free(self, rank: int, action: Message) -> None:
        """The sender can only have received what this rank sent to it before; its buffers go back once."""
        sender = _rank_of(self.actions, self.actions.tensors[action.tensor].source)
        for number in action.freed:
            tensor = self.actions.tensors.get(number)
            ends = tensor and (_rank_of(self.actions, tensor.source), _rank_of(self.actions, tensor.target))
            if ends != (rank, sender) or number not in self.sent or number in self.freed:
                raise PipeweaverError(f"rank {rank}: the wait for tensor {action.tensor} frees tensor {number}, which "
                                      f"is not one that rank {sender} was sent before and that is held")
            self.freed.add(number)

    def _compute(self, rank: int, action: Compute) -> None:
        where = f"rank {rank}: {action.op} of {action.place}"
        before = {"F": None, "B": "F", "I": "F", "W": "I"}[action.op]
        if (action.op, action.place) in self.done:
            raise PipeweaverError(f"{where} comes twice")
        if before and (before, action.place) not in self.done:
            raise PipeweaverError(f"{where} comes before its {before}")
        if action.op in "BI" and ({"B": "I", "I": "B"}[action.op], action.place) in self.done:
            raise PipeweaverError(f"{where}: the pass has had its backward")
        self.done.add((action.op, action.place))
        if action.op == "W":
            return
        for tensor in self.into.get((action.op == "F", action.place), []):
            local = self.actions.stages[tensor.source.stage].rank == rank
            if tensor.tensor not in (self.made if local else self.waited):
                raise PipeweaverError(f"{where} comes before tensor {tensor.tensor}, which it needs, is there")
        self.made.update(tensor.tensor for tensor in self.out_of.get((action.op == "F", action.place), []))

    def _cycle(self, rank: int) -> str:
        """The ranks that wait for each other, from `rank` on."""
        seen: list[int] = []
        words: list[str] = []
        while rank not in seen:
            seen.append(rank)
            row = self.actions.rows[rank]
            if self.at[rank] == len(row):
                return ", ".join(words) + f", which has ended: rank {rank} never sends it"
            action = row[self.at[rank]]
            assert isinstance(action, Message)
            rank = self.actions.stages[self.actions.tensors[action.tensor].source.stage].rank
            words.append(f"rank {seen[-1]} waits for tensor {action.tensor} of rank {rank}")
        return ", ".join(words)

    def _check_complete(self) -> None:
        for kind, place in self.done:
            if kind == "I" and ("W", place) not in self.done:
                raise PipeweaverError(f"I of {place} has no W")
        for tensor in self.actions.tensors.values():
            if _rank_of(self.actions, tensor.source) in self.actions.rows and tensor.tensor not in self.made:
                raise PipeweaverError(f"tensor {tensor.tensor} is never made: {tensor.source}")
