"""Tries the server with agent programs: Claude Code, Codex, opencode and Gemini CLI. Each is told of it in its own way and
talks to a scripted model server; what counts is what it puts before the model: the tools, and the text of each answer.

Arguments: the program, a directory to install and work in, names of agents (default: all).
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import unicodedata
from pathlib import Path

from agents_server import ModelServer

SIZES = (10, 100, 1000)
DESCRIPTION_CHARACTERS, LIST_TOKENS = 2000, 2200
NOTICE = "Further skills, equally usable: list_skills"
# What the contract writes around the list of skills.
TEMPLATE = ("Execute a skill within the main conversation\n\n<skills_instructions>\n", "<available_skills>\n", "\n</available_skills>")


class Claude:
    package, binary, connected = "@anthropic-ai/claude-code", "claude", "Connected"
    session = ["-p", "--output-format", "stream-json", "--verbose", "--permission-mode", "dontAsk"]
    allowed = ["--allowedTools", "mcp__workerctl__*"]

    def configure(self, home, port, server):
        return {"ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}", "ANTHROPIC_API_KEY": "none"}

    def add(self, server):
        # Otherwise it does not wait for the server, and its model is told of the names of most tools only.
        return ["mcp", "add-json", "-s", "user", "workerctl", json.dumps({"type": "stdio", "command": server, "alwaysLoad": True})]


class Codex:
    # Its list does not start servers; that it is connected is seen in the session.
    package, binary, connected = "@openai/codex", "codex", "enabled"
    session = ["exec", "--json", "--skip-git-repo-check", "--ephemeral", "-"]
    allowed = ["-c", 'mcp_servers.workerctl.default_tools_approval_mode="approve"']

    def configure(self, home, port, server):
        (home / ".codex").mkdir()
        (home / ".codex/config.toml").write_text(
            f'model = "m"\nmodel_provider = "x"\n[model_providers.x]\nname = "x"\nbase_url = "http://127.0.0.1:{port}/v1"\n'
            'wire_api = "responses"\nenv_key = "KEY"\nrequest_max_retries = 0\nstream_max_retries = 0\n'
        )
        return {"KEY": "none"}

    def add(self, server):
        return ["mcp", "add", "workerctl", "--", server]


class Opencode:
    package, binary, connected, add = "opencode-ai", "opencode", "connected", None
    session = ["run", "--format", "json"]
    allowed = ["--auto"]

    def configure(self, home, port, server):
        provider = {"npm": "@ai-sdk/openai-compatible", "models": {"m": {}}}
        provider["options"] = {"baseURL": f"http://127.0.0.1:{port}/v1", "apiKey": "none"}
        servers = {"workerctl": {"type": "local", "command": [server]}}
        (home / ".config/opencode").mkdir(parents=True)
        config = {"model": "x/m", "autoupdate": False, "provider": {"x": provider}, "mcp": servers}
        (home / ".config/opencode/opencode.json").write_text(json.dumps(config))
        return {}


class Gemini:
    package, binary, connected = "@google/gemini-cli", "gemini", "Connected"
    session = ["-m", "gemini-2.5-flash", "-o", "stream-json", "--skip-trust", "--prompt", ""]
    allowed = ["--approval-mode", "yolo"]

    def configure(self, home, port, server):
        (home / ".gemini").mkdir()
        (home / ".gemini/settings.json").write_text('{"security": {"auth": {"selectedType": "gemini-api-key"}}}')
        trusted = {"GEMINI_CLI_TRUST_WORKSPACE": "true"}
        return {"GOOGLE_GEMINI_BASE_URL": f"http://127.0.0.1:{port}", "GEMINI_API_KEY": "none", **trusted}

    def add(self, server):
        return ["mcp", "add", "-s", "user", "workerctl", server]


def unwrapped(text):
    """The text of a result without what Codex and Gemini CLI write around it."""
    text = re.sub(r"\AWall time: [0-9.]+ seconds\nOutput:\n", "", text)
    text = re.sub(r"\A<untrusted_context>\n(.*)\n</untrusted_context>\Z", r"\1", text, flags=re.DOTALL)
    if refused := re.search(r"reported tool error for function call: .* with response: (\[.*\])\Z", text, re.DOTALL):
        response = json.loads(refused[1])[0]["functionResponse"]["response"]
        parts = response.get("content") or [{"text": str(response.get("error", response))}]
        text = "\n".join(part["text"] for part in parts)
    return text


def content_of(text):
    """The same of a result with structured content, which Claude Code and Codex show in place of the text."""
    try:
        return json.loads(text)["content"]
    except (ValueError, KeyError, TypeError):
        return text


def skill_file(name):
    return f"---\nname: {name}\ndescription: {'What stands there is read before it is changed. ' * 5}\n---\n\n# {name}\n\nRead it.\n"


class Place:
    """A directory with a home of its own, for one agent."""

    def __init__(self, agent, program, root, model, binary):
        self.agent, self.program, self.model, self.binary = agent, program, model, binary
        shutil.rmtree(root, ignore_errors=True)
        self.root, self.home, self.project = root, root / "home", root / "project"
        for directory in (self.home, self.project):
            directory.mkdir(parents=True)
        subprocess.run(["git", "init", "-q", self.project], check=True)
        for key, value in (("user.name", "agents"), ("user.email", "agents@localhost")):
            subprocess.run(["git", "-C", self.project, "config", key, value], check=True)
        # What the two say to each other is kept.
        server = root / "server"
        server.write_text(f"#!/bin/sh\ntee -a '{root}/asked' | '{program}' mcp 2>>'{root}/log' | tee -a '{root}/answered'\n")
        server.chmod(0o755)
        # Whoever asks for more than this machine finds no way out.
        closed = {"HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1,localhost", "NO_COLOR": "1"}
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), "PWD": str(self.project), **closed}
        self.environment |= agent.configure(self.home, model.server_port, str(server))
        if agent.add:
            self.run(agent.add(str(server)))

    def run(self, arguments, typed=""):
        done = subprocess.run(
            [self.binary, *arguments],
            cwd=self.project,
            env=self.environment,
            input=typed,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=300,
        )
        with (self.root / "session").open("a") as session:
            session.write(done.stdout)
        return done.stdout

    def listed(self):
        lines = [line for line in self.run(["mcp", "list"]).splitlines() if "workerctl" in line and self.agent.connected in line]
        return bool(lines) and "isconnected" not in lines[0]

    def talk(self, script, allowed=True):
        """The text that the model got for each call."""
        self.model.begin(script)
        self.run([*self.agent.session, *(self.agent.allowed if allowed else [])], "Go on.")
        (self.root / "requests.json").write_text(json.dumps(self.model.bodies, indent=1))
        return [unwrapped(text) for text in self.model.results]

    def tools(self):
        """What the server itself lists, in the bytes that it writes."""
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "agents", "version": "1"}}
        messages = [
            {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
        ]
        typed = "".join(json.dumps(one) + "\n" for one in messages)
        command, surroundings = [self.program, "mcp"], {"cwd": self.project, "env": self.environment}
        done = subprocess.run(command, input=typed, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60, **surroundings)
        line = next((line for line in done.stdout.splitlines() if json.loads(line).get("id") == 2), None)
        return (json.loads(line)["result"]["tools"], len(line.encode())) if line else ([], 0)

    def client(self):
        """The version and the capabilities of the session, as the agent declares them in its last first request."""
        asked = self.root / "asked"
        lines = [json.loads(line) for line in asked.read_text().splitlines()] if asked.exists() else []
        hellos = [one["params"] for one in lines if one.get("method") in ("initialize", "server/discover")] or [{}]
        modern = {key.split("/")[-1]: value for key, value in hellos[-1].get("_meta", {}).items()}
        declared = {"capabilities": modern.get("clientCapabilities"), **modern, **hellos[-1]}
        return {key: declared.get(key) for key in ("protocolVersion", "capabilities")}


class Report:
    def __init__(self):
        self.wrong = []

    def check(self, what, holds, seen=""):
        print(f"  {'ok   ' if holds else 'WRONG'} {what}" + ("" if holds else f": {str(seen)[:300]!r}"), flush=True)
        if not holds:
            self.wrong.append(what)


def check_list(report, offered, handed, own, size):
    """The description of `skill` as the agent hands it on."""
    description = offered.get("skill", {}).get("description", "")
    begin, middle, end = TEMPLATE
    report.check("the template of `skill` is whole", description.startswith(begin) and description.endswith(end), description[-200:])
    report.check(f"below {DESCRIPTION_CHARACTERS} characters", 0 < len(description) < DESCRIPTION_CHARACTERS, len(description))
    listed = description.split(middle)[-1].removesuffix(end)
    if listed.count("skill-0") < size:
        report.check("a cut list says so first", listed.startswith(NOTICE), listed)
        report.check("names come before descriptions", listed.count("skill-0") >= min(size, 40) or "<description>" not in listed, listed)
    # Claude Code writes characters in their compatible form: three dots for an ellipsis.
    plain = lambda tool: unicodedata.normalize("NFKC", tool["description"])
    same = {tool["name"]: plain(tool) for tool in own}
    changed = [name for name, tool in handed.items() if same.get(name) != plain(tool)]
    report.check("every description that is handed on is the server's", handed and not changed, changed)


def check_texts(report, place, size):
    name = f"skill-{size // 2:04}"
    directory, file = place.home / ".claude/skills" / name, skill_file(name)
    calls = [
        ("skill", {"name": name.upper()}, lambda text: text == f"Loading: {name}\nBase directory: {directory}\n\n{file}"),
        (
            "skill",
            {"name": "none"},
            lambda text: text.startswith("Skill 'none' not found.\n\nAvailable skills:\n")
            and text.endswith("\n\nUse the exact skill name (case-insensitive) to load a skill."),
        ),
        (
            "Skill",
            {"skill_name": name},
            lambda text: content_of(text) == f"Skill: {name} (Type: personal)\nPath: {directory}\n\n{file}",
        ),
        ("loadSkill", {"skillName": name}, lambda text: "Read it." in text and "notes.md" in text),
        ("loadSkillFile", {"skillName": name, "path": "notes.md"}, lambda text: text == "notes\n"),
        ("list_skills", {"query": name}, lambda text: name in json.dumps(json.loads(text[text.index("[") : text.rindex("]") + 1]))),
    ]
    judge(report, place, calls)


def check_runs(report, place):
    # The run that goes on, as the model reads of it.
    run = lambda texts: {"run": (re.findall(r"01[0-9A-Z]{24}", texts[1]) or ["none"])[0]}
    calls = [
        ("use_skill", {"skill": "w/hello"}, lambda text: content_of(text) == "hello you"),
        ("use_skill", {"skill": "w/slow"}, lambda text: re.search(r"Run 01[0-9A-Z]{24} of w/slow goes on", text)),
        ("get_run", run, lambda text: "w/slow" in text),
        ("cancel_run", run, lambda text: "w/slow" in text),
        ("use_skill", {"skill": "w/change"}, lambda text: "mutating" in text or "is not run: the" in text),
    ]
    judge(report, place, calls)
    report.check("the mutating skill has not run", not (place.project / "changed").exists())


def judge(report, place, calls):
    texts = place.talk([(tool, arguments) for tool, arguments, _ in calls])
    texts += ["no answer"] * (len(calls) - len(texts))
    for (tool, arguments, right), text in zip(calls, texts):
        try:
            holds = right(text)
        except ValueError:
            holds = False
        report.check(f"{tool} {'' if callable(arguments) else json.dumps(arguments)}", holds, text)


WORKER = """worker: {id: w, name: W, type: OpsWorker}
skills:
  - {id: hello, name: Hello, description: Says hello, run: "echo hello {who}", interface: {inputs: [{name: who, type: string, default: you}]}}
  - {id: slow, name: Slow, description: Takes long, run: "sleep 600"}
  - {id: change, name: Change, description: Changes something, mutating: true, run: "touch changed"}
"""


def installed(agent, root):
    """The newest version of an agent program, or nothing, which it says."""
    at = root / "node_modules/.bin" / agent.binary
    if not at.exists():
        command = ["npm", "install", "--silent", "--no-fund", "--no-audit", "--prefix", root, f"{agent.package}@latest"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode or not at.exists():
            print(f"  NOT TRIED: {agent.package} cannot be installed: {(done.stderr or done.stdout).strip()[:300]}")
            return None
    version = json.loads((root / "node_modules" / agent.package / "package.json").read_text())["version"]
    print(f"  {agent.package} {version}")
    return at


def try_agent(report, agent, program, root, model):
    at = installed(agent, root)
    if at is None:
        return
    for size in SIZES:
        print(f" {size} skills, a git directory without a workspace")
        place = Place(agent, program, root / f"of-{size}", model, at)
        for number in range(size):
            directory = place.home / f".claude/skills/skill-{number:04}"
            directory.mkdir(parents=True)
            (directory / "SKILL.md").write_text(skill_file(directory.name))
            (directory / "notes.md").write_text("notes\n")
        report.check(f"{agent.binary} mcp list: {agent.connected}", place.listed())
        own, written = place.tools()
        report.check(f"tools/list: {written} bytes, {written // 4} tokens", 0 < written <= LIST_TOKENS * 4, written)
        check_texts(report, place, size)
        offered = model.offered or [{}]
        check_list(report, offered[0], offered[-1], own, size)
        digest = hashlib.sha256(json.dumps(offered[-1], sort_keys=True).encode()).hexdigest()
        print(f"  {len(offered[0])} of {len(own)} tools in the first request, {len(offered[-1])} in the last one: {digest}")
    print(f"  {json.dumps(place.client())}")
    print(" a workspace with a worker")
    place = Place(agent, program, root / "of-a-worker", model, at)
    (place.project / "workers/w").mkdir(parents=True)
    (place.project / "workers/w/worker.yaml").write_text(WORKER)
    (place.project / "workerctl.yaml").write_text("mcp: {wait: 2s}\n")
    check_runs(report, place)
    texts = place.talk([("skill", {"name": "none"}), ("use_skill", {"skill": "w/hello"})], allowed=False)
    print("  without permissions:", [text[:80] for text in texts] or "no tool is offered")


def main(program, place, *names):
    # The shebang of scripts that npm installs asks for `node`, so the first one on the path is theirs.
    report, model = Report(), ModelServer("workerctl")
    for agent in (Claude(), Codex(), Opencode(), Gemini()):
        if not names or agent.binary in names:
            print(f"\n{agent.binary}", flush=True)
            try_agent(report, agent, str(Path(program).resolve()), (Path(place) / agent.binary).resolve(), model)
    print(f"\n{len(report.wrong)} wrong")
    sys.exit(1 if report.wrong else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
