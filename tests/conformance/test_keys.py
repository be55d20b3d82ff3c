"""What every broker of keys must do (``protocols.Keys``): one run, one key, one limit, dead when the run is over.

To add one: write a fixture ``<name>_broker`` that yields a ``Candidate`` and add the name to ``BROKERS``. OpenRouter
and LiteLLM are spoken to on loopback, in their own words (``tests.keys.scripted_brokers``), LiteLLM by its real proxy
too (``tests.keys.real_litellm``); the gateway is the real one.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.agents.scripted_model import scripted_model
from tests.keys.model_calls import call_model
from tests.keys.real_litellm import COUNTS_AFTER_SECONDS, MODEL, RealProxy, real_litellm
from tests.keys.scripted_brokers import Fault, ScriptedLiteLLM, ScriptedOpenRouter

from referee.adapters.keys.brokered import BrokeredKeys, Settle
from referee.adapters.keys.gateway.keys import GatewayKeys
from referee.adapters.keys.gateway.upstream import Upstream
from referee.adapters.keys.litellm import LiteLLM
from referee.adapters.keys.openrouter import OpenRouter
from referee.core.spending import Price
from referee.errors import KeyUnavailable
from referee.protocols import Access, Issued, Keys, ModelNeed

AT_ONCE = Settle(0.0, 0.0, 0.0)
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Candidate:
    """One broker with what only its author knows.

    ``make`` opens it on a directory ``keys/``, as each process does; ``recipe`` is source that binds ``keys`` to the
    same in another process. ``break_it`` makes the making of keys fail; ``credential`` is what it must never show.
    ``counts_after``: seconds until it has counted what was spent, on a machine with nothing else to do; ``spent`` tells
    whether it has.
    """

    make: Callable[[], Keys]
    directory: Path
    recipe: str
    need: ModelNeed
    break_it: Callable[[], None]
    credential: str
    counts_after: float = 0.0
    spent: Callable[[str], float | None] | None = None


@pytest.fixture
def openrouter_broker(tmp_path: Path) -> Iterator[Candidate]:
    with ScriptedOpenRouter() as server:
        directory = tmp_path / "keys"
        recipe = f"""
        from referee.adapters.keys.openrouter import OpenRouter
        service = OpenRouter(("PROVISIONING", {server.master!r}), base_url={server.base!r})
        keys = BrokeredKeys(service, Path({str(directory)!r}), settle=Settle(0.0, 0.0, 0.0))
        """
        yield Candidate(
            make=lambda: BrokeredKeys(
                OpenRouter(("PROVISIONING", server.master), base_url=server.base), directory, settle=AT_ONCE
            ),
            directory=directory,
            recipe=recipe,
            need=ModelNeed("vendor/model-1", "openai-chat", "any"),
            break_it=lambda: server.faults.update({("POST", "/keys"): Fault(status=503)}),
            credential=server.master,
        )


@pytest.fixture
def litellm_broker(tmp_path: Path) -> Iterator[Candidate]:
    with ScriptedLiteLLM() as server:
        directory = tmp_path / "keys"
        recipe = f"""
        from referee.adapters.keys.litellm import LiteLLM
        service = LiteLLM(("MASTER", {server.master!r}), base_url={server.base!r})
        keys = BrokeredKeys(service, Path({str(directory)!r}), settle=Settle(0.0, 0.0, 0.0))
        """
        yield Candidate(
            make=lambda: BrokeredKeys(
                LiteLLM(("MASTER", server.master), base_url=server.base), directory, settle=AT_ONCE
            ),
            directory=directory,
            recipe=recipe,
            need=ModelNeed("model-1", "openai-chat", "any"),
            break_it=lambda: server.faults.update({("POST", "/key/generate"): Fault(status=503)}),
            credential=server.master,
        )


@pytest.fixture
def gateway_broker(tmp_path: Path) -> Iterator[Candidate]:
    # A call costs 0.12 USD whatever it says: the limit is then reached by a few calls here as at the other brokers.
    price = Price(input=1.0, output=1.0, per_request=0.12, source="this test")
    with scripted_model(key="upstream-key-0123456789abcdef") as model:
        directory = tmp_path / "keys"
        upstream = Upstream("any", f"{model.url}/v1", secret=model.key, prices={"model-1": price})
        recipe = f"""
        from referee.adapters.keys.gateway.keys import GatewayKeys
        from referee.adapters.keys.gateway.upstream import Upstream
        from referee.core.spending import Price
        price = Price(input=1.0, output=1.0, per_request=0.12, source="this test")
        upstream = Upstream("any", {f"{model.url}/v1"!r}, secret={model.key!r}, prices={{"model-1": price}})
        keys = GatewayKeys(Path({str(directory)!r}), {{"any": upstream}})
        """

        def break_it() -> None:
            directory.mkdir(exist_ok=True)
            (directory / "live").write_text("no directory: nothing can be written down")

        yield Candidate(
            make=lambda: GatewayKeys(directory, {"any": upstream}),
            directory=directory,
            recipe=recipe,
            need=ModelNeed("model-1", "openai-chat", "any"),
            break_it=break_it,
            credential=str(model.key),
        )


@pytest.fixture(scope="session")
def real_proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealProxy]:
    with real_litellm(tmp_path_factory.mktemp("litellm")) as proxy:
        yield proxy


@pytest.fixture
def real_litellm_broker(tmp_path: Path, real_proxy: RealProxy) -> Candidate:
    directory = tmp_path / "keys"
    recipe = f"""
    from referee.adapters.keys.litellm import LiteLLM
    service = LiteLLM(("MASTER", {real_proxy.master!r}), base_url={real_proxy.url!r})
    keys = BrokeredKeys(service, Path({str(directory)!r}), settle=Settle(0.0, 0.0, 0.0))
    """

    def break_it() -> None:
        (directory / "live").write_text("no directory: nothing can be written down")

    return Candidate(
        make=lambda: BrokeredKeys(
            LiteLLM(("MASTER", real_proxy.master), base_url=real_proxy.url), directory, settle=AT_ONCE
        ),
        directory=directory,
        recipe=recipe,
        need=ModelNeed(MODEL, "openai-chat", "any"),
        break_it=break_it,
        credential=real_proxy.master,
        counts_after=COUNTS_AFTER_SECONDS,
        spent=LiteLLM(("MASTER", real_proxy.master), base_url=real_proxy.url).spent,
    )


BROKERS = [
    "gateway",
    "openrouter",
    "litellm",
    pytest.param("real_litellm", marks=[pytest.mark.slow, pytest.mark.registry]),
]


@pytest.fixture(params=BROKERS)
def broker(request: pytest.FixtureRequest) -> Candidate:
    """Each broker in turn."""
    found: Candidate = request.getfixturevalue(f"{request.param}_broker")
    return found


@pytest.fixture
def keys(broker: Candidate) -> Iterator[Keys]:
    """The broker as a run sees it, listening where it listens."""
    made = broker.make()
    made.reach("127.0.0.1")
    yield made
    made.stop()


def issue(keys: Keys, broker: Candidate, run: str, *, cap: float = 3.0) -> Issued:
    return keys.issue(run, broker.need, cap_usd=cap, ends_at=time.time() + 600)


def works(access: Access) -> bool:
    return call_model(access) == 200


def dead_owner(broker: Candidate, run: str) -> None:
    """A process that is killed while its run has a key."""
    script = (
        textwrap.dedent("""
    import sys, time
    from pathlib import Path
    from referee.adapters.keys.brokered import BrokeredKeys, Settle
    from referee.protocols import ModelNeed
    """)
        + textwrap.dedent(broker.recipe)
        + textwrap.dedent(f"""
    keys.reach("127.0.0.1")
    need = ModelNeed({broker.need.model!r}, {broker.need.dialect!r}, {broker.need.upstream!r})
    issued = keys.issue({run!r}, need, cap_usd=3.0, ends_at=time.time() + 600)
    print("issued", flush=True)
    time.sleep(600)
    """)
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, env=environment) as owner:
        assert owner.stdout is not None
        line = owner.stdout.readline()
        owner.kill()
    assert line == b"issued\n"


def test_a_run_gets_a_key_of_its_own_that_works(keys: Keys, broker: Candidate) -> None:
    one, two = issue(keys, broker, "r-one"), issue(keys, broker, "r-two")
    assert works(one.access)
    assert works(two.access)
    assert one.access.secret != two.access.secret
    assert one.key != two.key
    assert one.access.model == broker.need.model
    assert not re.search(r"/v\d", one.access.base_url)


def await_counted(broker: Candidate, key: str) -> None:
    """Wait until the broker has counted: a busy machine takes longer."""
    time.sleep(broker.counts_after)
    until = time.monotonic() + 60
    while broker.spent is not None and not broker.spent(key) and time.monotonic() < until:
        time.sleep(0.5)


def test_what_its_settings_allow_is_known_before_anything_is_made(broker: Candidate) -> None:
    keys = broker.make()
    keys.check(broker.need)
    assert not (broker.directory / "live").exists()


def test_a_closed_key_is_dead_and_its_spending_known(keys: Keys, broker: Candidate) -> None:
    issued = issue(keys, broker, "r-one")
    assert works(issued.access)
    await_counted(broker, issued.key)
    spending = keys.close("r-one")
    assert spending is not None
    assert spending.deleted
    assert spending.broker == keys.broker
    assert spending.key == issued.key
    assert spending.model == broker.need.model
    assert spending.cap_usd == 3.0
    assert spending.spent_usd is not None
    assert spending.spent_usd > 0
    assert not spending.capped
    assert spending.how
    assert not works(issued.access)


def test_one_key_closed_leaves_the_other_alive(keys: Keys, broker: Candidate) -> None:
    one, two = issue(keys, broker, "r-one"), issue(keys, broker, "r-two")
    keys.close("r-one")
    assert not works(one.access)
    assert works(two.access)


def test_closing_again_says_the_same_and_closing_nothing_says_nothing(keys: Keys, broker: Candidate) -> None:
    issue(keys, broker, "r-one")
    assert keys.close("r-one") == keys.close("r-one")
    assert keys.close("r-never") is None


def test_the_limit_holds(keys: Keys, broker: Candidate) -> None:
    issued = issue(keys, broker, "r-one", cap=0.3)
    answers = [call_model(issued.access) for _ in range(6)]
    assert answers[0] == 200
    assert answers[-1] != 200
    await_counted(broker, issued.key)
    spending = keys.close("r-one")
    assert spending is not None
    assert spending.capped
    assert spending.cap_usd == 0.3


def test_a_key_that_cannot_be_made_is_one_clear_sentence_and_leaves_nothing(keys: Keys, broker: Candidate) -> None:
    broker.break_it()
    with pytest.raises(KeyUnavailable) as caught:
        issue(keys, broker, "r-one")
    assert "r-one" in caught.value.message
    assert caught.value.todo
    assert caught.value.exit_code == 4
    assert broker.credential not in caught.value.message
    spending = keys.close("r-one")
    assert spending is None or (spending.deleted and not spending.spent_usd)


def test_a_run_never_gets_a_second_key(keys: Keys, broker: Candidate) -> None:
    issued = issue(keys, broker, "r-one")
    with pytest.raises(KeyUnavailable):
        issue(keys, broker, "r-one")
    assert works(issued.access)
    keys.close("r-one")
    with pytest.raises(KeyUnavailable):
        issue(keys, broker, "r-one")


def test_the_secrets_are_named_and_stand_in_no_file_and_no_message(keys: Keys, broker: Candidate) -> None:
    issued = issue(keys, broker, "r-one")
    assert issued.access.secret in issued.secrets.values()
    assert keys.secrets("r-one") == issued.secrets
    keys.close("r-one")
    assert keys.secrets("r-one") == issued.secrets
    assert issued.access.secret not in f"{issued!r} {issued.access!r} {keys!r}"
    found = [path for path in broker.directory.rglob("*") if path.is_file()]
    for path in found:
        data = path.read_bytes()
        for secret in issued.secrets.values():
            assert secret.encode() not in data, path
    assert all(path.stat().st_mode & 0o077 == 0 for path in found if path.name == "secret")


def test_a_sweep_leaves_the_keys_of_runs_under_way(keys: Keys, broker: Candidate) -> None:
    issued = issue(keys, broker, "r-one")
    assert keys.sweep(["r-one"]) == []
    assert broker.make().sweep([]) == []
    assert works(issued.access)


@pytest.mark.slow
def test_a_killed_harness_leaves_no_live_key_after_the_next_sweep(keys: Keys, broker: Candidate) -> None:
    dead_owner(broker, "r-dead")
    keys.sweep([])
    assert keys.sweep([]) == []
    spending = keys.close("r-dead")
    assert spending is None or spending.deleted


def test_stopping_deletes_the_keys_of_this_process(broker: Candidate) -> None:
    keys = broker.make()
    keys.reach("127.0.0.1")
    issued = issue(keys, broker, "r-one")
    assert works(issued.access)
    keys.stop()
    assert not works(issued.access)


def test_another_key_is_never_taken(keys: Keys, broker: Candidate) -> None:
    issued = issue(keys, broker, "r-one")
    assert not works(replace(issued.access, secret="sk-another-0123456789abcdef0123456789abcdef"))
