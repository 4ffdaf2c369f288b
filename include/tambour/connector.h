// Connecting to a name: which of its addresses, how long to wait for each, and when to try again.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <tambour/clock.h>
#include <tambour/endpoint.h>
#include <tambour/resolver.h>
#include <tambour/result.h>
#include <tambour/stream.h>
#include <tambour/task.h>
#include <tambour/tcp_options.h>

namespace tambour {

struct ConnectOptions {
  /// How long one address is given before the next is tried beside it: RFC 8305, section 5.
  Duration attempt_delay = std::chrono::milliseconds(250);

  /// For everything together, looking up and trying again included.
  Duration timeout = std::chrono::seconds(30);

  /// How often all addresses are tried, at least once; names are looked up each time. What cannot
  /// change in so short a time (a name that does not exist, EACCES) is not tried again.
  unsigned rounds = 1;

  /// Before the second round; before each further one twice as long as before the last, up to the
  /// most. Of each, between a half and all of it is waited, by chance, so that the clients of a
  /// server that was away do not come back all at once. Below zero counts as zero.
  Duration retry_delay = std::chrono::milliseconds(100);
  Duration retry_delay_max = std::chrono::seconds(10);

  AddressFamily family = AddressFamily::any;
  Resolver* resolver = nullptr;  ///< Null: Resolver::system(). Lives as long as the task.

  /// Set on the stream that is connected. All zero: none is.
  TcpOptions tcp{};
};

/// Connects to the first of `addresses` that answers, by Happy Eyeballs (RFC 8305): the families
/// alternate, starting with that of the first address; the next address is tried when an attempt
/// has failed, or has not succeeded for `attempt_delay`. The first connection wins; the other
/// attempts are cancelled and their sockets closed.
///
/// The result is a Stream, because the endpoint decides whether that is TCP (with TCP_NODELAY, as
/// TcpStream::connect() sets it) or a Unix-domain socket. For the functions of one of them, move
/// the stream: `UnixStream local(std::move(*stream));`.
///
/// If no address answers, fails with the error of the attempt that failed last. ETIMEDOUT: the
/// timeout has passed; ECANCELED: the task was asked to stop; EINVAL: there are no addresses.
Task<Result<Stream>> connect(std::vector<Endpoint> addresses, ConnectOptions options = {});

/// Connects to anything that Endpoint::parse() reads, "192.0.2.1:80" or "unix:/run/server.sock" for
/// example, or to a host name and a port: "example.org:80". Fails with EINVAL if the text is
/// neither, with the errors of the resolver, and as above. Do not pass untrusted input, which may
/// name a Unix socket: resolve the name, and connect to the addresses.
Task<Result<Stream>> connect(std::string to, ConnectOptions options = {});

}  // namespace tambour
