// nats.c with its adapter for libevent, whose threads add events, on an EventLoop.
#include <nats/adapters/libevent.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include <tambour/adapters/libevent.h>
#include <tambour/tambour.h>

#include "adapters/server_process.h"
#include "support/scale.h"
#include "support/temporary_folder.h"

namespace tambour::nats_libevent_test {
namespace {

using namespace std::chrono_literals;

class NatsWithLibevent : public testing::Test {
 protected:
  static void SetUpTestSuite() { natsLibevent_Init(); }
  static void TearDownTestSuite() { nats_CloseAndWait(0); }

  /// The URL of a server that chooses its port; empty if there is none.
  std::string url_of_server() {
    std::string url;
    for (int i = 0; i < 12'000 && url.empty(); ++i) {
      run_for(5ms);
      std::ifstream log(folder.path() + "/log");
      for (std::string line; std::getline(log, line);) {
        constexpr std::string_view text = "client connections on ";
        const std::size_t at = line.find(text);
        if (at != std::string::npos) url = "nats://" + line.substr(at + text.size());
      }
    }
    return url;
  }
  void run_for(Duration time) {
    bool is_over = false;
    Timer timer(loop, [&] { is_over = true; });
    timer.start(time);
    while (!is_over) loop.run_once();
  }

  test::TemporaryFolder folder;
  EventLoop loop;
};

TEST_F(NatsWithLibevent, messages_are_published_and_received) {
  const std::string program = test::find_program("nats-server", "/usr/sbin");
  if (program.empty()) GTEST_SKIP() << "nats-server is not installed";
  const test::ServerProcess server(
      std::vector<std::string>{program, "--addr", "127.0.0.1", "--port", "-1"},
      folder.path() + "/log");
  const std::string url = url_of_server();
  ASSERT_FALSE(url.empty());
  adapters::LibeventBase base(loop);
  ASSERT_TRUE(base.start());
  natsOptions* options = nullptr;
  ASSERT_EQ(natsOptions_Create(&options), NATS_OK);
  natsOptions_SetURL(options, url.c_str());
  natsOptions_SetTimeout(options, 60'000);
  ASSERT_EQ(natsOptions_SetEventLoop(options, base.get(), &natsLibevent_Attach, &natsLibevent_Read,
                                     &natsLibevent_Write, &natsLibevent_Detach),
            NATS_OK);
  std::atomic<bool> is_closed = false;
  natsOptions_SetClosedCB(
      options,
      [](natsConnection*, void* closed) { *static_cast<std::atomic<bool>*>(closed) = true; },
      &is_closed);
  natsConnection* connection = nullptr;
  ASSERT_EQ(natsConnection_Connect(&connection, options), NATS_OK);
  std::atomic<int> received = 0;
  natsSubscription* subscription = nullptr;
  natsConnection_Subscribe(
      &subscription, connection, "news",
      [](natsConnection*, natsSubscription*, natsMsg* message, void* count) {
        natsMsg_Destroy(message);
        ++*static_cast<std::atomic<int>*>(count);
      },
      &received);
  // At most a hundred in flight.
  const int messages = static_cast<int>(test::scaled(10'000));
  int sent = 0;
  Timer tick(loop, [&] {
    for (; sent < messages && sent < received + 100; ++sent)
      EXPECT_EQ(natsConnection_PublishString(connection, "news", "hello"), NATS_OK);
  });
  tick.start(Duration::zero(), 100us);
  Timer limit(loop, [] {});
  limit.start(1min);
  while (received < messages && limit.is_started()) loop.run_once();
  EXPECT_EQ(received, messages);
  tick.stop();
  natsSubscription_Destroy(subscription);
  natsConnection_Close(connection);
  while (!is_closed && limit.is_started()) run_for(1ms);
  EXPECT_TRUE(is_closed);
  natsConnection_Destroy(connection);
  natsOptions_Destroy(options);
}

}  // namespace
}  // namespace tambour::nats_libevent_test
