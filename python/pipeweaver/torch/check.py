"""Whether action lists can be run: checked before anything is posted."""

from __future__ import annotations

from ..errors import PipeweaverError
from .actions import Actions, Compute, Message, Place, Reduce, Tensor


def check(actions: Actions) -> None:
    """Raises PipeweaverError unless every list runs to its end: references exist, every send has its receive, every
    tensor is there when it is used, no gradient comes after its reduction, and no ranks wait for each other in a cycle.
    Time O(actions)."""
    _check_references(actions)
    _check_messages(actions)
    _check_reductions(actions)
    _Simulation(actions).run()


def _check_references(actions: Actions) -> None:
    if len(actions.lists) != actions.ranks or len(actions.most_alive) != actions.ranks:
        raise PipeweaverError(f"the plan is for {actions.ranks} ranks, but has lists for {len(actions.lists)} and "
                              f"activation counts for {len(actions.most_alive)}")
    for number, tensor in enumerate(actions.tensors):
        if tensor.tensor != number:
            raise PipeweaverError(f"tensors[{number}] has the number {tensor.tensor}")
        _check_partner(actions, tensor)
    for rank, row in enumerate(actions.lists):
        for action in row:
            if isinstance(action, Message) and action.tensor >= len(actions.tensors):
                raise PipeweaverError(f"rank {rank}: {action.op} of tensor {action.tensor}, which does not exist")
            if isinstance(action, Compute) and _rank_of(actions, action.place) != rank:
                raise PipeweaverError(f"rank {rank}: {action.op} of {action.place}: the stage is on another rank")


def _check_partner(actions: Actions, tensor: Tensor) -> None:
    partner = tensor.gradient if tensor.kind == "activation" else tensor.of
    if partner is None:
        return
    other = actions.tensors[partner] if partner < len(actions.tensors) else None
    back = other and (other.of if tensor.kind == "activation" else other.gradient)
    if other is None or back != tensor.tensor or (other.source, other.target) != (tensor.target, tensor.source):
        raise PipeweaverError(f"tensor {tensor.tensor}: {partner} is not its gradient or activation")


def _rank_of(actions: Actions, place: Place) -> int:
    if place.stage not in actions.stages:
        raise PipeweaverError(f"stage {place.stage} is not among the plan's stages")
    return actions.stages[place.stage].rank


def _check_messages(actions: Actions) -> None:
    """Every tensor between two ranks is sent once and received once, by the right ranks, with one tag."""
    found: dict[tuple[str, int], tuple[int, int, int]] = {}
    for rank, row in enumerate(actions.lists):
        for action in row:
            if not isinstance(action, Message) or action.op == "wait":
                continue
            if (action.op, action.tensor) in found:
                raise PipeweaverError(f"rank {rank}: tensor {action.tensor} has a second {action.op}")
            found[action.op, action.tensor] = (rank, action.peer, action.tag)
    for tensor in actions.tensors:
        ends = _rank_of(actions, tensor.source), _rank_of(actions, tensor.target)
        sent, received = found.get(("send", tensor.tensor)), found.get(("receive", tensor.tensor))
        if ends[0] == ends[1]:
            if sent or received:
                raise PipeweaverError(f"tensor {tensor.tensor} stays on rank {ends[0]}, but is sent or received")
            continue
        if sent is None or received is None:
            missing = "send" if sent is None else "receive"
            raise PipeweaverError(f"tensor {tensor.tensor} from rank {ends[0]} to rank {ends[1]} has no {missing}")
        if sent[:2] != ends or received[1::-1] != ends or sent[2] != received[2]:
            raise PipeweaverError(f"tensor {tensor.tensor} goes from rank {ends[0]} to rank {ends[1]}, but its send and "
                                  f"receive have other ranks or tags")


def _check_reductions(actions: Actions) -> None:
    """Each trained stage is reduced once on its rank, after its last backward."""
    reduced: set[int] = set()
    for rank, row in enumerate(actions.lists):
        for action in row:
            if isinstance(action, Compute) and action.op != "F" and action.place.stage in reduced:
                raise PipeweaverError(f"rank {rank}: {action.op} of {action.place} comes behind the stage's reduce")
            for stage in action.stages if isinstance(action, Reduce) else ():
                if stage in reduced or stage not in actions.on_rank(rank):
                    raise PipeweaverError(f"rank {rank}: reduces stage {stage} twice, or does not have it")
                reduced.add(stage)
    left = [number for number, stage in actions.stages.items() if stage.trainable and number not in reduced]
    if left:
        raise PipeweaverError(f"stage {min(left)} is trained, but its gradients are never reduced")


class _Simulation:
    """Runs the lists with no more than their order: sends and receives never wait, `wait` needs the send."""

    def __init__(self, actions: Actions) -> None:
        self.actions = actions
        self.at = [0] * actions.ranks
        self.sent: set[int] = set()
        self.received: set[int] = set()
        self.made: set[int] = set()
        self.waited: set[int] = set()
        self.done: set[tuple[str, Place]] = set()
        self.into: dict[tuple[bool, Place], list[Tensor]] = {}
        self.out_of: dict[tuple[bool, Place], list[Tensor]] = {}
        for tensor in actions.tensors:
            forward = tensor.kind == "activation"
            self.into.setdefault((forward, tensor.target), []).append(tensor)
            self.out_of.setdefault((forward, tensor.source), []).append(tensor)

    def run(self) -> None:
        moved = True
        while moved:
            moved = False
            for rank in range(self.actions.ranks):
                while self._advance(rank):
                    moved = True
        stuck = [r for r in range(self.actions.ranks) if self.at[r] < len(self.actions.lists[r])]
        if stuck:
            raise PipeweaverError(f"the plan has a cycle: {self._cycle(stuck[0])}")
        self._check_complete()

    def _advance(self, rank: int) -> bool:
        """Does the rank's next action unless it has to wait or none is left."""
        row = self.actions.lists[rank]
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
            row = self.actions.lists[rank]
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
        for tensor in self.actions.tensors:
            if tensor.tensor not in self.made:
                raise PipeweaverError(f"tensor {tensor.tensor} is never made: {tensor.source}")
