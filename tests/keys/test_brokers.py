"""What can go wrong between a broker and us: nothing leaves a key behind that nobody knows of."""

from __future__ import annotations

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from referee.adapters.keys.brokered import BrokeredKeys, Settle
from referee.adapters.keys.gateway import GatewayKeys
from referee.adapters.keys.ledger import LATE_SECONDS, Ledger
from referee.adapters.keys.litellm import LiteLLM
from referee.adapters.keys.openrouter import OpenRouter
from referee.adapters.keys.workspace_secret import derive, workspace_secret
from referee.core.redaction import Redactor
from referee.errors import ConfigError, KeyUnavailable
from referee.protocols import Issued, ModelNeed
from tests.keys.model_calls import call_model
from tests.keys.scripted_brokers import CALL_USD, Fault, ScriptedLiteLLM, ScriptedOpenRouter

NEED = ModelNeed("vendor/model-1", "openai-chat", "any")
AT_ONCE = Settle(0.0, 0.0, 0.0)
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Scene:
    """A scripted broker, and how it is opened on a directory."""

    server: ScriptedOpenRouter | ScriptedLiteLLM
    keys_at: Callable[[Path, Settle], BrokeredKeys]
    directory: Path
    creating: tuple[str, str]
    deleting: tuple[str, str]
    source: str

    def open(self, settle: Settle = AT_ONCE) -> BrokeredKeys:
        return self.keys_at(self.directory, settle)

    def issue(self, run: str = "r-one", keys: BrokeredKeys | None = None) -> Issued:
        return (keys or self.open()).issue(run, NEED, cap_usd=3.0, ends_at=time.time() + 600)


def openrouter_scene(server: ScriptedOpenRouter, directory: Path) -> Scene:
    def make(at: Path, settle: Settle) -> BrokeredKeys:
        return BrokeredKeys(
            OpenRouter(("PROVISIONING", server.master), base_url=server.base), at, settle=settle, waits=(0.0, 0.05)
        )

    source = f"OpenRouter(('PROVISIONING', {server.master!r}), base_url={server.base!r})"
    return Scene(server, make, directory, ("POST", "/keys"), ("DELETE", "/keys/"), source)


def litellm_scene(server: ScriptedLiteLLM, directory: Path) -> Scene:
    def make(at: Path, settle: Settle) -> BrokeredKeys:
        return BrokeredKeys(
            LiteLLM(("MASTER", server.master), base_url=server.base), at, settle=settle, waits=(0.0, 0.05)
        )

    source = f"LiteLLM(('MASTER', {server.master!r}), base_url={server.base!r})"
    return Scene(server, make, directory, ("POST", "/key/generate"), ("POST", "/key/delete"), source)


@pytest.fixture(params=["openrouter", "litellm"])
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Scene]:
    if request.param == "openrouter":
        with ScriptedOpenRouter() as server:
            yield openrouter_scene(server, tmp_path / "keys")
    else:
        with ScriptedLiteLLM() as proxy:
            yield litellm_scene(proxy, tmp_path / "keys")


def issue_and_be_killed(scene: Scene, run: str, *, while_made: bool) -> None:
    """A harness that is killed while it waits for the answer of the broker, or with its key in hand."""
    script = textwrap.dedent(f"""
    import time
    from pathlib import Path
    from referee.adapters.keys.brokered import BrokeredKeys
    from referee.adapters.keys.litellm import LiteLLM
    from referee.adapters.keys.openrouter import OpenRouter
    from referee.protocols import ModelNeed
    keys = BrokeredKeys({scene.source}, Path({str(scene.directory)!r}))
    keys.issue({run!r}, ModelNeed("vendor/model-1", "openai-chat", "any"), cap_usd=3.0, ends_at=time.time() + 600)
    print("issued", flush=True)
    time.sleep(600)
    """)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, env=environment) as owner:
        if while_made:
            assert scene.server.made.wait(30)
        else:
            assert owner.stdout is not None
            assert owner.stdout.readline() == b"issued\n"
        owner.kill()


@pytest.mark.slow
def test_a_harness_killed_while_its_key_is_made_leaves_none(scene: Scene) -> None:
    fault = Fault(hold=threading.Event())
    scene.server.faults[scene.creating] = fault
    issue_and_be_killed(scene, "r-dead", while_made=True)
    assert len(scene.server.alive) == 1
    told = scene.open().sweep([])
    assert scene.server.alive == set()
    assert [line for line in told if "r-dead" in line]
    assert fault.hold is not None
    fault.hold.set()


@pytest.mark.slow
def test_a_killed_harness_leaves_its_key_to_the_next_sweep(scene: Scene) -> None:
    issue_and_be_killed(scene, "r-dead", while_made=False)
    assert len(scene.server.alive) == 1
    assert scene.open().sweep(["r-dead"]) == []
    told = scene.open().sweep([])
    assert scene.server.alive == set()
    assert len(told) == 1
    spending = scene.open().close("r-dead")
    assert spending is not None
    assert spending.deleted


def test_a_key_whose_making_was_answered_by_silence_is_deleted(scene: Scene) -> None:
    scene.server.faults[scene.creating] = Fault(lose=True)
    with pytest.raises(KeyUnavailable):
        scene.issue()
    assert scene.server.keys
    assert scene.server.alive == set()


def test_a_key_that_cannot_be_deleted_is_said_so_and_swept_later(scene: Scene) -> None:
    keys = scene.open()
    issued = scene.issue(keys=keys)
    scene.server.faults[scene.deleting] = Fault(status=500)
    spending = keys.close("r-one")
    assert spending is not None
    assert not spending.deleted
    assert "500" in spending.how
    assert scene.server.master not in spending.how
    assert call_model(issued.access) == 401  # blocked all the same
    assert len(scene.server.alive) == 1
    scene.server.faults.clear()
    assert len(scene.open().sweep([])) == 1  # its owner lives, but its run is over
    assert scene.server.alive == set()
    after = keys.close("r-one")
    assert after is not None
    assert after.deleted


def test_a_deletion_that_is_only_claimed_is_not_believed(scene: Scene) -> None:
    keys = scene.open()
    scene.issue(keys=keys)
    scene.server.faults[scene.deleting] = Fault(nothing=True)
    spending = keys.close("r-one")
    assert spending is not None
    assert not spending.deleted
    assert "still has it" in spending.how


def test_one_failed_deletion_is_tried_again_at_once(scene: Scene) -> None:
    keys = scene.open()
    scene.issue(keys=keys)
    scene.server.faults[scene.deleting] = Fault(status=502, times=1)
    spending = keys.close("r-one")
    assert spending is not None
    assert spending.deleted


@pytest.mark.parametrize("limit", [300.0, 0.5, 0.0])
def test_a_key_with_another_limit_than_asked_is_not_used(scene: Scene, limit: float) -> None:
    scene.server.changed = {"limit": limit, "max_budget": limit}
    with pytest.raises(KeyUnavailable, match=str(limit)):
        scene.issue()
    assert scene.server.alive == set()


def test_a_broker_that_is_gone_raises_nothing_on_close(scene: Scene) -> None:
    keys = scene.open()
    scene.issue(keys=keys)
    scene.server.close()
    spending = keys.close("r-one")
    assert spending is not None
    assert not spending.deleted
    assert spending.spent_usd is None
    with pytest.raises(KeyUnavailable):
        scene.issue("r-two", keys)
    assert any("could not be asked" in line for line in keys.sweep([]))


def test_what_was_spent_is_read_until_the_broker_has_counted_it(scene: Scene) -> None:
    keys = scene.open(Settle(at_least=0.3, at_most=20.0, every=0.2))
    issued = scene.issue(keys=keys)
    scene.server.lagging = True
    assert call_model(issued.access) == 200
    reads = iter(range(1000))
    original = scene.server.do

    def do(method: str, path: str, *rest: object) -> object:
        if method == "GET" and next(reads) == 2:
            scene.server.count()
        return original(method, path, *rest)  # type: ignore[arg-type]

    scene.server.do = do  # type: ignore[method-assign, assignment]
    spending = keys.close("r-one")
    assert spending is not None
    assert spending.spent_usd == pytest.approx(CALL_USD)


def test_an_impatient_interrupt_while_the_broker_counts_deletes_the_key_all_the_same(scene: Scene) -> None:
    keys = scene.open(Settle(at_least=60.0, at_most=60.0, every=30.0))
    scene.issue(keys=keys)
    interrupt = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    interrupt.start()
    spending = keys.close("r-one")
    assert spending is not None
    assert spending.deleted
    assert scene.server.alive == set()


def test_two_workspaces_with_one_account_leave_each_other_alone(scene: Scene, tmp_path: Path) -> None:
    other = scene.keys_at(tmp_path / "elsewhere" / "keys", AT_ONCE)
    issued = scene.issue()
    assert other.sweep([]) == []
    assert call_model(issued.access) == 200


def test_a_copy_of_a_workspace_leaves_the_originals_keys_alone(scene: Scene, tmp_path: Path) -> None:
    keys = scene.open()
    copied = tmp_path / "copied"
    shutil.copytree(scene.directory, copied)
    issued = scene.issue(keys=keys)
    assert scene.keys_at(copied, AT_ONCE).sweep(()) == []
    assert call_model(issued.access) == HTTPStatus.OK


def test_a_moved_workspace_knows_its_keys_again(scene: Scene, tmp_path: Path) -> None:
    keys = scene.open()
    scene.issue(keys=keys)
    shutil.rmtree(scene.directory / "live")
    moved = scene.directory.rename(tmp_path / "moved")
    (told,) = scene.keys_at(moved, AT_ONCE).sweep(())
    assert told.endswith("deleted, and read as gone")


def test_a_key_of_this_workspace_that_no_ledger_knows_is_swept(scene: Scene) -> None:
    keys = scene.open()
    scene.issue(keys=keys)
    (scene.directory / "live" / "r-one.json").unlink()
    told = keys.sweep([])
    assert scene.server.alive == set()
    assert len(told) == 1
    assert "no running run" in told[0]


def test_an_unreadable_file_of_the_ledger_hides_no_key(scene: Scene) -> None:
    keys = scene.open()
    scene.issue(keys=keys)
    (scene.directory / "live" / "r-one.json").write_text("{")
    told = keys.sweep([])
    assert scene.server.alive == set()
    assert any("cannot be read" in line for line in told)


def test_a_key_is_found_among_many(scene: Scene) -> None:
    keys = scene.open()
    scene.issue(keys=keys)
    identity, key = next(iter(scene.server.keys.items()))
    for number in range(250):
        scene.server.keys[f"other-{number}"] = type(key)(f"sk-{number}", f"of somebody else {number}", 1.0, {})
    scene.server.keys[identity] = scene.server.keys.pop(identity)
    (scene.directory / "live" / "r-one.json").unlink()
    assert len(keys.sweep([])) == 1
    assert key.name not in scene.server.alive
    assert len(scene.server.alive) == 250


def test_nothing_is_made_that_could_not_be_written_down(scene: Scene) -> None:
    keys = scene.open()
    (scene.directory / "live").write_text("no directory")
    with pytest.raises(KeyUnavailable, match="written down"):
        scene.issue(keys=keys)
    assert scene.server.keys == {}


def test_machines_get_a_way_to_a_service_on_this_host_alone(scene: Scene) -> None:
    assert scene.open().reach("127.0.0.1") == ("127.0.0.1", int(scene.server.url.rpartition(":")[2]))
    assert scene.open().reach("10.1.2.3") is None


def test_a_master_key_too_short_to_be_told_from_text_hinders_no_run(tmp_path: Path) -> None:
    with ScriptedLiteLLM() as server:
        server.master = "sk-1234"
        issued = litellm_scene(server, tmp_path / "keys").issue()
    assert list(issued.secrets) == ["run-key"]
    Redactor(issued.secrets)


def test_a_redirect_does_not_carry_the_credential_away(scene: Scene) -> None:
    scene.server.faults[scene.creating] = Fault(status=302)
    with pytest.raises(KeyUnavailable, match="302"):
        scene.issue()
    assert not [path for _, path in scene.server.got if path == "/elsewhere"]


def test_what_a_key_of_openrouter_is_asked_to_be(tmp_path: Path) -> None:
    with ScriptedOpenRouter() as server:
        scene = openrouter_scene(server, tmp_path / "keys")
        ends_at = time.time() + 5400
        scene.open().issue("r-one", NEED, cap_usd=3.0, ends_at=ends_at)
        body = next(iter(server.keys.values())).body
    assert body["limit"] == 3.0
    assert body["limit_reset"] is None
    assert body["include_byok_in_limit"] is True
    expires = datetime.fromisoformat(body["expires_at"])
    assert expires.tzinfo == UTC
    assert 0 <= expires.timestamp() - ends_at <= 1


def test_openrouter_has_no_surface_of_gemini(tmp_path: Path) -> None:
    with ScriptedOpenRouter() as server:
        scene = openrouter_scene(server, tmp_path / "keys")
        need = ModelNeed("vendor/model-1", "gemini", "any")
        with pytest.raises(ConfigError, match="gemini"):
            scene.open().check(need)
        with pytest.raises(KeyUnavailable, match="gemini"):
            scene.open().issue("r-one", need, cap_usd=3.0, ends_at=time.time() + 60)
        assert server.keys == {}


def test_what_a_key_of_litellm_is_asked_to_be(tmp_path: Path) -> None:
    with ScriptedLiteLLM() as server:
        issued = litellm_scene(server, tmp_path / "keys").issue()
        body = next(iter(server.keys.values())).body
    assert body["max_budget"] == 3.0
    assert body["models"] == [NEED.model]
    assert body["key_type"] == "llm_api"
    assert 590 <= int(body["duration"].removesuffix("s")) <= 600
    assert body["key_alias"] == issued.key
    assert not [path for _, path in server.got if issued.access.secret in path]


def test_older_proxies_forget_a_deleted_key(tmp_path: Path) -> None:
    with ScriptedLiteLLM() as server:
        server.archives = False
        keys = litellm_scene(server, tmp_path / "keys").open()
        keys.issue("r-one", NEED, cap_usd=3.0, ends_at=time.time() + 600)
        spending = keys.close("r-one")
    assert spending is not None
    assert spending.deleted


def test_a_later_start_knows_the_secret_of_a_dead_run_where_it_is_derived(tmp_path: Path) -> None:
    with ScriptedLiteLLM() as server:
        scene = litellm_scene(server, tmp_path / "keys")
        issued = scene.issue()
        assert scene.open().secrets("r-one") == issued.secrets
    with ScriptedOpenRouter() as server:
        scene = openrouter_scene(server, tmp_path / "others")
        scene.issue()
        assert scene.open().secrets("r-one") is None


def test_another_broker_than_a_dead_runs_own_does_not_know_its_secret(tmp_path: Path) -> None:
    """What one broker would have made proves nothing of a key that another one made: what may hold it is withheld."""
    with ScriptedOpenRouter() as server:
        openrouter_scene(server, tmp_path / "keys").issue()
    with ScriptedLiteLLM() as server:
        scene = litellm_scene(server, tmp_path / "keys")
        assert scene.open().secrets("r-one") is None
        litellm_scene(server, tmp_path / "others").issue()
    assert GatewayKeys(tmp_path / "keys", {}).secrets("r-one") is None
    assert GatewayKeys(tmp_path / "others", {}).secrets("r-one") is None


def test_a_key_counts_as_left_behind_when_its_owner_is_dead_or_cannot_be_asked_for_long(tmp_path: Path) -> None:
    entry = Ledger(tmp_path).intend("r-one", "litellm", "name", NEED, cap_usd=3.0, ends_at=time.time() + 60)
    assert not entry.left_behind()
    changed: dict[str, dict[str, Any]] = {
        "a process of the same number that was started later": {"started": (entry.started or 0) + 1},
        "another boot": {"boot": "another"},
        "no such process": {"pid": 2**22 + 1},
    }
    for what, how in changed.items():
        assert entry.model_copy(update=how).left_behind(), what
    elsewhere = entry.model_copy(update={"host": platform.node() + "-other", "pid": 2**22 + 1})
    assert not elsewhere.left_behind()
    assert elsewhere.model_copy(update={"ends_at": time.time() - LATE_SECONDS - 1}).left_behind()


def test_the_ledger_says_what_was_issued_in_order_of_time(tmp_path: Path) -> None:
    with ScriptedLiteLLM() as server:
        scene = litellm_scene(server, tmp_path / "keys")
        keys = scene.open()
        for run in ("r-b", "r-a"):
            scene.issue(run, keys)
            time.sleep(0.002)
        keys.close("r-b")
    entries = Ledger(tmp_path / "keys").every()
    assert [(entry.run, entry.state) for entry in entries] == [("r-b", "closed"), ("r-a", "issued")]
    assert json.loads((tmp_path / "keys" / "closed" / "r-b.json").read_text())["spending"]["deleted"] is True


def test_the_secret_of_a_workspace_is_made_once_and_kept_private(tmp_path: Path) -> None:
    secret = workspace_secret(tmp_path / "keys")
    assert workspace_secret(tmp_path / "keys") == secret
    assert (tmp_path / "keys" / "secret").stat().st_mode & 0o777 == 0o600
    assert derive(secret, "key", "r-one") != derive(secret, "key", "r-two")
    assert derive(secret, "key", "r-one") != derive(secret, "workspace", "r-one")
    (tmp_path / "keys" / "secret").write_text("abc")
    with pytest.raises(ValueError):
        workspace_secret(tmp_path / "keys")
