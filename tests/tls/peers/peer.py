"""A TLS client or server of Python's module ssl, for tests/tls/foreign_peers_test.cpp.

  peer.py client PORT VERSION ALPN CERTIFICATE    connects twice; the second resumes the session
  peer.py server PORT VERSION ALPN AUTHORITIES    answers each line reversed, until it is killed

VERSION is 1.2 or 1.3; "-" stands for no ALPN, no certificate, or no verification of clients.
The working directory has ca.pem, cert.pem and key.pem.
"""

import socket
import ssl
import sys


def configure(context, version, alpn):
    """Allows only one version."""
    only = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}[version]
    context.minimum_version = context.maximum_version = only
    if alpn != "-":
        context.set_alpn_protocols(alpn.split(","))


def client(port, version, alpn, certificate):
    """Prints what was negotiated, and the answer."""
    context = ssl.create_default_context(cafile="ca.pem")
    configure(context, version, alpn)
    if certificate != "-":
        context.load_cert_chain(certificate)
    session = None
    for _ in range(2):
        with socket.create_connection(("127.0.0.1", int(port))) as plain:
            with context.wrap_socket(plain, server_hostname="localhost", session=session,
                                     suppress_ragged_eofs=False) as stream:
                stream.sendall(b"hello\n")
                got = b""
                while part := stream.recv(1000):
                    got += part
                session = stream.session
                print(stream.version(), "resumed" if stream.session_reused else "full",
                      got.decode(), end="")


def answer(stream):
    """Answers lines until the client ends."""
    with stream.makefile("rwb") as lines:
        for line in lines:
            lines.write(line.rstrip(b"\n")[::-1] + b"\n")
            lines.flush()
    stream.unwrap()


def server(port, version, alpn, authorities):
    """Serves one client at a time."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain("cert.pem", "key.pem")
    configure(context, version, alpn)
    if authorities != "-":
        context.load_verify_locations(authorities)
        context.verify_mode = ssl.CERT_REQUIRED
    listener = socket.create_server(("127.0.0.1", int(port)))
    print(f"ACCEPT 127.0.0.1:{listener.getsockname()[1]}", flush=True)
    while True:
        plain, _ = listener.accept()
        try:
            with context.wrap_socket(plain, server_side=True) as stream:
                answer(stream)
        except OSError as error:
            print(error, flush=True)


{"client": client, "server": server}[sys.argv[1]](*sys.argv[2:])
