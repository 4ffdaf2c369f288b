"""Checks that each public header compiles on its own, included twice, without a warning, and gives
its declarations default visibility: the shared library hides all others, internal classes that a
header declares in advance among them."""

import os
import re
import subprocess
from collections.abc import Iterator

from check_layers import classes_of
from tree import Fault, Tree, in_parallel, tool

# Programs with these warnings include the headers without `-isystem`.
FLAGS = ["-std=c++23", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow",
         "-Wconversion", "-Werror"]


# The pkg-config modules of the headers in adapters/, which are checked if these are installed.
ADAPTERS = {
    "cares.h": "libcares",
    "curl.h": "libcurl",
    "glib.h": "glib-2.0",
    "hiredis.h": "hiredis",
    "hiredis_events.h": "hiredis",
    "hiredis_request.h": "hiredis",
    "hiredis_value.h": "hiredis",
    "libpq.h": "libpq",
    "libpq_query.h": "libpq",
    "libpq_result.h": "libpq",
    "libpq_session.h": "libpq",
    "libssh2.h": "libssh2",
    "libssh2_call.h": "libssh2",
    "libssh2_execution.h": "libssh2",
    "libssh2_operation.h": "libssh2",
    "libssh2_result.h": "libssh2",
    "libssh2_transport.h": "libssh2",
    "mariadb.h": "libmariadb",
    "mariadb_result.h": "libmariadb",
    "mariadb_session.h": "libmariadb",
    "mosquitto.h": "libmosquitto",
    "mosquitto_operations.h": "libmosquitto",
    "nats.h": "libnats",
    "nats_core.h": "libnats",
    "nats_events.h": "libnats",
    "nats_message.h": "libnats",
    "rdkafka_consumer.h": "rdkafka",
    "rdkafka_producer.h": "rdkafka",
    "rdkafka_queue.h": "rdkafka",
    "sd_bus.h": "libsystemd",
    "sd_event.h": "libsystemd",
}


def flags_of(header: str) -> list[str] | None:
    """The compiler flags of the library of an adapter; None if it is not installed."""
    module = ADAPTERS.get(header.removeprefix("include/tambour/adapters/"))
    if module is None:
        return []
    found = subprocess.run(["pkg-config", "--cflags", module], capture_output=True, text=True,
                           check=False)
    if found.returncode != 0:
        return None
    # Warnings of the other library's headers are not ours.
    return [flag.replace("-I", "-isystem", 1) for flag in found.stdout.split()]


PUSH = "#pragma GCC visibility push(default)"
POP = "#pragma GCC visibility pop"


DECLARATIONS = re.compile(r"namespace [\w:]+ \{|template <[\w, .]*>|"
                          r"(template <[\w, .]*> )?(class|struct) \w+;|\}.*|//.*|")


def visibility_fault(lines: list[str]) -> tuple[int, str] | None:
    """The line and text of the first fault of a header's visibility pragmas."""
    if not any(line.startswith("namespace ") for line in lines):
        return None
    for pragma in (PUSH, POP):
        if lines.count(pragma) != 1:
            return 1, f"must contain `{pragma}` once: before the first and after the last namespace"
    push, pop = lines.index(PUSH), lines.index(POP)
    is_in_namespace = False
    for number, line in enumerate(lines):
        if line.startswith("#include") and number > push:
            return number + 1, "a header is included after the visibility was set"
        is_in_namespace |= line.startswith("namespace ")
        # Before the push only internal classes may be declared.
        is_outside = number > pop or (number < push and not DECLARATIONS.fullmatch(line))
        if is_in_namespace and is_outside and line:
            return number + 1, "a declaration is not between the visibility pragmas"
    return None


def internal_classes(tree: Tree) -> set[str]:
    """The classes that sources define and public headers do not."""
    defined: dict[str, set[str]] = {"include/": set(), "src/": set()}
    for folder, names in defined.items():
        for path in tree.under(folder, suffixes=(".h", ".cpp")):
            names.update(classes_of(tree, path)[0])
    return defined["src/"] - defined["include/"]


def exported_classes(tree: Tree, header: str, internal: set[str]) -> Iterator[Fault]:
    """Internal classes to which a public header gives default visibility. Those of src/ are
    protected, because libraries call each other's functions; so a class may be protected, too."""
    lines = tree.lines(header)
    push = lines.index(PUSH) if PUSH in lines else len(lines)
    for mention in classes_of(tree, header)[1]:
        name = "::".join([*mention.scope, mention.name])
        if mention.kind != "declares" or name not in internal or mention.line - 1 < push:
            continue
        if not re.search(r'gnu::visibility\("(hidden|protected)"\)', lines[mention.line - 1]):
            yield Fault(header, mention.line,
                        f"{name} is internal and would be exported: declare it before the push, or "
                        'with [[gnu::visibility("hidden")]] if it is a member of a class')


def included_headers(tree: Tree, headers: list[str]) -> dict[str, set[str]]:
    """The public headers that each public header includes, directly or not."""
    direct = {header: [f"include/{name}" for _, _, name in tree.includes(header)
                       if f"include/{name}" in headers] for header in headers}
    found: dict[str, set[str]] = {}
    for header in headers:
        found[header] = set()
        pending = [*direct[header]]
        while pending:
            name = pending.pop()
            if name != header and name not in found[header]:
                found[header].add(name)
                pending += direct[name]
    return found


def chains(included: dict[str, set[str]]) -> list[list[str]]:
    """Divides the headers into few lists in which each header includes the one before it."""
    # A maximum matching of each header with the next one of its list, by augmenting paths.
    following: dict[str, str] = {}
    preceding: dict[str, str] = {}

    def finds_following(header: str, tried: set[str]) -> bool:
        for candidate, names in included.items():
            is_circle = candidate in included[header]
            if header in names and not is_circle and candidate not in tried:
                tried.add(candidate)
                if candidate not in preceding or finds_following(preceding[candidate], tried):
                    following[header], preceding[candidate] = candidate, header
                    return True
        return False

    for header in included:
        finds_following(header, set())
    found = []
    for header in included:
        if header not in preceding:
            chain = [header]
            while chain[-1] in following:
                chain.append(following[chain[-1]])
            found.append(chain)
    return found


def run(tree: Tree) -> Iterator[Fault]:
    compiler = tool(os.environ.get("CXX") or "c++")

    def compile_unit(headers: list[str], flags: list[str]) -> subprocess.CompletedProcess:
        # The second include fails if `#pragma once` is missing.
        source = "".join(f"#include <{header.removeprefix('include/')}>\n" * 2
                         for header in headers)
        return subprocess.run([compiler, *FLAGS, "-I", tree.root / "include", *flags, "-x", "c++",
                               "-"],
                              input=source, capture_output=True, text=True, check=False)

    # What a header finds after the headers of its list that precede it, it includes itself. So the
    # list compiles exactly if each of its headers compiles on its own.
    def compile_chain(chain: list[str]) -> list[tuple[str, str]]:
        """The headers of the list that do not compile on their own, with the errors."""
        flags = flags_of(chain[0])
        if flags is None or compile_unit(chain, flags).returncode == 0:
            return []
        alone = ((header, compile_unit([header], flags)) for header in chain)
        return [(header, result.stderr.rstrip()) for header, result in alone
                if result.returncode != 0]

    headers = tree.under("include/tambour/", suffixes=(".h",))
    internal = internal_classes(tree)
    for header in headers:
        yield from exported_classes(tree, header, internal)
        fault = visibility_fault((tree.root / header).read_text().splitlines())
        if fault:
            yield Fault(header, *fault)
    is_adapter = {header: header.startswith("include/tambour/adapters/") for header in headers}
    found = chains(included_headers(tree, [name for name in headers if not is_adapter[name]]))
    found += [[name] for name in headers if is_adapter[name]]
    for faults in in_parallel(compile_chain, found):
        for header, errors in faults:
            yield Fault(header, 1, f"does not compile on its own\n{errors}")
