"""Measures two servers of skills with the same client, which writes and reads lines and nothing else."""

import json
import os
import subprocess
import sys
import time

SKILLS = 1000
STARTS = 7
CALLS = 2000
WORDS = "Read what stands there before anything is changed, then say what it is. "


def write_skills(root):
    # As long as real ones are in the middle: a description of 240 bytes, a file of 5,600.
    for at in range(SKILLS):
        name = f"skill-{at:04}"
        directory = os.path.join(root, name)
        os.makedirs(directory)
        with open(os.path.join(directory, "SKILL.md"), "w", encoding="utf-8") as file:
            file.write(f"---\nname: {name}\ndescription: {(WORDS * 4)[:240].strip()}\n---\n\n# {name}\n\n{WORDS * 72}\n")


class Server:
    def __init__(self, command, home):
        environment = {"PATH": os.environ["PATH"], "HOME": home}
        begun = time.perf_counter()
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.last_id = 0
        self.ask(
            "initialize",
            protocolVersion="2025-06-18",
            capabilities={},
            clientInfo={"name": "compare", "version": "1"},
        )
        self.started = time.perf_counter() - begun
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def write(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method, **params):
        self.last_id += 1
        self.write({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params})
        while True:
            line = self.process.stdout.readline()
            assert line, "the server has ended"
            message = json.loads(line)
            if message.get("id") == self.last_id:
                assert "error" not in message, message
                return message["result"]

    def resident_mib(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            kib = next(line for line in status if line.startswith("VmRSS:")).split()[1]
        return int(kib) / 1024

    def processor(self):
        seconds = 0
        for thread in os.listdir(f"/proc/{self.process.pid}/task"):
            with open(f"/proc/{self.process.pid}/task/{thread}/schedstat", encoding="ascii") as stat:
                seconds += int(stat.read().split()[0]) / 1e9
        return seconds

    def leave(self):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def measure(name, command, home, call):
    starts, processor = [], []
    for _ in range(STARTS):
        server = Server(command, home)
        starts.append(server.started)
        processor.append(server.processor())
        server.leave()
    server = Server(command, home)
    begun = time.perf_counter()
    listed = len(server.ask("tools/list")["tools"])
    first = time.perf_counter() - begun
    resident = server.resident_mib()
    before, times = server.processor(), []
    for at in range(CALLS):
        arguments = call(at * 7 % SKILLS)
        begun = time.perf_counter()
        result = server.ask("tools/call", **arguments)
        times.append(time.perf_counter() - begun)
        assert WORDS in json.dumps(result) and not result.get("isError"), result
    used = (server.processor() - before) / CALLS
    server.leave()
    times.sort()
    print(
        f"{name}: start to `initialize` {sorted(starts)[STARTS // 2] * 1e3:.1f} ms"
        f" ({sorted(processor)[STARTS // 2] * 1e3:.1f} ms of processor time),"
        f" first `tools/list` {first * 1e3:.0f} ms ({listed} tools), resident {resident:.1f} MiB,"
        f" a call: median {times[CALLS // 2] * 1e3:.3f} ms, p99 {times[CALLS * 99 // 100] * 1e3:.3f} ms,"
        f" {used * 1e3:.3f} ms of processor time",
        flush=True,
    )


def main(program, other, place):
    workspace, home = os.path.join(place, "workspace"), os.path.join(place, "home")
    os.makedirs(home)
    root = os.path.join(workspace, ".claude", "skills")
    write_skills(root)
    os.makedirs(os.path.join(workspace, "workers"))
    skill = lambda at: f"skill-{at:04}"
    for _ in range(2):
        measure(
            "workerctl",
            [program, "-C", workspace, "mcp"],
            home,
            lambda at: {"name": "skill", "arguments": {"name": skill(at)}},
        )
        measure("skillz", [other, root], home, lambda at: {"name": skill(at), "arguments": {"task": "t"}})


main(*sys.argv[1:])
