"""Lists and calls every tool with the official Python SDK, in each version of the protocol that it speaks.

Arguments: the program and a workspace, or an address and the file that holds its token.
"""

import asyncio
import os
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import mcp.client.session as sessions
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS


def told(what, result):
    text = " ".join(part.text for part in result.content if getattr(part, "text", None))
    print(f"{what}: {'error: ' if result.is_error else ''}{text[:160]!r}")
    return result


@asynccontextmanager
async def streams(where, what):
    if where.startswith("http"):
        headers = {"Authorization": f"Bearer {Path(what).read_text().strip()}"}
        async with (
            create_mcp_http_client(headers=headers) as client,
            streamable_http_client(where, http_client=client) as found,
        ):
            yield found[0], found[1]
        return
    server = StdioServerParameters(
        command=where,
        args=["-C", what, "mcp"],
        env={"PATH": os.environ["PATH"], "HOME": os.environ["HOME_OF_SKILLS"]},
    )
    async with stdio_client(server) as found:
        yield found[0], found[1]


async def begin(session, version):
    """The handshake, or the question that the versions without one begin with."""
    if version in MODERN_PROTOCOL_VERSIONS:
        hello = await session.discover()
        assert version in hello.supported_versions, hello
    else:
        sessions.LATEST_HANDSHAKE_VERSION = version
        hello = await session.initialize()
        assert hello.protocol_version == version, hello
    assert session.protocol_version == version, session.protocol_version
    print(f"-- protocol {version}")


async def speak(where, what, version):
    async with streams(where, what) as (reading, writing), ClientSession(reading, writing) as session:
        await begin(session, version)
        tools = [tool.name for tool in (await session.list_tools()).tools]
        print("tools:", ", ".join(tools))
        called = set()

        async def call(tool, expect_error=False, **arguments):
            called.add(tool)
            result = told(tool, await session.call_tool(tool, arguments))
            assert bool(result.is_error) == expect_error, result
            return result

        assert "Loading: git" in (await call("skill", name="GIT")).content[0].text
        assert "Skill: tidy" in (await call("Skill", skill_name="tidy")).content[0].text
        await call("Skill", expect_error=True, skill_name="none")
        await call("loadSkill", skillName="git")
        await call("loadSkillFile", skillName="git", path="ref/notes.md")
        await call("list_skills")
        await call("list_runs")
        result = await call("use_skill", skill="hello", input={"who": "them"})
        assert result.structured_content["content"] == "hello them", result
        await call("read_thread", run=result.structured_content["run"])
        slow = (await call("use_skill", skill="slow")).structured_content["run"]
        await call("get_run", run=slow)
        await call("cancel_run", run=slow, now=True)
        assert called == set(tools), set(tools) - called

        prompts = (await session.list_prompts()).prompts
        print("prompts:", ", ".join(prompt.name for prompt in prompts))
        await session.get_prompt(prompts[0].name)
        resources = (await session.list_resources()).resources
        print("resources:", ", ".join(str(one.uri) for one in resources))
        for one in resources:
            await session.read_resource(one.uri)
        templates = (await session.list_resource_templates()).resource_templates
        print("templates:", ", ".join(one.uri_template for one in templates))
        if version in HANDSHAKE_PROTOCOL_VERSIONS:
            await session.send_ping()


async def main(where, what):
    versions = (*HANDSHAKE_PROTOCOL_VERSIONS, *MODERN_PROTOCOL_VERSIONS)
    for version in versions:
        await speak(where, what, version)
    print("versions:", ", ".join(versions))


asyncio.run(main(*sys.argv[1:]))
