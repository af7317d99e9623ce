"""Tests of the package as it is installed from a wheel: `python -m unittest discover -s python/tests`."""

import asyncio
import atexit
import gc
import json
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

import mcpzip

SERVER = {"command": sys.executable, "args": [str(pathlib.Path(__file__).with_name("server.py"))]}
EXAMPLES = pathlib.Path(__file__).parents[1] / "examples"

NUMBERS = {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}, "required": ["a", "b"]}


@mcpzip.tool("add", "Adds two numbers", NUMBERS)
def add(a, b):
    return {"sum": a + b}


@mcpzip.tool("wait", "Waits and answers", annotations={"readOnlyHint": True})
async def wait():
    await asyncio.sleep(0.01)
    return "waited"


@mcpzip.tool("break", "Breaks down")
def broken():
    raise ValueError("on purpose")


class Person(mcpzip.Handler):
    elicitation = True

    def __init__(self):
        self.asked, self.logged = [], []

    async def elicit(self, server, request):
        self.asked.append((server, request["message"]))
        await asyncio.sleep(0)
        return {"action": "accept", "content": {"color": "green"}}

    def log(self, message):
        self.logged.append(message["data"])


class Refusing(mcpzip.Handler):
    elicitation = True

    def __init__(self, error):
        self.error = error

    async def elicit(self, server, request):
        raise self.error


class Deciding(Person):
    def __init__(self, decision):
        super().__init__()
        self.decision, self.seen = decision, []

    async def consent(self, consent):
        self.seen.append(consent)
        if isinstance(self.decision, Exception):
            raise self.decision
        return self.decision


class RunnerTest(unittest.IsolatedAsyncioTestCase):
    async def test_servers_are_searched_and_called(self):
        async with mcpzip.Runner(servers={"test": SERVER, "sums": [add, wait, broken]}) as runner:
            self.assertEqual(runner.servers(), ["sums", "test"])
            search = await runner.search("repeat what I say", 1)
            found = search.found
            self.assertEqual(search.not_searched, [])
            self.assertEqual(found[0].name, "test__echo")
            self.assertIn("text", found[0].signature)
            result = await runner.execute("test__echo", {"text": "für alle"})
            self.assertEqual((result.text, result.is_error), ("für alle", False))
            self.assertEqual((await runner.execute("sums__add", {"a": 1, "b": 2}, select=".sum")).data(), 3)
            self.assertEqual((await runner.describe("sums__add")).input_schema, NUMBERS)
            self.assertEqual((await runner.describe("sums__wait")).annotations, {"readOnlyHint": True})
            failed = await runner.execute("test__fail")
            self.assertTrue(failed.is_error)

    async def test_a_client_has_tools_prompts_resources_and_completions(self):
        async with mcpzip.Runner(servers={"test": SERVER, "sums": [add, wait, broken]}) as runner:
            client = runner.client("test")
            self.assertEqual({one.qualified_name for one in await client.list_tools()} & {"test__echo"}, {"test__echo"})
            self.assertEqual((await client.list_prompts())[0].name, "review")
            prompt = await client.get_prompt("review", {"language": "Rust"})
            self.assertEqual(prompt["messages"][0]["content"]["text"], "review Rust")
            [memo] = await client.list_resources()
            self.assertEqual((await client.read_resource(memo.uri))["contents"][0]["text"], "the memo")
            self.assertEqual((await client.list_resource_templates())[0].name, "any")
            self.assertEqual(await client.complete_prompt("review", "language", "Ru"), ["Rust"])
            sums = runner.client("sums")
            self.assertEqual(await sums.call("add", {"a": 1, "b": 2}), {"sum": 3})
            self.assertEqual(await sums.call("wait"), "waited")
            for server, name, words in [("sums", "break", "on purpose"), ("test", "fail", "on purpose")]:
                with self.assertRaises(mcpzip.Error) as caught:
                    await runner.client(server).call(name)
                self.assertEqual(caught.exception.kind, "Tool")
                self.assertIn(words, str(caught.exception))

    async def test_errors_have_kinds(self):
        with self.assertRaises(mcpzip.Error) as caught:
            async with mcpzip.Runner(config_str="{"):
                pass
        self.assertEqual(caught.exception.kind, "Config")
        runner = mcpzip.Runner(servers={"sums": [add], "gone": {"command": "/no/such/program"}})
        with self.assertRaises(mcpzip.Error):
            runner.servers()
        async with runner:
            for work, kind in [
                (runner.execute("sums__add", {"a": "one"}), "Arguments"),
                (runner.execute("sums__subtract"), "UnknownTool"),
                (runner.start("nobody"), "UnknownServer"),
                (runner.start("gone"), "Unavailable"),
            ]:
                with self.assertRaises(mcpzip.Error) as caught:
                    await work
                self.assertEqual(caught.exception.kind, kind, str(caught.exception))
            outcomes = {one.server: one.error for one in await runner.start_all()}
            self.assertIsNone(outcomes["sums"])
            self.assertEqual(outcomes["gone"].kind, "Unavailable")
        with self.assertRaises(mcpzip.Error) as caught:
            runner.servers()
        self.assertEqual(caught.exception.kind, "Ended")
        again = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((again.kind, str(again)), ("Ended", str(caught.exception)))
        with self.assertRaises(TypeError):
            mcpzip.Runner(servers={"x": [mcpzip.Tool("x")]})

    async def test_a_handler_answers_and_receives(self):
        person = Person()
        async with mcpzip.Runner(servers={"test": SERVER}, handler=person) as runner:
            answer = (await runner.execute("test__ask")).data()
            self.assertEqual(answer, {"action": "accept", "content": {"color": "green"}})
            self.assertEqual(person.asked, [("test", "test: Which color?")])
            await runner.execute("test__echo", {"text": "x"})
            for _ in range(200):
                if person.logged:
                    break
                await asyncio.sleep(0.01)
            self.assertEqual(person.logged, ["called"])
        async with mcpzip.Runner(servers={"test": SERVER}, handler=Refusing(mcpzip.Error("Denied", "nobody is here"))) as runner:
            self.assertIn("nobody is here", (await runner.execute("test__ask")).text)
        with self.assertLogs("mcpzip") as logs:
            async with mcpzip.Runner(servers={"test": SERVER}, handler=Refusing(OSError("/home/me/token-abc123"))) as runner:
                text = (await runner.execute("test__ask")).text
        self.assertIn("the handler failed", text)
        self.assertNotIn("abc123", text)
        self.assertIn("abc123", logs.output[0])

    async def test_a_call_that_a_rule_asks_about_is_decided_apart_from_questions_of_servers(self):
        arguments = {"a": 2**70 + 1, "b": 2}
        for decision, words in [
            (True, None), (False, "did not agree"), ("yes", "did not agree"),
            (mcpzip.Error("Denied", "not today"), "not today"), (ValueError("secret"), "the handler failed"), (None, "no handler decides"),
        ]:
            handler = Deciding(decision) if decision is not None else Person()
            rules = json.dumps({"tools": {"ask": ["sums__add"]}})
            async with mcpzip.Runner(config_str=rules, servers={"test": SERVER, "sums": [add]}, handler=handler) as runner:
                self.assertIn("accept", (await runner.execute("test__ask")).text)
                if words is None:
                    await runner.execute("sums__add", arguments)
                else:
                    with self.assertRaises(mcpzip.Error) as caught:
                        await runner.execute("sums__add", arguments)
                    self.assertEqual(caught.exception.kind, "Denied")
                    self.assertIn(words, str(caught.exception))
                    self.assertNotIn("secret", str(caught.exception))
                self.assertEqual([server for server, _ in handler.asked], ["test"])
                if decision is not None:
                    [consent] = handler.seen
                    self.assertEqual((consent.server, consent.tool, consent.arguments), ("sums", "add", arguments))
                    self.assertIn(str(2**70 + 1), consent.question)

    async def test_integers_keep_all_their_digits(self):
        big = 2**70 + 1
        async with mcpzip.Runner(servers={"test": SERVER, "sums": [add]}) as runner:
            self.assertEqual((await runner.execute("sums__add", {"a": big, "b": -1})).structured, {"sum": big - 1})
            self.assertEqual(await runner.client("sums").call("add", {"a": big, "b": 0}), {"sum": big})
            number = await runner.execute("sums__add", {"a": big, "b": 0}, select=".sum + 1")
            self.assertEqual(number.data(), big + 1)
            seen = json.loads((await runner.execute("test__given", {"n": big})).text)
            self.assertEqual(seen, {"n": big})

    async def test_states_events_and_the_end(self):
        async with mcpzip.Runner(servers={"test": SERVER}) as runner:
            self.assertEqual(runner.status("test").state, "idle")
            await runner.start("test")
            self.assertEqual(runner.status("test").state, "ready")
            await runner.restart("test")
            self.assertTrue(await runner.stop("test"))
            self.assertFalse(await runner.stop("test"))
            events = runner.events()
        kinds = [event.kind async for event in events]
        self.assertEqual(kinds[:2], ["starting", "ready"])

    async def test_a_cancelled_call_is_cancelled_at_the_server_and_delays_no_other(self):
        with tempfile.TemporaryDirectory() as home:
            directories = (os.path.join(home, "cache"), os.path.join(home, "state"))
            async with mcpzip.Runner(servers={"test": SERVER}, directories=directories) as runner:
                await runner.start("test")
                with self.assertRaises(asyncio.TimeoutError):
                    await asyncio.wait_for(runner.execute("test__sleep"), 0.2)
                texts = await asyncio.gather(*(runner.execute("test__echo", {"text": str(n)}) for n in range(50)))
                self.assertEqual([one.text for one in texts], [str(n) for n in range(50)])
                log = pathlib.Path(directories[1], "logs")
                said = lambda: "".join(path.read_text() for path in log.rglob("*") if path.is_file())
                for _ in range(200):
                    if "cancelled" in said():
                        break
                    await asyncio.sleep(0.01)
                self.assertIn("cancelled", said())

    async def test_serving_over_http_needs_its_token(self):
        async with mcpzip.Runner(servers={"sums": [add]}) as runner:
            server = await runner.serve_http(token="a-long-random-word")
            body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
                "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
            }}
            url = server.url if server.url.endswith("/mcp") else server.url.rstrip("/") + "/mcp"

            def post(token):
                headers = {
                    "Content-Type": "application/json",
                    "Accept": "application/json, text/event-stream",
                    "Authorization": f"Bearer {token}",
                }
                request = urllib.request.Request(url, json.dumps(body).encode(), headers)
                try:
                    with urllib.request.urlopen(request, timeout=10) as answer:
                        return answer.status
                except urllib.error.HTTPError as error:
                    return error.code

            self.assertEqual(await asyncio.to_thread(post, "wrong"), 401)
            self.assertEqual(await asyncio.to_thread(post, "a-long-random-word"), 200)
            await server.shutdown()

    async def test_two_runners_have_nothing_in_common(self):
        async with mcpzip.Runner(servers={"one": [add]}) as one, mcpzip.Runner(servers={"two": [wait]}) as two:
            self.assertEqual((one.servers(), two.servers()), (["one"], ["two"]))


    @unittest.skipUnless(hasattr(os, "fork"), "there is no fork")
    async def test_a_forked_process_refuses_the_runner_and_may_have_one_of_its_own(self):
        async with mcpzip.Runner(servers={"sums": [add]}) as runner:
            events = runner.events()
            await runner.start("sums")
            for turn in range(40):
                calls = [asyncio.ensure_future(runner.execute("sums__add", {"a": 1, "b": n})) for n in range(20)]
                # Results are passed on meanwhile.
                await asyncio.sleep(0.001 * (turn % 5))
                child = os.fork()
                if child == 0:
                    code = 1
                    try:
                        code = in_fork(runner, is_to_build=turn % 10 == 0)
                        del runner, events, calls
                        gc.collect()
                        atexit._run_exitfuncs()
                    finally:
                        os._exit(code)
                self.assertEqual(await ended(child), 0, f"turn {turn}")
                self.assertEqual([one.data()["sum"] for one in await asyncio.gather(*calls)], [1 + n for n in range(20)])


def in_fork(runner, is_to_build):
    """What a forked process does; 0 if all is as it should be."""
    try:
        runner.statuses()
        return 2
    except mcpzip.Error as error:
        if error.kind != "Ended" or "forked" not in str(error):
            return 3

    async def own():
        async with mcpzip.Runner(servers={"sums": [add]}) as one:
            return (await one.execute("sums__add", {"a": 1, "b": 2})).data()["sum"]

    return 0 if not is_to_build or asyncio.run(own()) == 3 else 4


async def ended(child):
    """The exit code of a process, which ends in ten seconds."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        process, status = os.waitpid(child, os.WNOHANG)
        if process:
            return os.waitstatus_to_exitcode(status)
        await asyncio.sleep(0.005)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return "it hangs"


class ExampleTest(unittest.TestCase):
    def test_the_agent_loop_runs(self):
        with tempfile.TemporaryDirectory() as home:
            config = pathlib.Path(home, "mcp.json")
            config.write_text(json.dumps({"mcpServers": {"test": SERVER}}))
            done = subprocess.run(
                [sys.executable, EXAMPLES / "agent_loop.py", config], capture_output=True, text=True, timeout=60, check=False
            )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("test__echo", done.stdout)
        self.assertIn("the answer: hello", done.stdout)


if __name__ == "__main__":
    unittest.main()
