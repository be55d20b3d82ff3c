"""Targets as files: what is read, and the one sentence for whatever a target may not say."""

from __future__ import annotations

from pathlib import Path

import pytest

from referee.adapters.catalog.targets import BUNDLED, RESERVED, list_targets, load_target, read_target
from referee.adapters.lanes.credential import read_credential
from referee.adapters.lanes.lane import HttpLane
from referee.adapters.lanes.make import DIALECTS, make_http_lane
from referee.core.bakeoff import Guards
from referee.errors import ConfigError, NothingMatched
from tests.bakeoff.lane_targets import SURFACES, question, target

_PLAIN = """\
schema = "referee.target/1"
model = "m"
lane = "openai-chat"
channel = "own-infrastructure"
sovereignty = "eu-origin"
base_url = "https://models.example.internal/v1"
key_env = "OWN_GATEWAY_KEY"
"""


def _read(text: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        read_target("own", "targets/own.toml", text.encode())
    assert caught.value.message.startswith("targets/own.toml")
    assert "\n" not in caught.value.message
    return caught.value


def test_a_target_of_the_workspace(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(_PLAIN, encoding="utf-8")
    loaded = load_target("own", tmp_path)
    assert (loaded.name, loaded.model, loaded.key_env) == ("own", "m", "OWN_GATEWAY_KEY")
    assert list_targets(tmp_path) == ("keyword-baseline", "own")
    assert list_targets(tmp_path / "nothing") == ("keyword-baseline",)


def test_the_bundled_target(tmp_path: Path) -> None:
    loaded = load_target("keyword-baseline", tmp_path)
    assert (loaded.lane, loaded.channel, loaded.sovereignty) == ("keyword-baseline", "embedded", "none")
    (tmp_path / "keyword-baseline.toml").write_text(_PLAIN, encoding="utf-8")
    with pytest.raises(ConfigError, match="belongs to a target of the referee"):
        load_target("keyword-baseline", tmp_path)


@pytest.mark.parametrize("name", ["nobody", "../own", "", ".", "a/b", "examples/own", "own.toml\x00", "x" * 200])
def test_an_unknown_target(tmp_path: Path, name: str) -> None:
    (tmp_path.parent / "own.toml").write_text(_PLAIN, encoding="utf-8")
    with pytest.raises(NothingMatched) as caught:
        load_target(name, tmp_path)
    assert caught.value.exit_code == 5
    assert caught.value.todo == "known targets: keyword-baseline"


@pytest.mark.parametrize("file", sorted((BUNDLED / "examples").glob("*.toml")), ids=lambda file: file.stem)
def test_every_example_loads_and_makes_a_lane(file: Path) -> None:
    loaded = read_target(file.stem, str(file), file.read_bytes())
    assert file.read_text(encoding="utf-8").count("\n# ") >= 1
    environ = {} if loaded.key_env is None else {loaded.key_env: "not-a-key"}
    lane = make_http_lane(loaded, environ)
    assert isinstance(lane, HttpLane)
    assert lane.surface.channel == loaded.channel
    assert DIALECTS[loaded.lane].body(loaded, question())["model"] == loaded.model


def test_the_examples_cover_the_ways() -> None:
    loaded = [read_target(file.stem, "", file.read_bytes()) for file in (BUNDLED / "examples").glob("*.toml")]
    assert {one.channel for one in loaded} == {
        *("hosted-free-tier", "router", "hub-inference", "own-infrastructure", "local", "metered-api"),
    }
    assert {one.lane for one in loaded} == {"openai-chat", "openai-responses", "anthropic-messages", "ollama"}


# --- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("model = ", "is no TOML"),
        ("\udcff", "is no TOML"),
        (_PLAIN.replace('schema = "referee.target/1"\n', ""), "the first line must be schema"),
        (_PLAIN.replace("target/1", "target/2"), "the first line must be schema"),
        (_PLAIN + 'name = "another"\n', "the file is called own and its name another"),
        (_PLAIN.replace('model = "m"\n', ""), "`model` is missing"),
        (_PLAIN.replace('model = "m"', 'model = " "'), "model is empty"),
        (_PLAIN + "context = 0\n", "context is 0"),
        (_PLAIN + "temprature = 1\n", "unknown key `temprature`; known there: base_url, "),
        (_PLAIN.replace("eu-origin", "eu"), "sovereignty: "),
        (_PLAIN.replace("openai-chat", "grpc"), "lane: "),
        (_PLAIN.replace("eu-origin", "none"), "only what is no model has the sovereignty none"),
        (_PLAIN.replace("own-infrastructure", "agent-cli"), "the lane cli and the channel agent-cli belong together"),
        (_PLAIN.replace("own-infrastructure", "embedded"), "the channel embedded belongs to"),
        (_PLAIN + '[cli]\nprogram = "codex"\nversion = "1"\n', "has a table [cli]"),
        (_PLAIN + "concurrency = 0\n", "concurrency: "),
        (_PLAIN + "per_minute = inf\n", "per_minute is a date, a time or no finite number"),
        (_PLAIN + "[extra_body]\na = [1, {b = nan}]\n", "extra_body.a[1].b is a date, a time or no finite number"),
        (_PLAIN + f"[extra_body]\n{'.'.join('a' * 600)} = 1\n", "is no TOML: nested too deeply"),
        (_PLAIN + f"[extra_body]\n{'.'.join('a' * 2000)} = 1\n", "is no TOML: nested too deeply"),
        (_PLAIN + "[extra_body]\na = 2026-01-01\n", "extra_body.a is a date, a time or no finite number"),
    ],
)
def test_a_broken_file(text: str, part: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_target("own", "targets/own.toml", text.encode("utf-8", "surrogateescape"))
    assert part in caught.value.message


@pytest.mark.parametrize("guard", sorted(set(Guards.model_fields) - {"concurrency", "deadline_seconds"}))
def test_a_guard_of_the_protocol_is_not_the_targets(guard: str) -> None:
    assert f"{guard} is a guard of the protocol" in _read(_PLAIN + f"{guard} = 99\n").message


_SECRETS = [
    "sk-proj-abcdefghijklmnop",
    "nvapi-abcdefghijklmnopqrstuv",
    "hf_abcdefghijklmnopqrstuvwxyz",
    "AKIA0123456789ABCDEF",
    "0123456789abcdef0123456789abcdef",
    "Bearer abcdefghijklmnop",
]


@pytest.mark.parametrize("secret", _SECRETS)
def test_a_key_where_its_name_belongs(secret: str) -> None:
    error = _read(_PLAIN.replace("OWN_GATEWAY_KEY", secret))
    assert "key_env is no name of an environment variable" in error.message
    assert secret not in error.message + error.todo


@pytest.mark.parametrize(
    "line", ['revision = "sk-proj-abcdefghijklmnop"', "[extra_body]\nuser = 'hf_abcdefghijklmnopqrstuv'"]
)
def test_a_key_anywhere_else(line: str) -> None:
    error = _read(_PLAIN + line)
    assert "looks like a credential" in error.message
    assert "abcdefghijkl" not in error.message + error.todo


@pytest.mark.parametrize(
    ("base_url", "part"),
    [
        ("", "base_url is missing"),
        ("models.example.internal", "no address of the form"),
        ("ftp://models.example.internal", "no address of the form"),
        ("https://", "no address of the form"),
        ("https://[::1", "no address of the form"),
        ("https://host:99999", "no address of the form"),
        ("https://user:pass@host/v1", "holds more than an address"),
        ("https://host/v1?key=1", "holds more than an address"),
        ("http://models.example.com/v1", "send a credential to models.example.com without encryption"),
        ("http://8.8.8.8/v1", "without encryption"),
    ],
)
def test_an_endpoint_that_cannot_be_used(base_url: str, part: str) -> None:
    assert part in _read(_PLAIN.replace("https://models.example.internal/v1", base_url)).message


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost", "gateway", "models.lan", "10.1.2.3", "[::1]:80"])
def test_plain_http_stays_near(host: str) -> None:
    text = _PLAIN.replace("https://models.example.internal", f"http://{host}")
    assert read_target("own", "x", text.encode()).base_url == f"http://{host}/v1"


@pytest.mark.parametrize("key", sorted(RESERVED))
def test_extra_body_may_not_say_what_the_lane_says(key: str) -> None:
    assert f"extra_body may not set {key}" in _read(_PLAIN + f"[extra_body]\n{key} = 1\n").message


def test_everything_that_a_lane_sets_is_reserved() -> None:
    bodies = [
        DIALECTS[lane].body(target("http://127.0.0.1:9", lane=lane, stream=True, context=9), question(required=True))
        for lane in SURFACES
    ]
    assert {key for body in bodies for key in body} - {"options"} <= RESERVED
    for option in bodies[-1]["options"]:
        ollama = _PLAIN.replace("openai-chat", "ollama") + f"[extra_body.options]\n{option} = 1\n"
        assert f"extra_body.options may not set {option}" in _read(ollama).message


def test_extra_body_names_no_credential() -> None:
    assert "names a credential" in _read(_PLAIN + "[extra_body.auth]\napi_key = 'x'\n").message


@pytest.mark.parametrize(
    ("lines", "part"),
    [
        ("metered = true", "needs a way to know what is left"),
        ('metered = true\ncredit = "ledger"', "the credit that it begins with"),
        ('metered = true\ncredit = "ledger"\ncredit_usd = 5', "the ledger needs a price"),
        ('credit = "ledger"\ncredit_usd = 5\nprice_model = "m"', "a target with a credit is metered"),
    ],
)
def test_a_metered_target_knows_its_money(lines: str, part: str) -> None:
    assert part in _read(_PLAIN + lines).message


def test_all_that_money_needs_is_asked_for_at_once() -> None:
    todo = _read(_PLAIN.replace("own-infrastructure", "metered-api")).todo
    for need in ("metered = true", 'credit = "ledger"', "credit_usd = 10.0", "[price]", "price_model"):
        assert need in todo
    said = 'metered = true\ncredit = "ledger"\ncredit_usd = 10.0\n[price]\ninput = 1\noutput = 2\n'
    read = read_target("own", "x", (_PLAIN.replace("own-infrastructure", "metered-api") + said).encode())
    assert read.price is not None


@pytest.mark.parametrize("name", ["OWN_GATEWAY_KEY", "EKEY", "HF_TOKEN", "KEY_2"])
def test_names_of_variables(name: str) -> None:
    assert read_target("own", "x", _PLAIN.replace("OWN_GATEWAY_KEY", name).encode()).key_env == name


def test_what_stands_on_own_machines_can_be_hosted_by_oneself() -> None:
    for channel, found in [
        *[("own-infrastructure", "feasible"), ("local", "feasible")],
        *[("hosted-free-tier", "not-feasible"), ("hub-inference", "not-feasible")],
    ]:
        text = _PLAIN.replace("own-infrastructure", channel)
        assert read_target("own", "x", text.encode()).self_host == found
        assert read_target("own", "x", (text + 'self_host = "costly"\n').encode()).self_host == "costly"


def test_a_metered_api_cannot_be_free() -> None:
    for channel in ("metered-api", "router"):
        assert "is metered" in _read(_PLAIN.replace("own-infrastructure", channel)).message
    for credit in ("inf", "nan", "-1.0"):
        text = 'metered = true\ncredit = "ledger"\nprice_model = "m"\n'
        assert "credit_usd: Input should be" in _read(_PLAIN + text + f"credit_usd = {credit}\n").message
    keyless = _PLAIN.replace('key_env = "OWN_GATEWAY_KEY"\n', "") + 'metered = true\ncredit = "openrouter"\n'
    assert "with a key_env" in _read(keyless).message


@pytest.mark.parametrize("name", ["*", "AWS_*", "", "A B", "A=1"])
def test_a_cli_inherits_by_name(name: str) -> None:
    text = f"""\
schema = "referee.target/1"
model = "m"
lane = "cli"
channel = "agent-cli"
sovereignty = "us-closed"
[cli]
program = "codex"
version = "1"
inherit = [{name!r}]
"""
    assert "no name of a variable" in _read(text).message
    assert read_target("own", "x", text.replace(repr(name), "'LANG'").encode()).cli is not None


def test_a_credential_is_read_by_its_name() -> None:
    assert read_credential("OWN_GATEWAY_KEY", {"OWN_GATEWAY_KEY": "abc"}).reveal() == "abc"
