// Each allocation of exchanges over HTTP/2 fails once, and each with the two after it.
#include <chrono>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "faults/allocations.h"
#include "http_message/h2/frame_parser.h"
#include "http_message/h2/frame_writer.h"
#include "http_message/h2/head_writer.h"

namespace tambour::http2_test {
namespace {

using namespace http::detail::h2;
using http::Request;
using http::Response;

Task<> answer(Request& request, Response& response) {
  if (request.method() == http::Method::connect) {
    auto tunnel = co_await response.upgrade();
    if (!tunnel) co_return;
    Buffer bytes;
    const auto got = co_await tunnel->read(bytes);
    if (got) static_cast<void>(co_await tunnel->write(bytes));
    static_cast<void>(co_await tunnel->shutdown_write());
    co_return;
  }
  auto body = co_await request.body().read_all();
  if (!body) co_return;
  if (request.path() == "/slow")
    static_cast<void>(co_await sleep_for(std::chrono::microseconds(1)));
  const auto written = co_await response.write(std::move(*body));
  http::Fields trailers;
  static_cast<void>(trailers.add("X-Y", "z"));
  if (written) static_cast<void>(response.end(trailers));
}

/// What a client sends: four requests, one of which asks for its body, one tunnel, and one reset.
Buffer requests() {
  Buffer out(client_preface);
  HpackEncoder encoder;
  append_settings(out, {});
  for (std::uint32_t id = 1; id < 11; id += 2) {
    http::RequestHead head{.method = id == 7 ? http::Method::connect : http::Method::post};
    head.target = id == 3 ? "/slow" : "/";
    head.authority = "a";
    if (id == 7) {
      head.authority = head.target = "a:1";
      head.form = http::TargetForm::authority;
    }
    if (id == 5) static_cast<void>(head.fields.add("Expect", "100-continue"));
    or_throw(append_head(out, encoder, head, {.stream_id = id}));
  }
  for (std::uint32_t id = 1; id < 9; id += 2) append_data(out, id, Buffer("hello"), true);
  append_rst_stream(out, 9, ErrorCode::cancel);
  append_goaway(out, 0, ErrorCode::no_error, "");
  return out;
}

/// Counts the streams that the server has completed.
Task<> talk(Endpoint to, int& completed) {
  Buffer out = requests();
  auto stream = co_await TcpStream::connect(to);
  if (!stream) co_return;
  const auto written = co_await stream->write(out);
  if (!written) co_return;
  FrameParser parser(FrameParser::Role::client);
  Buffer in;
  for (int ended = 0; ended < 4;) {
    const auto got = co_await stream->read(in);
    if (!got || *got == 0) co_return;
    Frame frame;
    for (;;) {
      const auto parsed = parser.next(in, frame);
      EXPECT_TRUE(parsed);
      if (!parsed || !*parsed) break;
      if (frame.kind == FrameKind::rst_stream) ++ended;
      const bool is_end =
          (frame.kind == FrameKind::data || frame.kind == FrameKind::headers) && frame.end_stream;
      if (is_end) {
        ++ended;
        ++completed;
      }
    }
  }
}

/// Returns the number of completed streams, or -1 if an end has reported that memory is exhausted.
int exchange(EventLoop& loop) {
  int completed = 0;
  try {
    bool failed = false;
    http::ServerOptions options;
    options.listen.on_error = [&failed](const std::exception_ptr&) { failed = true; };
    auto server = http::Server::listen(loop, Endpoint::loopback_v4(0), answer, options);
    if (!server) return -1;
    TaskScope client(loop);
    client.set_exception_handler([&failed](const std::exception_ptr&) { failed = true; });
    client.spawn(talk(server->endpoint(), completed));
    bool late = false;
    Timer limit(loop, [&late] { late = true; });
    limit.start(std::chrono::minutes(1));
    while (!late && (!client.empty() || server->connections() > 0)) loop.run_once();
    EXPECT_FALSE(late);
    if (failed) return -1;
  } catch (const std::bad_alloc&) {
    return -1;
  }
  return completed;
}

TEST(Http2Memory, allocations_may_fail_at_any_point) {
  EventLoop loop;
  ASSERT_EQ(exchange(loop), 4);
  test::refuse_each_allocation([&] { return exchange(loop); }, [](auto) {});
  EXPECT_EQ(exchange(loop), 4);
}

}  // namespace
}  // namespace tambour::http2_test
