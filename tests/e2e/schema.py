"""Is what the server sends valid? Checks messages against the published schema of the revision they belong to.

The schemas (tests/conformance/schema) use a small part of JSON Schema; a keyword that is not known here is an error of
the checker, so that nothing is passed over in silence.
"""
import base64
import binascii
import functools
import json
import lzma
import os
import re

from harness import TOP, Failed, shorten

MODERN = "2026-07-28"
FOLDER = os.path.join(TOP, "tests/conformance/schema")
REVISIONS = tuple(sorted(name.removesuffix(".json.xz") for name in os.listdir(FOLDER)))

RESULTS = {
    "initialize": "InitializeResult",
    "server/discover": "DiscoverResult",
    "tools/list": "ListToolsResult",
    "tools/call": "CallToolResult",
    "resources/list": "ListResourcesResult",
    "resources/templates/list": "ListResourceTemplatesResult",
    "resources/read": "ReadResourceResult",
    "prompts/list": "ListPromptsResult",
    "prompts/get": "GetPromptResult",
    "completion/complete": "CompleteResult",
    "subscriptions/listen": "SubscriptionsListenResult",
}
EMPTY = {"ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"}
MAY_ASK = {"tools/call", "resources/read", "prompts/get"}
TYPED_ERRORS = {-32020: "HeaderMismatchError", -32021: "MissingRequiredClientCapabilityError",
                -32022: "UnsupportedProtocolVersionError"}
# What a modern server may say; -32602 and the others of JSON-RPC besides.
MODERN_ERRORS = {-32700, -32600, -32601, -32602, -32603, -32020, -32021, -32022}

_IGNORED = {"$schema", "$comment", "title", "description", "default", "examples", "deprecated", "definitions", "$defs"}
_TYPES = {
    "object": lambda v: isinstance(v, dict),
    "array": lambda v: isinstance(v, list),
    "string": lambda v: isinstance(v, str),
    "boolean": lambda v: isinstance(v, bool),
    "null": lambda v: v is None,
    "integer": lambda v: not isinstance(v, bool) and (isinstance(v, int) or isinstance(v, float) and v.is_integer()),
    "number": lambda v: not isinstance(v, bool) and isinstance(v, (int, float)),
}


def _same(a, b):
    """Equal in JSON: true is not 1."""
    return a == b and isinstance(a, bool) == isinstance(b, bool)


def _is_base64(text):
    try:
        base64.b64decode(text, validate=True)
        return True
    except (binascii.Error, ValueError):
        return False


_FORMATS = {
    "byte": _is_base64,
    "uri": lambda text: re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*:[!-~]*", text),
    "uri-template": lambda text: re.fullmatch(r"[A-Za-z{][!-~]*", text) and text.count("{") == text.count("}"),
}


class Schema:
    """One revision's definitions."""

    def __init__(self, revision):
        with lzma.open(os.path.join(FOLDER, revision + ".json.xz"), "rt", encoding="utf-8") as file:
            whole = json.load(file)
        self.revision = revision
        self.definitions = whole.get("$defs") or whole["definitions"]

    def has(self, name):
        return name in self.definitions

    def problems(self, value, name):
        """What is wrong with value as a <name>; [] when nothing is."""
        return list(self._check(value, self.definitions[name], name))

    def unfit(self, value, schema):
        """The same of a schema that is no definition, as a tool's output schema."""
        return list(self._check(value, schema, "value"))

    def kinds(self, name):
        """The definitions that an anyOf of references offers, by their constant method."""
        found = {}
        for one in self.definitions[name]["anyOf"]:
            target = one["$ref"].rpartition("/")[2]
            method = self.definitions[target].get("properties", {}).get("method", {}).get("const")
            if method:
                found[method] = target
        return found

    def _check(self, value, schema, place):
        if schema is True or schema == {}:
            return
        for keyword, wanted in schema.items():
            if keyword in _IGNORED or keyword in ("required", "additionalProperties"):
                continue
            check = getattr(self, "_on_" + keyword.replace("$", ""), None)
            if not check:
                raise Failed(f"the schema of {self.revision} uses {keyword!r}, which tests/e2e/schema.py does not know")
            yield from check(value, wanted, place)
        if isinstance(value, dict):
            yield from self._members(value, schema, place)

    def _members(self, value, schema, place):
        for name in schema.get("required", ()):
            if name not in value:
                yield f"{place}: {name} is missing"
        extra = schema.get("additionalProperties", True)
        for name in value.keys() - schema.get("properties", {}).keys():
            if extra is False:
                yield f"{place}: {name} does not belong here"
            elif isinstance(extra, dict):
                yield from self._check(value[name], extra, f"{place}.{name}")

    def _on_ref(self, value, wanted, place):
        yield from self._check(value, self.definitions[wanted.rpartition("/")[2]], place)

    def _on_type(self, value, wanted, place):
        names = wanted if isinstance(wanted, list) else [wanted]
        if not any(_TYPES[name](value) for name in names):
            yield f"{place}: must be {' or '.join(names)}, is {shorten(value, 80)}"

    def _on_properties(self, value, wanted, place):
        if isinstance(value, dict):
            for name in wanted.keys() & value.keys():
                yield from self._check(value[name], wanted[name], f"{place}.{name}")

    def _on_items(self, value, wanted, place):
        if isinstance(value, list):
            for i, one in enumerate(value):
                yield from self._check(one, wanted, f"{place}[{i}]")

    def _on_anyOf(self, value, wanted, place):
        tries = [list(self._check(value, one, place)) for one in wanted]
        if all(tries):
            yield from min(tries, key=len)  # probably the one that was meant

    def _on_oneOf(self, value, wanted, place):
        fits = sum(not list(self._check(value, one, place)) for one in wanted)
        if fits != 1:
            yield f"{place}: fits {fits} of the alternatives instead of one"

    def _on_allOf(self, value, wanted, place):
        for one in wanted:
            yield from self._check(value, one, place)

    def _on_const(self, value, wanted, place):
        if not _same(value, wanted):
            yield f"{place}: must be {wanted!r}, is {shorten(value, 80)}"

    def _on_enum(self, value, wanted, place):
        if not any(_same(value, one) for one in wanted):
            yield f"{place}: must be one of {wanted}, is {shorten(value, 80)}"

    def _on_minimum(self, value, wanted, place):
        if _TYPES["number"](value) and value < wanted:
            yield f"{place}: is under {wanted}"

    def _on_maximum(self, value, wanted, place):
        if _TYPES["number"](value) and value > wanted:
            yield f"{place}: is over {wanted}"

    def _on_format(self, value, wanted, place):
        if isinstance(value, str) and not _FORMATS[wanted](value):
            yield f"{place}: is no {wanted}: {shorten(value, 80)}"


@functools.cache
def of(revision):
    return Schema(revision)


def check_message(message, revision, method=None, request_id=None):
    """Fails when message may not be sent by a server of this revision.

    method: of the request that message answers; None when it is not known. request_id: the id it must carry; None: any,
    or none at all.
    """
    found = problems_of(message, of(revision), method)
    if request_id is not None and ("result" in message or "error" in message) and not _same(message.get("id"), request_id):
        found.append(f"id must be {request_id!r}, is {message.get('id')!r}")
    if found:
        raise Failed(f"not valid in {revision}{' as an answer to ' + method if method else ''}: {'; '.join(found[:5])}"
                     f" - in {shorten(message)}")


TASK_STATUSES = {"working": None, "input_required": "inputRequests", "completed": "result", "failed": "error", "cancelled": None}
TASK_OUTCOMES = {name for name in TASK_STATUSES.values() if name}
_TASK_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


def _problems_of_task(task, schema, whole):
    """The extension io.modelcontextprotocol/tasks, whose forms are not in the schema. whole: with what its status has."""
    found = [f"{name} is no time" for name in ("createdAt", "lastUpdatedAt") if not _TASK_TIME.fullmatch(str(task.get(name)))]
    if not isinstance(task.get("taskId"), str) or not task["taskId"]:
        found.append("no taskId")
    if task.get("status") not in TASK_STATUSES:
        return found + [f"status is {task.get('status')!r}"]
    if "ttlMs" not in task or not (task["ttlMs"] is None or isinstance(task["ttlMs"], int) and task["ttlMs"] > 0):
        found.append("ttlMs is neither null nor a positive integer")
    outcome = TASK_STATUSES[task["status"]] if whole else None
    if {name for name in TASK_OUTCOMES if name in task} != ({outcome} if outcome else set()):
        found.append(f"status {task['status']} with other members than {outcome}")
    if outcome == "result":
        found += schema.problems(task.get("result"), "CallToolResult")
    return found


def problems_of(message, schema, method=None):
    if not isinstance(message, dict):
        return ["a message is an object"]
    if "method" in message:
        return _problems_of_call(message, schema)
    if "error" in message:
        return _problems_of_error(message, schema)
    envelope = "JSONRPCResultResponse" if schema.has("JSONRPCResultResponse") else "JSONRPCResponse"
    return schema.problems(message, envelope) + _problems_of_result(message.get("result"), schema, method)


def _problems_of_call(message, schema):
    kind, envelope = ("ServerRequest", "JSONRPCRequest") if "id" in message else ("ServerNotification", "JSONRPCNotification")
    if kind == "ServerRequest" and not schema.has(kind):
        return [f"{message['method']}: servers of this revision send no requests"]
    kinds = schema.kinds(kind)
    if message["method"] == "notifications/tasks" and schema.revision == MODERN:
        return schema.problems(message, envelope) + _problems_of_task(message.get("params", {}), schema, True)
    if message["method"] not in kinds:
        return [f"{message['method']}: no {kind} of this revision"]
    return schema.problems(message, envelope) + schema.problems(message, kinds[message["method"]])


def _problems_of_error(message, schema):
    name = "JSONRPCErrorResponse" if schema.has("JSONRPCErrorResponse") else "JSONRPCError"
    if "id" in message and message["id"] is None:
        return ["id is null: it must be left out when it is not known"]
    found = schema.problems(message, name)
    if "id" not in message:  # older schemas have no form for it; HTTP allows "a JSON-RPC error response that has no id"
        found = [one for one in found if not one.endswith(": id is missing")]
    code = message["error"].get("code")
    if schema.revision == MODERN:
        if code not in MODERN_ERRORS:
            found.append(f"error code {code} is not one of this revision's")
        if code in TYPED_ERRORS:
            found += schema.problems(message, TYPED_ERRORS[code])
    return found


def _problems_of_result(result, schema, method):
    modern = schema.revision == MODERN
    if method in EMPTY and not modern:
        return [] if result == {} else [f"result must be empty, is {shorten(result, 80)}"]
    if not isinstance(result, dict):
        return []
    if modern and result.get("resultType") == "input_required":
        return schema.problems(result, "InputRequiredResult") + _problems_of_asking(result, method)
    if modern and method == "tools/call" and result.get("resultType") == "task":
        return schema.problems(result, "Result") + _problems_of_task(result, schema, False)
    if modern and method == "tasks/get":
        return schema.problems(result, "Result") + _problems_of_task(result, schema, True)
    name = RESULTS.get(method)
    if not name or not schema.has(name):
        return schema.problems(result, "Result")
    found = schema.problems(result, name)
    if modern and result.get("resultType") != "complete":
        found.append(f"resultType is {result.get('resultType')!r}")
    if modern and not result.get("_meta", {}).get("io.modelcontextprotocol/serverInfo") and method != "subscriptions/listen":
        found.append("_meta has no serverInfo")
    return found


def _problems_of_asking(result, method):
    if method and method not in MAY_ASK:
        return [f"{method} may not answer input_required"]
    if "inputRequests" not in result and "requestState" not in result:
        return ["neither inputRequests nor requestState"]
    return []
