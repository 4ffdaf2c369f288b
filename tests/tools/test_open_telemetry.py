"""Verifies that an example exports spans as OTLP/JSON: the specification of its encoding is
https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding.

usage: test_open_telemetry.py PROGRAM       (examples/open_telemetry.cpp)
"""

import json
import re
import subprocess
import sys

# The fields of the messages that the example uses, with the JSON types that the mapping of
# Protocol Buffers has for them; 64-bit integers may be texts.
HEX_16, HEX_32 = re.compile(r"[0-9a-f]{16}"), re.compile(r"[0-9a-f]{32}")
INTEGER = re.compile(r"[0-9]+")


def check_fields(fields: dict, /, **types) -> None:
    unknown = set(fields) - set(types)
    assert not unknown, f"fields that the messages do not have: {unknown}"
    for name, value in fields.items():
        expected = types[name]
        if isinstance(expected, re.Pattern):
            assert expected.fullmatch(str(value)), f"{name}: {value}"
        else:
            assert isinstance(value, expected), f"{name}: {value}"


def check_span(span: dict) -> None:
    check_fields(span, traceId=HEX_32, spanId=HEX_16, parentSpanId=HEX_16, name=str, kind=int,
                 startTimeUnixNano=INTEGER, endTimeUnixNano=INTEGER, attributes=list, status=dict)
    # Texts, because a double has not enough digits.
    assert isinstance(span["startTimeUnixNano"], str) and isinstance(span["endTimeUnixNano"], str)
    assert int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"])
    for attribute in span.get("attributes", []):
        check_fields(attribute, key=str, value=dict)
        check_fields(attribute["value"], intValue=INTEGER, stringValue=str)
    check_fields(span.get("status", {}), code=int, message=str)


def check_with_messages(text: str) -> None:
    """With the messages of opentelemetry-proto, if they are installed."""
    try:
        from google.protobuf.json_format import Parse
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
            ExportTraceServiceRequest)
    except ImportError:
        return
    # Fails for unknown fields and for values of another type.
    request = Parse(text, ExportTraceServiceRequest())
    print("parsed by opentelemetry-proto:", len(request.resource_spans[0].scope_spans[0].spans))


def main() -> None:
    ran = subprocess.run(sys.argv[1:2], capture_output=True, text=True, check=True, timeout=60)
    texts = [line for line in ran.stdout.splitlines() if line.startswith("{")]
    assert texts and "ordered" in ran.stdout, ran.stdout
    spans = []
    for text in texts:
        request = json.loads(text)
        check_fields(request, resourceSpans=list)
        for resource in request["resourceSpans"]:
            check_fields(resource, resource=dict, scopeSpans=list)
            for scope in resource["scopeSpans"]:
                check_fields(scope, scope=dict, spans=list)
                spans += scope["spans"]
        check_with_messages(text)
    for span in spans:
        check_span(span)
    client, server = (next(span for span in spans if span["kind"] == kind) for kind in (3, 2))
    assert client["traceId"] == server["traceId"], spans
    assert server["parentSpanId"] == client["spanId"], spans
    assert server["name"] == "GET /orders/{id}", spans
    print("passed")


if __name__ == "__main__":
    main()
