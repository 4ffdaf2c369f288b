"""Checks that no #include refers to a higher layer.

CONTRIBUTING.md lists the layers from the lowest to the highest. A layer may include public headers,
its own headers and those of the layers below it. A public header may include only public headers.
Bindings and examples may include only what users can include.
"""

from collections.abc import Iterator

from tree import Fault, Tree

# From the lowest to the highest.
LAYERS = ["base", "op", "backend", "loop", "net", "dns", "tls", "http"]

# Directories outside src/ and the highest layer they may include; None: public headers only.
OUTSIDE = {
    "compat/libev/": "loop",
    "compat/libevent/": "http",
    "bindings/": None,
    "examples/": None,
}

SOURCES = (".h", ".hpp", ".c", ".cpp", ".cc", ".ipp", ".xs")

# Public headers must not include these libraries: users would have to install their headers.
PRIVATE_LIBRARIES = ("liburing", "openssl/", "ares", "nghttp2/")

# System headers in a directory with the name of a layer.
SYSTEM_HEADERS = ("net/if.h",)


def layers_up_to(top: str | None) -> list[str]:
    return [] if top is None else LAYERS[:LAYERS.index(top) + 1]


def check_file(tree: Tree, path: str, allowed: list[str], includer: str) -> Iterator[Fault]:
    own_directory = path.rsplit("/", 1)[0]
    for line, quote, name in tree.includes(path):
        first = name.split("/")[0]
        if ".." in name.split("/"):
            yield Fault(path, line, f"{name}: write the path relative to src/ or include/")
        elif first == "tambour":
            if quote != "<":
                yield Fault(path, line, f"{name}: write public headers as <{name}>")
            elif f"include/{name}" not in tree.paths:
                yield Fault(path, line, f"<{name}>: no such public header")
        elif quote == "<" and name in SYSTEM_HEADERS:
            continue
        elif first in LAYERS and "/" in name:
            if first not in allowed:
                headers = ", ".join(["public headers", *allowed])
                yield Fault(path, line, f"{name}: {includer} may include only {headers}")
            elif quote != '"':
                yield Fault(path, line, f'{name}: write headers of a layer as "{name}"')
            elif f"src/{name}" not in tree.paths:
                yield Fault(path, line, f'"{name}": no such header in src/')
        elif quote == '"' and path.startswith(("src/", "include/")):
            yield Fault(path, line, f'"{name}": write "layer/file.h", or <...> for a library')
        elif quote == '"' and f"{own_directory}/{name}" not in tree.paths and not allowed:
            yield Fault(path, line,
                        f'"{name}": {includer} may include only public headers and its own')


def run(tree: Tree) -> Iterator[Fault]:
    for path in tree.under("include/", suffixes=SOURCES):
        yield from check_file(tree, path, [], "a public header")
        for line, _, name in tree.includes(path):
            if name.startswith(PRIVATE_LIBRARIES):
                yield Fault(path, line, f"<{name}>: a public header must not include this library")
    for path in tree.under("src/", suffixes=SOURCES):
        layer = path.split("/")[1]
        if layer not in LAYERS:
            yield Fault(path, 1, f"src/{layer} is not a layer (add it to LAYERS in tools/check)")
        else:
            yield from check_file(tree, path, layers_up_to(layer), f"layer {layer}")
    for directory, top in OUTSIDE.items():
        for path in tree.under(directory, suffixes=SOURCES):
            yield from check_file(tree, path, layers_up_to(top), directory.rstrip("/"))
