"""Neither the run's token nor the real key is found anywhere that a run leaves."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from aiohttp import web

from referee.adapters.keys.gateway import GatewayKeys, Upstream
from referee.core.redaction import Redactor
from tests.keys.gateway_calls import Gate, gate, question
from tests.keys.scripted_upstream import KEY, MODEL, Heard, chat, chat_events, said_json, said_stream


def left_behind(directory: Path) -> bytes:
    """Every byte below the directory, but for the workspace's secret."""
    return b"\n".join(
        str(path).encode() + b"\n" + path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and path.name != "secret"
    )


def every_way(open_gate: Gate) -> None:
    """Calls that put the token into every place that a client can choose."""
    token = open_gate.token
    open_gate.chat()
    open_gate.chat(token)
    open_gate.chat(model=token)
    open_gate.call(f"/v1/{token}", question())
    open_gate.call(f"/v1/models/{token}", method="GET")
    open_gate.call(f"/v1beta/models/{token}:generateContent?key={token}", question())
    open_gate.call(f"/v1beta/models/{MODEL}:generateContent?key={token}", question())
    open_gate.send("POST", "/v1/chat/completions", token.encode())
    open_gate.send(f"GET-{token}", "/v1/models", None)
    open_gate.call("/v1/chat/completions", question(), headers={"x-api-key": token, "content-encoding": "gzip"})


def test_no_key_is_in_what_is_kept_or_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    logging.getLogger().addHandler(handler)
    try:
        with gate(tmp_path, said_json(chat(10, 1)), bodies=True) as open_gate:
            every_way(open_gate)
            facts = open_gate.close()
            shown = repr((open_gate.keys, open_gate.issued, facts, open_gate.issued.access))
    finally:
        logging.getLogger().removeHandler(handler)
    printed = "".join(capfd.readouterr())
    seeker = Redactor({"token": open_gate.token, "real": KEY})
    kept = left_behind(tmp_path)
    assert b'"calls"' in kept
    for text in (kept, stream.getvalue().encode(), caplog.text.encode(), printed.encode(), shown.encode()):
        assert not seeker.holds(text)


def test_the_workspaces_secret_is_for_its_owner_only_and_all_files_are_private(tmp_path: Path) -> None:
    with gate(tmp_path, said_json(chat(10, 1)), bodies=True) as open_gate:
        open_gate.chat()
        open_gate.close()
    keys = tmp_path / "keys"
    assert (keys / "secret").stat().st_mode & 0o777 == 0o600
    assert {path.name for path in keys.iterdir()} >= {"secret", "exchanges", "bodies", "closed"}
    for name in ("exchanges", "bodies"):
        (file,) = (keys / name).iterdir()
        assert file.stat().st_mode & 0o777 == 0o600


def test_bodies_are_kept_only_where_asked_for_and_redacted(tmp_path: Path) -> None:
    for bodies in (False, True):
        directory = tmp_path / str(bodies)
        with gate(directory, said_stream(chat_events(10, 1)), bodies=bodies) as open_gate:
            open_gate.chat(f"the key is {open_gate.token}", stream=True)
            open_gate.close()
        kept = directory / "keys" / "bodies"
        assert kept.exists() == bodies
    (line,) = next(kept.iterdir()).read_text().splitlines()
    document = json.loads(line)
    assert "the key is [redacted:run-key]" in document["request"]
    assert '"content": "do"' in document["answer"]


@pytest.mark.parametrize("spelt", [KEY, KEY[:24], KEY.upper(), "-".join(KEY)])
def test_an_error_that_repeats_the_real_key_reaches_the_machine_without_it(spelt: str, tmp_path: Path) -> None:
    said = {"error": {"message": f"Incorrect API key provided: {spelt}"}}
    with gate(tmp_path, said_json(said, status=400)) as open_gate:
        answer = open_gate.chat()
    assert answer.status == 400
    assert not Redactor({"real": KEY}).holds(answer.body)
    assert "Incorrect API key provided" in answer.document()["error"]["message"]


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_that_repeats_the_real_key_reaches_the_machine_without_it(stream: bool, tmp_path: Path) -> None:
    whole = json.dumps(chat(10, 1, text=f"my key is {KEY}")).encode()
    reply = said_stream([b"data: " + whole + b"\n\n"]) if stream else said_json(json.loads(whole))
    with gate(tmp_path, reply) as open_gate:
        answer = open_gate.chat(stream=stream)
        (exchange,) = open_gate.exchanges()
    assert KEY.encode() not in answer.body
    assert b"my key is [redacted]" in answer.body
    assert exchange.usage is not None


HARNESS = """
    import sys, time
    from pathlib import Path
    from referee.adapters.keys.gateway import GatewayKeys, Upstream
    from referee.core.spending import Price
    from referee.protocols import ModelNeed
    price = Price(input=1.0, output=1.0, source="this test")
    upstream = Upstream("here", sys.argv[2], "sk-the-real-key-0123456789abcdefghij", prices={"scripted-1": price})
    keys = GatewayKeys(Path(sys.argv[1]), {"here": upstream})
    keys.reach("127.0.0.1")
    issued = keys.issue("run-1", ModelNeed("scripted-1", "openai-chat", "here"), cap_usd=3.0, ends_at=time.time() + 600)
    import http.client, json
    body = {"model": "scripted-1", "max_tokens": 5, "messages": []}
    for _ in range(3):
        call = http.client.HTTPConnection(issued.access.base_url.removeprefix("http://"))
        call.request("POST", "/v1/chat/completions", json.dumps(body), {"x-api-key": issued.access.secret})
        assert call.getresponse().read()
    time.sleep(0.2)
    print(issued.access.secret, flush=True)
    time.sleep(600)
"""


def test_after_a_kill_the_token_is_dead_known_for_redaction_and_its_spending_is_there(tmp_path: Path) -> None:
    with gate(tmp_path / "other", said_json(chat(100, 10))) as open_gate:
        command = [
            sys.executable,
            "-c",
            textwrap.dedent(HARNESS),
            str(tmp_path / "keys"),
            open_gate.upstream.url + "/v1",
        ]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as harness:
            assert harness.stdout is not None
            token = harness.stdout.readline().strip()
            os.kill(harness.pid, signal.SIGKILL)
    assert token.startswith("sk-run-")
    assert token.encode() not in left_behind(tmp_path / "keys")
    upstream = Upstream("here", "http://127.0.0.1:9/v1", KEY)
    later = GatewayKeys(tmp_path / "keys", {"here": upstream})
    assert later.secrets("run-1") == {"run-key": token, "upstream-key-here": KEY}
    (said,) = later.sweep([])
    assert "run-1" in said
    facts = later.close("run-1")
    assert facts is not None
    assert (facts.deleted, facts.calls, facts.spent_usd) == (True, 3, 330e-6)
    assert len((later.exchanges("run-1") or b"").splitlines()) == 3
    assert later.sweep([]) == []
    assert GatewayKeys(tmp_path / "never", {}).secrets("run-1") is None


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("cut", [1, 5, 12, len(KEY) - 1])
def test_an_answer_that_repeats_the_real_key_in_pieces_reaches_the_machine_without_it(
    streamed: bool, cut: int, tmp_path: Path
) -> None:
    body = f'data: {{"choices": [], "said": "{KEY}"}}\n\ndata: the end of it: {KEY[:9]}'.encode()

    async def reply(request: web.BaseRequest, _heard: Heard) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream" if streamed else "text/plain"})
        await response.prepare(request)
        for at in range(0, len(body), cut):
            await response.write(body[at : at + cut])
            await asyncio.sleep(0.005)
        return response

    with gate(tmp_path, reply) as open_gate:
        answer = open_gate.chat(stream=streamed, stream_options={"include_usage": True})
    assert KEY.encode() not in answer.body
    assert answer.body == body.replace(KEY.encode(), b"[redacted]") or b"[redacted:" in answer.body
    assert answer.body.endswith(KEY[:9].encode())


@pytest.mark.parametrize("status", [401, 402, 403, 429])
def test_what_an_upstream_says_of_our_account_is_said_in_other_words(status: int, tmp_path: Path) -> None:
    said = {"error": {"message": f"Incorrect key {KEY[:6]}***{KEY[-4:]} of organization org-Ab12Cd34Ef56, see billing"}}
    with gate(tmp_path, said_json(said, status=status, headers={"retry-after": "7"})) as open_gate:
        answer = open_gate.chat()
    assert (answer.status, answer.headers["retry-after"]) == (status, "7")
    assert "the upstream" in answer.document()["error"]["message"]
    assert not any(part in answer.body for part in (b"org-", KEY[:6].encode(), KEY[-4:].encode(), b"billing"))


def test_an_error_keeps_its_words_without_the_names_of_our_account(tmp_path: Path) -> None:
    said = {"error": {"message": "Too long for org-Ab12Cd34Ef56 with sk-t***ghij: 9000 tokens, proj_0a1b2c3d4e"}}
    with gate(tmp_path, said_json(said, status=400)) as open_gate:
        answer = open_gate.chat()
    words = answer.document()["error"]["message"]
    assert words == "Too long for [redacted] with [redacted]: 9000 tokens, [redacted]"


def test_a_refusal_names_neither_the_model_nor_its_maker(tmp_path: Path) -> None:
    """Programs print it, and the recordings of agents that are shown by a letter are served."""
    with gate(tmp_path, said_json(chat(10, 1))) as open_gate:
        for path, asked in (("/v1/chat/completions", question(model="other")), ("/v1/messages", question())):
            answer = open_gate.call(path, asked)
            assert answer.status == 404
            assert b"this key is for another" in answer.body
            assert MODEL.encode() not in answer.body
            assert b"openai" not in answer.body.lower()


@pytest.mark.parametrize("placeholder", ["x", "none", "EMPTY", "1234567"])
def test_a_placeholder_for_a_key_alters_no_answer(tmp_path: Path, placeholder: str) -> None:
    said = f"exec_command and x, none, EMPTY or {placeholder}"
    with gate(tmp_path / "whole", said_json(chat(10, 1, said)), secret=placeholder) as open_gate:
        assert open_gate.chat().document()["choices"][0]["message"]["content"] == said
        assert open_gate.upstream.heard[0].headers["authorization"] == f"Bearer {placeholder}"
    event = b"data: " + json.dumps({"choices": [{"index": 0, "delta": {"content": said}}]}).encode() + b"\n\n"
    with gate(tmp_path / "stream", said_stream([event, *chat_events(10, 1)]), secret=placeholder) as open_gate:
        assert said.encode() in open_gate.chat(stream=True).body
