"""The agent CLIs, one row each: how it is started unattended, what stands in its empty home, what tells it its model.

Every program gets the same question in the same words. Where a program has a switch for it, its own tools are off, it
saves no session, asks nobody, looks for no update and does not try again: a call is text here, nothing is executed,
and the runner alone decides about retries (bake-off §4, §7). The base URL stands in a file of the empty home or in the
program's own variable, the credential in a variable of that one process; neither ever stands in an argument list.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class Setup:
    """What a call is to use: the model, an endpoint of one's own or None, the credential's variable, the empty home."""

    model: str
    base_url: str | None
    key_name: str | None
    home: Path


@dataclass(frozen=True)
class Prepared:
    """How a program is started: arguments after its name, its variables, its files (path below the home: text)."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Program:
    """One agent CLI.

    Args:
        executable: its usual name.
        keys: the variables under which it takes a credential, the usual one first. A target whose ``key_env`` is one of
            them hands it on under that name, any other under the first; with none, under its own name.
        prompt: where it takes the question.
        output: media type of what it prints.
        own_endpoint: whether it can be sent to a base URL.
        prepare: the row itself.
    """

    executable: str
    keys: tuple[str, ...]
    prompt: Literal["stdin", "argument"]
    output: str
    own_endpoint: bool
    prepare: Callable[[Setup], Prepared]


def _claude(setup: Setup) -> Prepared:
    environment = {
        "CLAUDE_CONFIG_DIR": str(setup.home / ".claude"),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "0",
        "DISABLE_AUTOUPDATER": "1",
    }
    if setup.base_url is not None:
        environment["ANTHROPIC_BASE_URL"] = setup.base_url
    arguments = ("--print", "--output-format=json", f"--model={setup.model}", "--tools=", "--strict-mcp-config")
    return Prepared((*arguments, "--no-session-persistence", "--setting-sources="), environment)


#: What Codex brings along and a question in text does not need; a plug-in's login once hung a call for 180 s.
_CODEX_OFF = (
    *("shell_tool", "unified_exec", "apps", "plugins", "hooks", "computer_use", "browser_use", "image_generation"),
    *("multi_agent", "goals", "skill_mcp_dependency_install", "code_mode_host"),
)


def _codex(setup: Setup) -> Prepared:
    arguments = ["exec", "--json", "--ephemeral", "--skip-git-repo-check", "--ignore-rules", "--sandbox=read-only"]
    arguments += [f"--disable={feature}" for feature in _CODEX_OFF]
    environment = {"CODEX_HOME": str(setup.home / ".codex")}
    if setup.base_url is None:
        return Prepared((*arguments, "--ignore-user-config", f"--model={setup.model}", "-"), environment)
    # The program reads an endpoint from its configuration only, so the one file in its empty home has to be read.
    lines = [
        'model_provider = "lane"',
        'web_search = "disabled"',
        "check_for_update_on_startup = false",
        "[model_providers.lane]",
        'name = "lane"',
        f"base_url = {json.dumps(setup.base_url)}",
        'wire_api = "responses"',
        "request_max_retries = 0",
        "stream_max_retries = 0",
    ]
    if setup.key_name is not None:
        lines.append(f"env_key = {json.dumps(setup.key_name)}")
    files = {".codex/config.toml": "\n".join(lines) + "\n"}
    return Prepared((*arguments, f"--model={setup.model}", "-"), environment, files)


def _cursor(setup: Setup) -> Prepared:
    arguments = ("--print", "--output-format=json", "--trust", "--mode=ask", f"--model={setup.model}")
    return Prepared(arguments, {"CURSOR_CONFIG_DIR": str(setup.home / ".cursor")})


def _gemini(setup: Setup) -> Prepared:
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "general": {
            "enableAutoUpdate": False,
            "enableAutoUpdateNotification": False,
            "retryFetchErrors": False,
            "maxAttempts": 1,
        },
        "skills": {"enabled": False},
        "tools": {"core": []},
    }
    environment = {"GEMINI_CLI_TRUST_WORKSPACE": "true"}
    if setup.base_url is not None:
        environment["GOOGLE_GEMINI_BASE_URL"] = setup.base_url
    arguments = (f"--model={setup.model}", "--output-format=json")
    return Prepared(arguments, environment, {".gemini/settings.json": json.dumps(settings)})


#: What opencode would otherwise fetch or read outside its own configuration.
_OPENCODE_OFF = (
    *("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "PROJECT_CONFIG", "DEFAULT_PLUGINS", "EXTERNAL_SKILLS"),
    "CLAUDE_CODE",
)


def _opencode(setup: Setup) -> Prepared:
    config: dict[str, object] = {"autoupdate": False, "share": "disabled", "permission": "deny"}
    model = setup.model
    if setup.base_url is not None:
        options = {"baseURL": setup.base_url}
        if setup.key_name is not None:
            options["apiKey"] = f"{{env:{setup.key_name}}}"
        lane = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {setup.model: {}}}
        config |= {"provider": {"lane": lane}, "enabled_providers": ["lane"]}
        model = f"lane/{setup.model}"
    environment = {f"OPENCODE_DISABLE_{name}": "1" for name in _OPENCODE_OFF} | {
        "OPENCODE_CONFIG": str(setup.home / "opencode.json"),
        "OPENCODE_FAKE_VCS": "git",
        # It installs its plug-ins' library from npm at every first start; without, it works as well.
        "NPM_CONFIG_OFFLINE": "true",
    }
    arguments = ("run", "--pure", "--format=json", f"--model={model}")
    return Prepared(arguments, environment, {"opencode.json": json.dumps(config)})


_JSON, _LINES = "application/json", "application/x-ndjson"

PROGRAMS: Mapping[str, Program] = {
    "claude": Program(
        executable="claude",
        keys=("ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_AUTH_TOKEN"),
        prompt="stdin",
        output=_JSON,
        own_endpoint=True,
        prepare=_claude,
    ),
    "codex": Program(
        executable="codex",
        keys=("CODEX_API_KEY", "CODEX_ACCESS_TOKEN"),
        prompt="stdin",
        output=_LINES,
        own_endpoint=True,
        prepare=_codex,
    ),
    "cursor": Program(
        executable="cursor-agent",
        keys=("CURSOR_API_KEY",),
        prompt="argument",
        output=_JSON,
        own_endpoint=False,
        prepare=_cursor,
    ),
    "gemini": Program(
        executable="gemini",
        keys=("GEMINI_API_KEY",),
        prompt="stdin",
        output=_JSON,
        own_endpoint=True,
        prepare=_gemini,
    ),
    "opencode": Program(
        executable="opencode",
        keys=(),
        prompt="stdin",
        output=_LINES,
        own_endpoint=True,
        prepare=_opencode,
    ),
}
