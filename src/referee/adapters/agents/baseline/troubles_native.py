r"""More rows of THE TABLE: toolchains and builds of Rust, Go, Java, Ruby, PHP, C and C++, and blocked registries.

A row with a fallback stands before the row that names the blocked host and stops. Groups and remedies as in
``troubles``; the remedies are in ``remedies_native``.
"""

from __future__ import annotations

#: A name that did not resolve, in the words of each client.
_NAME = r"(?:[a-z0-9-]+\.)+[a-z]{2,}"
_HOST = (
    r"(?:Could not resolve host(?: name)?:? |lookup |Unknown host |Could not reach host |getaddrinfo for |"
    r"UnknownHostException: |Failed to open TCP connection to |unable to resolve host address \W?|"
    rf"(?<![\w.-])(?={_NAME}: Name or service not known))(?P<host>{_NAME})"
)

_RUST = (
    (r"(?:registry `crates-io`|crates\.io)[\s\S]{0,3000}?" + _HOST, "cargo cannot reach {host}", "crates_from_debian"),
    (r"(?:requires rustc (?P<want>\d[\d.]*)|rustc (?P<have>\d[\d.]*) is not supported by|lock file version `?\d+`? "
     r"(?:was found|requires)|feature `edition\d+` is required|this version of Cargo is older than)",
     "the tree asks for a newer Rust than the one installed", "newer_cargo"),
    (r"Could not find directory of OpenSSL installation", "OpenSSL's headers are missing", "apt:libssl-dev"),
    (r"Could not find `protoc`", "the Protocol Buffers compiler is missing", "apt:protobuf-compiler"),
    (r"Unable to find libclang", "libclang is missing", "apt:libclang-dev"),
)  # fmt: skip

_GO = (
    (r"(?:invalid go version '(?P<want>[\d.]+)'|unknown directive: toolchain|module requires Go (?P<want2>[\d.]+)|"
     r"requires go >= (?P<want3>[\d.]+)|package (?P<std>cmp|slices|maps|log/slog|iter|unique|math/rand/v2) is not in)",
     "the tree asks for a newer Go than the one installed", "go_newer"),
    (r"(?:missing go\.sum entry|updates to go\.(?:mod|sum) needed|inconsistent vendoring|no required module provides)",
     "go.mod or go.sum does not list every module", "go_modules"),
    (r"^(?:go: |[\w./-]+\.go:\d+)[^\n]*" + _HOST, "Go cannot reach {host}", "modules_from_debian"),
    (r"error obtaining VCS status", "Go asks git about a tree that has no history", "env:GOFLAGS=-buildvcs=false"),
    (r"(?:go\.mod file not found|cannot find main module)", "the tree has no go.mod", "go_init"),
)  # fmt: skip

_JAVA = (
    (r"\[(?:ERROR|FATAL)\][\s\S]{0,6000}?" + _HOST, "Maven cannot reach {host}", "maven_from_debian"),
    (r"(?:Downloading https?://[^\s]*gradle|org\.gradle\.wrapper)[\s\S]{0,3000}?" + _HOST,
     "the Gradle wrapper cannot reach {host}", "gradle_from_debian"),
    (r"(?:Could not (?:GET|HEAD|resolve)|No cached version)[\s\S]{0,3000}?" + _HOST,
     "Gradle cannot reach {host}", "gradle_offline"),
    (r"(?:release version (?P<release>\d+) not supported|invalid (?:target|source) release: (?P<release2>\d+)|"
     r"(?:Source|Target) option (?P<old>\d+) is no longer supported)",
     "it asks for Java {release}{release2}{old}, which this JDK does not build for", "java_release"),
    (r"(?:No matching toolchains found|Cannot find a Java installation on your machine)[^\n]*",
     "Gradle asks for a JDK that Debian does not have", "stop"),
    (r"Cannot access [^\n]* in offline mode and the artifact (?P<artifact>[\w.-]+:[\w.-]+:\w+:[\w.-]+)",
     "{artifact} is not among Debian's Java packages", "maven_artifact"),
    (r"Unsupported class file major version \d+|Could not determine java version",
     "its Gradle is too old for this JDK", "gradle_from_debian"),
)  # fmt: skip

_RUBY = (
    (rf"Could not reach host (?P<host>{_NAME})", "bundler cannot reach {host}", "gems_from_debian"),
    (r"Your Ruby version is (?P<have>[\d.]+), but your Gemfile specified (?P<want>[^\n]+)",
     "the Gemfile asks for Ruby {want}, Debian has {have}", "ruby_version"),
    (r"mkmf\.rb can't find header files for ruby", "Ruby's headers are missing", "apt:ruby-dev"),
    (r"cannot load such file -- (?P<library>[\w/-]+)", "the Ruby library {library} is missing", "ruby_library"),
)  # fmt: skip

_PHP = (
    (r"composer[\s\S]{0,4000}?" + _HOST + r"|(?:file could not be downloaded|curl error 6)[\s\S]{0,600}",
     "composer cannot reach its registry", "composer_offline"),
    (r"requires php (?P<want>[^\n]{1,40}?) but your php version \((?P<have>[\d.]+)\)",
     "it asks for PHP {want}, Debian has {have}", "stop"),
    (r"requires? (?:PHP extension )?ext-(?P<extension>\w+)|The requested PHP extension (?:ext-)?(?P<extension2>\w+)",
     "the PHP extension {extension}{extension2} is missing", "php_extension"),
    (r"undefined function (?P<function>mb|curl|simplexml|xml|gd|image|bc|intl|sqlite)\w*\(",
     "PHP lacks the functions of {function}", "php_function"),
    (r"Class \"\\?(?P<class>DOMDocument|SimpleXMLElement|XMLWriter|XMLReader|ZipArchive|SQLite3|NumberFormatter|"
     r"Collator|SoapClient)\" not found|could not find driver", "PHP lacks the class {class}", "php_function"),
)  # fmt: skip

_BUILD = (
    (r"CMake (?P<want>[\d.]+) or higher is required[^\n]*running version (?P<have>[\d.]+)",
     "it asks for CMake {want}, Debian has {have}", "tool_from_pip:cmake"),
    (r"Meson version is (?P<have>[\d.]+) but project requires (?P<want>[^\n]+)",
     "it asks for Meson {want}, Debian has {have}", "tool_from_pip:meson"),
    (r"Could NOT find (?P<module>\w+) ", "CMake's module finds no {module}", "cmake_module"),
    (r"Compatibility with CMake < 3\.5 has been removed", "it asks for a CMake policy that is gone",
     "env:CMAKE_POLICY_VERSION_MINIMUM=3.5"),
    (r"(?:Build step for (?P<fetched>[\w.-]+) failed|(?P<fetched3>[\w.-]+)-subbuild|"
     r"Failed to clone repository: '[^'\n]*?(?P<fetched2>[\w.-]+?)(?:\.git)?')",
     "the build fetches {fetched}{fetched2}{fetched3} from a host that cannot be reached", "cmake_fetched"),
    (r"add_subdirectory given source \"(?P<module>[^\"]+)\" which is not an existing|"
     r"directory\s+(?P<module2>\S+)\s+does not contain a CMakeLists\.txt",
     "the part {module}{module2} of the tree is missing", "submodules"),
    (r"error: [^\n]*\[-Werror=(?P<warning>[\w+=-]+)\]", "a warning of this newer compiler ({warning}) is treated as an "
     "error", "compiler_flag:-Wno-error="),
    (r"multiple definition of [^\n]*first defined here", "it relies on common symbols, which newer compilers refuse",
     "compiler_flag:-fcommon"),
    (r"possibly undefined macro: '?(?:AC_PROG_LIBTOOL|LT_INIT|AC_LIBTOOL\w*|LIBTOOL)|LIBTOOL' is undefined|libtoolize",
     "libtool is missing", "apt:libtool"),
    (r"possibly undefined macro: '?(?:PKG_\w+|AC_MSG_ERROR)|PKG_CHECK_MODULES", "pkg-config's macros are missing",
     "apt:pkg-config"),
    (r"possibly undefined macro: '?AX_\w+|(?:^|\s)AX_[A-Z_]+\(?[^\n]*(?:not found|syntax error)",
     "the Autoconf archive is missing", "apt:autoconf-archive"),
    (r"possibly undefined macro: '?AM_(?:GNU_GETTEXT|ICONV|NLS)|autopoint", "gettext's macros are missing",
     "apt:autopoint gettext"),
    (r"'?(?:aclocal|automake)-1\.\d+'? is missing on your system", "the generated files ask for another automake",
     "autoreconf"),
    (r"configure: error: [^\n]*?(?P<header>[\w/+.-]+\.h)\b", "configure misses the header {header}", "header"),
    (r"configure: error: [^\n]*?\b(?:lib)?(?P<wanted>[A-Za-z][\w+.-]*?)(?:-dev(?:el)?|['\u2019\" ])*"
     r"(?: headers?| library| libraries| development \w+| package)* (?:(?:was |is |were |are )?(?:not found|missing|"
     r"required|not available|needed|not installed)|could not be found|must be installed)",
     "configure misses {wanted}", "development_package"),
    (r"E: (?:Unable to locate package (?P<package>[\w.+-]+)|Package '(?P<package2>[\w.+-]+)' has no installation)",
     "Debian 12 has no package {package}{package2}", "apt_without"),
    (r"^make(?:\[\d+\])?: \*\*\* \[[^\n]*(?:Killed|Error 137)", "a build job was killed, most likely for memory",
     "less_parallel"),
    (r"^(?P<said>make(?:\[\d+\])?: \*\*\* [^\n]{1,160}|CMake Error[^\n]{0,160}|ninja: build stopped)",
     "the build stopped: {said}", "documented_variant"),
)  # fmt: skip

_STOP = ((_HOST, "the host {host} is not reachable from this machine", "stop"),)

#: After Debian had nothing to offer.
_TREE = (
    (
        r"fatal error: [\w./+-]+: No such file",
        "a part that git would fetch as a submodule may be missing",
        "submodules",
    ),
    *_BUILD[-1:],
)

#: Joined in front of the general table: (pattern, sentence, remedy).
NATIVE: tuple[tuple[str, str, str], ...] = (*_RUST, *_GO, *_JAVA, *_RUBY, *_PHP, *_BUILD[:-1])
#: Joined behind it: the honest ends.
NATIVE_LAST: tuple[tuple[str, str, str], ...] = (*_TREE, *_STOP)
