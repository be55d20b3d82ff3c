"""Serves a model with llama.cpp's own server: MODEL PORT. Run by the Python of build/servers/engine."""

from __future__ import annotations

import sys
import time

import xllamacpp  # type: ignore[import-not-found]

_FOREVER = 10**6


def main(model: str, port: str) -> None:
    settings = xllamacpp.CommonParams()
    settings.model.path = model
    settings.model_alias = {"random"}
    settings.hostnames = ["127.0.0.1"]
    settings.port = int(port)
    settings.n_ctx = 32_768
    settings.n_parallel = 4
    settings.cpuparams.n_threads = 1
    settings.warmup = False
    settings.use_jinja = True
    server = xllamacpp.Server(settings)  # it serves for as long as it is held
    sys.stdout.write(f"{server.listening_address}\n")
    time.sleep(_FOREVER)


if __name__ == "__main__":
    main(*sys.argv[1:])
