// Clients and servers of early data, and relays between them.
#include "tls/support/early_data.h"

#include <utility>

#include <gtest/gtest.h>

namespace tambour::test {

tls::ServerOptions with_early_data(std::size_t bytes_max) {
  tls::ServerOptions options;
  options.early_data_bytes_max = bytes_max;
  options.ticket_secret = std::string(32, 's');
  return options;
}

Task<Outcome> ask(SocketStream& stream, tls::ClientContext tls, std::string request) {
  Outcome outcome;
  const auto done = co_await tls::connect(stream, tls, "localhost", tls::Replayable(request));
  if (!done) {
    outcome.error = done.error();
    co_return outcome;
  }
  outcome.resumed = stream.tls()->is_resumed();
  outcome.early_data = stream.tls()->early_data();
  EXPECT_TRUE(stream.tls()->is_handshake_complete());
  if (outcome.early_data != tls::EarlyData::accepted) {
    EXPECT_TRUE(co_await stream.write(request));
  }
  EXPECT_TRUE(co_await stream.shutdown_write());
  Buffer all;
  for (;;) {
    const auto got = co_await stream.read(all);
    if (!got) outcome.error = got.error();
    if (!got || *got == 0) break;
  }
  outcome.answer = all.to_string();
  co_return outcome;
}

Task<> answer_early(TcpStream stream, std::vector<Received>& seen) {
  Buffer early;
  const auto got = co_await tls::read_early(stream, early);
  if (!got) co_return;
  const bool is_early = *got > 0;
  EXPECT_EQ(stream.tls()->is_handshake_complete(), !is_early);
  const std::size_t index = seen.size();
  seen.push_back({.early = early.to_string(), .late = {}});
  if (is_early) {
    EXPECT_TRUE(co_await stream.write("early " + early.to_string()));
    EXPECT_EQ(co_await stream.shutdown_write(), std::unexpected<Error>(system_error(EBUSY)));
  }
  Buffer late;
  for (;;) {
    const auto more = co_await stream.read(late);
    if (!more || *more == 0) break;
    EXPECT_TRUE(stream.tls()->is_handshake_complete());
  }
  seen[index].late = late.to_string();
  if (!is_early) static_cast<void>(co_await stream.write("late " + late.to_string()));
  static_cast<void>(co_await stream.shutdown_write());
}

Task<> relay(SocketStream& from, SocketStream& to, std::string& recorded, const bool& answered) {
  for (;;) {
    Buffer buffer;
    const auto got = co_await from.read(buffer);
    if (!got || *got == 0) break;
    if (!answered) recorded += buffer.to_string();
    if (!co_await to.write(buffer)) break;
  }
  static_cast<void>(co_await to.shutdown_write());
}

Task<> relay_answer(SocketStream& from, SocketStream& to, bool& answered) {
  for (;;) {
    Buffer buffer;
    const auto got = co_await from.read(buffer);
    if (!got || *got == 0) break;
    answered = true;
    if (!co_await to.write(buffer)) break;
  }
  static_cast<void>(co_await to.shutdown_write());
}

}  // namespace tambour::test
