#!/usr/bin/env python3
"""Compares the codec of WebSocket frames with wsproto, a sans-I/O implementation in Python.

Usage: compare_with_wsproto.py ECHO_PROGRAM [COUNT]
Generates COUNT sequences of frames, well-formed and damaged, with and without permessage-deflate,
for servers and clients. The library and wsproto must find the same messages, control frames and
close codes, and wsproto must read what the library writes back. `listed()` names the intended
differences. The exit status is 77 if wsproto is not installed.
"""
import collections
import random
import struct
import subprocess
import sys

try:
    from wsproto.extensions import PerMessageDeflate
    from wsproto.frame_protocol import FrameProtocol, Opcode, ParseFailed
except ImportError:
    print("wsproto is not installed")
    sys.exit(77)

FRAGMENTS = [b"a", b"hello ", "é".encode(), "€".encode(), "😀".encode(), b"word " * 30]
DAMAGED_TEXT = [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90", b"\xe2\x82", b"\x80"]


class Connection:
    """wsproto's end of a connection in the role that the library has, or in the other one."""

    def __init__(self, is_server, bits, has_context):
        self.extensions = []
        if bits:
            extension = PerMessageDeflate(
                client_no_context_takeover=not has_context, client_max_window_bits=bits,
                server_no_context_takeover=not has_context, server_max_window_bits=bits)
            extension._enabled = True
            self.extensions = [extension]
        self.protocol = FrameProtocol(client=not is_server, extensions=self.extensions)

    def read(self, data):
        """The events, and the close code of the error or 0."""
        events = []
        message = None
        self.protocol.receive_bytes(data)
        try:
            for frame in self.protocol.received_frames():
                if frame.opcode is Opcode.CLOSE:
                    events.append(("close", int(frame.payload[0]), frame.payload[1].encode()))
                elif frame.opcode.iscontrol():
                    kind = "ping" if frame.opcode is Opcode.PING else "pong"
                    events.append((kind, bytes(frame.payload)))
                else:
                    data = frame.payload
                    data = data.encode() if isinstance(data, str) else bytes(data)
                    message = (message or b"") + data
                    if frame.message_finished:
                        events.append(("text" if frame.opcode is Opcode.TEXT else "binary",
                                       message))
                        message = None
        except ParseFailed as error:
            return events, int(error.code)
        return events, 0


def message_of(rng):
    text = b"".join(rng.choice(FRAGMENTS) for _ in range(rng.randrange(12)))
    if rng.randrange(12) == 0:
        text += rng.choice(DAMAGED_TEXT) + b"x" * rng.randrange(3)
    if rng.randrange(20) == 0:
        text *= rng.randrange(300)
    return text


def frame_of(rng, is_server, first, payload):
    size = len(payload)
    form = 1 if size < 126 else 2 if size < 65536 else 8
    if rng.randrange(100) == 0:
        form = rng.choice([form, 8])
    is_masked = is_server != (rng.randrange(300) == 0)
    head = bytes([first])
    mask_bit = 128 if is_masked else 0
    head += {1: bytes([mask_bit | min(size, 125)]),
             2: struct.pack("!BH", mask_bit | 126, size % 65536),
             8: struct.pack("!BQ", mask_bit | 127, size)}[form]
    if not is_masked:
        return head + payload
    key = rng.randbytes(4)
    masked = bytes(a ^ b for a, b in zip(payload, key * (size // 4 + 1)))
    return head + key + masked


def frames_of(rng, is_server, bits, peer):
    """A sequence of frames that a peer of the library sends."""
    frames = b""
    for _ in range(rng.randrange(1, 7)):
        kind = rng.randrange(10)
        if kind < 2:
            payload = message_of(rng)[:rng.choice([5, 125, 126])]
            frames += frame_of(rng, is_server, rng.choice([0x89, 0x8A]), payload)
        elif kind == 2 and rng.randrange(3) == 0:
            code = rng.choice([1000, 1001, 1007, 1011, 1012, 3000, 4999, 1004, 1005, 1006, 999,
                               1015, 1016, 2999, 5000, rng.randrange(65536)])
            payload = struct.pack("!H", code) + message_of(rng)[:rng.randrange(120)]
            frames += frame_of(rng, is_server, 0x88, payload[:rng.choice([0, 1, 2, 125])])
        elif bits and kind < 8:
            try:
                payload = message_of(rng).decode()
            except UnicodeDecodeError:
                continue
            for data, is_last in ((payload[:9], False), (payload[9:], True)):
                frames += peer.protocol.send_data(data, is_last)
        else:
            parts = [message_of(rng) for _ in range(rng.choice([1, 1, 1, 2, 4]))]
            for number, part in enumerate(parts):
                first = (rng.choice([1, 2]) if number == 0 else 0)
                first |= 0x80 if number == len(parts) - 1 else 0
                if rng.randrange(150) == 0:
                    first ^= 1 << rng.randrange(8)
                frames += frame_of(rng, is_server, first, part)
    if rng.randrange(8) == 0 and not bits:
        at = rng.randrange(len(frames)) if frames else 0
        frames = frames[:at] + rng.randbytes(rng.randrange(3)) + frames[at + rng.randrange(3):]
    return frames


def run(program, cases):
    stdin = b"".join(
        struct.pack("!BBI", is_server | (2 if bits else 0) | (0 if has_context else 4), bits or 15,
                    len(frames)) + frames
        for is_server, bits, has_context, frames in cases)
    out = subprocess.run([program], input=stdin, stdout=subprocess.PIPE, check=True).stdout
    events, echoes = [], b""
    for line in out.decode().splitlines():
        words = line.split(" ")
        if len(words) == 1:
            yield events, echoes, int(words[0])
            events, echoes = [], b""
        elif words[0] == "close":
            events.append(("close", int(words[1]), bytes.fromhex(words[2])))
        else:
            events.append((words[0], bytes.fromhex(words[1])))
            echoes += bytes.fromhex(words[2]) if len(words) > 2 else b""


def listed(case, ours, our_code, theirs, their_code):
    """The reason why the library differs, or None."""
    is_server, bits, has_context, frames = case
    if our_code and not their_code and ours == theirs:
        # The library rejects a header before the rest of the frame arrives.
        again, code = Connection(is_server, bits, has_context).read(frames + bytes(70000))
        if code and again[:len(ours)] == ours:
            return "an error is found earlier"
    if len(ours) == len(theirs) + 1 and ours[-1][:2] == ("close", 1014):
        return "1014 is registered"
    return None


def main():
    program = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 4000
    cases = []
    for seed in range(count):
        rng = random.Random(seed)
        is_server = rng.randrange(2)
        bits = rng.choice([0, 0, 9, 12, 15])
        has_context = rng.randrange(2) == 0
        peer = Connection(not is_server, bits, has_context)
        cases.append((is_server, bits, has_context, frames_of(rng, is_server, bits, peer)))
    counts = collections.Counter()
    wrong = 0
    for seed, (case, (ours, echoes, our_code)) in enumerate(
            zip(cases, run(program, cases), strict=True)):
        is_server, bits, has_context, frames = case
        theirs, their_code = Connection(is_server, bits, has_context).read(frames)
        problem = None
        if ours != theirs or our_code != their_code:
            reason = listed(case, ours, our_code, theirs, their_code)
            if reason:
                counts[f"listed: {reason}"] += 1
            else:
                problem = "other events"
        messages = [event for event in ours if event[0] in ("text", "binary")]
        echoed, code = Connection(not is_server, bits, has_context).read(echoes)
        if echoed != messages or code:
            problem = f"wsproto does not read what was written: {code}"
        counts[f"closed with {our_code}" if our_code else "accepted"] += 1
        counts["messages"] += len(messages)
        if problem:
            wrong += 1
            if wrong <= 10:
                print(f"seed {seed}: {problem}\n  {frames.hex()[:2000]}\n  {our_code} "
                      f"{str(ours)[:1000]}\n  {their_code} {str(theirs)[:1000]}")
    print(f"{count} sequences", *(f"  {number} {name}" for name, number in sorted(counts.items())),
          sep="\n")
    # Otherwise the generator does not generate what the comparison is about.
    assert counts["accepted"] > count / 4 and counts["messages"] > count
    assert all(counts[f"closed with {code}"] > count / 200 for code in (1002, 1007))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
