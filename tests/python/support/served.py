"""A server under test, on a port of its own."""

import http.client
import json
import os
import random
import signal
import socket
import subprocess
import threading
import time

CONFIG = {"model": "dip-vlm-s", "cluster": "h100-sxm:16", "tp": 4, "pp": 4}


def samples(seed=0, count=8):
    """Samples that differ with the seed."""
    return [{"id": f"s{seed}-{k}", "text_tokens": 600 + 37 * ((k + seed) % 7),
             "images": [{"width": 448, "height": 448} for _ in range((k + seed) % 3)]} for k in range(count)]


def eventually(holds, seconds=60):
    """Whether it does before long."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


PORTS = random.Random(os.getpid())


def free_port():
    """A port for a server that is begun again on it. It lies below those that the system hands out, so that nobody else
    gets it meanwhile, and is another one each time: ranks of an earlier test that are still ending look for theirs."""
    while True:
        port = PORTS.randrange(20_000, 32_000)
        with socket.socket() as there:
            try:
                there.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


class Server:
    """`pipeweaver serve` with further options; ended when the test does. `before` is called in the child."""

    def __init__(self, binary, *options, http="127.0.0.1:0", before=None, environment=None):
        command = [str(binary), "serve", "--http", http, "--threads", "2", *map(str, options)]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=before, env=environment,
                                        restore_signals=before is None)
        self.log = []
        for line in self.process.stderr:
            self.log.append(json.loads(line))
            if self.log[-1]["event"] == "listening":
                break
        assert self.log and self.log[-1]["event"] == "listening", self.log
        self.url = self.log[-1]["url"]
        self.port = int(self.url.rsplit(":", 1)[1])
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def said(self, event, count=1):
        """The lines of the log with this event, of which there are so many before long."""
        lines = []

        def are_there():
            lines[:] = [line for line in list(self.log) if line["event"] == event]
            return len(lines) >= count

        eventually(are_there)
        return lines

    def read(self):
        for line in self.process.stderr:
            self.log.append(json.loads(line))

    def ask(self, method, path, body=None, **headers):
        """Status and body of a request on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        if body is not None and "Content-Type" not in headers:
            headers["Content-Type"] = "application/json"
        connection.request(method, path, body if isinstance(body, (str, bytes, type(None))) else json.dumps(body),
                           headers)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, json.loads(content) if content.startswith(b"{") else content

    def open(self, name="job", **more):
        status, answer = self.ask("PUT", f"/v1/sessions/{name}",
                                  {"config": {**CONFIG, "max-rounds": 3, **more}, "sample": samples()})
        assert status == 200, answer
        return answer

    def submit(self, step, seed=0, deadline_ms=5000, name="job"):
        return self.ask("PUT", f"/v1/sessions/{name}/steps/{step}",
                        {"samples": samples(seed), "deadline_ms": deadline_ms})

    def threads(self):
        return len(os.listdir(f"/proc/{self.process.pid}/task"))

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        """Exit status after SIGTERM."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(300)
