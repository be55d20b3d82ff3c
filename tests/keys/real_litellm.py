"""The real LiteLLM proxy with virtual keys: on loopback, on a PostgreSQL of its own, with a scripted model behind it.

Its program is what ``scripts/servers.sh gateway`` installs, its tables are made by its own migrations. One part is not
its own: the compiled engine of its database client comes from a host that is no package registry, so
``database_client/`` answers the client's calls with SQL instead (docs/keys.md).
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.bakeoff.real.conftest import _await, _bare, _free_port, _installed, _running
from tests.conftest import skip_or_fail

_HERE = Path(__file__).parent

#: One call of this model is 28 mocked tokens: 0.14 USD.
MODEL = "says"
_CONFIG = f"""\
model_list:
  - model_name: {MODEL}
    litellm_params: {{model: openai/says, api_key: none, mock_response: "ok"}}
    model_info: {{input_cost_per_token: 0.005, output_cost_per_token: 0.005}}
general_settings:
  master_key: os.environ/MASTER_KEY
  database_url: os.environ/DATABASE_URL
  proxy_batch_write_at: 1
litellm_settings: {{num_retries: 0, telemetry: false}}
router_settings: {{num_retries: 0}}
"""

#: It writes what was spent every 1 to 6 seconds with these settings.
COUNTS_AFTER_SECONDS = 7.0


@dataclass(frozen=True)
class RealProxy:
    """Where it is, and its master key."""

    url: str
    master: str = field(repr=False)


@contextmanager
def real_litellm(home: Path) -> Iterator[RealProxy]:
    """The proxy, while the block runs; everything of it lies in ``home``."""
    part = _installed("gateway")
    with _postgres() as database:
        packages = next((part / "lib").glob("python3*/site-packages"))
        scripts = sorted((packages / "litellm_proxy_extras" / "migrations").glob("*/migration.sql"))
        assert scripts, "the proxy brings no migrations"
        files = [word for script in scripts for word in ("-f", str(script))]
        subprocess.run(["psql", "-q", "-v", "ON_ERROR_STOP=1", *files, database], check=True, capture_output=True)
        proxy = RealProxy(f"http://127.0.0.1:{_free_port()}", f"sk-master-{secrets.token_hex(16)}")
        (home / "config.yaml").write_text(_CONFIG, encoding="utf-8")
        argv = [str(part / "bin" / "litellm"), "--config", str(home / "config.yaml"), "--host", "127.0.0.1"]
        environment = _bare(
            home,
            PYTHONPATH=str(_HERE / "database_client"),
            LITELLM_LOCAL_MODEL_COST_MAP="True",
            DISABLE_SCHEMA_UPDATE="true",
            MASTER_KEY=proxy.master,
            DATABASE_URL=database,
        )
        log = home / "log"
        with _running([*argv, "--port", proxy.url.rpartition(":")[2]], environment, log) as server:
            _await(server, f"{proxy.url}/health/liveliness", log)
            yield proxy


@contextmanager
def _postgres() -> Iterator[str]:
    """The address of a PostgreSQL server of its own, while the block runs."""
    # Not in pytest's directory: it is its owner's alone, and each pytest that starts beside this one makes it so again.
    with tempfile.TemporaryDirectory(prefix="referee-postgres-", dir="/var/tmp") as directory:
        yield from _postgres_in(Path(directory))


def _postgres_in(directory: Path) -> Iterator[str]:
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not programs or shutil.which("psql") is None:
        skip_or_fail("PostgreSQL is missing (apt-get install postgresql)")
    user = {}
    if os.geteuid() == 0:  # it refuses to run as root
        account = pwd.getpwnam("postgres")
        os.chown(directory, account.pw_uid, account.pw_gid)
        user = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    data, port = directory / "data", _free_port()
    initdb = [str(programs[-1]), "-D", str(data), "-A", "trust", "-U", "litellm", "--no-sync"]
    subprocess.run(initdb, check=True, capture_output=True, cwd=directory, **user)  # type: ignore[call-overload]
    control = [str(programs[-1].with_name("pg_ctl")), "-D", str(data), "-w"]
    settings = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={directory} -c fsync=off"
    start = [*control, "-o", settings, "-l", str(directory / "log"), "start"]
    subprocess.run(start, check=True, stdout=subprocess.DEVNULL, cwd=directory, **user)  # type: ignore[call-overload]
    try:
        yield f"postgresql://litellm@127.0.0.1:{port}/postgres"
    finally:
        stop = [*control, "-m", "immediate", "stop"]
        subprocess.run(stop, check=False, capture_output=True, cwd=directory, **user)  # type: ignore[call-overload]
