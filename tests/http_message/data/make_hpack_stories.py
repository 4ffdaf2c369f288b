#!/usr/bin/env python3
"""Makes hpack_stories.txt from a clone of https://github.com/http2jp/hpack-test-case.

Usage: make_hpack_stories.py CLONE [all] >hpack_stories.txt

The tests have a part of the stories; with "all", the file has each message of every story.

A story is a sequence of messages. Each of its messages has the fields, and a block of each encoder:

    story NUMBER
    message
    field NAME VALUE
    block ENCODER [TABLE_SIZE] HEX

TABLE_SIZE is the SETTINGS_HEADER_TABLE_SIZE that the decoder announced before the block.
"""

import json
import sys
from pathlib import Path

# How many messages of which stories: requests and responses, short and long lists of fields.
STORIES = {"00": 3, "03": 10, "08": 5, "20": 8, "22": 4, "24": 6, "27": 3, "30": 10, "31": 4}

HEADER = """\
# Field blocks of many encoders: https://github.com/http2jp/hpack-test-case, a part of each story,
# in another format. Made by make_hpack_stories.py.
#
"""


def main() -> None:
    clone = Path(sys.argv[1])
    print(HEADER, end="")
    for line in (clone / "LICENSE").read_text().rstrip().splitlines():
        print(f"# {line}".rstrip())
    encoders = sorted(
        path.name
        for path in clone.iterdir()
        if path.is_dir() and path.name not in ("raw-data", "util") and path.name[0] != "."
    )
    chosen = {f"{number:02}": None for number in range(32)} if "all" in sys.argv[2:] else STORIES
    for number, count in chosen.items():
        stories = {}
        for encoder in encoders:
            path = clone / encoder / f"story_{number}.json"
            if path.exists():
                stories[encoder] = json.loads(path.read_text())["cases"][:count]
        print(f"story {number}")
        for index, case in enumerate(next(iter(stories.values()))):
            print("message")
            for field in case["headers"]:
                for name, value in field.items():
                    print(f"field {name} {value}")
            for encoder, cases in stories.items():
                assert cases[index]["headers"] == case["headers"]
                size = cases[index].get("header_table_size")
                print("block", encoder, *([size] if size is not None else []), cases[index]["wire"])


main()
