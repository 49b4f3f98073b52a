"""Records what a client and a server write to each other, and judges such records."""

import collections
import json
import os
import subprocess
import sys
import threading

REQUESTS_MIN = 2000


def record(directory, command):
    place = os.path.join(directory, str(os.getpid()))
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=open(place + ".log", "wb"))

    def copy(source, sink, kept):
        with open(kept, "wb", buffering=0) as kept:
            for line in source:
                kept.write(line)
                sink.write(line)
                sink.flush()

    def from_client():
        copy(sys.stdin.buffer, server.stdin, place + ".in")
        server.stdin.close()

    threading.Thread(target=from_client, daemon=True).start()
    copy(server.stdout, sys.stdout.buffer, place + ".out")
    code = server.wait()
    with open(place + ".end", "w", encoding="ascii") as file:
        file.write(str(code))
    # Not through the interpreter's end, which would wait for the client.
    os._exit(code)


def refuse(constant):
    raise ValueError(f"{constant} is no JSON")


def messages(path):
    """Each message of a file, those of batches alone; None for what is no JSON."""
    with open(path, "rb") as file:
        for line in file:
            try:
                message = json.loads(line, parse_constant=refuse)
            except ValueError:
                yield None
                continue
            yield from message if isinstance(message, list) and message else [message]


def is_id(value):
    return isinstance(value, str) or (isinstance(value, (int, float)) and not isinstance(value, bool))


def judge(directory, least):
    wrong, requests, servers = [], 0, 0
    for name in sorted(os.listdir(directory)):
        place, ending = os.path.splitext(os.path.join(directory, name))
        if ending != ".in":
            continue
        servers += 1
        asked, answered = collections.Counter(), collections.Counter()
        for message in messages(place + ".in"):
            requests += 1
            if isinstance(message, dict) and isinstance(message.get("method"), str) and is_id(message.get("id")):
                asked[json.dumps(message["id"])] += 1
        for message in messages(place + ".out"):
            if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
                wrong.append(f"{place}: standard output holds {str(message)[:200]}")
            elif "method" not in message and message.get("id") is not None:
                answered[json.dumps(message["id"])] += 1
        for one in asked | answered:
            if asked[one] != answered[one]:
                wrong.append(f"{place}: {asked[one]} requests {one[:80]}, {answered[one]} answers")
        end = open(place + ".end", encoding="ascii").read() if os.path.exists(place + ".end") else "none"
        # A client ends a server by closing its input or by a signal, or ends the recorder first.
        if end not in ("0", "-15", "none"):
            wrong.append(f"{place}: the server ended with {end}")
        with open(place + ".log", encoding="utf-8", errors="replace") as log:
            wrong += [f"{place}: {line.strip()}" for line in log if "panicked" in line]
    print(f"{requests} messages to {servers} servers, {len(wrong)} faults")
    print("\n".join(wrong[:40]))
    if wrong or requests < least:
        sys.exit(1)


if sys.argv[1] == "record":
    record(sys.argv[2], sys.argv[3:])
else:
    judge(sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 and sys.argv[3] else REQUESTS_MIN)
