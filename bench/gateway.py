"""What the gateway adds to a call, beside direct calls in the same run: ``python bench/gateway.py``.

Upstream, gateway and client are processes of their own on loopback. Latency: one call after the other over kept-alive
connections, direct and through the gateway in turns, a request of 20 kB with tools as agents send them; the difference
within each pair, its median. The first byte of a stream the same way, of a stream that lasts a quarter of a second.
Throughput: 32 connections at once; the goal counts requests for a second of the gateway's own processor time, since the
clients and the upstream share the cores with it; the rate by the clock is printed beside it.

Goals: at most 3 ms added to an answer and to a stream's first byte (median); at least 500 requests a second and core.
Exit 1 when one is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from loopback_upstream import MODEL

from referee.adapters.keys.gateway import GatewayKeys, Upstream
from referee.core.spending import Price
from referee.protocols import ModelNeed

HERE = Path(__file__).parent
MOST_ADDED_MS = 3.0
LEAST_A_CORE = 500.0
CONNECTIONS = 32
DAY = 86_400.0


def request(kilobytes: float, *, streamed: bool) -> bytes:
    """A conversation as an agent sends it, of about so many kB."""
    parameters = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
    tool = {"type": "function", "function": {"name": "bash", "description": "Run it. " * 40, "parameters": parameters}}
    turns: list[dict[str, object]] = [{"role": "system", "content": "You bring a project up. " * 50}]
    body: dict[str, object] = {"model": MODEL, "messages": turns, "tools": [tool] * 4, "stream": streamed}
    if streamed:
        body["stream_options"] = {"include_usage": True}
    while len(json.dumps(body)) < kilobytes * 1000:
        turns.append({"role": "assistant", "content": "ls -la"})
        turns.append({"role": "user", "content": 'total 48\ndrwxr-xr-x 6 root root 4096 "README.md"\n' * 8})
    return json.dumps(body).encode()


@contextmanager
def process(*command: str) -> Iterator[tuple[list[str], IO[str], IO[str]]]:
    """A child that says one line when it serves: that line's words, and its two ends."""
    child = subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdin is not None
    try:
        yield child.stdout.readline().split(), child.stdin, child.stdout
    finally:
        child.kill()
        child.wait()


def serve(port: int) -> None:
    """The gateway alone in a process; says its port and token, then its processor time each time it is asked."""
    price = Price(input=0.001, output=0.001, source="bench")
    upstream = Upstream("loopback", f"http://127.0.0.1:{port}/v1", "sk-upstream-of-the-bench", prices={MODEL: price})
    with tempfile.TemporaryDirectory(prefix="referee-gateway-") as room:
        keys = GatewayKeys(Path(room), {"loopback": upstream})
        reached = keys.reach("127.0.0.1")
        assert reached is not None
        need = ModelNeed(model=MODEL, dialect="openai-chat", upstream="loopback")
        issued = keys.issue("b-bench", need, cap_usd=1e6, ends_at=time.time() + DAY)
        print(reached[1], issued.access.secret, flush=True)
        for _ in sys.stdin:
            print(time.process_time(), flush=True)


class Way:
    """Calls over one kept-alive connection."""

    def __init__(self, port: int, token: str) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port)
        self.headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}

    def call(self, body: bytes) -> tuple[float, float]:
        """Milliseconds to the first byte of the body and to its last."""
        begun = time.perf_counter()
        self.connection.request("POST", "/v1/chat/completions", body, self.headers)
        answer = self.connection.getresponse()
        first_byte = answer.read(1)
        first = time.perf_counter() - begun
        answer.read()
        if answer.status != http.client.OK or not first_byte:
            raise SystemExit(f"status {answer.status}")
        return first * 1000, (time.perf_counter() - begun) * 1000


def pairs(direct: Way, through: Way, body: bytes, number: int, which: int) -> tuple[float, float, float]:
    """Medians: direct, through the gateway, and the difference within each pair."""
    for way in (direct, through):
        way.call(body)
    bare: list[float] = []
    metered: list[float] = []
    for turn in range(number):
        order: list[tuple[Way, list[float]]] = [(direct, bare), (through, metered)]
        for way, kept in order if turn % 2 else order[::-1]:
            kept.append(way.call(body)[which])
    added = [one - other for one, other in zip(metered, bare, strict=True)]
    return statistics.median(bare), statistics.median(metered), statistics.median(added)


async def flood(port: int, token: str, body: bytes, number: int) -> float:
    """Requests a second by the clock, many connections at once, written by hand so that the client costs little."""
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {token}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    whole = head.encode() + body

    async def one(calls: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(calls):
            writer.write(whole)
            answer = await reader.readuntil(b"\r\n\r\n")
            if not answer.startswith(b"HTTP/1.1 200"):
                raise SystemExit(answer.decode())
            length = next(
                int(line[15:]) for line in answer.lower().split(b"\r\n") if line.startswith(b"content-length:")
            )
            await reader.readexactly(length)
        writer.close()

    begun = time.perf_counter()
    await asyncio.gather(*(one(number // CONNECTIONS) for _ in range(CONNECTIONS)))
    return number // CONNECTIONS * CONNECTIONS / (time.perf_counter() - begun)


def a_core(port: int, token: str, ask: Callable[[], float], number: int) -> tuple[float, float]:
    """Requests for a second of the gateway's processor time, and by the clock."""
    body = request(20, streamed=False)
    asyncio.run(flood(port, token, body, CONNECTIONS * 4))
    before = ask()
    rate = asyncio.run(flood(port, token, body, number))
    return number // CONNECTIONS * CONNECTIONS / (ask() - before), rate


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=400)
    parser.add_argument("--streams", type=int, default=40)
    parser.add_argument("--flood", type=int, default=3200)
    parser.add_argument("--serve", type=int)
    given = parser.parse_args()
    if given.serve:
        serve(given.serve)
        return 0
    missed = []
    with process(str(HERE / "loopback_upstream.py")) as (said, _, _):
        upstream = int(said[0])
        with process(__file__, "--serve", str(upstream)) as ((port, token), asked, told):

            def ask() -> float:
                asked.write("\n")
                asked.flush()
                return float(told.readline())

            direct, through = Way(upstream, token), Way(int(port), token)
            measured = (
                ("a whole answer, request of 20 kB", request(20, streamed=False), given.calls, 1, True),
                ("a whole answer, request of 400 kB", request(400, streamed=False), given.calls // 4, 1, False),
                ("first byte of a stream of 250 ms", request(20, streamed=True), given.streams, 0, True),
            )
            for name, body, number, which, goal in measured:
                bare, metered, added = pairs(direct, through, body, number, which)
                bound = f", goal {MOST_ADDED_MS:g}" if goal else ""
                print(
                    f"{name}: {bare:.2f} ms direct, {metered:.2f} ms through; {added:+.2f} ms added{bound}", flush=True
                )
                if goal and added > MOST_ADDED_MS:
                    missed.append(name)
            core, clock = a_core(int(port), token, ask, given.flood)
            print(f"{core:.0f} requests a second and core, goal {LEAST_A_CORE:g}; {clock:.0f} a second by the clock")
            if core < LEAST_A_CORE:
                missed.append("requests a second and core")
    for name in missed:
        print(f"missed: {name}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
