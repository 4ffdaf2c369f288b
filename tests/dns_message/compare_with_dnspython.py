#!/usr/bin/env python3
"""Compares the parser and writer of DNS messages with dnspython.

Usage: compare_with_dnspython.py REWRITE_PROGRAM PACKETS...
PACKETS are files as make_packets.py writes them, or directories with one packet per file. Each
packet is parsed by the library and by dnspython. Both must accept it, or both reject it; and what
the library writes must have the same content. `listed()` names the intended differences. The exit
status is 77 if dnspython is not installed.
"""
import collections
import struct
import subprocess
import sys
from pathlib import Path

try:
    import dns.edns
    import dns.exception
    import dns.message
    import dns.rdata
    import dns.rdatatype
except ImportError:
    print("dnspython is not installed")
    sys.exit(77)


def packets_of(path):
    if path.is_dir():
        for each in sorted(path.rglob("*")):
            if each.is_file() and each.stat().st_size < 2**16:
                yield each.read_bytes()
        return
    data = path.read_bytes()
    while data:
        size, = struct.unpack("!H", data[:2])
        yield data[2:2 + size]
        data = data[2 + size:]


def rewrite(program, packets):
    """What the library writes for each packet, or None if it rejects the packet."""
    stdin = b"".join(struct.pack("!H", len(packet)) + packet for packet in packets)
    out = subprocess.run([program], input=stdin, stdout=subprocess.PIPE, check=True).stdout
    at = 0
    for _ in packets:
        accepted = out[at]
        at += 1
        if not accepted:
            yield None
            continue
        size, = struct.unpack("!H", out[at:at + 2])
        yield out[at + 2:at + 2 + size]
        at += 2 + size
    assert at == len(out)


def parse(packet):
    try:
        return dns.message.from_wire(packet, one_rr_per_rrset=True), None
    except Exception as error:  # dnspython also raises ValueError, struct.error and others.
        return None, error


def content(message):
    sections = []
    for section in message.sections:
        records = []
        for rrset in section:
            # The question section has no data. TTLs above 31 bits count as zero: RFC 2181.
            data = [each.to_wire() for each in rrset]
            ttl = rrset.ttl if rrset.ttl < 2**31 else 0
            records.append((rrset.name.labels, rrset.rdclass, rrset.rdtype, ttl, data))
        sections.append(records)
    edns = None
    if message.edns >= 0:
        options = [(int(each.otype), each.to_wire()) for each in message.options]
        edns = (message.edns, message.ednsflags & 0xFFFF, message.payload, options)
    # One reserved bit of the header is not kept.
    return message.id, message.flags & 0xFFBF, message.rcode(), edns, sections


def listed(error, accepted):
    """The reason why the library differs, or None."""
    text = f"{type(error).__name__}: {error}"
    if accepted and error is not None:
        if "is not a valid Opcode" in text:
            return "an opcode without a name is a number"
        if "TSIG" in text:
            return "TSIG is data of an unknown type: messages are not authenticated"
        if in_edns_option(error):
            return "options of EDNS are opaque"
        if is_in_other_type(error):
            return "the data of a type that the library does not know is opaque"
        return None
    return None


def frames(error):
    """The frames that the exception and its causes passed through."""
    while error is not None:
        trace = error.__traceback__
        while trace is not None:
            yield trace.tb_frame
            trace = trace.tb_next
        error = error.__cause__ or error.__context__


KNOWN = {"A", "NS", "CNAME", "SOA", "PTR", "MX", "TXT", "AAAA", "SRV", "NAPTR", "TLSA", "SVCB",
         "HTTPS", "CAA"}
# Their data has another form in other classes, of which the library knows none.
INTERNET = {"A", "AAAA", "SRV", "NAPTR", "SVCB", "HTTPS"}


def in_edns_option(error):
    return any(Path(frame.f_code.co_filename).name in ("edns.py", "OPT.py")
               for frame in frames(error))


def is_in_other_type(error):
    for frame in frames(error):
        if Path(frame.f_code.co_filename).name == "rdata.py" and "rdtype" in frame.f_locals:
            name = dns.rdatatype.to_text(frame.f_locals["rdtype"])
            is_internet = int(frame.f_locals["rdclass"]) == 1
            return name not in KNOWN or (name in INTERNET and not is_internet)
    return False


def main():
    program, *paths = sys.argv[1:]
    packets = [packet for path in paths for packet in packets_of(Path(path))]
    wrong = 0
    counts = collections.Counter()
    for packet, written in zip(packets, rewrite(program, packets), strict=True):
        theirs, error = parse(packet)
        if (written is not None) == (theirs is not None):
            counts["accepted" if theirs else "rejected"] += 1
            if theirs is None:
                continue
            ours, error = parse(written)
            if ours is not None and content(ours) == content(theirs):
                continue
            problem = "other content"
        else:
            reason = listed(error, written is not None)
            if reason is not None:
                counts[f"listed: {reason}"] += 1
                continue
            problem = "accepted by the library only" if theirs is None else "rejected by it only"
        wrong += 1
        counts["different"] += 1
        if wrong <= 20:
            print(f"{problem}: {packet.hex()}\n  {type(error).__name__}: {error}")
            if theirs is not None and written is not None and error is None:
                print(f"  {content(ours)}\n  {content(theirs)}")
    print(f"{len(packets)} packets", *(f"  {count} {what}" for what, count in counts.items()),
          sep="\n")
    sys.exit(1 if wrong or not packets else 0)


if __name__ == "__main__":
    main()
