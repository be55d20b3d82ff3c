"""What the remedies of ``troubles_native`` do. None: it could do nothing here, the next diagnosis is looked at."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from . import announce, debian
from .ecosystems import go, look, php, ruby, rust
from .terminal import Result
from .workshop import Applied, Remedy

if TYPE_CHECKING:
    from .workshop import Workshop

_SETTINGS = "/etc/maven/settings-debian.xml"
_GRADLE_INIT = """\
allprojects {
  buildscript { repositories { maven { url 'file:///usr/share/maven-repo' } } }
  repositories { maven { url 'file:///usr/share/maven-repo' } }
}
"""


def _named(match: re.Match[str]) -> str:
    return next((value for value in match.groupdict("").values() if value), "")


# -- Rust ----------------------------------------------------------------------------------------------------


def newer_cargo(shop: Workshop, _match: re.Match[str], _result: Result, _argument: str) -> Applied | None:
    """Debian's toolchain for its browsers is years newer than its plain one."""
    if debian.install(shop, "cargo-web", "rustc-web"):
        return Applied("installed Debian's cargo-web and rustc-web")
    return None


def crates_from_debian(shop: Workshop, _match: re.Match[str], result: Result, _argument: str) -> Applied | None:
    """Use the crates that Debian packages in place of the registry; the published lock file is set aside."""
    wanted = rust.dependencies(shop.project)
    packages = [f"librust-{name.replace('_', '-').lower()}-dev" for name in wanted]
    if not packages or not all(debian.known(shop, name) for name in packages):
        return None
    if not debian.install(shop, *packages):
        return None
    source = "[source.crates-io]\nreplace-with = 'debian'\n[source.debian]\ndirectory = '/usr/share/cargo/registry'\n"
    shop.run(f"mkdir -p /root/.cargo && cat >> /root/.cargo/config.toml <<'END'\n{source}END", timeout=20)
    shop.run("test ! -f Cargo.lock || mv Cargo.lock Cargo.lock.published", timeout=20)
    return Applied(f"took {', '.join(sorted(wanted))[:120]} from Debian's packages", result.command)


# -- Go ------------------------------------------------------------------------------------------------------


def go_newer(shop: Workshop, match: re.Match[str], _result: Result, _argument: str) -> Applied | None:
    """Fetch a current Go release with pip."""
    done = go.newer(shop, f"the tree needs a newer Go ({match.group(0)[:80]})")
    return Applied("installed a current Go release with pip") if done else None


def go_modules(shop: Workshop, _match: re.Match[str], _result: Result, _argument: str) -> Applied | None:
    """Let Go complete go.mod and go.sum."""
    if "-mod=mod" in shop.lasting.get("GOFLAGS", ""):
        return None
    shop.keep("GOFLAGS", "-mod=mod -buildvcs=false")
    return Applied("let Go complete go.mod and go.sum (GOFLAGS=-mod=mod)")


def go_init(shop: Workshop, _match: re.Match[str], _result: Result, _argument: str) -> Applied | None:
    """Give a tree of the time before modules a go.mod."""
    name = re.sub(r"[^A-Za-z0-9._-]", "-", shop.mission.name)
    done = not (shop.project / "go.mod").exists() and shop.run(f"go mod init {name}", timeout=60).ok
    return Applied("made a go.mod with `go mod init`") if done else None


def modules_from_debian(shop: Workshop, _match: re.Match[str], _result: Result, _argument: str) -> Applied | None:
    """Use the modules whose sources Debian packages, in place of the module proxy."""
    wanted = go.requirements(look.text(shop.project / "go.mod"))
    packages = {module: go.debian_package(module) for module in wanted}
    if not wanted or not all(debian.known(shop, name) for name in packages.values()):
        return None
    if not debian.install(shop, *dict.fromkeys(packages.values())):
        return None
    replaced = " ".join(f"-replace={module}=/usr/share/gocode/src/{module}" for module in wanted)
    if not shop.run(f"go mod edit {replaced}", timeout=60).ok:
        return None
    shop.keep("GOFLAGS", "-mod=mod -buildvcs=false")
    return Applied(f"took {', '.join(wanted)[:120]} from Debian's packages (replace lines in go.mod)")


# -- Java ----------------------------------------------------------------------------------------------------


def maven_from_debian(shop: Workshop, _match: re.Match[str], _result: Result, _argument: str) -> Applied | None:
    """Take plugins and libraries from Debian's own Maven repository, offline."""
    pom = look.text(shop.project / "pom.xml")
    extra = [name for word, name in (("jupiter", "junit5"), ("junit", "junit4"), ("testng", "testng")) if word in pom]
    if not debian.install(shop, "maven-debian-helper", *extra):
        return None
    config = shop.project / ".mvn/maven.config"
    config.parent.mkdir(exist_ok=True)
    kept = look.text(config).rstrip("\n")
    announce.write(config, (f"{kept}\n" if kept else "") + f"-o\n-s\n{_SETTINGS}\n")
    return Applied("took Maven's plugins and libraries from Debian's offline repository (.mvn/maven.config)")


def maven_artifact(shop: Workshop, match: re.Match[str], _result: Result, _argument: str) -> Applied | None:
    """Install the Debian package that ships an artifact of the offline repository."""
    group, name, *_ = match.group("artifact").split(":")
    pattern = (
        rf"/maven-repo/{re.escape(group.replace('.', '/'))}/{re.escape(name)}/[^/]+/{re.escape(name)}-[^/]+\.(pom|jar)$"
    )
    for package in debian.search(shop, pattern, name)[:2]:
        if debian.install(shop, package):
            return Applied(f"installed Debian's {package}")
    shop.draft.note(f"{group}:{name} is not among Debian's Java packages in that version")
    return None


def gradle_from_debian(shop: Workshop, _match: re.Match[str], result: Result, _argument: str) -> Applied | None:
    """Use Debian's Gradle in place of the wrapper's download."""
    if "gradlew" not in result.command or not debian.install(shop, "gradle"):
        return None
    return Applied(
        "used Debian's gradle in place of the wrapper", re.sub(r"(?:sh )?\./gradlew", "gradle", result.command)
    )


def gradle_offline(shop: Workshop, _match: re.Match[str], _result: Result, _argument: str) -> Applied | None:
    """Let Gradle look in Debian's Maven repository first."""
    text = "\n".join(look.text(path) for path in shop.project.glob("**/build.gradle*"))
    names = [
        "maven-repo-helper",
        *(name for word, name in (("jupiter", "junit5"), ("junit", "junit4")) if word in text),
    ]
    if not debian.install(shop, *names):
        return None
    shop.run(
        f"mkdir -p /root/.gradle/init.d && cat > /root/.gradle/init.d/debian.gradle <<'END'\n{_GRADLE_INIT}END",
        timeout=20,
    )
    return Applied("let Gradle look in Debian's Maven repository")


def java_release(shop: Workshop, match: re.Match[str], _result: Result, _argument: str) -> Applied | None:
    """Install the JDK that is asked for; where Debian has none, build for the release that is there."""
    wanted = _named(match)
    if debian.install(shop, f"openjdk-{wanted}-jdk-headless"):
        return Applied(f"installed Debian's openjdk-{wanted}-jdk-headless")
    if not (shop.project / "pom.xml").is_file():
        return None
    have = str((look.version(shop.run("javac -version", timeout=30, show=False).output) or (17,))[0])
    target = "8" if int(wanted) < int(have) else have
    config = shop.project / ".mvn/maven.config"
    if "maven.compiler" in look.text(config):
        return None
    config.parent.mkdir(exist_ok=True)
    kept = look.text(config).rstrip("\n")
    names = ("maven.compiler.source", "maven.compiler.target", "maven.compiler.release", "java.version")
    lines = "".join(f"-D{name}={target}\n" for name in names)
    announce.write(config, (f"{kept}\n" if kept else "") + lines)
    return Applied(f"built it for Java {target} in place of {wanted} (.mvn/maven.config)")


# -- Ruby and PHP --------------------------------------------------------------------------------------------


def gems_from_debian(shop: Workshop, _match: re.Match[str], _result: Result, _argument: str) -> Applied | None:
    """Use the gems that Debian packages; the published lock file is set aside."""
    wanted = ruby.gems(shop.project)
    own = {name.lower().replace("_", "-") for name in wanted}
    packages = ["rake" if name == "rake" else f"ruby-{name}" for name in sorted(own) if name != "bundler"]
    known = [name for name in packages if debian.known(shop, name)]
    if len(known) < len(packages):
        missing = ", ".join(sorted(set(packages) - set(known)))
        shop.draft.note(f"Debian has no package of the gems behind {missing}")
        return None
    if known and not debian.install(shop, *known):
        return None
    shop.run("test ! -f Gemfile.lock || mv Gemfile.lock Gemfile.lock.published", timeout=20)
    return Applied(f"took {', '.join(known)} from Debian's packages", "bundle install --local")


def ruby_version(shop: Workshop, match: re.Match[str], result: Result, _argument: str) -> Applied | None:
    """Leave the Gemfile's line about the Ruby version out and see."""
    if not shop.run(r"grep -q '^ *ruby ' Gemfile && sed -i 's/^\( *ruby \)/# \1/' Gemfile", timeout=20).ok:
        return None
    return Applied(f"left the Gemfile's line `ruby {match.group('want').strip()}` out", result.command)


def ruby_library(shop: Workshop, match: re.Match[str], _result: Result, _argument: str) -> Applied | None:
    """Install the Debian package of a missing Ruby library."""
    name = match.group("library")
    guess = f"ruby-{name.split('/')[0].replace('_', '-').lower()}"
    packages = [guess] if debian.known(shop, guess) else []
    packages += debian.search(shop, rf"/(vendor_ruby|gems/[^/]+/lib)/{re.escape(name)}\.rb$", name)[:2]
    for package in packages:
        if debian.install(shop, package):
            return Applied(f"installed Debian's {package}")
    return None


def composer_offline(shop: Workshop, _match: re.Match[str], result: Result, _argument: str) -> Applied | None:
    """Nothing but test tools to fetch: make the autoloader without the registry."""
    manifest = php.manifest_of(shop.project)
    if "composer install" not in result.command or php.packages(manifest, "require"):
        return None
    if "phpunit/phpunit" in php.packages(manifest, "require-dev"):
        debian.install(shop, "phpunit")
    return Applied("made the autoloader without the registry: nothing but development tools is to be fetched",
                   "composer dump-autoload --no-interaction")  # fmt: skip


def php_extension(shop: Workshop, match: re.Match[str], _result: Result, _argument: str) -> Applied | None:
    """Install an extension that composer names."""
    for package in php.extensions({"require": {f"ext-{_named(match)}": "*"}}):
        if debian.install(shop, package):
            return Applied(f"installed Debian's {package}")
    return None


def php_function(shop: Workshop, match: re.Match[str], _result: Result, _argument: str) -> Applied | None:
    """Install the extension behind a function or class."""
    packages = {
        "mb": "mbstring", "curl": "curl", "gd": "gd", "image": "gd", "bc": "bcmath", "intl": "intl",
        "sqlite": "sqlite3", "ZipArchive": "zip", "SQLite3": "sqlite3", "NumberFormatter": "intl", "Collator": "intl",
        "SoapClient": "soap", "": "sqlite3",
    }  # fmt: skip
    package = "php-" + packages.get(_named(match), "xml")
    return Applied(f"installed Debian's {package}") if debian.install(shop, package) else None


# -- C, C++ and their build tools ----------------------------------------------------------------------------


def tool_from_pip(shop: Workshop, _match: re.Match[str], _result: Result, argument: str) -> Applied | None:
    """A newer build tool from the Python index, in a directory of its own."""
    room = f"/opt/{argument}-newer"
    if not shop.run(f"python3 -m venv {room} && {room}/bin/pip install -q {argument}", timeout=300).ok:
        return None
    shop.paths.insert(0, f"{room}/bin")
    return Applied(f"installed a current {argument} with pip in {room}")


def cmake_module(shop: Workshop, match: re.Match[str], _result: Result, _argument: str) -> Applied | None:
    """Install the package of the header that CMake's own module (``FindNAME.cmake``) looks for."""
    name = match.group("module")
    places = [*Path("/usr/share").glob(f"cmake-*/Modules/Find{name}.cmake"), *shop.project.rglob(f"Find{name}.cmake")]
    text = "\n".join(look.text(path) for path in places)
    headers = re.findall(r"find_path\s*\([^)]*?\b([\w/-]+\.h(?:pp)?)\b", text, re.IGNORECASE)
    for header in list(dict.fromkeys(headers))[:3]:
        for package in debian.packages_with_header(shop, header)[:2]:
            if debian.install(shop, package):
                return Applied(f"installed Debian's {package}, which has {header}")
    return None


def cmake_fetched(shop: Workshop, match: re.Match[str], result: Result, _argument: str) -> Applied | None:
    """Use Debian's copy of what the build would fetch."""
    name = _named(match).lower()
    if not re.search(r"\bcmake\b.* -B ", result.command):
        return None
    if name in {"googletest", "gtest"} and debian.install(shop, "googletest"):
        option = "-DFETCHCONTENT_SOURCE_DIR_GOOGLETEST=/usr/src/googletest"
        return Applied("used Debian's googletest in place of the download", f"{result.command} {option}")
    for package in debian.packages_with_cmake(shop, _named(match))[:2]:
        if debian.install(shop, package):
            option = "-DFETCHCONTENT_TRY_FIND_PACKAGE_MODE=ALWAYS"
            return Applied(f"used Debian's {package} in place of the download", f"{result.command} {option}")
    return None


def submodules(shop: Workshop, _match: re.Match[str], _result: Result, _argument: str) -> Applied | None:
    """Fetch the submodules where the tree has any that are empty."""
    listed = re.findall(r"^\s*path\s*=\s*(\S+)", look.text(shop.project / ".gitmodules"), re.MULTILINE)
    empty = [name for name in listed if not any((shop.project / name).glob("*"))]
    if not empty or not shop.run("git submodule update --init --recursive --depth 1", timeout=300).ok:
        if empty:
            shop.draft.note(f"the submodule {empty[0]} could not be fetched: the tree has no history")
        return None
    filled = all(any((shop.project / name).glob("*")) for name in empty)
    return Applied("fetched the submodules") if filled else None


def compiler_flag(shop: Workshop, match: re.Match[str], result: Result, argument: str) -> Applied | None:
    """Add a flag for the compiler, by the compiler's own name where a Makefile fixes the flags."""
    flag = argument + _named(match) if argument.endswith("=") else argument
    if re.match(r"make\b", result.command):
        both = {"CC": f"cc {flag}", "CXX": f"c++ {flag}"}
        words = " ".join(f"{name}='{value}'" for name, value in both.items())
        bare = re.sub(r" C(?:C|XX)='[^']*'", "", result.command)
        before = re.search(r" CC='cc ([^']*)'", result.command)
        if before:
            words = words.replace(flag, f"{before.group(1)} {flag}")
        again = bare if flag.startswith("-W") or " -B" in bare else re.sub(r"^make", "make -B", bare)
        return Applied(f"compiled with {flag}", f"{again} {words}")
    for name in ("CFLAGS", "CXXFLAGS"):
        shop.env[name] = f"{shop.env.get(name, '')} {flag}".strip()
    built = re.match(r"cmake --build (\S+)", result.command)
    if built:
        said = " ".join(f"-DCMAKE_{lang}_FLAGS='{shop.env['CFLAGS']}'" for lang in ("C", "CXX"))
        return Applied(f"compiled with {flag}", f"cmake -S . -B {built.group(1)} {said} && {result.command}")
    return Applied(f"compiled with {flag}")


def autoreconf(shop: Workshop, _match: re.Match[str], result: Result, _argument: str) -> Applied | None:
    """Make the generated files again with Debian's tools."""
    ready = debian.install(shop, "autoconf", "automake", "libtool") or shop.run("command -v automake", timeout=20).ok
    line = "sh ./configure && make" if re.match(r"make\b", result.command) else result.command
    return Applied("made configure again with autoreconf", f"autoreconf -fi && {line}") if ready else None


def development_package(shop: Workshop, match: re.Match[str], _result: Result, _argument: str) -> Applied | None:
    """Install the development package of a library that configure names."""
    name = match.group("wanted").lower()
    guesses = [f"lib{name}-dev", f"{name}-dev", f"lib{name.removeprefix('lib')}-dev", name]
    guesses = [guess for guess in guesses if debian.known(shop, guess)]
    guesses = guesses or debian.packages_with_pkgconfig(shop, name) or debian.packages_with_library(shop, name)
    for package in guesses[:2]:
        if debian.install(shop, package):
            return Applied(f"installed Debian's {package}")
    return None


def apt_without(shop: Workshop, match: re.Match[str], result: Result, _argument: str) -> Applied | None:
    """Debian's name for a package of another release, else the same line without it."""
    name = _named(match)
    bare = re.sub(r"[\d.]+$", "", name).rstrip("-")
    renamed = {r"^openjdk-\d+-(.+)$": r"default-\1", r"^python3\.\d+(.*)$": r"python3\1",
               r"^php\d[\d.]*(.*)$": r"php\1",
               r"^libssl1.*$": "libssl3", r"^ruby\d.*$": "ruby", r"^g(cc|\+\+)-\d+$": r"g\1"}  # fmt: skip
    choices = [re.sub(p, r, name) for p, r in renamed.items() if re.match(p, name)] + [bare, f"{name}-dev"]
    other = next((choice for choice in choices if choice != name and debian.known(shop, choice)), "")
    command = re.sub(rf"(?<=\s){re.escape(name)}(?=\s|$)", other, result.command)
    if command == result.command:
        return None
    return Applied(
        f"took {other} in place of {name}" if other else f"left {name} out, which Debian 12 does not have", command
    )


def documented_variant(shop: Workshop, _match: re.Match[str], result: Result, _argument: str) -> Applied | None:
    """The README shows the same command with further settings (``make NAME=value``): follow that."""
    words = result.command.split()
    if not words or words[0] != "make":
        return None
    readme = look.text(shop.mission.readme) if shop.mission.readme else ""
    for line in re.findall(r"(?<![\w-])make((?: +[A-Z][A-Z0-9_]*=[\w./:+-]+)+)(?: +[\w-]+)?(?=\s|`|$)", readme):
        setting = " ".join(line.split())
        if setting not in result.command and setting not in shop.lasting.get("MAKEFLAGS", ""):
            shop.keep("MAKEFLAGS", setting)
            shop.env.pop("MAKEFLAGS", None)
            return Applied(
                f"built with {setting}, as the README shows", f"make {setting} {' '.join(words[1:])}".strip()
            )
    return None


NATIVE_REMEDIES: dict[str, Remedy] = {
    "newer_cargo": newer_cargo, "crates_from_debian": crates_from_debian, "go_newer": go_newer,
    "modules_from_debian": modules_from_debian, "go_modules": go_modules, "go_init": go_init,
    "maven_from_debian": maven_from_debian, "maven_artifact": maven_artifact,
    "gradle_from_debian": gradle_from_debian, "gradle_offline": gradle_offline, "java_release": java_release,
    "gems_from_debian": gems_from_debian, "ruby_version": ruby_version, "ruby_library": ruby_library,
    "composer_offline": composer_offline, "php_extension": php_extension, "php_function": php_function,
    "tool_from_pip": tool_from_pip, "cmake_module": cmake_module, "cmake_fetched": cmake_fetched,
    "submodules": submodules, "compiler_flag": compiler_flag, "autoreconf": autoreconf,
    "development_package": development_package, "apt_without": apt_without, "documented_variant": documented_variant,
}  # fmt: skip
