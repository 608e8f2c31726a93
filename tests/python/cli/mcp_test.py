"""pipeweaver mcp: tools of an agent, driven by a client; what is no message ends nothing."""

import json
import random
import signal
import subprocess

import pytest
from absent import needed
from agent import Agent
from checkout import ROOT

jsonschema = needed("jsonschema")

MODEL = {"model": "dip-vlm-s", "cluster": "h100-sxm:16", "dataset": "vlm-mix"}
SMALL = {**MODEL, "tp": 4, "pp": 4, "microbatches": 2}
ROUNDS = ["--max-rounds", "1"]
# A plan that takes its whole budget on any machine.
LONG = {**SMALL, "microbatches": 16, "budget": "10min", "arguments": ["--max-rounds", "1000000000"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("agent")
    (folder / "examples").symlink_to(ROOT / "examples")
    return folder


@pytest.fixture(scope="module")
def agent(pipeweaver, folder):
    agent = Agent(pipeweaver.path, folder)
    yield agent
    assert agent.end() == (0, "", "")


@pytest.fixture(scope="module")
def tools(agent):
    return {tool["name"]: tool for tool in agent.ask("tools/list")["result"]["tools"]}


def test_it_says_what_it_is_and_takes_the_revision_that_is_asked(pipeweaver, agent, folder):
    assert agent.info["protocolVersion"] == "2025-06-18" and agent.info["serverInfo"]["name"] == "pipeweaver"
    assert "tools" in agent.info["capabilities"] and agent.ask("ping")["result"] == {}
    for asked, given in (("2025-03-26", "2025-03-26"), ("1999-01-01", "2025-06-18")):
        other = Agent(pipeweaver.path, folder, asked)
        assert other.info["protocolVersion"] == given
        assert other.end()[0] == 0


def test_the_schemas_are_valid_and_name_options_of_the_commands(pipeweaver, tools):
    assert sorted(tools) == ["check", "emulate", "explain", "plan", "recommend"]
    for name, tool in tools.items():
        schema = tool["inputSchema"]
        jsonschema.Draft202012Validator.check_schema(schema)
        page = pipeweaver(name, "--help-all")
        operands = {"check": {"file"}, "explain": {"plan", "solution"}}.get(name, set())
        assert all(f"--{one}" in page for one in set(schema["properties"]) - operands - {"arguments"})
        assert set(schema["required"]) <= set(schema["properties"]) and schema["additionalProperties"] is False
        assert all(one["description"] for one in schema["properties"].values())
    of_plan = tools["plan"]["inputSchema"]
    assert of_plan["required"] == ["model", "cluster"] and "megatron" in of_plan["properties"]["target"]["enum"]
    assert "vlm-mix" in of_plan["properties"]["dataset"]["examples"]


# (tool, arguments, a key of the answer)
QUESTIONS = [
    ("check", {"cluster": "h100-sxm:64", "file": "examples/launch.sh"}, "verdict"),
    ("check", {"cluster": "h100-sxm:64", "file": "examples/launch.sh", "rules-only": True}, "constructs"),
    ("emulate", {**SMALL, "partition": "balanced", "policy": "1f1b"}, "step_ns"),
    ("emulate", {**SMALL, "recompute": "full"}, "mfu"),
    ("plan", {**SMALL, "out": "kept", "arguments": ROUNDS}, "ladder"),
    ("plan", {**SMALL, "arguments": ROUNDS}, "makespan_ns"),
    ("explain", {"plan": "kept"}, "waits"),
    ("explain", {"plan": "kept", "at": "2:100ms"}, "chain"),
    ("explain", {"plan": "examples/measured", "task": "m0.vit0.s1.F"}, "shorter"),
    ("recommend", {"model": "dip-vlm-s", "dataset": "vlm-mix", "global-batch": 32, "tokens": "10B", "days": 30,
                   "clusters": "h100-sxm", "gpus": "16", "prices": "h100-sxm=2.5"}, "answers"),
]


def test_ten_questions_are_answered_as_the_commands_answer(agent, tools, folder):
    assert len(QUESTIONS) == 10
    for tool, arguments, key in QUESTIONS:
        jsonschema.validate(arguments, tools[tool]["inputSchema"])
        result = agent.ask("tools/call", name=tool, arguments=arguments)["result"]
        assert result["isError"] is False and key in result["structuredContent"], (tool, result)
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
    assert (folder / "kept/plan.json").exists()
    assert sorted(path.name for path in folder.iterdir()) == ["examples", "kept"]


def test_an_answer_is_that_of_the_command(pipeweaver, agent, folder):
    command = [pipeweaver.path.absolute(), "explain", "examples/measured", "--at", "0:8ms", "--json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    assert agent.call("explain", plan="examples/measured", at="0:8ms")["content"][0]["text"] == done.stdout


def test_a_launch_that_does_not_fit_is_an_answer(agent):
    result = agent.call("check", cluster="h100-sxm:64", model="qwen2.5-vl-32b", rules_only=True, megatron_args=(
        "--seq-length 8192 --max-position-embeddings 8192 --micro-batch-size 1 --global-batch-size 64 "
        "--tensor-model-parallel-size 4 --pipeline-model-parallel-size 4 --sequence-parallel "
        "--decoder-first-pipeline-num-layers 9 --num-virtual-stages-per-pipeline-rank 2"))
    assert result["isError"] is False and result["structuredContent"]["verdict"] == "does-not-construct"
    assert len(result["content"]) == 2  # the line of the command, too


@pytest.mark.parametrize(("tool", "arguments", "line", "asked"), [
    ("plan", {}, "missing --model MODEL", {"model", "cluster", "batch", "dataset"}),
    ("plan", {**SMALL, "tp": "many"}, "--tp: ", {"tp"}),
    ("emulate", {**SMALL, "partition": "--out=x"}, "--partition: is '--out=x'", {"partition"}),
    ("emulate", {**SMALL, "model": "dip-vlm-n"}, "unknown model 'dip-vlm-n'", {"model"}),
    ("plan", {**SMALL, "dataset": "vlm-mx"}, "unknown data set 'vlm-mx'", {"dataset"}),
    ("check", {"cluster": "h100-sxm:64"}, "missing FILE", {"file", "megatron-args", "bridge-overrides",
                                                          "torchtitan-args"}),
    ("check", {"cluster": "h100-sxm:64", "file": "absent.sh"}, "absent.sh", set()),
    ("recommend", {"model": "dip-vlm-s"}, "missing --tokens", {"tokens", "batch", "dataset"}),
    ("explain", {}, "missing PLAN", {"plan"}),
    ("explain", {"plan": "examples/measured", "at": "9:1ms"}, "--at: is '9:1ms'", {"at"}),
    ("explain", {"plan": "examples/measured", "rank": 3}, "unknown argument 'rank'", set()),
    ("explain", {"plan": ["examples/measured"]}, "plan: is array, must be a text or a number", set()),
    ("plan", {**SMALL, "arguments": ["--absent"]}, "unknown option '--absent'", set()),
])
def test_a_refusal_says_the_line_of_the_command_and_what_to_ask(agent, tool, arguments, line, asked):
    result = agent.ask("tools/call", name=tool, arguments=arguments)["result"]
    assert result["isError"] is True and line in result["content"][0]["text"]
    said = result["structuredContent"]
    assert said["error"].startswith("pipeweaver: ") and said["status"] in (2, 3)
    assert {one["argument"] for one in said["ask"]} >= asked


@pytest.mark.parametrize(("message", "code"), [
    ("{torn", -32700), ('"\\ud800', -32700), ("[" * 5000, -32700), ("7", -32600), ("[]", -32600),
    ('{"id":1}', -32600), ('{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600),
    ('{"jsonrpc":"2.0","id":1,"method":"absent"}', -32601), ('{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}',
                                                             -32602),
    ('{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}', -32602),
    ('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"serve"}}', -32602),
    ('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"plan","arguments":[1]}}', -32602),
])
def test_what_is_no_request_is_an_error_of_the_protocol(agent, message, code):
    agent.process.stdin.write(message + "\n")
    agent.process.stdin.flush()
    assert agent.receive()["error"]["code"] == code
    assert agent.ask("ping")["result"] == {}


def test_results_of_the_older_revision_are_text_and_it_takes_batches(pipeweaver, folder):
    agent = Agent(pipeweaver.path, folder, "2025-03-26")
    assert "structuredContent" not in agent.call("explain", plan="examples/measured")
    agent.send([{"jsonrpc": "2.0", "id": "a", "method": "ping"}, {"jsonrpc": "2.0", "method": "notifications/x"},
                {"jsonrpc": "2.0", "id": "b", "method": "absent"}])
    assert [(one["id"], "error" in one) for one in agent.receive()] == [("a", False), ("b", True)]
    assert agent.end()[0] == 0


def of_progress(agent, tool, arguments, token):
    """Sends a call that is to be told of; returns its id."""
    agent.told.clear()
    return agent.request("tools/call", name=tool, arguments=arguments, _meta={"progressToken": token})


@pytest.mark.parametrize("token", ["plan 1", 7])
def test_progress_is_told_to_who_asks_for_it(agent, token):
    number = of_progress(agent, "plan", {**SMALL, "arguments": ROUNDS}, token)
    answer = agent.receive()
    assert answer["id"] == number and {one["progressToken"] for one in agent.told} == {token}
    numbers = [one["progress"] for one in agent.told]
    assert numbers == sorted(set(numbers)) and 0 <= numbers[0] and numbers[-1] < 100
    assert {one.get("total", 100) for one in agent.told} == {100}
    # Each rung when it is known; lines of searches, as many as there is time for, are between them.
    messages, at = [one["message"] for one in agent.told], -1
    for rung in answer["result"]["structuredContent"]["ladder"]:
        said = f"nothing: {rung['why_nothing']}" if "why_nothing" in rung else f"{rung['step_ns'] * 1e-9:.3f} s"
        at = next(i for i, one in enumerate(messages) if one.startswith(f"{rung['rung']}: {said}") and i > at)
    assert agent.ask("ping")["result"] == {} and len(agent.told) == len(messages)  # nothing behind the answer


def test_what_is_told_changes_no_answer_and_a_token_of_another_type_is_none(agent):
    arguments = {"plan": "examples/measured"}
    of_progress(agent, "explain", arguments, 1)
    answer = agent.receive()
    of_progress(agent, "explain", arguments, {"no": "token"})
    assert agent.receive()["result"] == answer["result"] == agent.call("explain", **arguments) and not agent.told


def test_a_call_that_is_cancelled_ends_and_is_not_answered(agent):
    long = of_progress(agent, "plan", LONG, "long")
    waiting, next_one = (agent.request("tools/call", name="explain", arguments={"plan": "examples/measured"})
                         for _ in range(2))
    agent.await_progress()  # it runs
    assert agent.ask("ping")["result"] == {}  # answered meanwhile
    for number in (waiting, long, "unknown"):
        agent.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
    assert agent.receive()["id"] == next_one
    told = len(agent.told)
    agent.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": next_one}})  # too late
    emulated = agent.call("emulate", **SMALL)  # nothing is left of it
    assert emulated["isError"] is False and len(agent.told) == told


def test_a_call_of_a_batch_is_cancelled_alone(pipeweaver, folder):
    agent = Agent(pipeweaver.path, folder, "2025-03-26")
    of_progress(agent, "plan", LONG, "long")  # what is behind it waits
    params = {"name": "explain", "arguments": {"plan": "examples/measured"}}
    agent.send([{"jsonrpc": "2.0", "id": name, "method": "tools/call", "params": params} for name in "ab"])
    agent.await_progress()
    for number in ("a", agent.number):
        agent.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
    assert [one["id"] for one in agent.receive()] == ["b"]
    assert agent.end()[0] == 0


def test_a_signal_ends_the_search_and_the_server(pipeweaver, folder):
    agent = Agent(pipeweaver.path, folder)
    of_progress(agent, "plan", LONG, "long")
    agent.await_progress()
    agent.process.send_signal(signal.SIGTERM)
    assert agent.process.wait(timeout=300) == -signal.SIGTERM


def drawn(draw, depth=0):
    """Any JSON."""
    kind = draw.randrange(5 if depth > 3 else 7)
    if kind < 5:
        text = "".join(draw.choices("ab{[\"\\\0é", k=5))
        return (None, draw.random() < 0.5, draw.randint(-9, 9), draw.random(), text)[kind]
    if kind == 5:
        return [drawn(draw, depth + 1) for _ in range(draw.randrange(3))]
    keys = ("jsonrpc", "id", "method", "params", "name", "arguments", "plan", "at")
    return {draw.choice(keys): drawn(draw, depth + 1) for _ in range(draw.randrange(4))}


def lines_drawn(seed):
    """Messages, some of them torn, some with values of other types."""
    draw = random.Random(seed)
    for number in range(150):
        message = {"jsonrpc": "2.0", "id": number, "method": draw.choice(("ping", "tools/list", "tools/call")),
                   "params": {"name": draw.choice(("explain", "check", 3)), "arguments": {
                       "plan": "examples/measured", "at": draw.choice(("0:1ms", 5, "-1:x", None))}}}
        place = draw.choice((message, message["params"], message["params"]["arguments"]))
        place[draw.choice(list(place))] = drawn(draw)
        text = json.dumps(draw.choice((message, drawn(draw))))
        yield text[:draw.randrange(len(text) + 1)] if draw.random() < 0.3 else text


@pytest.mark.parametrize("seed", [1, 2])
def test_a_client_that_sends_anything_ends_nothing(pipeweaver, folder, seed):
    sent = "\n".join(lines_drawn(seed)).encode() + b'\n\xff\xfe\n{"jsonrpc":"2.0","id":"last","method":"ping"}'
    done = subprocess.run([pipeweaver.path.absolute(), "mcp"], cwd=folder, input=sent, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.decode().splitlines()]
    assert {"jsonrpc": "2.0", "id": "last", "result": {}} in answers
    assert all("result" in one or "error" in one for one in answers)
