// libwebsockets with its plugin for libev, on an EventLoop: its HTTP server answers a client of
// Tambour.
#include <libwebsockets.h>

#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include <tambour/adapters/libev.h>
#include <tambour/tambour.h>

namespace tambour::websockets_libev_test {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

int handle(lws* wsi, lws_callback_reasons reason, void* /*user*/, void* /*in*/, size_t /*size*/) {
  if (reason == LWS_CALLBACK_HTTP) return lws_callback_on_writable(wsi) < 0 ? -1 : 0;
  if (reason != LWS_CALLBACK_HTTP_WRITEABLE) return 0;
  unsigned char buffer[LWS_PRE + answer.size()];
  std::copy(answer.begin(), answer.end(), buffer + LWS_PRE);
  const auto size = static_cast<int>(answer.size());
  if (lws_write(wsi, buffer + LWS_PRE, answer.size(), LWS_WRITE_HTTP) < size) return -1;
  return lws_http_transaction_completed(wsi);
}

TEST(LibwebsocketsWithLibev, serves_http) {
  EventLoop loop;
  adapters::LibevLoop ev(loop);
  ASSERT_TRUE(ev.start());
  lws_set_log_level(LLL_ERR, nullptr);
  const lws_protocols protocols[] = {{"http", &handle, 0, 0, 0, nullptr, 0},
                                     {nullptr, nullptr, 0, 0, 0, nullptr, 0}};
  void* loops[] = {ev.get()};
  lws_context_creation_info info{};
  info.options = LWS_SERVER_OPTION_LIBEV | LWS_SERVER_OPTION_EXPLICIT_VHOSTS;
  info.foreign_loops = loops;
  info.protocols = protocols;
  lws_context* const context = lws_create_context(&info);
  if (context == nullptr) GTEST_SKIP() << "libwebsockets has no plugin for libev";
  info.port = 0;
  info.iface = "127.0.0.1";
  lws_vhost* const host = lws_create_vhost(context, &info);
  ASSERT_NE(host, nullptr);
  const std::string url =
      "http://127.0.0.1:" + std::to_string(lws_get_vhost_listen_port(host)) + "/";
  http::Client client(loop);
  int answers = 0;
  bool is_done = false;
  TaskScope scope(loop);
  scope.spawn([&]() -> Task<> {
    for (int i = 0; i < 20; ++i) {
      auto response = co_await client.get(url);
      if (!response) continue;
      const auto text = co_await response->read_text();
      if (text && *text == "hello") ++answers;
    }
    is_done = true;
  });
  Timer limit(loop, [&] { is_done = true; });
  limit.start(1min);
  while (!is_done) loop.run_once();
  EXPECT_EQ(answers, 20);
  // Destroying the context takes iterations of the loop.
  lws_context_destroy(context);
  for (int i = 0; i < 20; ++i) loop.run_ready();
}

}  // namespace
}  // namespace tambour::websockets_libev_test
