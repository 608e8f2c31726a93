"""pipeweaver.data: balance(), what it is given, and what it may not do."""

import json
import subprocess
import sys

import pytest
from absent import needed

np = needed("numpy")
pipeweaver = needed("pipeweaver")
data = needed("pipeweaver.data")

CONFIG = {"model": "dip-vlm-s", "cluster": "h100-sxm:32", "tp": 4, "pp": 4, "dp": 2, "partition": "first-stage",
          "dataset": "vlm-mix", "microbatches": 6}
TWO_STAGES = data.Costs((
    data.StageCosts(data.Quadratic(0.01, 2.0, 30.0), {"images": data.Quadratic(0.001, 1.0, 10.0)}, 200.0),
    data.StageCosts(data.Quadratic(0.02, 3.0, 10.0), {}, 100.0)))


def drawn(seed):
    """Sizes of a step, and what it asks of balance()."""
    rng = np.random.default_rng(seed)
    samples = int(rng.integers(40, 200))
    tokens = np.minimum(2048, rng.lognormal(5.5, 1.0, samples)).astype(int)
    images = [[int(patches) for patches in rng.integers(64, 1024, count)] for count in rng.integers(0, 4, samples)]
    losses = rng.integers(0, tokens + 1)
    return data.Sizes(tokens, {"images": images}, losses), {"replicas": int(rng.integers(1, 6)), "budget": 2048}


def slow_makespan(times, forward):
    """Of one pipeline [microbatch, stage], by asking again and again what can start."""
    microbatches, stages = times.shape
    lists = []
    for stage in range(stages):
        warm = min(stages - stage - 1, microbatches)
        passes = [("F", m) for m in range(warm)]
        for m in range(warm, microbatches):
            passes += [("F", m), ("B", m - warm)]
        lists.append(passes + [("B", m) for m in range(microbatches - warm, microbatches)])
    ends, free = {}, [0.0] * stages
    while any(lists):
        for stage in range(stages):
            if not lists[stage]:
                continue
            kind, m = lists[stage][0]
            other = stage - 1 if kind == "F" else stage + 1
            needs = [ends.get((kind, m, other))] if 0 <= other < stages else [0.0]
            needs += [ends.get(("F", m, stage))] if kind == "B" else []
            if None in needs:
                continue
            part = forward if kind == "F" else 1 - forward
            free[stage] = ends[kind, m, stage] = max([free[stage], *needs]) + part * times[m, stage]
            lists[stage].pop(0)
    return max(free)


@pytest.mark.parametrize("seed", range(12))
def test_an_assignment_has_every_sample_once_within_the_budget_and_is_not_slower_than_others(seed):
    sizes, asked = drawn(seed)
    found = {method: data.balance(sizes, costs=TWO_STAGES, method=method, **asked) for method in data.METHODS}
    for assignment in found.values():
        all_of = [one for mine in assignment.replicas for one in mine]
        assert sorted(place for one in all_of for place in one.samples) == list(range(len(sizes)))
        assert all(one.tokens == sum(sizes.tokens[list(one.samples)]) <= 2048 for one in all_of)
        assert abs(sum(one.loss_weight for one in all_of) - 1) < 1e-9
        assert len({len(mine) for mine in assignment.replicas}) == 1
        assert data.Assignment.from_dict(json.loads(json.dumps(assignment.to_dict()))).replicas == assignment.replicas
    assert found["best"].step_ns <= min(found["longest-first"].step_ns, found["in-turn"].step_ns)
    assert data.balance(sizes, costs=TWO_STAGES, **asked) == found["best"]


@pytest.mark.parametrize("seed", range(4))
def test_the_step_is_that_of_1f1b_on_the_costs(seed):
    sizes, asked = drawn(seed)
    assignment = data.balance(sizes, costs=TWO_STAGES, **asked)
    times = TWO_STAGES.of(sizes)
    steps = [slow_makespan(np.array([times[list(one.samples)].sum(axis=0) + TWO_STAGES.of_microbatch()
                                     for one in mine]), TWO_STAGES.forward) for mine in assignment.replicas]
    assert assignment.step_ns == pytest.approx(max(steps), rel=1e-9)


def test_balancing_gains_over_longest_first_and_given_order():
    gains = {"longest-first": [], "in-turn": []}
    for seed in range(8):
        sizes, asked = drawn(seed)
        best = data.balance(sizes, costs=TWO_STAGES, **asked).step_ns
        for method, of in gains.items():
            of.append(data.balance(sizes, costs=TWO_STAGES, method=method, **asked).step_ns / best)
    assert np.prod(gains["longest-first"]) ** (1 / 8) > 1.02
    assert np.prod(gains["in-turn"]) ** (1 / 8) > 1.05


@pytest.mark.parametrize("tokens, losses, weights", [
    ([10, 30], [5, 0], [1, 0]), ([10, 30], [0, 0], [0.25, 0.75]), ([0, 0], [0, 0], [0.5, 0.5])])
def test_weights_sum_to_one_whatever_has_a_loss(tokens, losses, weights):
    assignment = data.balance(data.Sizes(tokens, loss_tokens=losses), 2)
    found = {place: one.loss_weight for mine in assignment.replicas for one in mine for place in one.samples}
    assert [found[place] for place in range(2)] == weights


def test_microbatches_come_in_groups_and_as_many_as_asked():
    sizes, _ = drawn(3)
    assert data.balance(sizes, 2, budget=2048, group=4).microbatches % 4 == 0
    assert data.balance(sizes, 2, budget=2048, microbatches=len(sizes) // 2).microbatches == len(sizes) // 2
    uneven = data.balance([100] * 5, 3, budget=100, equal=False)
    assert sorted(len(mine) for mine in uneven.replicas) == [1, 2, 2]


def counts_of(assignment):
    return [len(mine) for mine in assignment.replicas]


@pytest.mark.parametrize("method", data.METHODS)
@pytest.mark.parametrize("costs", [None, TWO_STAGES])
def test_every_method_gives_as_many_microbatches_as_were_asked(method, costs):
    sizes, _ = drawn(3)
    assert counts_of(data.balance(sizes, 2, costs=costs, method=method)) == [1, 1]
    assert counts_of(data.balance(sizes, 2, costs=costs, method=method, group=2)) == [2, 2]
    assert counts_of(data.balance(sizes, 2, costs=costs, method=method, microbatches=7)) == [7, 7]
    assert counts_of(data.balance(sizes, 2, budget=2048, costs=costs, method=method, microbatches=30)) == [30, 30]
    with pytest.raises(pipeweaver.InputError, match="microbatches: 2 of each of 2 replicas are not found to hold"):
        data.balance(sizes, 2, budget=2048, costs=costs, method=method, microbatches=2)


@pytest.mark.parametrize("method", data.METHODS)
def test_replicas_that_need_not_be_equal_differ_by_one_microbatch_at_most(method):
    for seed in range(150):
        rng = np.random.default_rng(seed)
        replicas = int(rng.integers(2, 6))
        tokens = rng.integers(1, 100, int(rng.integers(replicas, 40)))
        assignment = data.balance(tokens, replicas, budget=100, equal=False, costs=TWO_STAGES, method=method)
        counts = counts_of(assignment)
        assert max(counts) - min(counts) <= 1 and min(counts) > 0
        assert sorted(id for mine in assignment.replicas for one in mine for id in one.samples) == list(
            range(len(tokens)))


@pytest.mark.parametrize("call, message", [
    (lambda: data.balance([5, 6], 1, group=2, equal=False), "group: is 2, must be 1"),
    (lambda: data.balance([5, 6], 1, microbatches=3), "balance: 2 samples are too few for microbatches of 1 replicas"),
    (lambda: data.balance([5, 6], 2.0), "replicas: is 2.0, must be a whole number from 1"),
    (lambda: data.balance([5, 6], "2"), "replicas: is '2', must be a whole number from 1"),
    (lambda: data.balance([5, 6], 2, budget=float("nan")), "budget: is nan, must be a whole number from 1"),
    (lambda: data.Sizes([5, 6], ids=["a", "a"]), "ids[1]: 'a' is the id of another sample as well"),
    (lambda: data.Sizes([5, 6], {"images": [3, 4]}), "items.images: allowed is a list of whole numbers"),
    (lambda: data.Sizes([5, 6], loss_tokens=[5, 7]), "loss_tokens[1]: is 7, must be a whole number to its tokens"),
    (lambda: data.balance([5, 6], 1, costs=data.Costs(())), "coefficients: allowed are one stage or more"),
    (lambda: data.balance([5], 1, costs=data.Costs((data.StageCosts(data.Quadratic(float("nan"), 1, 0)),))),
     "coefficients: give a sample no finite time"),
    (lambda: data.EpochSteps([5] * 9, 1, 3, method="bst"), "method: is 'bst', must be one of best"),
    (lambda: data.EpochSteps([5] * 9, 1, 3.0), "samples_per_step: is 3.0, must be a whole number from 1"),
    (lambda: data.EpochSteps([5] * 9, 1, 3, seed=2**64), "seed: is 18446744073709551616, must be"),
    (lambda: data.AssignedSteps([data.balance([5, 6], 2)]).plan(0, 5), "step: is 5, must be 0 to 0"),
    (lambda: data.balance([5, 6], 3), "replicas: are 3, more than the step's 2 samples"),
    (lambda: data.balance([5, 60], 1, budget=50), "budget: sample 1 has 60 tokens, a microbatch holds 50"),
    (lambda: data.balance([5, -6], 1), "tokens[1]: is -6, must be a whole number from 0"),
    (lambda: data.balance([5, 6.5], 1), "tokens: allowed is a whole number for each sample"),
    (lambda: data.balance([100] * 5, 3, budget=100), "balance: 5 samples are too few"),
    (lambda: data.balance([5], 1, method="lpt"), "method: is 'lpt', must be one of best, longest-first, in-turn"),
    (lambda: data.balance(data.Sizes([5], {"audio": [[4]]}), 1, costs=TWO_STAGES), "'audio' has no coefficients"),
    (lambda: data.balance([{"id": "a", "text_tokens": 5, "images": [{"width": 9, "height": 9}]}], 1), "batch:1:"),
    (lambda: data.Sizes([5], {"images": [[4], []]}), "items.images: are of 2 samples, but tokens are of 1"),
    (lambda: data.EpochSteps([5] * 9, 4, 3), "samples_per_step: steps of 3 samples are too small for 4 replicas"),
    (lambda: data.EpochSteps([5, 70], 1, 2, budget=50), "budget: sample 1 has 70 tokens"),
    (lambda: data.Costs.from_dict({"format": "x/1"}), "coefficients: format is 'x/1'"),
    (lambda: data.Costs.from_dict({**TWO_STAGES.to_dict(), "stages": [{"tokens": [1, 2]}]}), "three numbers [a, b, c]"),
    (lambda: data.AssignedSteps([data.balance([5, 6], 2)], {0: 0}), "sample 1 is not in the data set"),
    (lambda: data.AssignedSteps([data.balance([5, 6], 2), data.balance([5, 6], 1)]), "are of 1 and 2 replicas"),
    (lambda: data.Assignment.from_dict({}), "allowed is a document of the format 'pipeweaver-assignment/1'"),
])
def test_bad_input_is_one_clear_line(call, message):
    with pytest.raises(pipeweaver.InputError) as error:
        call()
    assert message in str(error.value) and "\n" not in str(error.value)


def first(**changes):
    """A change of an assignment's first microbatch."""
    return lambda of: of["replicas"][0]["microbatches"][0].update(changes)


@pytest.mark.parametrize("change, message", [
    (first(loss_weight=float("nan")), "loss_weight is nan"),
    (lambda of: [mine["microbatches"][0].update(loss_weight=2 - 3 * k) for k, mine in enumerate(of["replicas"])],
     "loss_weight is -1"),
    (first(tokens=-4), "tokens is -4, must be a whole number from 0"),
    (first(samples=[]), "microbatch 0 of a replica has no samples"),
    (first(samples=[{"id": [1]}]), "the id [1] is allowed to be a text"),
    (first(microbatch=3), "microbatch 0 is numbered 3"),
    (lambda of: of.update(replicas=[]), "replicas are none"),
    (lambda of: of["replicas"].reverse(), "replica 0 is numbered 1, must be 0, in order"),
    (lambda of: of.update(replicas=[4]), "lacks or mistakes a key"),
])
def test_an_assignment_that_says_nonsense_is_not_read(change, message):
    document = data.balance([5, 6], 2).to_dict()
    change(document)
    with pytest.raises(pipeweaver.InputError) as error:
        data.Assignment.from_dict(document)
    assert message in str(error.value)


def test_assignments_are_files_of_places(tmp_path):
    file = tmp_path / "assignment.json"
    for ids in (None, ["a", "b"]):
        file.write_text(json.dumps(data.balance(data.Sizes([5, 6], ids=ids), 2).to_dict()))
        if ids is None:
            assert data.AssignedSteps([file]).plan(0, 0) == data.AssignedSteps([str(file)]).plan(0, 0)
    with pytest.raises(pipeweaver.InputError, match="sample 'a' is no place|sample 'b' is no place"):
        data.AssignedSteps([file])
    with pytest.raises(pipeweaver.InputError, match="allowed is a list"):
        data.AssignedSteps(str(file))
    with pytest.raises(pipeweaver.FileError, match="cannot be read"):
        data.AssignedSteps([tmp_path / "none.json"])


def test_ids_of_numpy_are_json():
    ids = np.array([7, 8, 9])
    for given in (ids, list(ids)):
        document = json.loads(json.dumps(data.balance(data.Sizes([1, 2, 3], ids=given), 1).to_dict()))
        assert sorted(data.Assignment.from_dict(document).ids(0)[0]) == [7, 8, 9]


def test_an_epoch_has_every_sample_once_in_an_order_of_its_own():
    sizes, _ = drawn(5)
    steps = data.EpochSteps(sizes, 2, 24, budget=2048, seed=3)
    orders = []
    for epoch in range(2):
        plans = [steps.plan(epoch, step) for step in range(len(steps))]
        of_steps = [sorted(place for mine in plan.replicas for one in mine for place in one.samples) for plan in plans]
        assert sorted(place for one in of_steps for place in one) == list(range(len(sizes)))
        assert max(map(len, of_steps)) <= 24 and max(map(len, of_steps)) - min(map(len, of_steps)) <= 1
        orders.append(of_steps)
    assert orders[0] != orders[1]
    again = data.EpochSteps(sizes, 2, 24, budget=2048, seed=3)
    assert again.plan(1, 2) == steps.plan(1, 2) and again.fingerprint() == steps.fingerprint()
    assert data.EpochSteps(sizes.tokens + 1, 2, 24, budget=4096).fingerprint() != steps.fingerprint()


def test_coefficients_predict_what_is_emulated():
    costs = data.coefficients(CONFIG)
    assert len(costs.stages) == 4 and set(costs.stages[0].items) == {"images"}
    assert data.Costs.from_dict(json.loads(json.dumps(costs.to_dict()))) == costs
    for seed in (1, 2):
        config = {**CONFIG, "seed": seed, "packing": "given", "assignment": "in-turn"}
        sizes = data.Sizes.of(pipeweaver.batch_of(config))
        emulated = pipeweaver.emulate(config, policy="1f1b").makespan_ns
        assert data.balance(sizes, 2, budget=8192, costs=costs, method="in-turn").step_ns == pytest.approx(
            emulated, rel=0.08)


def test_the_module_prints_coefficients(tmp_path):
    (tmp_path / "job.json").write_text(json.dumps(CONFIG))
    command = [sys.executable, "-m", "pipeweaver.data", str(tmp_path / "job.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    (tmp_path / "costs.json").write_text(done.stdout)
    assert data.Costs.read(tmp_path / "costs.json") == data.coefficients(CONFIG)
    samples = [{"id": f"s{k}", "text_tokens": 2000 + 300 * k} for k in range(16)]
    (tmp_path / "batch.jsonl").write_text("".join(json.dumps(sample) + "\n" for sample in samples))
    of_batch = subprocess.run([*command, "--batch", str(tmp_path / "batch.jsonl")], capture_output=True, text=True,
                              timeout=300)
    assert of_batch.returncode == 0 and of_batch.stdout != done.stdout, of_batch.stderr
    (tmp_path / "job.json").write_text("[1, 2]")
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (2, "") and done.stderr.startswith("pipeweaver: "), done.stderr
    (tmp_path / "job.json").write_text('{"model": "dip-vlm-s", "cluster": "h100"}')
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (2, "") and done.stderr.startswith("pipeweaver: ")


def test_a_plans_assignment_is_read():
    plan = pipeweaver.emulate(CONFIG)
    batch = pipeweaver.batch_of(CONFIG)
    places = {sample["id"]: place for place, sample in enumerate(batch)}
    steps = data.AssignedSteps([plan.assignment], places)
    assert sorted(place for mine in steps.plan(0, 0).replicas for one in mine for place in one.samples) == list(
        range(len(batch)))


EMULATED = ("emulate", "--model", "dip-vlm-s", "--cluster", "h100-sxm:32", "--tp", 4, "--pp", 4, "--dp", 2, "--dataset",
            "vlm-mix", "--microbatches", 6, "--partition", "first-stage", "--sample-packing", "given", "--json")


@pytest.fixture
def command(request):
    """The binary; its fixture has the package's name."""
    return request.getfixturevalue("pipeweaver")


def test_an_assignment_is_emulated_and_is_the_step_of_its_microbatches(command, tmp_path):
    in_turn = ("--packing", "given", "--assignment", "in-turn")
    file = tmp_path / "assignment.json"
    sizes = data.Sizes.of(pipeweaver.batch_of(CONFIG))
    file.write_text(json.dumps(data.balance(sizes, 2, budget=8192, method="in-turn").to_dict()))
    given, asked = (json.loads(command(*EMULATED, *more)) for more in (("--assigned", file), in_turn))
    assert given["asked"].pop("assigned") == str(file)
    assert {**given, "asked": None, "run": None} == {**asked, "asked": None, "run": None}
    costs = data.coefficients(CONFIG)
    file.write_text(json.dumps(data.balance(sizes, 2, budget=8192, costs=costs).to_dict()))
    assert json.loads(command(*EMULATED, "--assigned", file))["step_ns"] < asked["step_ns"]


@pytest.mark.parametrize("change, message", [
    (lambda of: of.pop("replicas"), "the key 'replicas' is missing"),
    (lambda of: of["replicas"].pop(), "replicas: are 1, allowed are as many as --dp, 2"),
    (lambda of: of["replicas"][1].update(microbatches=[]), "[1].microbatches: are none, each replica needs one"),
    (lambda of: of["replicas"][0]["microbatches"][1].update(samples=[]), "has no samples, allowed are one or more"),
    (lambda of: of["replicas"][0]["microbatches"][0]["samples"].pop(), "lacks sample 'vlm-mix-"),
    (lambda of: of["replicas"][0]["microbatches"][0]["samples"].append({"id": "x"}), "sample 'x' is not in the batch"),
    (lambda of: of["replicas"][1]["microbatches"].append(of["replicas"][0]["microbatches"][0]),
     "is in the assignment twice"),
    (lambda of: of["replicas"][0]["microbatches"][0]["samples"].extend(
        sample for one in of["replicas"][0]["microbatches"][1:] for sample in one.pop("samples")),
     "a microbatch of 'dip-vlm-s'"),
    (lambda of: of.update(format="pipeweaver-assignment/2"), "pipeweaver-assignment/2"),
])
def test_an_assignment_that_is_wrong_is_refused_in_one_line(command, tmp_path, change, message):
    document = data.balance(data.Sizes.of(pipeweaver.batch_of(CONFIG)), 2, budget=8192, method="in-turn").to_dict()
    change(document)
    (tmp_path / "assignment.json").write_text(json.dumps(document))
    done = command.run(*EMULATED, "--assigned", tmp_path / "assignment.json")
    assert done.returncode == 2 and done.stdout == ""
    assert message in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


def test_an_assignment_goes_without_packing_and_is_a_file(command, tmp_path):
    done = command.run(*EMULATED, "--assigned", "a.json", "--packing", "given")
    assert done.returncode == 2 and "--packing, --assignment and --defer go without it" in done.stderr
    assert command.run(*EMULATED, "--assigned", tmp_path / "none.json").returncode == 3


@pytest.mark.parametrize("losses", [0, 7])
def test_weights_of_a_plan_sum_to_one_whatever_has_a_loss(command, tmp_path, losses):
    samples = [{"id": f"s{k}", "text_tokens": 2000 + 500 * k, "loss_tokens": losses * (k % 2)} for k in range(8)]
    (tmp_path / "batch.jsonl").write_text("".join(json.dumps(sample) + "\n" for sample in samples))
    command("plan", "--model", "dip-vlm-s", "--cluster", "h100-sxm:32", "--tp", 4, "--pp", 4, "--dp", 2, "--batch",
            tmp_path / "batch.jsonl", "--max-rounds", 0, "--quiet", "--out", tmp_path / "plan")
    document = json.loads((tmp_path / "plan/assignment.json").read_text())
    all_of = [one for mine in document["replicas"] for one in mine["microbatches"]]
    parts = [one["loss_tokens" if losses else "tokens"] for one in all_of]
    assert [one["loss_weight"] for one in all_of] == pytest.approx([part / sum(parts) for part in parts])
    assert sum(one["loss_weight"] for one in all_of) == pytest.approx(1)
