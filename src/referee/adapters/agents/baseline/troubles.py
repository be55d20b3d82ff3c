r"""THE TABLE: known kinds of failure. Pattern on the output -> diagnosis sentence -> remedy.

Each row is tried in order on the plain output of a failed command; ``{0}`` and ``{name}`` in the sentence are the
pattern's groups. The remedy ``stop`` is an honest end: nothing on this machine can help. A remedy is applied once for
each diagnosis key (remedy and groups).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .terminal import Result
from .troubles_native import NATIVE, NATIVE_LAST


@dataclass(frozen=True)
class Row:
    """One kind of failure."""

    pattern: re.Pattern[str]
    what: str
    remedy: str


@dataclass(frozen=True)
class Diagnosis:
    """A row that matched, with its sentence filled in."""

    key: str
    what: str
    remedy: str
    match: re.Match[str]


def _rows(*rows: tuple[str, str, str]) -> tuple[Row, ...]:
    return tuple(Row(re.compile(pattern, re.MULTILINE), what, remedy) for pattern, what, remedy in rows)


#: Package registries and the network.
_NETWORK = (
    (r"(?:Read timed out|ReadTimeoutError|ConnectionResetError|Connection reset by peer|IncompleteRead|"
     r"ECONNRESET|ETIMEDOUT|EAI_AGAIN|Temporary failure resolving|network timeout|429 Too Many Requests|"
     r"50[234] (?:Bad Gateway|Service Unavailable|Gateway Time-?out)|Hash Sum mismatch|socket hang up)",
     "the network flaked while packages were fetched", "retry"),
    (r"No space left on device", "the disk of the machine is full", "stop"),
)  # fmt: skip

_PYTHON = (
    (r"externally-managed-environment", "Debian's Python refuses installs outside a virtual environment", "venv"),
    (r"(?:ensurepip is not|No module named ensurepip|python3(?:\.\d+)?-venv)", "Python's venv module is incomplete",
     "apt:python3-venv"),
    (r"(?P<dist>[\w.-]+)'? requires a different Python: (?P<have>[\d.]+)[^\n]*not in '(?P<spec>[^']+)'",
     "{dist} needs Python {spec}, this machine has {have}", "other_python"),
    (r"(?:Ignored the following versions that require a different python version|Requires-Python) ",
     "no release of a dependency supports this Python", "other_python"),
    (r"use_2to3 is invalid", "the build asks setuptools for use_2to3, which is gone since setuptools 58",
     "build_tool:setuptools<58"),
    (r"(?:cython_sources|Cython\.Compiler\.Errors\.CompileError|Cython/Compiler|\.pyx:\d+:\d+: )",
     "the build took a Cython newer than the sources can bear", "build_tool:Cython<3"),
    (r"(?:ModuleNotFoundError: No module named 'pkg_resources'|cannot import name '\w+' from 'pkg_resources'|"
     r"module 'pkg_resources' has no attribute)",
     "pkg_resources is gone from newer setuptools", "pkg_resources"),
    (r"(?:AttributeError: module 'setuptools|cannot import name '\w+' from 'setuptools|setuptools\.\w+.* has no "
     r"attribute|No module named 'setuptools\.command\.\w+'|install_layout|ModuleNotFoundError: No module named "
     r"'distutils\.msvc|canonicalize_version\(\) got an unexpected)",
     "the build needs an older setuptools", "build_tool:setuptools<66"),
    (r"(?:SETUPTOOLS_SCM_PRETEND_VERSION|setuptools-scm was unable to detect version|unable to detect version for|"
     r"Versioning for this project requires either an sdist|PBR_VERSION|hatch-vcs|dunamai|"
     r"Unable to determine version|getting the version from (?:git|scm)|vcs_versioning)",
     "the build wants its version from git tags, and this tree has no history", "pretend_version"),
    (r"numpy[^\n]*(?:incompatible|has no attribute|dtype size changed)|A module that was compiled using NumPy 1",
     "a dependency was built for NumPy 1", "constrain:numpy<2"),
    (r"ModuleNotFoundError: No module named '(?:_tkinter|tkinter)'|You must install tkinter|libtk[\d.]+\.so",
     "Python's tkinter is not installed", "apt:python3-tk"),
    (r"Getting requirements to build wheel[\s\S]{0,6000}ModuleNotFoundError: No module named '(?P<module>[\w.]+)'",
     "the build imports {module} without declaring it", "build_module"),
    (r"ImportError: cannot import name '(?P<name>\w+)' from (?:partially initialized module )?'(?P<module>[\w.]+)'",
     "{module} no longer offers {name}: a dependency moved on", "older_dependency"),
    (r"AttributeError: module '(?P<module>[\w.]+)' has no attribute '(?P<name>\w+)'",
     "{module} has no {name}: a dependency or the interpreter moved on", "older_dependency"),
    (r"ModuleNotFoundError: No module named '(?P<module>[\w]+)\.(?P<name>[\w.]+)'",
     "{module} no longer has {name}: a dependency moved on", "older_dependency"),
    (r"(?:ModuleNotFoundError|ImportError): No module named '?(?P<module>[\w]+)'?(?:$|\s|;)",
     "the Python module {module} is missing", "python_module"),
    (r"(?:requires|require|install|installing|needs|missing|Missing)[^\n]{0,60}`?pip3? install "
     r"['\"]?(?P<module>[\w.\[\],-]+)", "it asks for pip install {module}", "pip_named"),
    (r"(?:ImportError|Configured|Dependency\w*): [`'\"]?(?P<module>[A-Za-z][\w-]{2,})[`'\"]? "
     r"(?:library |package |module )?(?:is |was |must be )?(?:not )?installed(?![^\n]*PATH)",
     "it asks for the Python package {module}", "pip_named"),
    (r"TypeError: [^\n]*(?:unexpected keyword argument|missing \d+ required)[\s\S]{0,200}\Z",
     "a call no longer fits a dependency's signature", "older_all"),
)  # fmt: skip

_SYSTEM = (
    (r"(?:fatal error: |error: )(?P<header>[\w./+-]+\.h(?:pp|xx)?): No such file", "the header {header} is missing",
     "header"),
    (r"cannot find -l(?P<library>[\w.+-]+)", "the linker finds no library {library}", "library"),
    (r"(?P<file>lib[\w.+-]+\.so(?:\.[\d.]+)?): cannot open shared object file", "the shared library {file} is missing",
     "shared_object"),
    (r"(?:cannot load library|Could not find library|could not load|not find a suitable|OSError: no library called|"
     r"Unable to find|unable to load|Failed to load dynlib)[^\n']{0,40}['\"]"
     r"(?P<file>lib[\w.+-]+?\.so[\d.]*|[\w-]+)['\"]",
     "the shared library {file} is missing", "shared_object"),
    (r"No package '(?P<pc>[\w.+-]+)' found|"
     r"Package '?(?P<pc2>[\w.+-]+)'?,? (?:required by '[^']*', )?(?:was )?not found|"
     r"Dependency \"?(?P<pc3>[\w.+-]+)\"? not found|Run-time dependency (?P<pc4>[\w.+-]+) found: NO",
     "pkg-config finds no description of {pc}{pc2}{pc3}{pc4}", "pkgconfig"),
    (r"Could not find a package configuration file provided by \"(?P<cmake>\w+)\"|Could NOT find (?P<cmake2>\w+) ",
     "CMake finds no package {cmake}{cmake2}", "cmake"),
    (r"(?P<tool>pg_config|mysql_config|mariadb_config|curl-config|xml2-config|xslt-config|krb5-config|gdal-config|"
     r"geos-config|llvm-config|freetype-config|cups-config|net-snmp-config|nc-config)\b[^\n]{0,60}"
     r"(?:not found|is required|No such file|executable not)", "the tool {tool} of a library is missing", "program"),
    (r"(?:command '(?P<cc>[\w/.+-]*(?:gcc|cc|c\+\+|g\+\+|clang|x86_64-linux-gnu-g\+?\+?c*))' failed: No such file|"
     r"(?P<cc2>No acceptable C compiler|no acceptable C compiler|gcc: (?:command )?not found|"
     r"cc: (?:command )?not found|"
     r"g\+\+: (?:command )?not found|linker `cc` not found|CMAKE_C(?:XX)?_COMPILER not set))",
     "a C compiler is missing", "apt:build-essential"),
    (r"Python\.h: No such file", "Python's headers are missing", "apt:python3-dev"),
    (r"(?:can't find Rust compiler|Rust (?:toolchain )?is not installed|cargo, the Rust package manager, is not)",
     "the build needs a Rust compiler", "apt:cargo"),
    (r"(?:apt-get|apt|aptitude) (?:-y |-qq |--yes )*install (?:-y |-qq |--yes |--no-install-recommends )*"
     r"(?P<packages>[a-z0-9][a-z0-9.+-]*(?: [a-z0-9][a-z0-9.+-]*)*)",
     "its message asks for Debian's {packages}", "apt_named"),
    (r"^(?:/bin/(?:ba|da)?sh|bash|sh|/usr/bin/env|env|make(?:\[\d\])?): (?:line )?(?:\d+: )?[‘'`\"]?"
     r"(?P<program>[\w.+-]+)['’\"]?: (?:command )?(?:not found|No such file)",
     "the command {program} is not installed", "program"),
    (r"(?:FileNotFoundError: \[Errno 2\] No such file or directory: |spawn |ENOENT: |exec: |execvp: |"
     r"RuntimeError: command not found: |[Cc]ould not find |[Cc]ouldn't find |[Cc]annot find |[Uu]nable to find |"
     r"program |executable |\bCommand )['\"`]?(?P<program>[a-z][a-z0-9+_-]{1,30})['\"`]?"
     r"(?:$| ENOENT| not found| executable| binary| command| program| in (?:\$?PATH|your)|: executable|,? please)",
     "the program {program} is not installed", "program"),
    (r"(?:^|[\s:'\"`(])(?P<program>[a-z][a-z0-9+_-]{1,30})['\"`]? (?:is not installed|(?:is|was) not found|"
     r"could not be found|not found in (?:\$?PATH|your)|(?:executable|binary|command|program) not found|"
     r"is required but|must be installed|not found on|isn't installed)",
     "the program {program} is not installed", "program"),
    (r"Can't locate (?P<perl>[\w/]+\.pm) in @INC", "the Perl module {perl} is missing", "perl"),
    (r"(?:cc1plus|cc1|c\+\+|g\+\+|rustc|ld|collect2|clang)[^\n]*(?:Killed|signal 9)|fatal error: Killed signal|"
     r"JavaScript heap out of memory|Cannot allocate memory|std::bad_alloc|MemoryError",
     "the build ran out of memory", "less_parallel"),
)  # fmt: skip

_RUNTIME = (
    (r"(?:root is not allowed|must not be run as root|cannot be run as root|should not be run as root|"
     r"[Rr]efus\w+ to run as root|not permitted to run as root|as the (?:\"?root\"?|super) ?user|"
     r"run as root is not|Running as root without --no-sandbox|don't run this as root)",
     "it refuses to run as root", "unprivileged"),
    (r"(?:[Nn]o DISPLAY|DISPLAY environment|cannot open display|could not connect to display|KeyError: 'DISPLAY'|"
     r"no display name and no \$DISPLAY|Can't connect to display|unable to open display|Missing X server|"
     r"XOpenDisplay|XDG_RUNTIME_DIR (?:is )?not set|failed to create GLFW|Bad display name|"
     r"No available video device|xcb plugin|DisplayConnectionError|DisplayNameError)",
     "it needs a display", "display"),
    (r"(?:Connection refused|ECONNREFUSED|[Cc]ould not connect|[Cc]an't connect|ConnectionRefusedError|"
     r"Can't create a connection|connection failed|actively refused|Connection error)[^\n]{0,240}?"
     r"(?<![\d.])(?P<port>6379|5432|3306|11211|5672|1883|11300|4730)\b", "nothing answers on port {port}", "service"),
    (r"(?<![\d.])(?P<port>6379|5432|3306|11211|5672|1883|11300|4730)\b[^\n]{0,160}?(?:Connection refused|ECONNREFUSED|"
     r"actively refused|ConnectionRefused)", "nothing answers on port {port}", "service"),
    (r"(?:Is the server running (?:on|locally)|could not connect to server: |psycopg\w*\.OperationalError|"
     r"pg8000[\s\S]{0,2000}(?:Connection refused|create a connection))", "no PostgreSQL server answers",
     "service_named:postgresql"),
    (r"Can't connect to (?:local )?MySQL server|\(2003, |\(2002, ", "no MySQL server answers", "service_named:mariadb"),
    (r"(?:redis|valkey)\w*[\s\S]{0,2000}ConnectionRefusedError|Error (?:111|97|99) connecting to",
     "no Redis server answers", "service_named:redis"),
    (r"(?:27017|ServerSelectionTimeoutError|MongoNetworkError)",
     "it needs MongoDB, which Debian does not have", "stop"),
    (r"(?:EADDRINUSE|[Aa]ddress already in use|[Pp]ort (?P<port>\d+)[^\n]{0,60}already in use|[Pp]ort \d+ is in use|"
     r"Errno 98)", "the port it wants is taken", "other_port"),
    (r"(?:ERR_OSSL_EVP_UNSUPPORTED|error:0308010C)", "it uses a hash that this Node's OpenSSL 3 no longer offers",
     "env:NODE_OPTIONS=--openssl-legacy-provider"),
    (r"(?:NVIDIA-SMI|NVML|libcuda|CUDA driver|no CUDA-capable|nvidia-smi|No NVIDIA|querying NVIDIA|"
     r"Found no NVIDIA driver)", "it needs an NVIDIA GPU, and this machine has none", "stop"),
    (r"(?:(?:API|api)[ _-]?(?:KEY|key)[^\n]{0,60}(?:not set|required|missing|must be|is not|not found|undefined)|"
     r"(?:[Mm]issing|[Nn]o|[Ii]nvalid|[Rr]equires?|[Pp]rovide|set) (?:an? |the |your )?[\w ]{0,20}"
     r"(?:API|api)[ _-]?(?:KEY|key)|\w*(?:API_KEY|ACCESS_TOKEN|AUTH_TOKEN|SECRET_KEY)\w* (?:environment )?[^\n]{0,30}"
     r"(?:required|not set|missing))", "it needs an API key of a paid or foreign service", "stop"),
    (r"(?:[Mm]issing|[Nn]o|find|copy)[^\n]{0,40}\.env\b|"
     r"\.env(?:\.local)?[^\n]{0,40}(?:not found|missing|does not exist|No such file|ENOENT)|"
     r"(?:ENOENT|No such file)[^\n]{0,80}\.env\b", "its environment file is missing", "env_file"),
    (r"(?:missing|[Mm]issing|undefined|required|not set)[^\n]{0,40}environment variable",
     "it wants environment variables", "env_file"),
    (r"LC_ALL|locale\.Error|UnicodeEncodeError: 'ascii'", "the locale is not UTF-8", "env:LC_ALL=C.UTF-8"),
    (r"tzdata|ZoneInfoNotFoundError", "the time zone database is missing", "apt:tzdata"),
)  # fmt: skip

_NODE = (
    (r"npm (?:ERR!|error) code ERESOLVE(?:[\s\S]{0,3000}?peer (?P<peer>\S+) from (?P<asker>@?[\w./-]+))?",
     "npm finds no set of versions that satisfies every peer", "peer"),
    (r"npm (?:ERR!|error) code EBADENGINE|The engine \"node\" is incompatible|Unsupported engine",
     "a package asks for another Node version", "engine_strict"),
    (r"(?:gyp ERR! find Python|gyp ERR! stack Error: not found: make|gyp ERR! not ok|node-gyp)",
     "a native module is compiled and the tools for it are missing", "node_gyp"),
    (r"(?:Failed to set up chrome|Failed to download (?:Chrom|browser)|puppeteer[\s\S]{0,400}(?:ERR|ENOTFOUND|"
     r"Could not find Chrom)|Could not find (?:Chrome|Chromium|browser)|Failed to launch the browser)",
     "its install downloads a browser from a host that cannot be reached", "browser"),
    (r"command failed[\s\S]{0,400}npm (?:ERR!|error) command sh -c [^\n]*(?:install|download)",
     "a package's install script failed", "ignore_scripts"),
    (r"(?:Can't resolve|Entry module not found|Could not resolve entry module|[Nn]o such entry|Could not resolve)"
     r"[^\n]{0,80}?['\"`](?P<entry>(?:\./)?(?:src|lib|app|index|main|\./)[\w./-]*)['\"`]",
     "it has no input to work on", "entry"),
    (r"(?:Cannot find (?:module|package) |Could not resolve |Can't resolve )['\"](?P<module>@?[a-z0-9][\w.-]*"
     r"(?:/[\w.-]+)?)['\"]", "the Node package {module} is missing", "node_module"),
    (r"npm (?:install|i) (?:-D |-g |--save-dev |--save |-S )*(?P<module>@?[a-z0-9][\w./-]*)[^\n]*\n[\s\S]*\Z|"
     r"(?:[Ww]ant to|[Nn]eed to|[Pp]lease|[Mm]ust) install ['\"`](?P<module2>@?[a-z][\w./-]+)['\"`]",
     "it asks for the Node package {module}{module2}", "node_module"),
    (r"lockfile[^\n]*(?:not up to date|out of date|frozen)|npm ci[^\n]*can only install",
     "the lock file does not fit the manifest", "no_frozen"),
    (r"(?:pnpm|yarn): (?:command )?not found|This project('s|\s)+package\.json defines \"packageManager\"",
     "the project's package manager is missing", "package_manager"),
)  # fmt: skip

_OPTIONS = (
    (r"(?:[Uu]se|[Pp]ass|[Tt]ry|[Ww]ith|[Aa]dd|[Ss]pecify) (?:the )?[`'\"]?"
     r"(?P<option>--(?:yes|no-input|non-?interactive|defaults?|"
     r"force-yes|no-interaction|assume-yes|batch|accept[\w-]*|no-prompt|skip-prompts?))\b",
     "it asks questions and names {option} for those who cannot answer", "option"),
)  # fmt: skip

_LAST = (
    (r"(?:getaddrinfo|Name or service not known|Temporary failure in name resolution|NameResolutionError|ENOTFOUND|"
     r"Could not resolve host|Network is unreachable|CERTIFICATE_VERIFY_FAILED|ProxyError|Tunnel connection failed|"
     r"URLError|403 Forbidden|HTTP Error 40[37]|[Ff]etch failed)",
     "it wants a network host that cannot be reached from here", "give_up"),
    (r"(?:subprocess-exited-with-error|Failed building wheel|Failed to build|metadata-generation-failed)",
     "the build failed with today's build tools", "build_ladder"),
    (r"(?:No matching distribution found for|Could not find a version that satisfies the requirement) (?P<req>\S+)",
     "no release satisfies {req} here", "give_up"),
    (r"Permission denied|EACCES", "a file may not be run or written", "executable"),
)  # fmt: skip

TABLE: tuple[Row, ...] = _rows(
    *_NETWORK, *NATIVE, *_PYTHON, *_SYSTEM, *_NODE, *_RUNTIME, *NATIVE_LAST, *_OPTIONS, *_LAST
)


def diagnose(result: Result) -> Iterator[Diagnosis]:
    """All diagnoses that fit a failed command, in the table's order."""
    if result.waiting:
        match = re.search(r"[^\n]*\S[^\n]*\s*\Z", result.output) or re.search("", result.output)
        if match:
            yield Diagnosis("prompt", "it waits for an answer at a prompt", "prompt", match)
    if result.crashed:
        match = re.search("", result.output)
        if match:
            yield Diagnosis(f"crash:{result.command}", "a native part crashes on this machine", "crash", match)
    if result.killed:
        match = re.search("", result.output)
        if match:
            yield Diagnosis("killed", "the command was killed, most likely for memory", "less_parallel", match)
    for row in TABLE:
        for match in _distinct(row.pattern, result.output):
            named = {name: value or "" for name, value in match.groupdict().items()}
            groups = ",".join(value for value in named.values() if value)
            yield Diagnosis(f"{row.remedy}:{groups}", row.what.format(*match.groups(""), **named), row.remedy, match)


#: What only those need who work on a project: to test, check or release it.
_DEVELOPERS_TOOLS = frozenset(
    """
    pytest tox nox coverage pre-commit pre_commit ruff flake8 pylint mypy pyright black isort bandit twine bumpversion
    eslint prettier jest mocha vitest ava phpunit phpstan phpcs rspec rubocop shellcheck clang-format clang-tidy
    cppcheck golangci-lint
    """.split()  # noqa: SIM905 — a word list reads better as words
)


def for_developers(diagnosis: Diagnosis) -> bool:
    """Whether all that is missing is a tool of the project's developers, which no reader of its README has either."""
    return any(value in _DEVELOPERS_TOOLS for value in diagnosis.match.groupdict().values())


def _distinct(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    seen: set[tuple[str, ...]] = set()
    for match in pattern.finditer(text):
        groups = match.groups("")
        if groups not in seen:
            seen.add(groups)
            yield match
        if len(seen) > 4:  # noqa: PLR2004 — more of one kind in one output says nothing new
            return
