"""Where a lane's credential may go: to one address, over verified TLS, and into no text."""

from __future__ import annotations

import asyncio
import pickle
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web

from referee.adapters.lanes.credential import Credential
from referee.adapters.lanes.make import make_http_lane
from referee.errors import UsageError
from referee.protocols import Said
from tests.bakeoff.lane_targets import ENVIRON, KEY, SURFACES, ask, question, target
from tests.bakeoff.scripted_server import ScriptedServer, serving


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with serving() as running:
        yield running


def test_a_redirect_is_not_followed(server: ScriptedServer) -> None:
    said = ask(target(server.url, "redirect"))
    assert said.status == 307
    assert len(server.got) == 1


def test_no_variable_of_the_environment_leads_elsewhere(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login eve password stolen\n", encoding="utf-8")
    with serving() as elsewhere:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "OPENAI_BASE_URL", "OPENAI_API_BASE"):
            monkeypatch.setenv(name, elsewhere.url)
        for name in ("ANTHROPIC_BASE_URL", "OLLAMA_HOST"):
            monkeypatch.setenv(name, elsewhere.url)
        monkeypatch.setenv("NETRC", str(netrc))
        monkeypatch.delenv("NO_PROXY", raising=False)
        for lane in SURFACES:
            assert ask(target(server.url, lane=lane)).status == 200
        keyless = target(server.url).model_copy(update={"key_env": None})
        assert ask(keyless).status == 200
        assert elsewhere.count == 0
    assert len(server.got) == 5
    assert "authorization" not in server.got[-1].headers


@pytest.mark.parametrize("value", [None, "", "abc def", "abc\n", "abc\r\nx: y", "schlüssel"])
def test_a_missing_or_broken_credential_stops_before_anything_is_sent(
    server: ScriptedServer, value: str | None
) -> None:
    environ = {} if value is None else {"SCRIPTED_API_KEY": value}
    with pytest.raises(UsageError) as caught:
        make_http_lane(target(server.url), environ)
    assert "SCRIPTED_API_KEY" in caught.value.message
    assert value is None or not value or value not in caught.value.message + caught.value.todo
    assert server.got == []


def test_a_credential_is_shown_nowhere(server: ScriptedServer) -> None:
    credential = Credential("A_KEY", KEY)
    assert f"{credential} {credential!r} {[credential]}" == "<credential A_KEY> <credential A_KEY> [<credential A_KEY>]"
    with pytest.raises(TypeError):
        pickle.dumps(credential)
    environ = dict(ENVIRON)
    lane = make_http_lane(target(server.url), environ)
    environ["SCRIPTED_API_KEY"] = "another"
    assert lane.secrets == {"SCRIPTED_API_KEY": KEY}
    assert KEY not in repr(lane) + repr(vars(lane))


def test_the_credential_is_read_from_what_is_given_only(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCRIPTED_API_KEY", "of-the-process")
    with pytest.raises(UsageError):
        make_http_lane(target(server.url), {})


# --- TLS -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate of this machine's own, and its key."""
    place = tmp_path_factory.mktemp("tls")
    made, key = place / "cert.pem", place / "key.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    argv = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", str(key)]
    subprocess.run([*argv, "-out", str(made), *subject], check=True, capture_output=True)
    return made, key


def test_certificates_are_verified(
    certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    keys = tmp_path / "session-keys"
    monkeypatch.setenv("SSLKEYLOGFILE", str(keys))
    seen: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(request.headers["authorization"])
        return web.json_response({})

    async def run() -> tuple[Said, Said]:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        app = web.Application()
        app.router.add_post("/v1/chat/completions", answer)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
        aim = target(f"https://127.0.0.1:{runner.addresses[0][1]}")
        lanes = [make_http_lane(aim, ENVIRON), make_http_lane(aim, ENVIRON, ca_bundle=certificate[0])]
        try:
            return await lanes[0].ask(question(), 10.0), await lanes[1].ask(question(), 10.0)
        finally:
            for lane in lanes:
                await lane.close()
            await runner.cleanup()

    untrusted, trusted = asyncio.run(run())
    assert untrusted.broke == "connect"
    assert "certificate" in untrusted.detail
    assert (trusted.status, trusted.broke) == (200, None)
    assert seen == [f"Bearer {KEY}"]
    assert not keys.exists()


def test_a_server_without_tls(server: ScriptedServer) -> None:
    said = ask(target(server.url.replace("http:", "https:")))
    assert (said.broke, said.status) == ("connect", None)
    assert "no TLS connection" in said.detail
