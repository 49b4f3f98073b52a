"""Has agent programs execute a skill, before a scripted model server that plays what goes wrong: each case has to be told
apart, none may succeed that did no work, and no process may be left.

Arguments: the program, a directory to install and work in, names of agents (default: all).
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from agents import installed
from agents_server import ModelServer

KEY = "sk-no-key-of-anybody-0001"
SILENCE = 12


class Claude:
    package, binary, path = "@anthropic-ai/claude-code", "claude", ""
    tool, refusing = ("Bash", "command"), "allowed-tools: ['Bash(git log:*)']"
    refused = "tool_refused"
    # It asks once more without streaming.
    cut = {"succeeded"}


class Codex:
    package, binary, path = "@openai/codex", "codex", "/v1"
    tool, refusing = ("exec_command", "cmd"), "sandbox: off, mutating: false"
    # Its stream tells of no refusal: the check finds that nothing was done.
    refused, cut = "check_failed", {"incomplete"}


class Opencode:
    # It takes a stream that breaks off for its end; what it did until then is what the check judges.
    package, binary, path = "opencode-ai", "opencode", "/v1"
    tool, refusing = ("bash", "command"), "sandbox: off, mutating: false"
    refused, cut = "check_failed", {"succeeded"}


def error(words):
    return {"type": "error", "error": {"type": "error", "message": words}}


def status(code, words, headers=()):
    return lambda number: (code, headers, error(words))


# Fault, and how the run ends. What a program goes on trying is ended for its silence, with what it said last.
CASES = {
    "success": (None, {"succeeded"}),
    "429 once": (lambda number: (429, [("retry-after", "1")], error("Rate limit exceeded")) if number == 1 else None, {"succeeded"}),
    "429 for an hour": (status(429, "Rate limit exceeded", [("retry-after", "3600")]), {"rate_limited"}),
    "500": (status(500, "Internal server error"), {"server"}),
    "401": (status(401, "Unauthorized: invalid API key"), {"auth"}),
    "empty": (lambda number: "empty", {"empty"}),
    "no headers ever": (lambda number: "silent", {"silence", "incomplete", "server"}),
}


class Place:
    def __init__(self, agent, program, root, model, binary):
        self.agent, self.program, self.model, self.binary, self.root = agent, program, model, binary, root
        shutil.rmtree(root, ignore_errors=True)
        self.home, self.workspace = root / "home", root / "workspace"
        self.workspace.mkdir(parents=True)
        self.home.mkdir()
        (self.home / "key").write_text(KEY)
        (self.home / ".gitconfig").write_text("[user]\n\tname = a\n\temail = a@localhost\n")
        self.git("init", "-q")
        (self.workspace / "tracked.txt").write_text("as committed\n")
        (self.workspace / ".gitignore").write_text("/workspace/\n/state/\n/.workerctl/\n")
        self.define("")

    def define(self, more):
        port = self.model.server_address[1]
        keys = {"cli": self.agent.binary, "binary": str(self.binary), "model": "m", "key": f"file:{self.home}/key"}
        keys |= {"base_url": f"http://127.0.0.1:{port}{self.agent.path}", "silence": f"{SILENCE}s"}
        skill = "mutating: true" if "mutating" not in more else ""
        parts = ", ".join(part for part in (skill, more) if part)
        definition = self.workspace / "workers/w/worker.yaml"
        definition.parent.mkdir(parents=True, exist_ok=True)
        definition.write_text(
            f"worker: {{id: w, name: W, type: OpsWorker}}\nagent: {json.dumps(keys)}\nskills:\n"
            f"  - {{id: fix, description: Fixes, instructions: Write fixed.txt., max_iterations: 8, {parts},\n"
            "     verification: [{description: fixed, command: test -s fixed.txt}]}\n"
        )
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "define")

    def environment(self):
        return {"HOME": str(self.home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "XDG_RUNTIME_DIR": str(self.root)}

    def git(self, *arguments):
        done = subprocess.run(["git", *arguments], cwd=self.workspace, env=self.environment(), capture_output=True, text=True)
        assert done.returncode == 0, (arguments, done.stderr)
        return done.stdout

    def workerctl(self, *arguments, timeout=180):
        command = [self.program, *arguments]
        return subprocess.run(command, cwd=self.workspace, env=self.environment(), capture_output=True, text=True, timeout=timeout)

    def ended(self, shown):
        outcome = shown["summary"]["outcome"]
        return outcome.get("failure", {}).get("code") or outcome["kind"]

    def run(self):
        done = self.workerctl("run", "w/fix", "--json")
        assert KEY not in done.stdout + done.stderr
        return json.loads(done.stdout)

    def processes(self):
        """Those that still work for this place."""
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                text = (path / "environ").read_bytes()
                state = (path / "stat").read_text().rsplit(")", 1)[1].split()[0]
            except OSError:
                continue
            if state != "Z" and b"WORKERCTL_RUN=" in text and str(self.root).encode() in text:
                found.append((path.name, (path / "cmdline").read_bytes()[:80]))
        return found

    def expect_none_left(self):
        for _ in range(100):
            if not self.processes():
                return
            time.sleep(0.05)
        raise AssertionError(f"left: {self.processes()}")


class Trial:
    def __init__(self, name, agent, program, root, binary):
        self.name, self.agent, self.wrong = name, agent, 0
        self.model = ModelServer(None)
        self.place = Place(agent, program, root, self.model, binary)

    def calls(self, command):
        tool, key = self.agent.tool
        return [(tool, {key: command, "description": "d"} if key == "command" else {key: command})]

    def expect(self, case, expected, shown):
        found = self.place.ended(shown)
        fine = found in expected
        self.wrong += not fine
        seconds = shown["attempts"][-1]["execution"]["duration_ms"] / 1000
        print(f"  {'ok   ' if fine else 'WRONG'} {self.name} {case}: {found} in {seconds:.1f} s", flush=True)
        if not fine:
            print(json.dumps(shown["summary"]["outcome"]), self.place.workerctl("logs", "latest").stdout[-2000:])
        self.place.expect_none_left()

    def case(self, case, fault, expected, more="", command="echo fixed > fixed.txt", endless=False):
        self.place.define(more)
        self.model.begin(self.calls(command), fault, endless)
        shown = self.place.run()
        self.expect(case, expected, shown)
        if self.place.ended(shown) == "succeeded":
            assert "fixed.txt" in self.place.git("ls-files"), shown
            self.place.git("rm", "-q", "fixed.txt")
        return shown

    def all(self):
        # A person works here meanwhile.
        tracked = self.place.workspace / "tracked.txt"
        tracked.write_text("a person writes\n")
        for case, (fault, expected) in CASES.items():
            self.case(case, fault, expected)
        self.case("cut stream", lambda number: "cut", self.agent.cut)
        self.case("refused tool", None, {self.agent.refused}, self.agent.refusing)
        self.case("endless calls", None, {"iteration_limit"}, command="true", endless=True)
        for name in ("TERM", "KILL"):
            self.stopped(name)
        assert tracked.read_text() == "a person writes\n"

    def stopped(self, name):
        """TERM is a person's `cancel`; KILL ends the program inside a tool, which lives on by itself."""
        mark = self.place.home / "did/stands"
        mark.parent.mkdir(exist_ok=True)
        mark.unlink(missing_ok=True)
        grant = f"sandbox: {{write: ['{mark.parent}']}}"
        self.place.define(grant)
        self.model.begin(self.calls(f"echo x > {mark}; sleep 300"))
        daemon = subprocess.Popen([self.place.program, "daemon"], cwd=self.place.workspace, env=self.place.environment(), stderr=subprocess.DEVNULL)
        try:
            self.wait_for(lambda: self.place.workerctl("run", "--no-wait", "w/fix").returncode == 0)
            run = json.loads(self.place.workerctl("runs", "-n", "1", "--json").stdout)["runs"][0]["run"]
            self.wait_for(mark.exists)
            if name == "TERM":
                self.place.workerctl("cancel", run)
            else:
                for pid, command in self.place.processes():
                    if self.agent.binary.encode() in command and b"sleep" not in command:
                        os.kill(int(pid), signal.SIGKILL)
            shown = json.loads(self.place.workerctl("wait", run, "--json").stdout)
            self.expect(f"{name} inside a tool", {"cancelled"} if name == "TERM" else {"no_result", "agent_exit", "signal"}, shown)
        finally:
            daemon.terminate()
            daemon.wait()

    def wait_for(self, holds):
        for _ in range(600):
            if holds():
                return
            time.sleep(0.1)
        raise AssertionError("it did not come to that")

    def killed(self, rounds):
        """An engine that is killed at random: each run lands once or not at all, and a person's files stay."""
        self.place.define("")
        tracked = self.place.workspace / "tracked.txt"
        landed, seed = 0, random.randrange(1 << 32)
        dice = random.Random(seed)
        print(f"  seed {seed}")
        for number in range(rounds):
            name = f"kept-{number}.txt"
            self.place.git("commit", "-q", "--allow-empty", "-m", "a person's")
            tracked.write_text(f"a person writes {number}\n")
            self.model.begin(self.calls(f"echo x > fixed.txt; echo x > {name}"))
            command = [self.place.program, "run", "w/fix", "--json"]
            started = subprocess.Popen(command, cwd=self.place.workspace, env=self.place.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                started.wait(timeout=dice.uniform(0, 2.5))
            except subprocess.TimeoutExpired:
                started.kill()
                started.wait()
            # The next request settles what was lost.
            self.place.workerctl("run", "w/fix", "--dry-run")
            self.place.expect_none_left()
            commits = self.place.git("log", "--format=%H", "--", name).split()
            assert len(commits) <= 1, commits
            landed += len(commits)
            assert tracked.read_text() == f"a person writes {number}\n"
            assert self.place.git("status", "--porcelain").strip() == "M tracked.txt", self.place.git("status", "--porcelain")
        print(f"  ok    {self.name}: killed {rounds} times at random, {landed} had landed, each once", flush=True)


def main(program, root, *names):
    wrong = 0
    for agent in (Claude, Codex, Opencode):
        if names and agent.binary not in names:
            continue
        print(f"\n{agent.binary}", flush=True)
        place = (Path(root) / agent.binary).resolve()
        binary = installed(agent, place)
        if binary is None:
            continue
        trial = Trial(agent.binary, agent, str(Path(program).resolve()), place / "executes", binary)
        trial.all()
        if agent is Claude:
            trial.killed(int(os.environ.get("ROUNDS", "50")))
        wrong += trial.wrong
    print(f"\n{wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
