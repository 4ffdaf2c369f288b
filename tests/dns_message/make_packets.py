#!/usr/bin/env python3
"""Generates packets.bin: DNS messages, well-formed and damaged, for compare_with_dnspython.py.

Usage: make_packets.py PACKETS [CORPUS]
The output is the same in each run. Each packet is preceded by its length in two bytes. With CORPUS,
also writes every hundredth packet to a file of that directory, for the fuzzer. Uses nothing of the
library and nothing of dnspython.
"""
import hashlib
import random
import struct
import sys
from pathlib import Path

WELL_FORMED = 1900
DAMAGED_EACH = 2

A, NS, CNAME, SOA, PTR, MX, TXT, AAAA = 1, 2, 5, 6, 12, 15, 16, 28
SRV, NAPTR, OPT, TLSA, SVCB, HTTPS, CAA = 33, 35, 41, 52, 64, 65, 257


class Message:
    """A message that is being written, with compression as a server may choose it."""

    def __init__(self, rng):
        self.rng = rng
        self.out = bytearray(12)
        self.seen = {}
        self.labels = [self.label() for _ in range(6)]

    def label(self):
        size = self.rng.choice([1, 1, 2, 3, 3, 5, 5, 8, 8, 13, 13, 63])
        letters = b"abcdefghijklmnopqrstuvwxyzABCXYZ0123456789-_"
        if self.rng.random() < 0.05:
            letters = bytes(range(256))
        return bytes(self.rng.choice(letters) for _ in range(size))

    def name(self):
        return [self.rng.choice(self.labels) for _ in range(self.rng.choice([0, 1, 2, 2, 3, 3]))]

    def put_name(self, name, compress=True):
        for i in range(len(name)):
            rest = tuple(name[i:])
            if compress and rest in self.seen and self.rng.random() < 0.9:
                self.out += struct.pack("!H", 0xC000 | self.seen[rest])
                return
            if len(self.out) < 0x4000:
                self.seen.setdefault(rest, len(self.out))
            self.out += bytes([len(name[i])]) + name[i]
        self.out += b"\0"

    def text(self, limit=40):
        return bytes(self.rng.randrange(256) for _ in range(self.rng.randrange(limit)))

    def put_text(self, value):
        self.out += bytes([len(value)]) + value

    def put_numbers(self, form, *limits):
        self.out += struct.pack(form, *(self.rng.randrange(limit) for limit in limits))

    def put_data(self, rtype):
        rng = self.rng
        if rtype == A:
            self.out += rng.randbytes(4)
        elif rtype == AAAA:
            self.out += rng.randbytes(16)
        elif rtype in (NS, CNAME, PTR):
            self.put_name(self.name())
        elif rtype == SOA:
            self.put_name(self.name())
            self.put_name(self.name())
            self.put_numbers("!5I", *[2**32] * 5)
        elif rtype == MX:
            self.put_numbers("!H", 2**16)
            self.put_name(self.name())
        elif rtype == TXT:
            for _ in range(rng.randrange(1, 4)):
                self.put_text(self.text(rng.choice([1, 20, 20, 256])))
        elif rtype == SRV:
            self.put_numbers("!3H", *[2**16] * 3)
            self.put_name(self.name(), rng.random() < 0.3)
        elif rtype == NAPTR:
            self.put_numbers("!2H", *[2**16] * 2)
            for _ in range(3):
                self.put_text(self.text())
            self.put_name(self.name(), False)
        elif rtype == TLSA:
            self.put_numbers("!3B", 4, 2, 3)
            self.out += rng.randbytes(32)
        elif rtype == CAA:
            self.out += bytes([rng.choice([0, 128])])
            self.put_text(rng.choice([b"issue", b"issuewild", b"iodef"]))
            self.out += self.text()
        elif rtype in (SVCB, HTTPS):
            self.put_service()
        else:
            self.out += self.text(20)

    def put_service(self):
        priority = self.rng.choice([0, 1, 2, 65535])
        self.out += struct.pack("!H", priority)
        self.put_name(self.name(), False)
        if priority == 0:
            return
        values = {
            1: b"\2h2\2h3",
            3: b"\x01\xbb",
            4: self.rng.randbytes(8),
            5: self.text(),
            6: self.rng.randbytes(16),
            667: self.text(),
        }
        chosen = sorted(key for key in values if self.rng.random() < 0.5)
        for key in chosen:
            self.out += struct.pack("!HH", key, len(values[key])) + values[key]

    def put_record(self):
        rtype = self.rng.choice(
            [A, A, AAAA, NS, CNAME, SOA, PTR, MX, TXT, SRV, NAPTR, TLSA, SVCB, HTTPS, CAA, 65280])
        self.put_name(self.name())
        ttl = self.rng.choice([0, 1, 60, 300, 86400, 2**31 - 1])
        rclass = 1 if self.rng.random() < 0.98 else self.rng.choice([3, 4, 254, 255, 4711])
        self.out += struct.pack("!HHIH", rtype, rclass, ttl, 0)
        at = len(self.out)
        self.put_data(rtype)
        self.out[at - 2:at] = struct.pack("!H", len(self.out) - at)

    def put_edns(self):
        options = b""
        for _ in range(self.rng.randrange(3)):
            code, value = self.rng.choice([(10, self.rng.randbytes(8)), (65001, self.text())])
            options += struct.pack("!HH", code, len(value)) + value
        self.out += b"\0" + struct.pack("!HHBBHH", OPT, self.rng.choice([512, 1232, 4096]),
                                        self.rng.choice([0, 0, 0, 1]), self.rng.choice([0, 0, 1]),
                                        self.rng.choice([0, 0x8000]), len(options))
        self.out += options


def well_formed(seed):
    rng = random.Random(seed)
    message = Message(rng)
    questions = rng.choice([0, 1, 1, 1, 1, 2])
    for _ in range(questions):
        message.put_name(message.name())
        message.out += struct.pack("!HH", rng.choice([A, AAAA, MX, TXT, 255, HTTPS]), 1)
    counts = [rng.choice([0, 1, 2, 5]), rng.choice([0, 0, 1]), rng.choice([0, 0, 1, 2])]
    for count in counts:
        for _ in range(count):
            message.put_record()
    if rng.random() < 0.4:
        message.put_edns()
        counts[2] += 1
    # Updates (opcode 5) have other rules.
    flags = rng.choice([0x8180, 0x8580, 0x8380, 0x0100, 0x8183, 0xA400, rng.randrange(2**11)])
    message.out[:12] = struct.pack("!6H", rng.randrange(2**16), flags, questions, *counts)
    return bytes(message.out)


def damaged(packet, seed):
    rng = random.Random(seed)
    bytes_ = bytearray(packet)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        kind = rng.randrange(6)
        at = rng.randrange(len(bytes_)) if bytes_ else 0
        if kind == 0 and bytes_:
            bytes_[at] = rng.randrange(256)
        elif kind == 1 and bytes_:
            bytes_[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            del bytes_[at:]
        elif kind == 3:
            bytes_[at:at] = rng.randbytes(rng.choice([1, 2, 12]))
        elif kind == 4 and len(bytes_) > 14:
            at = rng.randrange(12, len(bytes_) - 1)
            bytes_[at:at + 2] = struct.pack("!H", 0xC000 | rng.randrange(at + 4))
        elif len(bytes_) >= 12:
            bytes_[rng.choice([5, 7, 9, 11])] = rng.randrange(6)
    # The second bit of the flags' first byte would make it an update.
    if len(bytes_) > 2 and bytes_[2] >> 3 & 0xF == 5:
        bytes_[2] &= 0x87
    return bytes(bytes_)


def packets():
    for i in range(WELL_FORMED):
        packet = well_formed(f"well formed {i}")
        yield packet
        for j in range(DAMAGED_EACH):
            yield damaged(packet, f"damaged {i} {j}")


def main():
    all_packets = [packet for packet in packets() if len(packet) < 2000]
    with open(sys.argv[1], "wb") as file:
        for packet in all_packets:
            file.write(struct.pack("!H", len(packet)) + packet)
    if len(sys.argv) > 2:
        for packet in all_packets[::100]:
            name = hashlib.sha256(packet).hexdigest()[:12]
            (Path(sys.argv[2]) / name).write_bytes(packet)
    print(f"{len(all_packets)} packets")


if __name__ == "__main__":
    main()
