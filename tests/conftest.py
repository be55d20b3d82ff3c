"""What every test may need: the rule for tests that need an engine or a browser.

A test marked ``engine`` or ``browser`` is skipped, with the reason, where that part is missing — except with
``CI=true``: there a missing part is a failure, so that a pipeline can never be green by skipping.
"""

from __future__ import annotations

import functools
import gc
import os
import shutil
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ENVIRONMENT_IMAGE = "referee-env:default"

# Time is no property: on a busy machine an example or the making of one may take long. And a pipeline is no place for
# new examples: `HYPOTHESIS_PROFILE=search` draws others at each run.
settings.register_profile("referee", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("search", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "referee"))

# Tests interrupt programs as a person does. In the background or under nohup a signal is ignored, and programs would be
# started so; one that has a handler here comes to them as new.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)


@functools.cache
def engine_missing() -> str | None:
    """None when the Docker Engine answers and has the environment image; else one sentence."""
    import docker  # noqa: PLC0415 — only tests that ask for an engine pay for the import
    import docker.errors  # noqa: PLC0415

    try:
        client = docker.from_env(timeout=20)
    except docker.errors.DockerException as exc:
        return f"no Docker Engine answers: {exc}"
    try:
        client.images.get(ENVIRONMENT_IMAGE)
    except docker.errors.ImageNotFound:
        return f"the image {ENVIRONMENT_IMAGE} is not built (referee env build)"
    except docker.errors.DockerException as exc:
        return f"the Docker Engine fails: {exc}"
    finally:
        client.close()
    return None


@functools.cache
def browser_missing() -> str | None:
    """None when a Chromium can be started; else one sentence."""
    if any(shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome")):
        return None
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 — only browser tests need it

    with sync_playwright() as play:
        path = play.chromium.executable_path
    return None if Path(path).exists() else "no Chromium is installed"


def in_ci() -> bool:
    """Whether a missing part is a failure."""
    return os.environ.get("CI", "").lower() == "true"


def skip_or_fail(reason: str) -> None:
    """Skip the running test with ``reason``; with ``CI=true`` fail it."""
    if in_ci():
        pytest.fail(f"{reason} — with CI=true this may not be skipped", pytrace=False)
    pytest.skip(reason)


def pytest_collection_finish() -> None:
    """What was collected lives as long as the run: the garbage collector need not look through it again and again."""
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Apply the rule before any fixture of the test is made."""
    if item.get_closest_marker("engine") and (reason := engine_missing()):
        skip_or_fail(reason)
    if item.get_closest_marker("browser") and (reason := browser_missing()):
        skip_or_fail(reason)
