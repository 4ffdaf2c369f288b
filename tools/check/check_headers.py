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
    "hiredis_value.h": "hiredis",
    "libpq.h": "libpq",
    "libpq_result.h": "libpq",
    "libpq_session.h": "libpq",
    "libssh2.h": "libssh2",
    "libssh2_result.h": "libssh2",
    "mariadb.h": "libmariadb",
    "mosquitto.h": "libmosquitto",
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
    """Internal classes to which a public header gives default visibility."""
    lines = tree.lines(header)
    push = lines.index(PUSH) if PUSH in lines else len(lines)
    for mention in classes_of(tree, header)[1]:
        name = "::".join([*mention.scope, mention.name])
        if mention.kind != "declares" or name not in internal or mention.line - 1 < push:
            continue
        if 'gnu::visibility("hidden")' not in lines[mention.line - 1]:
            yield Fault(header, mention.line,
                        f"{name} is internal and would be exported: declare it before the push, or "
                        'with [[gnu::visibility("hidden")]] if it is a member of a class')


def run(tree: Tree) -> Iterator[Fault]:
    compiler = tool(os.environ.get("CXX") or "c++")

    def compile_alone(header: str) -> subprocess.CompletedProcess:
        flags = flags_of(header)
        if flags is None:
            return subprocess.CompletedProcess([], 0)
        # The second include fails if `#pragma once` is missing.
        source = f"#include <{header.removeprefix('include/')}>\n" * 2
        return subprocess.run([compiler, *FLAGS, "-I", tree.root / "include", *flags, "-x", "c++",
                               "-"],
                              input=source, capture_output=True, text=True, check=False)

    headers = tree.under("include/tambour/", suffixes=(".h",))
    internal = internal_classes(tree)
    for header in headers:
        yield from exported_classes(tree, header, internal)
        fault = visibility_fault((tree.root / header).read_text().splitlines())
        if fault:
            yield Fault(header, *fault)
    for header, result in zip(headers, in_parallel(compile_alone, headers)):
        if result.returncode != 0:
            yield Fault(header, 1, f"does not compile on its own\n{result.stderr.rstrip()}")
