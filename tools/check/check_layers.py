"""Checks that files use only their own layer and those below it: in an #include, in a declaration
in advance, and as a friend; and that the drop-ins compile no source of a layer.

Each layer is a directory of src/ whose CMakeLists.txt declares it:

    tambour_layer(net SOURCES endpoint.cpp ... HEADERS endpoint.h ... NEEDS io)

NEEDS names the layers that it depends on, directly; what these depend on is included. HEADERS names
the public headers (include/tambour) that the layer implements. A source or header may include the
headers of its own layer and of the layers it depends on. Public headers include only public
headers.
Bindings and examples may include only what users can include.

The directories of a large layer form a directed acyclic graph, too: see ACYCLIC.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree import Fault, Tree

# Directories outside src/ and the layers they depend on. The longest path counts.
OUTSIDE = {
    "compat/common/": ["backend"],
    "compat/inspect/": ["inspector"],
    "compat/libev/": ["events"],
    "compat/libevent/": ["events"],
    "compat/libevent/evdns/": ["events", "dns_message"],
    "compat/libevent/http/": ["events", "http_message"],
    "compat/libevent/rpc/": ["events", "http_message"],
    "bindings/": None,  # Public headers only.
    "examples/": None,
}

# Public headers that belong to no layer: they are compiled by the programs that include them, and
# may include any public header.
ADAPTERS = "tambour/adapters/"

# Layers whose directories must not include each other in a circle.
ACYCLIC = ("http",)

# The headers that include a directory, or all, belong to no layer.
UMBRELLA = re.compile(r"tambour/\w+\.h")

SOURCES = (".h", ".hpp", ".c", ".cpp", ".cc", ".ipp", ".xs")

# Public headers must not include these libraries: users would have to install their headers.
PRIVATE_LIBRARIES = (
    "liburing",
    "openssl/",
    "ares",
    "nghttp2/",
    "zlib.h",
    "brotli/",
    "zstd.h",
    "libpsl.h",
)

# System headers in a directory with the name of a layer.
SYSTEM_HEADERS = ("net/if.h",)


@dataclass
class Layer:
    name: str
    path: str  # Of the CMakeLists.txt.
    line: int
    needs: list[str]
    headers: list[str]  # As in #include <tambour/...>.


def declared_layers(tree: Tree) -> dict[str, Layer]:
    layers = {}
    for path in tree.under("src/", suffixes=("CMakeLists.txt",)):
        text = (tree.root / path).read_text()
        for call in re.finditer(r"tambour_layer\(([^)]*)\)", text):
            name, *words = call.group(1).split()
            lists: dict[str, list[str]] = {}
            key = ""
            for word in words:
                if word in ("SOURCES", "HEADERS", "NEEDS", "LINKS"):
                    key = word
                else:
                    lists.setdefault(key, []).append(word)
            line = text.count("\n", 0, call.start()) + 1
            headers = [f"tambour/{header}" for header in lists.get("HEADERS", [])]
            layers[name] = Layer(name, path, line, lists.get("NEEDS", []), headers)
    return layers


class Graph:
    """The declared layers and what each may include."""

    def __init__(self, tree: Tree) -> None:
        self.layers = declared_layers(tree)
        self.owner = {header: layer.name
                      for layer in self.layers.values() for header in layer.headers}

    def allowed(self, names: list[str]) -> list[str]:
        """The layers `names` and all layers they depend on."""
        found: list[str] = []
        left = list(names)
        while left:
            name = left.pop()
            if name in self.layers and name not in found:
                found.append(name)
                left += self.layers[name].needs
        return [name for name in self.layers if name in found]

    def faults(self) -> Iterator[Fault]:
        for layer in self.layers.values():
            for need in layer.needs:
                if need not in self.layers:
                    yield Fault(layer.path, layer.line, f"layer {need} is not declared")
            if layer.name in self.allowed(layer.needs):
                yield Fault(layer.path, layer.line, f"layer {layer.name} depends on itself")


def check_file(tree: Tree, graph: Graph, path: str, allowed: list[str] | None,
               includer: str) -> Iterator[Fault]:
    """`allowed`: None if only public headers may be included, whatever their layer."""
    own_directory = path.rsplit("/", 1)[0]
    is_public = path.startswith("include/")
    for line, quote, name in tree.includes(path):
        first = name.split("/")[0]
        if ".." in name.split("/"):
            yield Fault(path, line, f"{name}: write the path relative to src/ or include/")
        elif first == "tambour":
            owner = graph.owner.get(name)
            if quote != "<":
                yield Fault(path, line, f"{name}: write public headers as <{name}>")
            elif f"include/{name}" not in tree.paths:
                yield Fault(path, line, f"<{name}>: no such public header")
            elif allowed is not None and UMBRELLA.fullmatch(name):
                yield Fault(path, line, f"<{name}> includes a directory: include its headers")
            elif allowed is not None and name.startswith(ADAPTERS):
                yield Fault(path, line, f"<{name}> is an adapter: no layer may include it")
            elif allowed is not None and owner is not None and owner not in allowed:
                yield Fault(path, line,
                            f"<{name}> belongs to layer {owner}: {includer} may include only "
                            f"{', '.join(allowed)}")
        elif quote == "<" and name in SYSTEM_HEADERS:
            continue
        elif first in graph.layers and "/" in name:
            if is_public or first not in (allowed or []):
                headers = "public headers" if is_public or not allowed else ", ".join(allowed)
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


COMMENT_OR_STRING = re.compile(
    r"//[^\n]*|/\*.*?\*/|R\"\(.*?\)\"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])'", re.DOTALL)
CLASS = (r"(?:class|struct|union|enum(?:\s+(?:class|struct))?)\s+"
         r"(?:\[\[[^\]]*\]\]\s*|alignas\([^)]*\)\s*)*")
SCOPES = re.compile(
    r"\bnamespace\s*(?P<namespace>[\w:]*)\s*\{"
    rf"|\bfriend\s+(?:class\s+|struct\s+)?(?P<friend>[\w:]+)\s*(?:<[^;{{}}]*>)?\s*;"
    rf"|\b{CLASS}(?P<declared>\w+)\s*(?::\s*\w+\s*)?;"
    rf"|\b{CLASS}(?P<defined>[\w:]+)\s*(?:final\s*)?(?::(?!:)[^;{{}}]*)?\{{"
    r"|(?P<open>\{)|(?P<close>\})")


@dataclass
class Mention:
    """A class that is declared in advance or named as a friend."""

    path: str
    line: int
    scope: list[str]  # The namespaces and classes around it.
    name: str
    kind: str


def classes_of(tree: Tree, path: str) -> tuple[list[str], list[Mention]]:
    """The qualified names of the classes that a file defines, and those that it only mentions."""
    text = COMMENT_OR_STRING.sub(lambda found: "\n" * found.group().count("\n"),
                                 "\n".join(tree.lines(path)))
    defined, mentioned = [], []
    scopes: list[list[str] | None] = []  # None: a function, or a namespace without a name.
    for found in SCOPES.finditer(text):
        if found["close"]:
            if scopes:
                scopes.pop()
            continue
        scope = [name for names in scopes if names is not None for name in names]
        is_visible = None not in scopes
        line = text.count("\n", 0, found.start()) + 1
        if found["open"]:
            scopes.append(None)
        elif found["namespace"] is not None:
            scopes.append(found["namespace"].split("::") if found["namespace"] else None)
        elif found["defined"]:
            if is_visible:
                defined.append("::".join([*scope, found["defined"]]))
            scopes.append(found["defined"].split("::"))
        elif found["friend"] and is_visible:
            mentioned.append(Mention(path, line, scope, found["friend"], "befriends"))
        elif found["declared"] and is_visible:
            mentioned.append(Mention(path, line, scope, found["declared"], "declares"))
    return defined, mentioned


def check_mentions(tree: Tree, graph: Graph) -> Iterator[Fault]:
    """A class of a higher layer must be neither declared in advance nor a friend."""
    layers_of: dict[str, set[str]] = {}
    mentions: list[tuple[str, Mention]] = []
    for path in tree.under("src/", "include/", suffixes=(".h", ".cpp")):
        layer = (path.split("/")[1] if path.startswith("src/")
                 else graph.owner.get(path.removeprefix("include/"), ""))
        if layer not in graph.layers:
            continue
        defined, mentioned = classes_of(tree, path)
        for name in defined:
            layers_of.setdefault(name, set()).add(layer)
        mentions += [(layer, mention) for mention in mentioned]
    for layer, mention in mentions:
        for depth in range(len(mention.scope), -1, -1):
            owners = layers_of.get("::".join([*mention.scope[:depth], mention.name]), set())
            if owners:
                if not owners & set(graph.allowed([layer])):
                    yield Fault(mention.path, mention.line,
                                f"layer {layer} {mention.kind} {mention.name}, which belongs to "
                                f"layer {min(owners)}")
                break


# A source of a layer, or the prefix of a list of them.
LAYER_SOURCE = re.compile(r"[\w./${}-]*\bsrc/(?:[\w./${}-]+\.(?:cpp|cc|c)\b|[\w/-]*(?=[\s)]))")


def check_compiled_sources(tree: Tree) -> Iterator[Fault]:
    """Drop-ins link layers: a program that uses both must not contain a source twice."""
    for path in tree.under("compat/", suffixes=("CMakeLists.txt", ".cmake")):
        for number, line in enumerate(tree.lines(path), start=1):
            if found := LAYER_SOURCE.search(line.partition("#")[0]):
                yield Fault(path, number, f"{found.group()}: compat/ links layers and compiles "
                                          "none of their sources")


def directory_graph(tree: Tree, layer: str) -> dict[str, dict[str, tuple[str, int]]]:
    """For each directory of the layer: the directories it includes, and the first place of each."""
    graph: dict[str, dict[str, tuple[str, int]]] = {}
    for path in tree.under(f"src/{layer}/", suffixes=SOURCES):
        own = path.removeprefix("src/").rsplit("/", 1)[0]
        for line, _, name in tree.includes(path):
            included = name.rsplit("/", 1)[0]
            if name.startswith(f"{layer}/") and included != own:
                graph.setdefault(own, {}).setdefault(included, (path, line))
    return graph


def check_circles(tree: Tree, layer: str) -> Iterator[Fault]:
    """Reports the edges of the circles: those whose end leads back to their beginning."""
    graph = directory_graph(tree, layer)

    def reaches(begin: str, end: str) -> bool:
        found, left = set(), [begin]
        while left:
            directory = left.pop()
            if directory == end:
                return True
            if directory not in found:
                found.add(directory)
                left += graph.get(directory, {})
        return False

    for own, edges in graph.items():
        for included, (path, line) in edges.items():
            if reaches(included, own):
                yield Fault(path, line, f"src/{own} and src/{included} include each other, "
                                        "directly or through other directories")


def run(tree: Tree) -> Iterator[Fault]:
    graph = Graph(tree)
    yield from graph.faults()
    for layer in ACYCLIC:
        yield from check_circles(tree, layer)
    for path in tree.under("include/", suffixes=SOURCES):
        name = path.removeprefix("include/")
        owner = graph.owner.get(name)
        if owner is None and not UMBRELLA.fullmatch(name) and not name.startswith(ADAPTERS):
            yield Fault(path, 1, f"<{name}> belongs to no layer (add it to HEADERS in "
                                 "the CMakeLists.txt of its layer)")
        allowed = None if owner is None else graph.allowed([owner])
        yield from check_file(tree, graph, path, allowed, "a public header of " + (owner or "all"))
        for line, _, included in tree.includes(path):
            # An adapter is compiled by the program, which links the library.
            if included.startswith(PRIVATE_LIBRARIES) and not name.startswith(ADAPTERS):
                yield Fault(path, line,
                            f"<{included}>: a public header must not include this library")
    for path in tree.under("src/", suffixes=SOURCES):
        layer = path.split("/")[1]
        if layer not in graph.layers:
            yield Fault(path, 1, f"src/{layer} is not a layer (declare it with tambour_layer())")
        else:
            yield from check_file(tree, graph, path, graph.allowed([layer]), f"layer {layer}")
    for directory, needs in OUTSIDE.items():
        allowed = None if needs is None else graph.allowed(needs)
        inner = tuple(other for other in OUTSIDE if other != directory and
                      other.startswith(directory))
        for path in tree.under(directory, suffixes=SOURCES):
            if not path.startswith(inner):
                yield from check_file(tree, graph, path, allowed, directory.rstrip("/"))
    yield from check_mentions(tree, graph)
    yield from check_compiled_sources(tree)
