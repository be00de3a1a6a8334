"""First tries: what assistants and people write first, as tables (first/*.py) of rows

    ("sentence", call, wanted…)         or          ("sentence", [call, …, call], wanted…)

A row begins a conversation, whose calls are made at /mcp one after the other, or at another place (at), where they name
their conversation; the last answer's text is looked at. Wanted is
a text that is in it, a compiled pattern that is found in it, or no("text"), which is not in it.
"""
import re

import sites
from harness import Failed


def tool(name, **arguments):
    return name, arguments


def python(code, **arguments):
    return tool("run_code", language="python", code=code, **arguments)


def typescript(code, **arguments):
    return tool("run_code", language="typescript", code=code, **arguments)


def bash(code, **arguments):
    return tool("run_code", language="bash", code=code, **arguments)


def at(place, call):
    """The call at another place than /mcp."""
    return *call, place


class no:  # pylint: disable=invalid-name,too-few-public-methods
    def __init__(self, text):
        self.text = text


def _missed(text, wanted):
    if isinstance(wanted, no):
        return f"has {wanted.text!r}" if wanted.text in text else None
    if isinstance(wanted, re.Pattern):
        return None if wanted.search(text) else f"has no {wanted.pattern!r}"
    return None if wanted in text else f"has no {wanted!r}"


def missing(text, wanted):
    return [problem for problem in (_missed(text, one) for one in wanted) if problem]


def answer(client, call):
    """The text for a model. A call names its row's conversation unless it names another, or {} for none."""
    name, arguments, *place = call
    if not place:
        arguments = {"conversationId": client.conversation} | arguments
    if arguments.get("conversationId") == {}:
        del arguments["conversationId"]
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
    said = client.post(message, {"MCP-Protocol-Version": "2025-11-25"}, *(place or ["/mcp"])).json()
    if "result" not in said:
        return f"error: {said.get('error', {}).get('message')}"
    return "\n".join(block.get("text", f"[{block['type']}]") for block in said["result"]["content"])


def attempt(row):
    """What is wrong with the answer of a row; None: nothing."""
    sentence, calls, *wanted = row
    client = sites.client()
    for call in calls if isinstance(calls, list) else [calls]:
        text = answer(client, call)
    missed = missing(text, wanted)
    return f"{sentence}: {'; '.join(missed)}: {text[:1500]}" if missed else None


def attempt_all(rows):
    wrong = [problem for problem in map(attempt, rows) if problem]
    if wrong:
        raise Failed(f"{len(wrong)} of {len(rows)}:\n" + "\n".join(wrong))
