// MariadbConnection with mariadbd.
#include <tambour/adapters/mariadb.h>

#include <mysqld_error.h>
#include <sys/stat.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "adapters/adapter_test.h"
#include "adapters/server_process.h"
#include "support/temporary_folder.h"

namespace tambour::mariadb_test {
namespace {

using namespace std::chrono_literals;
using adapters::MariadbConnection;
using adapters::MariadbRows;
using adapters::MariadbSettings;

/// One server for all tests of the file, which takes a second to start.
class Server {
 public:
  static Server& shared() {
    static Server server;
    return server;
  }
  [[nodiscard]] bool is_installed() const { return !program_.empty(); }
  [[nodiscard]] MariadbSettings settings() const {
    MariadbSettings settings;
    settings.unix_path = folder_.path() + "/socket";
    settings.user = "test";
    settings.flags = CLIENT_MULTI_STATEMENTS;
    return settings;
  }
  void start() {
    process_.emplace(
        std::vector<std::string>{
            program_, "--no-defaults", "--datadir=" + folder_.path() + "/data",
            "--socket=" + folder_.path() + "/socket", "--skip-networking", "--skip-grant-tables",
            "--max-connections=150", "--innodb-flush-log-at-trx-commit=0",
            "--innodb-buffer-pool-size=8M", "--innodb-log-file-size=4M",
            "--pid-file=" + folder_.path() + "/pid", "--tmpdir=" + folder_.path()},
        folder_.path() + "/log", test::ServerProcess::User::not_root);
  }
  void stop() { process_->end(SIGKILL); }

 private:
  Server() : program_(test::find_program("mariadbd", "/usr/sbin")) {
    if (program_.empty()) return;
    // Without the tables of mysql_install_db, which takes seconds; --skip-grant-tables allows that.
    ::chmod(folder_.path().c_str(), 0777);
    ::mkdir((folder_.path() + "/data").c_str(), 0777);
    ::chmod((folder_.path() + "/data").c_str(), 0777);
    start();
  }

  test::TemporaryFolder folder_;
  std::string program_;
  std::optional<test::ServerProcess> process_;
};

class Mariadb : public test::AdapterTest {
 protected:
  static void TearDownTestSuite() { mysql_library_end(); }

  void SetUp() override {
    if (!Server::shared().is_installed()) GTEST_SKIP() << "mariadb-server is not installed";
  }

  /// Connects as soon as the server accepts connections.
  static Task<std::optional<MariadbConnection>> connected() {
    std::optional<MariadbConnection> opened;
    auto attempt = [&]() -> Task<bool> {
      auto connection = co_await MariadbConnection::connect(Server::shared().settings());
      if (connection) opened.emplace(std::move(*connection));
      co_return opened.has_value();
    };
    static_cast<void>(co_await test::retry(std::move(attempt)));
    co_return std::move(opened);
  }
};

std::string value(const MariadbRows& rows) { return mysql_fetch_row(rows.get())[0]; }

TEST_F(Mariadb, queries_have_rows_and_errors) {
  run([]() -> Task<> {
    auto connection = co_await connected();
    auto sum = co_await connection->query("select 41 + 1");
    if (!sum) co_return ADD_FAILURE() << sum.error().message, void();
    EXPECT_EQ(value(*sum), "42");
    const std::string binary("it's\0\\x", 7);
    auto quoted = co_await connection->query("select length(" + connection->quoted(binary) + ")");
    EXPECT_EQ(value(*quoted), "7");
    auto many = co_await connection->query(
        "with recursive n as (select 1 i union all select i + 1 from n where i < 1000) "
        "select repeat('x', 5000) from n");
    EXPECT_EQ(mysql_num_rows(many->get()), 1'000U);
    auto both = co_await connection->query("select 1; select 2; do 3");
    EXPECT_EQ(value(*both), "2");
    auto nothing = co_await connection->query("do 1");
    EXPECT_EQ(*nothing, nullptr);
    auto wrong = co_await connection->query("selec 1");
    EXPECT_EQ(wrong.error().code, static_cast<unsigned>(ER_PARSE_ERROR));
    EXPECT_EQ(wrong.error().sqlstate, "42000");
    EXPECT_NE(wrong.error().message.find("selec"), std::string::npos);
    EXPECT_TRUE(connection->is_usable());
    // A second statement that fails, and the connection after it.
    auto half = co_await connection->query("select 1; selec 2");
    EXPECT_EQ(half.error().code, static_cast<unsigned>(ER_PARSE_ERROR));
    auto long_text =
        co_await connection->query("select length('" + std::string(8'000'000, 'x') + "')");
    EXPECT_EQ(value(*long_text), "8000000");
    MariadbSettings nowhere;
    nowhere.unix_path = "/nonexistent";
    auto refused = co_await MariadbConnection::connect(std::move(nowhere));
    EXPECT_EQ(refused.error().error, system_error(ECONNREFUSED));
  }());
}

Task<> query_many(MariadbConnection connection, std::size_t count, test::Random* random,
                  test::Outcomes& outcomes) {
  // Long enough for a time limit.
  auto operate = [&] { return connection.query(random != nullptr ? "do sleep(0.001)" : "do 1"); };
  co_await test::repeat_operation(operate, count, random, outcomes);
}

TEST_F(Mariadb, a_hundred_connections_and_half_of_the_queries_are_cancelled_at_random_points) {
  run([this]() -> Task<> {
    TAMBOUR_TRACE_SEED();
    const std::size_t count = test::scaled(100);
    test::Random random;
    test::Outcomes all;
    test::Outcomes half;
    std::vector<MariadbConnection> connections;
    for (int i = 0; i < 100; ++i) {
      auto connection = co_await connected();
      connections.push_back(std::move(*connection));
    }
    TaskScope scope(loop);
    bool is_limited = false;
    for (MariadbConnection& connection : connections) {
      scope.spawn(query_many(std::move(connection), 2 * count, is_limited ? &random : nullptr,
                             is_limited ? half : all));
      is_limited = !is_limited;
    }
    static_cast<void>(co_await scope.join());
    EXPECT_EQ(all.done, 100 * count);
    EXPECT_EQ(half.done + half.stopped, 100 * count);
    EXPECT_GT(half.done, 0U);
    EXPECT_GT(half.stopped, 0U);
  }());
}

TEST_F(Mariadb, a_stopped_query_is_drained_or_killed) {
  run([]() -> Task<> {
    auto connection = co_await connected();
    auto other = co_await connected();
    auto slow = co_await timeout(5ms, connection->query("select sleep(0.05); select 1"));
    // On a busy machine, the query may complete before the loop sees that its time is over.
    for (int i = 0; i < 100 && slow; ++i)
      slow = co_await timeout(5ms, connection->query("select sleep(0.05); select 1"));
    if (slow) co_return ADD_FAILURE() << "the query was never stopped", void();
    EXPECT_EQ(slow.error().error, system_error(ETIMEDOUT));
    auto next = co_await connection->query("select 2");
    EXPECT_EQ(value(*next), "2");
    auto endless = co_await timeout(5ms, connection->query("select sleep(1000)"));
    EXPECT_EQ(endless.error().error, system_error(ETIMEDOUT));
    const std::string id = std::to_string(mysql_thread_id(connection->get()));
    // Waits until the server runs the query: an earlier request has no effect.
    bool is_sleeping = false;
    for (int i = 0; i < 100'000 && !is_sleeping; ++i) {
      auto count = co_await other->query(
          "select count(*) from information_schema.processlist where state = 'User sleep' "
          "and id = " +
          id);
      is_sleeping = count && value(*count) == "1";
    }
    auto killed = co_await other->query("kill query " + id);
    EXPECT_TRUE(killed);
    auto after = co_await connection->query("select 3");
    EXPECT_EQ(value(*after), "3");
    // Destroyed in the middle of a query, and of connecting.
    static_cast<void>(co_await timeout(5ms, connection->query("select sleep(60)")));
    connection.reset();
    for (int i = 0; i < 20; ++i) {
      const std::chrono::microseconds limit(50 * i);
      auto connecting = MariadbConnection::connect(Server::shared().settings());
      static_cast<void>(co_await timeout(limit, std::move(connecting)));
    }
  }());
}

TEST_F(Mariadb, time_limits_of_libmariadb_end_queries) {
  run([]() -> Task<> {
    MariadbSettings settings = Server::shared().settings();
    settings.configure = [](MYSQL* mysql) {
      const unsigned seconds = 3;  // Also of connecting and of the quick query.
      mysql_options(mysql, MYSQL_OPT_READ_TIMEOUT, &seconds);
    };
    static_cast<void>(co_await connected());  // The server has started.
    auto connection = co_await MariadbConnection::connect(std::move(settings));
    if (!connection) co_return ADD_FAILURE() << connection.error().message, void();
    auto quick = co_await connection->query("select sleep(0.01)");
    EXPECT_TRUE(quick);
    auto slow = co_await connection->query("select sleep(60)");
    EXPECT_EQ(slow.error().error, system_error(ECONNRESET));
    EXPECT_FALSE(connection->is_usable());
    // A query that was moved, and one that is never awaited.
    auto other = co_await connected();
    auto query = other->query("select 3");
    auto moved = std::move(query);
    auto rows = co_await std::move(moved);
    EXPECT_EQ(value(*rows), "3");
    static_cast<void>(other->query("select 4"));
  }());
}

/// Performs `count` queries, and more until the server has been restarted. Repeats each query until
/// it succeeds, on another connection if that is necessary.
Task<> query_always(MariadbConnection connection, std::size_t count, const bool& is_restarted,
                    test::Outcomes& outcomes) {
  for (std::size_t i = 0; i < count || !is_restarted;) {
    if (!connection.is_usable()) {
      auto next = co_await MariadbConnection::connect(Server::shared().settings());
      if (next) connection = std::move(*next);
      if (!next) static_cast<void>(co_await sleep_for(5ms));
      continue;
    }
    auto rows = co_await connection.query("select 1");
    ++(rows ? outcomes.done : outcomes.failed);
    if (rows) ++i;
  }
}

TEST_F(Mariadb, a_restart_of_the_server_fails_queries) {
  run([this]() -> Task<> {
    const std::size_t count = test::scaled(100);
    auto connection = co_await connected();
    bool is_restarted = false;
    test::Outcomes outcomes;
    TaskScope scope(loop);
    for (int i = 0; i < 100; ++i) {
      auto other = co_await connected();
      scope.spawn(query_always(std::move(*other), count, is_restarted, outcomes));
    }
    auto slow = connection->query("select sleep(60)");
    auto stop = [&]() -> Task<> {
      while (outcomes.done < 20 * count) static_cast<void>(co_await sleep_for(1ms));
      Server::shared().stop();
    };
    auto [outcome, ignored] = co_await when_all(std::move(slow), stop());
    EXPECT_EQ(outcome.error().error, system_error(ECONNRESET));
    EXPECT_FALSE(connection->is_usable());
    auto refused = co_await connection->query("select 1");
    EXPECT_EQ(refused.error().error, system_error(ENOTCONN));
    Server::shared().start();
    is_restarted = true;
    static_cast<void>(co_await scope.join());
    EXPECT_GE(outcomes.done, 100 * count);
    EXPECT_GE(outcomes.failed, 100U);  // One query of each task.
  }());
}

}  // namespace
}  // namespace tambour::mariadb_test
