"""No #include runs upwards.

The house has rooms, one above the other (CONTRIBUTING.md). A room includes public headers, itself
and the rooms below it; a public header includes only public headers. What is outside, and shows how
users use Tambour, sees only what users see.
"""

from collections.abc import Iterator

from tree import Fault, Tree

# From the ground up. A new room is added here, in its place.
ROOMS = ["base", "op", "backend", "loop", "net", "dns", "tls", "http"]

# Folders outside src/, and the highest room they may include; None: public headers only.
OUTSIDE = {
    "compat/libev/": "loop",
    "compat/libevent/": "http",
    "bindings/": None,
    "examples/": None,
}

SOURCES = (".h", ".hpp", ".c", ".cpp", ".cc", ".ipp", ".xs")

# Libraries that an installed header must not need: its user would have to have them too.
PRIVATE_LIBRARIES = ("liburing", "openssl/", "ares", "nghttp2/")


# Of the system, in a folder that is called like a room.
SYSTEM_HEADERS = ("net/if.h",)


def rooms_up_to(top: str | None) -> list[str]:
    return [] if top is None else ROOMS[:ROOMS.index(top) + 1]


def check_file(tree: Tree, path: str, reachable: list[str], who: str) -> Iterator[Fault]:
    own_folder = path.rsplit("/", 1)[0]
    for line, quote, name in tree.includes(path):
        first = name.split("/")[0]
        if ".." in name.split("/"):
            yield Fault(path, line, f"{name}: write the path from src/ or include/, not from here")
        elif first == "tambour":
            if quote != "<":
                yield Fault(path, line, f"{name}: public headers are written <{name}>")
            elif f"include/{name}" not in tree.paths:
                yield Fault(path, line, f"<{name}>: no such public header")
        elif quote == "<" and name in SYSTEM_HEADERS:
            continue
        elif first in ROOMS and "/" in name:
            if first not in reachable:
                allowed = ", ".join(["public headers", *reachable])
                yield Fault(path, line, f"{name}: {who} may include only {allowed}")
            elif quote != '"':
                yield Fault(path, line, f'{name}: headers of rooms are written "{name}"')
            elif f"src/{name}" not in tree.paths:
                yield Fault(path, line, f'"{name}": no such header in src/')
        elif quote == '"' and path.startswith(("src/", "include/")):
            yield Fault(path, line, f'"{name}": write "room/file.h", or <...> for a library')
        elif quote == '"' and f"{own_folder}/{name}" not in tree.paths and not reachable:
            yield Fault(path, line, f'"{name}": {who} may include only public headers and its own')


def run(tree: Tree) -> Iterator[Fault]:
    for path in tree.under("include/", suffixes=SOURCES):
        yield from check_file(tree, path, [], "a public header")
        for line, _, name in tree.includes(path):
            if name.startswith(PRIVATE_LIBRARIES):
                yield Fault(path, line, f"<{name}>: a public header needs no other library")
    for path in tree.under("src/", suffixes=SOURCES):
        room = path.split("/")[1]
        if room not in ROOMS:
            yield Fault(path, 1, f"src/{room} is not a room (see ROOMS in tools/check)")
        else:
            yield from check_file(tree, path, rooms_up_to(room), f"room {room}")
    for folder, top in OUTSIDE.items():
        for path in tree.under(folder, suffixes=SOURCES):
            yield from check_file(tree, path, rooms_up_to(top), folder.rstrip("/"))
