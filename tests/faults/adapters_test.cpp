// Adapters whose own allocations fail in turn, with the clients' servers. The clients themselves
// allocate with malloc(3), which succeeds.
#include <curl/curl.h>

#include <cerrno>
#include <cstddef>
#include <exception>
#include <fstream>
#include <future>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/adapters/curl.h>
#include <tambour/adapters/hiredis.h>
#include <tambour/adapters/libpq.h>
#include <tambour/adapters/mosquitto.h>
#include <tambour/tambour.h>

#include "adapters/postgres_server.h"
#include "adapters/server_process.h"
#include "faults/allocations.h"
#include "support/process.h"
#include "support/temporary_folder.h"

namespace tambour::adapters_test {
namespace {

using namespace std::chrono_literals;
using adapters::CurlTransfers;
using adapters::MqttClient;
using adapters::PgConnection;
using adapters::RedisClient;
using adapters::RedisValue;

class Adapters : public testing::Test {
 protected:
  /// Runs the task that `begin` returns to its end. Returns its error, or ENOMEM if it has thrown
  /// std::bad_alloc. Fails the test if it does not end: a callback was lost.
  template <class Begin>
  Error run(const Begin& begin) {
    Error error = system_error(ENOMEM);
    try {
      TaskScope scope(loop);
      scope.set_exception_handler([](const std::exception_ptr&) {});
      scope.spawn([&]() -> Task<> {
        auto task = begin();
        error = co_await std::move(task);
      });
      bool is_late = false;
      Timer limit(loop, [&] { is_late = true; });
      limit.start(1min);
      while (!scope.empty() && !is_late) loop.run_once();
      EXPECT_FALSE(is_late) << "the task did not end";
    } catch (const std::bad_alloc&) {
      return system_error(ENOMEM);  // There is no memory to spawn the task.
    }
    return error;
  }
  /// Repeats the task until it succeeds: the server may be starting, and what the loop allocates
  /// once is there afterwards.
  template <class Begin>
  void warm_up(const Begin& begin) {
    Error error;
    for (int i = 0; i < 12'000; ++i) {
      error = run(begin);
      if (!error) return;
      std::this_thread::sleep_for(5ms);
    }
    FAIL() << error.message();
  }
  /// Each attempt succeeds or reports that there is no memory; the next one succeeds.
  template <class Begin>
  void refuse_each(const Begin& begin) {
    warm_up(begin);
    const std::size_t descriptors = test::open_descriptors();
    int refused = 0;
    for (const unsigned times : {1U, 3U}) {
      for (unsigned nth = 1;; ++nth) {
        SCOPED_TRACE(testing::Message() << "allocation " << nth << ", " << times << " times");
        test::refuse_memory(nth, times);
        const Error error = run(begin);
        test::grant_memory();
        if (!test::memory_was_refused() || HasFailure()) {
          EXPECT_FALSE(error) << error.message();
          break;
        }
        ++refused;
        if (error) EXPECT_EQ(error, system_error(ENOMEM)) << error.message();
        const Error again = run(begin);
        EXPECT_FALSE(again) << again.message();
      }
    }
    EXPECT_GT(refused, 5);
    // Servers in this process close their ends later.
    for (int i = 0; i < 12'000 && test::open_descriptors() > descriptors; ++i)
      std::this_thread::sleep_for(5ms);
    EXPECT_LE(test::open_descriptors(), descriptors);
  }

  EventLoop loop;
};

Error error_of(const Result<RedisValue>& result) { return result ? Error() : result.error(); }

TEST_F(Adapters, of_redis_run_out_of_memory) {
  if (test::find_program("redis-server").empty()) GTEST_SKIP() << "redis-server is not installed";
  const test::TemporaryFolder folder;
  const std::string socket = folder.path() + "/socket";
  const test::ServerProcess server(
      std::vector<std::string>{"redis-server", "--port", "0", "--unixsocket", socket, "--save", "",
                               "--dir", folder.path()},
      folder.path() + "/log");
  const std::string text(100, 'x');
  refuse_each([&]() -> Task<Error> {
    RedisClient redis(loop);
    const auto connected = co_await redis.connect_unix(socket.c_str());
    if (!connected) co_return connected.error();
    for (const std::string_view key : {"a", "b"}) {
      const auto stored = co_await redis.command("SET", key, text);
      if (!stored) co_return stored.error();
    }
    auto first = redis.command("MGET", "a", "b");
    const auto second = co_await redis.command("GET", "a");
    const auto list = co_await std::move(first);
    if (!list || !second) co_return list ? error_of(second) : list.error();
    EXPECT_EQ(second->text, text);
    EXPECT_EQ(list->elements.size(), 2U);
    // A message, and then the end of the connection.
    TaskEvent received(loop);
    Error lost;
    const std::vector<std::string_view> words{"SUBSCRIBE", "a channel with a long name"};
    const auto subscribed = redis.subscribe(
        words, [&](const RedisValue&) { received.set(); },
        [&](const Error& error) {
          lost = error;
          received.set();
        });
    if (!subscribed) co_return subscribed.error();
    static_cast<void>(co_await received.wait());
    co_return lost;
  });
}

TEST_F(Adapters, of_postgresql_run_out_of_memory) {
  const auto& server = test::PostgresServer::shared();
  if (!server.is_installed()) GTEST_SKIP() << "PostgreSQL is not installed";
  const std::string long_text(10'000, 'x');
  refuse_each([&]() -> Task<Error> {
    auto connection = co_await PgConnection::connect(server.settings());
    if (!connection) co_return connection.error().error;
    const auto rows = co_await connection->query("select length($1)", long_text);
    if (!rows) co_return rows.error().error;
    EXPECT_STREQ(PQgetvalue(rows->get(), 0, 0), "10000");
    const auto wrong = co_await connection->query("selec 1");
    EXPECT_EQ(wrong.error().sqlstate, "42601");
    const auto entered = connection->enter_pipeline();
    if (!entered) co_return entered.error().error;
    const auto queued = connection->queue("select $1", "1");
    if (!queued) co_return queued.error().error;
    const auto sent = co_await connection->sync();
    if (!sent) co_return sent.error().error;
    for (;;) {
      const auto next = co_await connection->next_rows();
      if (!next) co_return ADD_FAILURE() << next.error().message, next.error().error;
      if (PQresultStatus(next->get()) == PGRES_PIPELINE_SYNC) break;
    }
    static_cast<void>(connection->exit_pipeline());
    const auto copying = co_await connection->query("copy (select 1) to stdout");
    if (!copying) co_return copying.error().error;
    const auto row = co_await connection->get_copy_data();
    co_return row ? Error() : row.error().error;
  });
}

TEST_F(Adapters, of_mqtt_run_out_of_memory) {
  const std::string program = test::find_program("mosquitto", "/usr/sbin");
  if (program.empty()) GTEST_SKIP() << "mosquitto is not installed";
  mosquitto_lib_init();
  const test::TemporaryFolder folder;
  const std::string socket = folder.path() + "/socket";
  std::ofstream(folder.path() + "/conf")
      << "listener 0 " << socket << "\nallow_anonymous true\nuser root\n";
  const test::ServerProcess server(std::vector<std::string>{program, "-c", folder.path() + "/conf"},
                                   folder.path() + "/log");
  refuse_each([&]() -> Task<Error> {
    MqttClient client(loop, "client");
    const auto connected = co_await client.connect(socket.c_str(), 0);
    if (!connected) co_return connected.error();
    TaskEvent received(loop);
    client.on_message([&](const mosquitto_message&) { received.set(); });
    const auto subscribed = co_await client.subscribe("news", 1);
    if (!subscribed) co_return subscribed.error();
    auto first = client.publish("news", "a", 1);
    const auto second = co_await client.publish("news", "b", 2);
    const auto published = co_await std::move(first);
    if (!published || !second) co_return published ? second.error() : published.error();
    static_cast<void>(co_await received.wait());
    co_return Error();
  });
}

/// An HTTP server on a thread of its own, whose allocations succeed.
class HttpServerThread {
 public:
  HttpServerThread() : thread_([this] { serve(); }) { url_ = opened_.get_future().get(); }
  HttpServerThread(const HttpServerThread&) = delete;
  HttpServerThread& operator=(const HttpServerThread&) = delete;
  ~HttpServerThread() { loop_->stop(); }

  [[nodiscard]] const std::string& url() const { return url_; }

 private:
  void serve() {
    EventLoop loop;
    loop_ = &loop;
    const auto server =
        or_throw(http::Server::listen(loop, *Endpoint::parse("127.0.0.1:0"),
                                      [](http::Request&, http::Response& response) -> Task<> {
                                        static_cast<void>(response.send(std::string(100'000, 'x')));
                                        co_return;
                                      }),
                 "listen");
    opened_.set_value("http://" + server.endpoint().to_string() + "/");
    loop.run();
  }

  EventLoop* loop_ = nullptr;
  std::promise<std::string> opened_;
  std::string url_;
  std::jthread thread_;
};

/// Counts what libcurl has received; it must not throw.
std::size_t count_bytes(const char* /*bytes*/, std::size_t size, std::size_t count,
                        std::size_t* received) {
  *received += size * count;
  return size * count;
}

TEST_F(Adapters, of_libcurl_run_out_of_memory) {
  curl_global_init(CURL_GLOBAL_DEFAULT);
  const HttpServerThread server;
  refuse_each([&]() -> Task<Error> {
    CurlTransfers transfers(loop);
    for (int i = 0; i < 2; ++i) {
      std::size_t received = 0;
      const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> easy(curl_easy_init(),
                                                                     &curl_easy_cleanup);
      curl_easy_setopt(easy.get(), CURLOPT_URL, server.url().c_str());
      curl_easy_setopt(easy.get(), CURLOPT_WRITEFUNCTION, &count_bytes);
      curl_easy_setopt(easy.get(), CURLOPT_WRITEDATA, &received);
      const CURLcode result = co_await transfers.perform(easy.get());
      if (result == CURLE_OUT_OF_MEMORY) co_return system_error(ENOMEM);
      EXPECT_EQ(result, CURLE_OK);
      EXPECT_EQ(received, 100'000U);
    }
    co_return Error();
  });
}

}  // namespace
}  // namespace tambour::adapters_test
