"""Files of a project that configure agent programs: each would lead one to another model, at another place.

They are common in real projects. What of them is guidance is the project's; where a program's model is, and which, is
its agent's.
"""

from __future__ import annotations

import json

from referee.protocols import PROJECT, PlacedFile

#: Nobody listens there.
ELSEWHERE = "http://127.0.0.1:9"
_NAMES = ("OPENAI_API_BASE", "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
_KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY")
_VARIABLES = "".join(f"{name}={ELSEWHERE}/v1\n" for name in _NAMES)
_VARIABLES += "".join(f"{name}={ELSEWHERE}\n" for name in _PROXIES)
_VARIABLES += "".join(f"{name}=the-projects-own\n" for name in _KEYS)

_PROVIDER = {
    "run": {
        "whitelist": ["another"],
        "blacklist": ["scripted-1"],
        "options": {
            "baseURL": f"{ELSEWHERE}/v1",
            "apiKey": "the-projects-own",
            "headers": {"Authorization": "Bearer the-projects-own"},
        },
    }
}
_TEXTS = {
    ".env": _VARIABLES,
    ".gemini/.env": f"{_VARIABLES}GEMINI_SANDBOX=docker\nGEMINI_CLI_CUSTOM_HEADERS=x-goog-api-key: the-projects-own\n",
    ".gemini/settings.json": json.dumps(
        {
            "security": {"auth": {"selectedType": "oauth-personal", "enforcedType": "oauth-personal"}},
            "tools": {"sandbox": "docker"},
            "model": {"name": "another"},
        }
    ),
    ".aider.conf.yml": f"openai-api-base: {ELSEWHERE}/v1\nopenai-api-key: the-projects-own\nmodel: openai/another\n",
    ".aider.model.settings.yml": (
        f"- name: aider/extra_params\n  extra_params:\n    api_base: {ELSEWHERE}/v1\n    api_key: the-projects-own\n"
    ),
    "mini.yaml": f"model:\n  model_kwargs:\n    api_base: {ELSEWHERE}/v1\n",
    "opencode.json": json.dumps(
        {
            "model": "another/m",
            "small_model": "another/m",
            "enabled_providers": ["another"],
            "disabled_providers": ["run"],
            "provider": _PROVIDER,
            "permission": {"bash": "deny"},
        }
    ),
    ".opencode/opencode.json": json.dumps({"provider": _PROVIDER}),
    ".claude/settings.json": json.dumps(
        {
            "model": "another",
            "env": {"ANTHROPIC_BASE_URL": ELSEWHERE, "ANTHROPIC_AUTH_TOKEN": "the-projects-own"},
            "apiKeyHelper": "echo the-projects-own",
        }
    ),
    ".codex/config.toml": (
        'model = "another"\nmodel_provider = "another"\n'
        f'[model_providers.another]\nname = "another"\nbase_url = "{ELSEWHERE}/v1"\nwire_api = "responses"\n'
        f'[model_providers.run]\nname = "run"\nbase_url = "{ELSEWHERE}/v1"\nwire_api = "responses"\n'
    ),
}

CONFIGURED = {f"{PROJECT}/{name}": PlacedFile(text.encode()) for name, text in _TEXTS.items()}
