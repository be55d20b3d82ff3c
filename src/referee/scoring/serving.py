"""How a process comes to serve: which file it really runs, what that imports, and who asks it (methodology §5)."""

from __future__ import annotations

import ast
import posixpath
import re
import sys
from collections.abc import Iterable

from referee.core.live_lines import live_tree
from referee.core.records import ListenerFacts
from referee.scoring.roles import role
from referee.scoring.shell_words import UNKNOWN, Step, bare, script_place

#: Programs that serve a module or a file which they are told, and how they are told the directory to look in.
_LAUNCHERS = {
    *("uvicorn", "gunicorn", "hypercorn", "daphne", "granian", "waitress-serve", "waitress", "flask", "fastapi"),
    *("bottle", "quart", "litestar", "sanic", "twistd", "uwsgi", "rackup", "puma", "ts-node", "tsx", "nodemon"),
}
_DIRECTORIES = {"--app-dir", "--chdir", "--pythonpath", "--working-dir"}
_APPS = {"--app", "-A", "--wsgi-file", "-w"}
_MODULE = re.compile(r"[A-Za-z_][\w.]*(?::[\w.()]+)?")
_SERVED_FILE = re.compile(r"[\w./@-]+\.(?:py|js|mjs|cjs|ts|rb|ru|php)")
#: Names that are only looked up when the program runs.
_TOLD = re.compile(r"[A-Za-z_]\w*(?:\.\w+)*(?::\w+)?")
_NODE_IMPORT = re.compile(r"""(?:\brequire\(\s*|\bfrom\s+|\bimport\s+|\bimport\(\s*)["']([^"']+)["']""")
_OTHER_IMPORT = re.compile(r"(?m)(?:^|[;{])[ \t]*(?:use|require\w*|include\w*|load)\b[\s(]*[\"']?([\w:./-]+)")
_OWN = frozenset(sys.stdlib_module_names)
#: Libraries that serve or speak, whatever a project calls a file of its own; a project that is one of them is it still.
FRAMEWORKS = frozenset(
    [
        *("flask", "bottle", "fastapi", "starlette", "uvicorn", "tornado", "aiohttp", "django", "sanic", "falcon"),
        *("cherrypy", "quart", "hypercorn", "gunicorn", "waitress", "werkzeug", "twisted", "pyramid", "litestar"),
        *("websockets", "grpc", "gevent", "requests", "httpx", "urllib3", "pydantic", "jinja2", "responses"),
        *("express", "fastify", "koa", "@hapi/hapi", "restify", "polka", "connect", "cors", "body-parser", "ws"),
        *("socket.io", "hono", "h3", "micro", "serve-handler", "serve-static", "morgan", "sinatra", "rack", "puma"),
    ]
)
#: What asks a service without being part of any project.
_ASKERS = {
    *("curl", "wget", "http", "https", "xh", "nc", "ncat", "netcat", "telnet", "socat", "websocat", "wscat", "grpcurl"),
    *("redis-cli", "psql", "mysql", "mongosh", "dig", "nslookup", "host", "openssl", "lynx", "w3m"),
}
_ASKING = frozenset(
    ["requests", "httpx", "urllib3", "aiohttp", "websockets", "websocket", "grpc", "http", "https", "net", "dgram"]
)
_PORTS_OF_CLIENTS = 32_768


def served_file(listener: ListenerFacts) -> str | None:
    """The absolute path of the file that a program for serving others' code was told; None where it is no such one."""
    words = bare(listener.argv)
    if not words:
        return None
    place = script_place(words)
    at = next((i for i, word in enumerate(words) if word.rsplit("/", 1)[-1] in _LAUNCHERS), None)
    if at is None or (words[at] not in {place, words[0]} and words[at - 1] != "-m"):
        return None
    cwd, told, rest = listener.cwd or "/", "", list(words[at + 1 :])
    while rest:
        option, equals, value = rest.pop(0).partition("=")
        if option in _DIRECTORIES | _APPS:
            value = value if equals else (rest.pop(0) if rest else "")
            if option in _DIRECTORIES:
                cwd = posixpath.join(cwd, value)
            else:  # gunicorn is told a number of workers alike
                told = told if value.isdigit() else value
        elif not told and option not in {"run", "dev", "serve", "web"} and not equals:
            told = option if _SERVED_FILE.fullmatch(option) or ":" in option else told
    if not told and words[at].endswith("flask"):
        told = "app"
    if _SERVED_FILE.fullmatch(told.split(":", 1)[0]):
        return posixpath.normpath(posixpath.join(cwd, told.split(":", 1)[0]))
    if not _MODULE.fullmatch(told):
        return None
    return posixpath.normpath(posixpath.join(cwd, told.split(":", 1)[0].replace(".", "/") + ".py"))


def imported(text: str) -> frozenset[str]:
    """What a program's text brings in: names of modules and packages, and paths, beside its language's own.

    An import whose name the program never uses, or that never runs, brings in nothing. Of text in a language that is
    not known: nothing.
    """
    tree = live_tree(text)
    if tree is None:
        found = {name.removeprefix("node:") for name in _NODE_IMPORT.findall(text)}
        packages = {_package(name) for name in found}
        return frozenset(found | packages or _packages_of_others(_OTHER_IMPORT.findall(text)))
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {
                alias.name.split(".", 1)[0]
                for alias in node.names
                if (alias.asname or alias.name.split(".", 1)[0]) in used
            }
        elif isinstance(node, ast.ImportFrom):
            wanted = any(alias.name == "*" or (alias.asname or alias.name) in used for alias in node.names)
            names |= {"." if node.level else (node.module or "").split(".", 1)[0]} if wanted else set()
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _TOLD.fullmatch(node.value):
            names |= {node.value.split(":", 1)[0].split(".", 1)[0]} if _looked_up(node.value, used) else set()
    return frozenset(names - _OWN)


def _package(name: str) -> str:
    """The package of Node that a name is of: ``acme`` of ``acme/server``, ``@acme/core`` of ``@acme/core/dist``."""
    if name.startswith((".", "/")):
        return name
    return "/".join(name.split("/")[: 2 if name.startswith("@") else 1])


def _packages_of_others(names: list[str]) -> set[str]:
    """Names of modules of Perl, Ruby and PHP with the ones that they stand in: ``Acme`` of ``Acme::Server``."""
    return {*names, *(re.split(r"::|/", name, maxsplit=1)[0] for name in names if not name.startswith((".", "/")))}


def _looked_up(value: str, used: set[str]) -> bool:
    return ":" in value or bool(used & {"importlib", "import_module", "__import__", "runpy", "run_module"})


def only_asks(steps: Iterable[Step], project: Iterable[str]) -> bool:
    """Whether all that works in the foreground asks a service by means that come from elsewhere than the project.

    Where something else works, it may be the project's own client, and the service its honest counterpart.
    """
    names = {name.lower() for name in project}
    working = [bare(step.words) for step in steps if role(step) in {"works", "hides"} and not step.background]
    asking = [step for step in steps if role(step) in {"works", "hides"} and not step.background]
    return bool(working) and all(_asks(words, step.stdin, names) for words, step in zip(working, asking, strict=True))


def _asks(words: tuple[str, ...], stdin: str | None, project: set[str]) -> bool:
    name = words[0].rsplit("/", 1)[-1]
    if name in _ASKERS:
        return name not in project and words[0] in {name, f"/usr/bin/{name}", f"/bin/{name}"}
    python = name.startswith(("python", "pypy"))
    if not (python or name in {"node", "nodejs"}):
        return False
    flags = ("-c",) if python else ("-e", "--eval", "-p", "--print")
    code = next((words[i + 1] for i, word in enumerate(words[:-1]) if word in flags), None)
    code = stdin if code is None and (len(words) == 1 or words[1:] == ("-",)) else code
    if code is None or UNKNOWN in code:
        return False
    brought = imported(code)
    return brought <= _ASKING and not {one.lower() for one in brought} & project


def by_chance(listener: ListenerFacts, named: frozenset[int]) -> bool:
    """Whether a datagram socket may be a client's: its port is one that the machine gives, and nobody named it."""
    return listener.over == "udp" and listener.port >= _PORTS_OF_CLIENTS and listener.port not in named
