"""A model server on loopback for agent programs, without a model: it calls the tools of a script in turn, then says "done".

It speaks as much as they need of Anthropic Messages, OpenAI Responses, OpenAI Chat Completions and Gemini, streamed and
whole. Which step is next is told by how many results a request holds, so that repeated requests change nothing, and
side requests, which offer none of the server's tools, use none up. Every request is kept.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# With it Claude Code's model asks for tools of which it was told nothing but the names.
SEARCH = "ToolSearch"


def text_of(content):
    """What the model reads of a result: its text, or all of what is no text."""
    if isinstance(content, list):
        return "\n".join(text_of(part) for part in content)
    if isinstance(content, dict):
        return content["text"] if isinstance(content.get("text"), str) else json.dumps(content, ensure_ascii=False)
    return content or ""


class Anthropic:
    def __init__(self, body):
        self.stream = body.get("stream")
        self.tools = [
            {"name": tool["name"], "description": tool.get("description", ""), "schema": tool.get("input_schema")}
            for tool in body.get("tools", [])
        ]
        parts = [part for message in body["messages"] if isinstance(message["content"], list) for part in message["content"]]
        searches = [part["id"] for part in parts if part["type"] == "tool_use" and part["name"] == SEARCH]
        results = [part for part in parts if part["type"] == "tool_result" and part["tool_use_id"] not in searches]
        self.results, self.searched = [text_of(part.get("content")) for part in results], bool(searches)

    def reply(self, call, number):
        block = {"type": "text", "text": "done"}
        if call:
            block = {"type": "tool_use", "id": f"toolu_{number}", "name": call[0]["name"], "input": call[1]}
        stop, usage = "tool_use" if call else "end_turn", {"input_tokens": 1, "output_tokens": 1}
        head = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "m", "usage": usage}
        if not self.stream:
            return [{**head, "content": [block], "stop_reason": stop, "stop_sequence": None}]
        if call:
            begin, delta = {**block, "input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(call[1])}
        else:
            begin, delta = {**block, "text": ""}, {"type": "text_delta", "text": "done"}
        return [
            {"type": "message_start", "message": {**head, "content": [], "stop_reason": None, "stop_sequence": None}},
            {"type": "content_block_start", "index": 0, "content_block": begin},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage},
            {"type": "message_stop"},
        ]


class Responses:
    def __init__(self, body):
        self.stream, self.tools = body.get("stream"), []
        for tool in body.get("tools", []):
            # The tools of one server may stand together under its name.
            space = {"namespace": tool["name"]} if tool["type"] == "namespace" else {}
            for one in tool["tools"] if space else [tool]:
                if one["type"] == "function":
                    named = {"name": one["name"], "description": one.get("description", "")}
                    self.tools.append({**named, "schema": one["parameters"], **space})
        self.results = [text_of(one["output"]) for one in body["input"] if one.get("type") == "function_call_output"]

    def reply(self, call, number):
        item = {"type": "message", "role": "assistant", "id": f"m_{number}"}
        item["content"] = [{"type": "output_text", "text": "done", "annotations": []}]
        if call:
            named = {key: value for key, value in call[0].items() if key in ("name", "namespace")}
            item = {"type": "function_call", "id": f"f_{number}", "call_id": f"call_{number}", **named}
            item["arguments"] = json.dumps(call[1])
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        response = {"id": f"r_{number}", "status": "completed", "output": [item], "usage": usage}
        if not self.stream:
            return [response]
        return [
            {"type": "response.created", "response": {"id": f"r_{number}"}},
            {"type": "response.output_item.added", "output_index": 0, "item": item},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": response},
        ]


class Chat:
    def __init__(self, body):
        self.stream = body.get("stream")
        functions = [tool["function"] for tool in body.get("tools", [])]
        self.tools = [
            {"name": one["name"], "description": one.get("description", ""), "schema": one["parameters"]} for one in functions
        ]
        self.results = [text_of(one["content"]) for one in body["messages"] if one["role"] == "tool"]

    def reply(self, call, number):
        said = {"role": "assistant", "content": "done"}
        if call:
            function = {"name": call[0]["name"], "arguments": json.dumps(call[1])}
            said = {"role": "assistant", "tool_calls": [{"index": 0, "id": f"call_{number}", "type": "function", "function": function}]}
        kind = "delta" if self.stream else "message"
        choice = {"index": 0, kind: said, "finish_reason": "tool_calls" if call else "stop"}
        return [{"id": f"c_{number}", "object": "chat.completion.chunk", "model": "m", "choices": [choice]}]


class Gemini:
    def __init__(self, body):
        functions = [one for tool in body.get("tools", []) for one in tool.get("functionDeclarations", [])]
        self.tools = [
            {
                "name": one["name"],
                "description": one.get("description", ""),
                "schema": one.get("parametersJsonSchema") or one.get("parameters"),
            }
            for one in functions
        ]
        parts = [part for content in body["contents"] for part in content.get("parts", [])]
        answers = [part["functionResponse"]["response"] for part in parts if "functionResponse" in part]
        self.results = [text_of(one.get("output", one.get("error", one))) for one in answers]

    def reply(self, call, number):
        part = {"text": "done"}
        if call:
            part = {"functionCall": {"name": call[0]["name"], "args": call[1], "id": f"call_{number}"}}
        candidate = {"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}
        usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        return [{"candidates": [candidate], "usageMetadata": usage}]


DIALECTS = {"/messages": Anthropic, "/responses": Responses, "/chat/completions": Chat, "enerateContent": Gemini}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        self.send(404, "application/json", b"{}")

    do_HEAD = do_GET

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        path = self.path.split("?")[0]
        kind = next((kind for end, kind in DIALECTS.items() if path.endswith(end)), None)
        if kind is None:
            return self.send(404, "application/json", b"{}")
        request = kind(body)
        call, number = self.server.answer(request, body)
        fault = self.server.fault and self.server.fault(number)
        if fault == "silent":
            return self.server.silence.wait()
        if isinstance(fault, tuple):
            return self.send(fault[0], "application/json", json.dumps(fault[2]).encode(), fault[1])
        events = request.reply(call, number)
        if fault == "empty":
            events = json.loads(json.dumps(events).replace('"done"', '""'))
        if not (getattr(request, "stream", False) or "streamGenerateContent" in path):
            return self.send(200, "application/json", json.dumps(events[0]).encode())
        lines = [(f"event: {one['type']}\n" if "type" in one else "") + f"data: {json.dumps(one)}\n\n" for one in events]
        if kind is Chat:
            lines.append("data: [DONE]\n\n")
        if fault == "cut":
            lines = lines[:2]
        self.send(200, "text/event-stream", "".join(lines).encode())

    def send(self, status, kind, body, headers=()):
        self.send_response(status)
        for header in headers:
            self.send_header(*header)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body if self.command != "HEAD" else b"")

    def log_message(self, *_):
        pass


class ModelServer(ThreadingHTTPServer):
    """Answers by `script`: names of tools with arguments, or with what makes them of the texts so far.

    `name` is that of the server whose tools are called; without one they are the agent's own. `fault` says by the number of a
    request how it fails: "silent", "empty", "cut", or a status with headers and body. With `endless` the last step repeats.
    """

    daemon_threads = True

    def __init__(self, name):
        super().__init__(("127.0.0.1", 0), Handler)
        self.name, self.lock, self.silence = name, threading.Lock(), threading.Event()
        self.begin([])
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def begin(self, script, fault=None, endless=False):
        """`offered`: the server's tools in each request; `results`: what stands in the last of them."""
        self.script, self.bodies, self.offered, self.results = script, [], [], []
        self.fault, self.endless = fault, endless

    def answer(self, request, body):
        """The call that is next, with a number of its own; no call: it says that it is done."""
        ours, search = {}, None
        for tool in request.tools:
            full = tool.get("namespace", "") + "_" + tool["name"]
            if self.name is None:
                ours[tool["name"]] = tool
            elif self.name in full:
                ours[full.split(self.name)[-1].strip("_")] = tool
            elif tool["name"] == SEARCH and not request.searched:
                search = tool
        with self.lock:
            self.bodies.append(body)
            number, at = len(self.bodies), len(request.results)
            if not ours and not search:
                return None, number
            self.offered.append(ours)
            self.results = request.results
            missing = [name for name, _ in self.script if name not in ours]
            if search and missing:
                query = "select:" + ",".join(f"mcp__{self.name}__{name}" for name in missing)
                return (search, {"query": query, "max_results": len(missing)}), number
            if self.endless:
                at = min(at, len(self.script) - 1)
            if at >= len(self.script) or self.script[at][0] not in ours:
                return None, number
            name, arguments = self.script[at]
            return (ours[name], arguments(request.results) if callable(arguments) else arguments), number
