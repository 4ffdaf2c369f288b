// Clients, handlers and attackers of tests of early data.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <tambour/tambour.h>

namespace tambour::test {

tls::ServerOptions with_early_data(
    std::size_t bytes_max = tls::ServerOptions::early_data_bytes_limit);

/// What a client has seen.
struct Outcome {
  Error error{};
  bool resumed = false;
  tls::EarlyData early_data{};
  std::string answer{};
};

/// Sends `request` early if possible, and otherwise after the handshake; reads until the end.
Task<Outcome> ask(SocketStream& stream, tls::ClientContext tls, std::string request);

/// What a handler has seen.
struct Received {
  std::string early;
  std::string late;
};

/// A handler that answers with what it got first, as soon as it can.
Task<> answer_early(TcpStream stream, std::vector<Received>& seen);

/// Forwards, and records what it has forwarded before `to` has answered.
Task<> relay(SocketStream& from, SocketStream& to, std::string& recorded, const bool& answered);
Task<> relay_answer(SocketStream& from, SocketStream& to, bool& answered);

}  // namespace tambour::test
