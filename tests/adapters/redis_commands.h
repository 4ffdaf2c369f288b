// Commands through an adapter that hiredis ships, for the tests of both drop-ins.
#pragma once

#include <hiredis/async.h>
#include <hiredis/hiredis.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "adapters/server_process.h"
#include "support/scale.h"
#include "support/temporary_folder.h"

namespace tambour::test {

/// A hundred commands in flight, each of which sends the next one.
struct RedisCommands {
  int sent = 0;
  int left = 0;
  int replies = 0;
  int errors = 0;
  bool has_disconnected = false;

  static RedisCommands& of(const redisAsyncContext* context) {
    return *static_cast<RedisCommands*>(context->data);
  }
  static void send(redisAsyncContext* context) {
    RedisCommands& self = of(context);
    if (self.left-- <= 0) return;
    ++self.sent;
    EXPECT_EQ(redisAsyncCommand(context, &on_reply, nullptr, "INCR counter"), REDIS_OK);
  }
  static void on_reply(redisAsyncContext* context, void* reply, void* /*argument*/) {
    RedisCommands& self = of(context);
    const auto* const value = static_cast<redisReply*>(reply);
    if (value == nullptr || value->type != REDIS_REPLY_INTEGER) {
      ++self.errors;
      return;
    }
    if (value->integer != ++self.replies) ++self.errors;
    if (self.replies == self.sent && self.left <= 0) {
      redisAsyncDisconnect(context);
    } else {
      send(context);
    }
  }
};

/// Starts redis-server and returns a connected context without an adapter; null if there is none.
/// `attach` connects the context with a loop. `run_until` runs the loop until its argument is true.
inline void expect_redis_commands(
    EventLoop& loop, const std::function<int(redisAsyncContext*)>& attach,
    const std::function<bool(const std::function<bool()>&)>& run_until) {
  if (find_program("redis-server").empty()) GTEST_SKIP() << "redis-server is not installed";
  const TemporaryFolder folder;
  const std::string socket = folder.path() + "/socket";
  const ServerProcess server(std::vector<std::string>{"redis-server", "--port", "0", "--unixsocket",
                                                      socket, "--save", "", "--dir", folder.path()},
                             folder.path() + "/log");
  redisAsyncContext* context = nullptr;
  for (int i = 0; i < 12'000; ++i) {
    context = redisAsyncConnectUnix(socket.c_str());
    ASSERT_NE(context, nullptr);
    if (context->err == 0) break;
    redisAsyncFree(context);
    context = nullptr;
    bool is_over = false;
    Timer pause(loop, [&] { is_over = true; });
    pause.start(std::chrono::milliseconds(5));
    EXPECT_TRUE(run_until([&] { return is_over; }));
  }
  ASSERT_NE(context, nullptr);
  RedisCommands commands;
  commands.left = static_cast<int>(scaled(10'000));
  const int expected = commands.left;
  context->data = &commands;
  ASSERT_EQ(attach(context), REDIS_OK);
  redisAsyncSetDisconnectCallback(context, [](const redisAsyncContext* ending, int status) {
    EXPECT_EQ(status, REDIS_OK);
    RedisCommands::of(ending).has_disconnected = true;
  });
  // New code on the same loop meanwhile.
  int ticks = 0;
  Timer timer(loop, [&] { ++ticks; });
  timer.start(Duration::zero(), std::chrono::milliseconds(1));
  for (int i = 0; i < 100; ++i) RedisCommands::send(context);
  EXPECT_TRUE(run_until([&] { return commands.has_disconnected; }));
  EXPECT_EQ(commands.replies, expected);
  EXPECT_EQ(commands.errors, 0);
  EXPECT_GT(ticks, 0);
}

}  // namespace tambour::test
