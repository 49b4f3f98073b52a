"""Measures servers of skills with the same client, which writes and reads lines and nothing else."""

import json
import os
import re
import subprocess
import sys
import tempfile
import time

SKILLS = 1000
STARTS = 7
CALLS = 2000
# Of each server: its arguments, the tool that loads a skill, and that tool's arguments.
SERVERS = {
    "workerctl": (["-C", "{workspace}", "mcp"], "skill", {"name": "{skill}"}),
    "skillz": (["{root}"], "{skill}", {"task": "t"}),
    "skillport-mcp": (["--skills-dir", "{root}"], "load_skill", {"skill_id": "{skill}"}),
}
WORDS = "Read what stands there before anything is changed, then say what it is. "


def write_skills(root):
    # As long as real ones are in the middle: a description of 240 bytes, a file of 5,600.
    for at in range(SKILLS):
        name = f"skill-{at:04}"
        directory = os.path.join(root, name)
        os.makedirs(directory)
        with open(os.path.join(directory, "SKILL.md"), "w", encoding="utf-8") as file:
            file.write(f"---\nname: {name}\ndescription: {(WORDS * 4)[:240].strip()}\n---\n\n# {name}\n\n{WORDS * 72}\n")


class Refused(Exception):
    pass


class Server:
    def __init__(self, name, program, workspace, root):
        arguments, self.tool, self.arguments = SERVERS[name]
        command = [program, *(one.format(workspace=workspace, root=root) for one in arguments)]
        home = os.path.join(os.path.dirname(workspace), "home")
        os.makedirs(home, exist_ok=True)
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
            if not line:
                raise Refused("the server has ended")
            message = json.loads(line)
            if message.get("id") == self.last_id:
                if "error" in message:
                    raise Refused(json.dumps(message["error"]))
                return message["result"]

    def load(self, skill):
        arguments = {key: value.format(skill=skill) for key, value in self.arguments.items()}
        result = self.ask("tools/call", name=self.tool.format(skill=skill), arguments=arguments)
        text = " ".join(texts(result))
        if result.get("isError"):
            raise Refused(text)
        return text

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


def texts(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for one in value.values() if isinstance(value, dict) else value:
            yield from texts(one)


def empty_workspace(place, root=".claude/skills"):
    workspace = tempfile.mkdtemp(dir=place)
    os.makedirs(os.path.join(workspace, "workers"))
    os.makedirs(os.path.join(workspace, root))
    return workspace, os.path.join(workspace, root)


def resident_with(none, name, program):
    server = Server(name, program, *none)
    server.ask("tools/list")
    resident = server.resident_mib()
    server.leave()
    return resident


def measure(name, program, none, many):
    starts, processor = [], []
    for _ in range(STARTS):
        server = Server(name, program, *many)
        starts.append(server.started)
        processor.append(server.processor())
        server.leave()
    server = Server(name, program, *many)
    begun = time.perf_counter()
    listed = len(server.ask("tools/list")["tools"])
    first = time.perf_counter() - begun
    resident = server.resident_mib()
    before, times = server.processor(), []
    for at in range(CALLS):
        begun = time.perf_counter()
        text = server.load(f"skill-{at * 7 % SKILLS:04}")
        times.append(time.perf_counter() - begun)
        assert WORDS in text, text
    used = (server.processor() - before) / CALLS
    server.leave()
    times.sort()
    print(
        f"{name}: start to `initialize` {sorted(starts)[STARTS // 2] * 1e3:.1f} ms"
        f" ({sorted(processor)[STARTS // 2] * 1e3:.1f} ms of processor time),"
        f" first `tools/list` {first * 1e3:.0f} ms ({listed} tools),"
        f" resident {resident:.1f} MiB ({resident_with(none, name, program):.1f} MiB without skills),"
        f" a call: median {times[CALLS // 2] * 1e3:.3f} ms, p99 {times[CALLS * 99 // 100] * 1e3:.3f} ms,"
        f" {used * 1e3:.3f} ms of processor time",
        flush=True,
    )


class Page:
    """A file of a set, and the names under which a server may know it."""

    def __init__(self, root, directory, content):
        self.root, self.directory, self.content = root, directory, content
        text = content.decode(errors="replace")
        self.last_line = " ".join(text.rstrip().rpartition("\n")[2].split())
        called = re.findall(r"^\s*name: *[\"']?(.*?)[\"']?\s*$", text, re.M)[:1]
        names = [directory, os.path.basename(directory), *called]
        slugs = [re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") for name in names]
        self.names = list(dict.fromkeys(filter(None, names + slugs)))


def irregular_fixtures():
    """Those that the tests accept, and those that they refuse or leave out."""
    # They stand in the tests alone: each is a path, or the constant of one, and a text, in literals that are JSON's too.
    tests = "src/catalog/src/tests/irregular"
    source = "".join(open(path, encoding="utf-8").read() for path in (f"{tests}.rs", f"{tests}/keys.rs"))
    paths = dict(re.findall(r'const (\w+): &str = (".*?");', source))
    fixture = r'(accepted|rejected)\(\s*(\w+|".*?"),\s*("(?:[^"\\]|\\.)*"),\s*("skipped")?'
    accepted, refused = [], []
    for at, (verdict, path, text, skipped) in enumerate(re.findall(fixture, source)):
        root, directory = json.loads(paths.get(path, path)).removesuffix("/SKILL.md").split("/skills/")
        # One has to be told from the other, and an empty one has nothing to load.
        fresh = directory if directory != "a" else f"a-{at}"
        text = re.sub("name: a$", f"name: {fresh}", json.loads(text), flags=re.M)
        if text.endswith("Do it.\n"):
            page = Page(f"{root}/skills", fresh, text.replace("Do it.", f"Do it as {fresh}.").encode())
            (refused if skipped or verdict == "rejected" else accepted).append(page)
    return accepted, refused


def real_files(part):
    for directory, _, files in sorted(os.walk(part)):
        if "SKILL.md" in files:
            with open(os.path.join(directory, "SKILL.md"), "rb") as file:
                yield Page(".agents/skills", os.path.basename(directory), file.read())


def batches(pages):
    """As many as fit into one root without two of a name."""
    while pages:
        taken, now, later = set(), [], []
        for page in pages:
            fits = page.root == pages[0].root and taken.isdisjoint(page.names)
            (now if fits else later).append(page)
            taken.update(page.names if fits else [])
        yield now
        pages = later


def first_answer(server, page):
    """Nothing if a name of the page loads it, otherwise what was answered to the first."""
    said = None
    for name in page.names:
        try:
            text = server.load(name)
            if page.last_line in " ".join(text.split()):
                return None
        except Refused as refused:
            text = str(refused)
        said = said or text
    return said


def count_loaded(name, program, place, what, pages):
    failed = []
    for batch in batches(pages):
        workspace, root = empty_workspace(place, batch[0].root)
        for page in batch:
            directory = os.path.join(root, page.directory)
            os.makedirs(directory)
            with open(os.path.join(directory, "SKILL.md"), "wb") as file:
                file.write(page.content)
        try:
            server = Server(name, program, workspace, root)
            failed += [(page, said) for page in batch if (said := first_answer(server, page))]
            server.leave()
        except (Refused, BrokenPipeError) as ended:
            failed += [(page, str(ended)) for page in batch]
    print(f"{name}: loads {len(pages) - len(failed)} of {len(pages)} {what}", flush=True)
    if os.environ.get("COMPARE_SHOW"):
        for page, said in failed:
            print(f"    {page.root}/{page.directory}: {' '.join(said.split())[:300]}")


def main(place, *programs):
    programs = [one.split("=", 1) for one in programs]
    none, many = empty_workspace(place), empty_workspace(place)
    write_skills(many[1])
    for _ in range(2):
        for name, program in programs:
            measure(name, program, none, many)
    accepted, refused = irregular_fixtures()
    sets = {"irregular fixtures that the tests accept": accepted, "that they refuse": refused}
    corpus = os.environ.get("WORKERCTL_CORPUS")
    for part in ("skills", "irregular") if corpus else ():
        sets[f"real files of `{part}`"] = list(real_files(os.path.join(corpus, part)))
    for what, pages in sets.items():
        assert pages, f"there are no {what}"
        for name, program in programs:
            count_loaded(name, program, place, what, pages)


main(*sys.argv[1:])
