"""A client of `pipeweaver mcp`."""

import json
import subprocess


class Agent:
    """Messages go in and come out a line each; answers are found by their id. What is told of progress is in `told`."""

    def __init__(self, path, folder, revision="2025-06-18"):
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([path.absolute(), "mcp"], cwd=folder, stdin=pipe, stdout=pipe, stderr=pipe,
                                        text=True)
        self.number = 0
        self.told = []
        self.info = self.ask("initialize", protocolVersion=revision, capabilities={},
                             clientInfo={"name": "test", "version": "1"})["result"]
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def request(self, method, **params):
        """Sends a request; returns its id."""
        self.number += 1
        self.send({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        return self.number

    def receive_any(self):
        message = json.loads(self.process.stdout.readline())
        if isinstance(message, dict) and message.get("method") == "notifications/progress":
            self.told.append(message["params"])
        return message

    def receive(self):
        """The next answer."""
        while isinstance(message := self.receive_any(), dict) and "method" in message:
            pass
        return message

    def await_progress(self):
        """Reads until more is told of progress."""
        before = len(self.told)
        while len(self.told) == before:
            message = self.receive_any()
            assert "method" in message, message

    def ask(self, method, **params):
        number = self.request(method, **params)
        answer = self.receive()
        assert answer["jsonrpc"] == "2.0" and answer["id"] == number
        return answer

    def call(self, tool, **arguments):
        """The result of a tool, whose arguments Python spells with '_'."""
        arguments = {name.replace("_", "-"): value for name, value in arguments.items()}
        return self.ask("tools/call", name=tool, arguments=arguments)["result"]

    def end(self):
        """Closes the input; returns (exit status, what was left to read, stderr)."""
        rest, errors = self.process.communicate(timeout=120)
        return self.process.returncode, rest, errors
