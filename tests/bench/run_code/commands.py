"""exec in a persistent sandbox, through the whole stack, beside docker exec of the same command in the same container."""
import json
import os
import random
import subprocess
import time

import engine
from http1 import Connection, request
from stack import new_name
from stats import Table, median, number, quantile

COMMANDS = ("true", "echo hello", "python3 -c 'print(1)'")
SETTLE_S = 0.02


def _of_stack(caller, sandbox, command):
    start = time.perf_counter()
    result = caller.tool("exec", {"sandboxId": sandbox, "command": command})
    took = (time.perf_counter() - start) * 1000
    if not result["success"]:
        raise RuntimeError(f"exec does not run {command}: {result}")
    return took


def _of_docker(container, command):
    """The command line client."""
    actions = [(os.POSIX_SPAWN_OPEN, fd, "/dev/null", os.O_RDWR, 0) for fd in (0, 1, 2)]
    start = time.perf_counter()
    pid = os.posix_spawnp("docker", ["docker", "exec", container, "sh", "-c", command], os.environ, file_actions=actions)
    status = os.waitpid(pid, 0)[1]
    took = (time.perf_counter() - start) * 1000
    if status:
        raise RuntimeError(f"docker exec does not run {command}")
    return took


def _of_engine(container, command):
    """The engine's REST API without the client's own start: create, start, read to the end."""
    start = time.perf_counter()
    connection = Connection(engine.socket_path())
    _, _, made = connection.call(request("POST", f"/containers/{container}/exec", body={
        "AttachStdout": True, "AttachStderr": True, "Cmd": ["sh", "-c", command]}))
    _, headers = connection.begin(request("POST", f"/exec/{json.loads(made)['Id']}/start", body={"Detach": False}))
    for _ in connection.chunks(headers):
        pass
    try:
        while True:
            connection.receive()
    except ConnectionError:
        pass
    took = (time.perf_counter() - start) * 1000
    connection.close()
    return took


def part(world, options):
    server = world.cold
    caller = server.caller()
    sandbox = caller.tool("create_sandbox", {"conversationId": new_name(), "language": "python"})["sandboxId"]
    container = next(one["Id"] for one in server.site.all_containers() if one["Labels"]["sandbox.run"] == sandbox.removeprefix("sbx_"))
    ways = {"exec, whole stack": lambda command: _of_stack(caller, sandbox, command),
            "docker exec, command line": lambda command: _of_docker(container, command),
            "docker exec, REST": lambda command: _of_engine(container, command)}
    samples = {(way, command): [] for way in ways for command in COMMANDS}
    for number_of_round in range(options.rounds + 1):
        for command in COMMANDS:
            for way in random.sample(list(ways), len(ways)):
                took = ways[way](command)
                if number_of_round:  # the first one warms up
                    samples[way, command].append(took)
                time.sleep(SETTLE_S)
    for command in COMMANDS:
        _print(command, ways, samples, options)
    caller.tool("close_sandbox", {"sandboxId": sandbox})
    caller.close()


def _print(command, ways, samples, options):
    table = Table(f"{command}: milliseconds of {options.rounds} rounds in a persistent sandbox", "", "median", "p95", "x docker exec", "p95 of the ratios")
    base = samples["docker exec, command line", command]
    for way in ways:
        values = samples[way, command]
        ratios = [one / other for one, other in zip(values, base)]
        table.add(way, number(median(values)), number(quantile(values, 0.95)), number(median(ratios), 2), number(quantile(ratios, 0.95), 2))
    table.print(options.markdown)
