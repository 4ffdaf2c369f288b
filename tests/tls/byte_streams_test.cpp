// Byte streams, and TLS inside TLS: over sockets, over bytes that were received already, and over
// streams that are not sockets.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <tambour/net/byte_stream.h>
#include <tambour/tambour.h>

#include "support/on_every_backend.h"
#include "support/streams.h"
#include "tls/support/certificates.h"

namespace tambour::byte_streams_test {
namespace {

using namespace std::chrono_literals;
using test::Contexts;

std::string random_bytes(std::size_t size) {
  std::string bytes(size, '\0');
  std::minstd_rand random(1);
  for (char& byte : bytes) byte = char(random());
  return bytes;
}

template <class S>
Task<std::string> read_all(S& stream) {
  Buffer all;
  for (;;) {
    const auto got = co_await stream.read(all);
    EXPECT_TRUE(got) << got.error().message();
    if (!got || *got == 0) co_return all.to_string();
  }
}

/// Sends all bytes and the end, and receives those of the peer at the same time.
template <class S>
Task<> exchange(S& stream, std::string bytes, std::string& received) {
  TaskScope scope(stream.loop());
  scope.spawn([](S& to, std::string& from) -> Task<> {
    const auto written = co_await to.write(std::string_view(from));
    EXPECT_TRUE(written) << written.error().message();
    const auto ended = co_await to.shutdown_write();
    EXPECT_TRUE(ended) << ended.error().message();
  }(stream, bytes));
  received = co_await read_all(stream);
  co_await scope.join();
}

/// A stream of the program: the bytes of a channel of pieces in each direction.
struct Pipe {
  explicit Pipe(EventLoop& loop) : changed(loop) {}
  Buffer bytes;
  bool is_full = false;  ///< Writes wait until the stream is closed.
  bool has_ended = false;
  TaskEvent changed;
};

class PipeEnd final : public ByteStreamImplementation {
 public:
  PipeEnd(EventLoop& loop, std::shared_ptr<Pipe> in, std::shared_ptr<Pipe> out)
      : loop_(loop), in_(std::move(in)), out_(std::move(out)) {}
  ~PipeEnd() override { close(); }

  EventLoop& loop() const noexcept override { return loop_; }
  bool is_open() const noexcept override { return is_open_; }
  Task<Result<std::size_t>> read(Buffer& into, std::size_t bytes_max) override {
    return read_from(in_, into, bytes_max);
  }
  using ByteStreamImplementation::write;
  Task<Result<>> write(Buffer& from) override { return write_to(out_, from); }
  Task<Result<>> shutdown_write() override {
    out_->has_ended = true;
    out_->changed.set();
    co_return Result<>();
  }
  void close() noexcept override {
    is_open_ = false;
    in_->has_ended = out_->has_ended = true;
    in_->changed.set();
    out_->changed.set();
  }

 private:
  static Task<Result<std::size_t>> read_from(std::shared_ptr<Pipe> in, Buffer& into,
                                             std::size_t bytes_max) {
    while (in->bytes.empty() && !in->has_ended) {
      in->changed.reset();
      const auto waited = co_await in->changed.wait();
      if (!waited) co_return std::unexpected(waited.error());
    }
    // Small pieces, so that records are cut.
    Buffer piece = in->bytes.take(std::min(bytes_max, std::size_t{777}));
    const std::size_t size = piece.size();
    into.append(std::move(piece));
    co_return size;
  }
  static Task<Result<>> write_to(std::shared_ptr<Pipe> out, Buffer& from) {
    while (out->is_full && !out->has_ended) {
      out->changed.reset();
      const auto waited = co_await out->changed.wait();
      if (!waited) co_return std::unexpected(waited.error());
    }
    out->bytes.append(std::move(from));
    out->changed.set();
    co_return Result<>();
  }

  EventLoop& loop_;
  std::shared_ptr<Pipe> in_, out_;
  bool is_open_ = true;
};

struct ByteEnds {
  ByteStream near, far;
};

class ByteStreams : public test::OnEveryBackend {
 protected:
  /// `is_full`: what the near end writes is never read.
  ByteEnds pipes(bool is_full = false) {
    auto there = std::make_shared<Pipe>(loop());
    there->is_full = is_full;
    auto back = std::make_shared<Pipe>(loop());
    return {ByteStream(std::make_unique<PipeEnd>(loop(), back, there)),
            ByteStream(std::make_unique<PipeEnd>(loop(), there, back))};
  }
  ByteEnds sockets() {
    test::StreamEnds ends = test::open_stream_ends(loop());
    return {ByteStream(std::move(ends.near)), ByteStream(std::move(ends.far))};
  }
  /// TLS over the ends; `near` is the client.
  ByteEnds secure(ByteEnds ends, const Contexts& contexts) {
    ByteEnds secured;
    TaskScope scope(loop());
    scope.spawn([](ByteStream below, tls::ServerContext tls, ByteStream& into) -> Task<> {
      auto done = co_await tls::accept(std::move(below), tls);
      EXPECT_TRUE(done) << done.error().message();
      if (done) into = std::move(*done);
    }(std::move(ends.far), contexts.server, secured.far));
    run([](ByteStream below, tls::ClientContext tls, ByteStream& into) -> Task<> {
      auto done = co_await tls::connect(std::move(below), tls, "localhost");
      EXPECT_TRUE(done) << done.error().message();
      if (done) into = std::move(*done);
    }(std::move(ends.near), contexts.client, secured.near));
    EXPECT_TRUE(run_until([&] { return scope.empty(); }));
    return secured;
  }
  template <class S>
  void expect_exchange(S& near, S& far, std::size_t size) {
    const std::string bytes = random_bytes(size);
    std::string received_near;
    std::string received_far;
    TaskScope scope(loop());
    scope.spawn(exchange(far, "far" + bytes, received_far));
    run(exchange(near, "near" + bytes, received_near));
    EXPECT_TRUE(run_until([&] { return scope.empty(); }));
    EXPECT_TRUE(received_near == "far" + bytes) << received_near.size();
    EXPECT_TRUE(received_far == "near" + bytes) << received_far.size();
  }
};

TEST_P(ByteStreams, received_bytes_are_read_first) {
  test::StreamEnds ends = test::open_stream_ends(loop());
  ByteStream near(std::move(ends.near), Buffer("received "));
  run([](SocketStream& far) -> Task<> { EXPECT_TRUE(co_await far.write("sent")); }(ends.far));
  run([](ByteStream& stream) -> Task<> {
    Buffer bytes;
    EXPECT_EQ(co_await stream.read(bytes, 4), 4U);
    EXPECT_EQ(bytes, "rece");
    EXPECT_EQ(co_await stream.read(bytes), 5U);
    EXPECT_EQ(co_await stream.read(bytes), 4U);
    EXPECT_EQ(bytes, "received sent");
    EXPECT_TRUE(co_await stream.write("answer"));
  }(near));
  EXPECT_TRUE(near.peer_endpoint());
  Buffer left;
  auto socket = near.release_socket(left);
  ASSERT_TRUE(socket);
  EXPECT_TRUE(socket->is_open());
  EXPECT_TRUE(left.empty());
  EXPECT_FALSE(near.is_open());
  EXPECT_EQ(near.release_socket(left).error(), system_error(EBADF));
  run([](ByteStream& closed) -> Task<> {
    Buffer bytes;
    EXPECT_EQ((co_await closed.read(bytes)).error(), system_error(EBADF));
    EXPECT_EQ((co_await closed.write("x")).error(), system_error(EBADF));
    EXPECT_EQ((co_await closed.shutdown_write()).error(), system_error(EBADF));
  }(near));
}

TEST_P(ByteStreams, close_ends_a_read) {
  for (const bool is_socket : {true, false}) {
    ByteEnds ends = is_socket ? sockets() : secure(pipes(), Contexts());
    Error error;
    TaskScope scope(loop());
    scope.spawn([](ByteStream& stream, Error& into) -> Task<> {
      Buffer bytes;
      const auto got = co_await stream.read(bytes);
      into = got ? Error() : got.error();
    }(ends.near, error));
    run([]() -> Task<> { static_cast<void>(co_await sleep_for(1ms)); }());
    ends.near = ByteStream();
    EXPECT_TRUE(run_until([&] { return scope.empty(); }));
    EXPECT_EQ(error, system_error(ECANCELED));
  }
}

TEST_P(ByteStreams, tls_inside_tls_on_a_socket) {
  const Contexts outer;
  const Contexts inner;
  ByteEnds once = secure(sockets(), outer);
  const tls::Session* const first = once.near.tls();
  ASSERT_NE(first, nullptr);
  ByteEnds twice = secure(std::move(once), inner);
  ASSERT_NE(twice.near.tls(), nullptr);
  EXPECT_NE(twice.near.tls(), first);
  Buffer none;
  auto near = twice.near.release_socket(none);
  auto far = twice.far.release_socket(none);
  ASSERT_TRUE(near && far) << "two filters on one socket";
  expect_exchange(*near, *far, 1'000'000);
}

TEST_P(ByteStreams, at_most_four_sessions_on_a_socket) {
  const Contexts contexts;
  ByteEnds ends = sockets();
  for (int i = 0; i < 4; ++i) ends = secure(std::move(ends), contexts);
  Buffer none;
  auto near = ends.near.release_socket(none);
  auto far = ends.far.release_socket(none);
  ASSERT_TRUE(near && far);
  expect_exchange(*near, *far, 100'000);
  run([](SocketStream& stream, tls::ClientContext tls) -> Task<> {
    EXPECT_EQ((co_await tls::connect(stream, tls, "localhost")).error(), system_error(EALREADY));
  }(*near, contexts.client));
}

TEST_P(ByteStreams, a_nested_handshake_that_fails_leaves_no_plaintext) {
  const Contexts contexts;
  ByteEnds ends = secure(sockets(), contexts);
  Buffer none;
  SocketStream near = or_throw(ends.near.release_socket(none));
  SocketStream far = or_throw(ends.far.release_socket(none));
  {
    // The task is destroyed in the middle of its handshake.
    TaskScope scope(loop());
    scope.spawn([](SocketStream& stream, tls::ClientContext tls) -> Task<> {
      static_cast<void>(co_await tls::connect(stream, tls, "localhost"));
    }(near, contexts.client));
    run([]() -> Task<> { static_cast<void>(co_await sleep_for(1ms)); }());
  }
  EXPECT_TRUE(!near.is_open() || near.tls() != nullptr);
  run([](SocketStream& stream) -> Task<> {
    Buffer hello;
    EXPECT_TRUE(co_await stream.read(hello)) << "the outer session carries the inner ClientHello";
    EXPECT_EQ(hello.front().front(), std::byte{22});
  }(far));
}

TEST_P(ByteStreams, tls_begins_with_bytes_that_were_received) {
  const Contexts contexts;
  test::StreamEnds ends = test::open_stream_ends(loop());
  TaskScope scope(loop());
  ByteEnds secured;
  scope.spawn([](SocketStream stream, tls::ClientContext tls, ByteStream& into) -> Task<> {
    const auto done = co_await tls::connect(stream, tls, "localhost");
    EXPECT_TRUE(done);
    into = ByteStream(std::move(stream));
  }(std::move(ends.near), contexts.client, secured.near));
  run([](SocketStream stream, tls::ServerContext tls, ByteStream& into) -> Task<> {
    Buffer hello;
    const auto got = co_await stream.read(hello, 100);
    EXPECT_TRUE(got && *got == 100);
    ByteStream bytes(std::move(stream), std::move(hello));
    auto done = co_await tls::accept(std::move(bytes), tls);
    EXPECT_TRUE(done) << done.error().message();
    if (done) into = std::move(*done);
  }(std::move(ends.far), contexts.server, secured.far));
  EXPECT_TRUE(run_until([&] { return scope.empty(); }));
  expect_exchange(secured.near, secured.far, 1'000'000);
}

TEST_P(ByteStreams, tls_over_streams_of_another_kind) {
  const Contexts contexts;
  ByteEnds ends = secure(pipes(), contexts);
  ASSERT_NE(ends.near.tls(), nullptr);
  EXPECT_EQ(ends.near.peer_endpoint().error(), system_error(ENOTSOCK));
  Buffer none;
  EXPECT_EQ(ends.near.release_socket(none).error(), system_error(ENOTSOCK));
  ByteEnds twice = secure(std::move(ends), contexts);
  expect_exchange(twice.near, twice.far, 300'000);
}

TEST_P(ByteStreams, a_handshake_over_another_kind_fails) {
  const Contexts contexts;
  ByteEnds ends = pipes();
  TaskScope scope(loop());
  scope.spawn([](ByteStream below, tls::ServerContext tls) -> Task<> {
    static_cast<void>(co_await tls::accept(std::move(below), tls));
  }(std::move(ends.far), contexts.server));
  run([](ByteStream below, tls::ClientContext tls) -> Task<> {
    const auto done = co_await tls::connect(std::move(below), tls, "other.test");
    EXPECT_EQ(done.error(), tls::ErrorCode::certificate_wrong_host);
  }(std::move(ends.near), contexts.client));
  // The peer of a stream that ends without close_notify.
  ends = secure(pipes(), contexts);
  ends.far.close();
  run([](ByteStream& stream) -> Task<> {
    Buffer bytes;
    EXPECT_EQ((co_await stream.read(bytes)).error(), tls::ErrorCode::truncated);
  }(ends.near));
}

/// Expects that the handshake of a client fails, and returns the message of its report.
Task<std::string> time_out(ByteStream below) {
  std::string message;
  tls::ClientOptions options;
  options.handshake_timeout = 20ms;
  options.on_failure = [&message](const tls::Failure& failure) { message = failure.message; };
  const Contexts contexts({}, options);
  const auto done = co_await tls::connect(std::move(below), contexts.client, "localhost");
  EXPECT_EQ(done.error(), system_error(ETIMEDOUT));
  co_return message;
}

TEST_P(ByteStreams, a_handshake_has_a_time_limit) {
  // The peer does not answer, or does not read.
  for (const bool is_full : {false, true}) {
    run([](ByteEnds ends) -> Task<> {
      const std::string message = co_await time_out(std::move(ends.near));
      EXPECT_TRUE(message.starts_with("TLS handshake with the peer: ")) << message;
      EXPECT_TRUE(message.ends_with("not complete within 0.020000 s")) << message;
      Buffer sent;  // The stream was closed.
      while (const auto got = co_await ends.far.read(sent)) {
        if (*got == 0) break;
      }
    }(pipes(is_full)));
  }
}

TEST_P(ByteStreams, the_report_of_a_time_limit_names_the_peer) {
  test::StreamEnds ends = test::open_stream_ends(loop());
  const Endpoint peer = ends.near.peer_endpoint().value();
  run([](ByteStream stream, Endpoint named) -> Task<> {
    const std::string message = co_await time_out(std::move(stream));
    EXPECT_TRUE(message.starts_with("TLS handshake with " + named.to_string())) << message;
  }(ByteStream(std::move(ends.near), Buffer("\x16")), peer));
}

TAMBOUR_ON_EVERY_BACKEND(ByteStreams);

}  // namespace
}  // namespace tambour::byte_streams_test
