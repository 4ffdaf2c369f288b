// PgConnection with PostgreSQL.
#include <tambour/adapters/libpq.h>

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "adapters/adapter_test.h"
#include "adapters/postgres_server.h"
#include "support/random.h"
#include "support/scale.h"

namespace tambour::libpq_test {
namespace {

using namespace std::chrono_literals;
using adapters::PgConnection;
using adapters::PgRows;
using test::PostgresServer;

class Libpq : public test::AdapterTest {
 protected:
  void SetUp() override {
    if (!PostgresServer::shared().is_installed()) GTEST_SKIP() << "PostgreSQL is not installed";
  }

  /// Connects as soon as the server accepts connections.
  static Task<std::optional<PgConnection>> connected() {
    for (int i = 0; i < 12'000; ++i) {
      auto connection = co_await PgConnection::connect(PostgresServer::shared().settings());
      if (connection) co_return std::move(*connection);
      static_cast<void>(co_await sleep_for(5ms));
    }
    co_return std::nullopt;
  }
};

std::string value(const PgRows& rows, int row = 0, int column = 0) {
  return PQgetvalue(rows.get(), row, column);
}

TEST_F(Libpq, queries_have_parameters_rows_and_errors) {
  run([]() -> Task<> {
    auto connection = co_await connected();
    auto sum = co_await connection->query("select $1::int + 1, $2::text", "41", std::nullopt);
    if (!sum) co_return ADD_FAILURE() << sum.error().message, void();
    EXPECT_EQ(value(*sum), "42");
    EXPECT_EQ(PQgetisnull(sum->get(), 0, 1), 1);
    adapters::PgParameters numbers;
    std::string terms = "select 0";
    for (int i = 1; i <= 20; ++i) {
      numbers.emplace_back(std::to_string(i));
      terms += " + $" + std::to_string(i) + "::int";
    }
    auto total = co_await connection->query(terms, std::move(numbers));
    if (!total) co_return ADD_FAILURE() << total.error().message, void();
    EXPECT_EQ(value(*total), "210");
    auto many =
        co_await connection->query("select repeat('x', 1000) from generate_series(1, 5000)");
    EXPECT_EQ(PQntuples(many->get()), 5000);
    auto both = co_await connection->query("select 1; select 2");
    EXPECT_EQ(value(*both), "2");
    auto wrong = co_await connection->query("selec 1");
    EXPECT_EQ(wrong.error().sqlstate, "42601");
    EXPECT_NE(wrong.error().message.find("selec"), std::string::npos);
    EXPECT_TRUE(connection->is_usable());
    // The client reads while it writes.
    const std::string long_text(20'000'000, 'x');
    auto back = co_await connection->query("select length($1)", long_text);
    EXPECT_EQ(value(*back), "20000000");
    auto nowhere = co_await PgConnection::connect("host=/nonexistent dbname=x");
    EXPECT_NE(nowhere.error().message.find("No such file"), std::string::npos);
  }());
}

TEST_F(Libpq, the_error_of_a_connection_that_the_server_ends_has_the_reason) {
  run([]() -> Task<> {
    auto connection = co_await connected();
    auto other = co_await connected();
    auto ended = co_await connection->query("select pg_terminate_backend(pg_backend_pid())");
    EXPECT_EQ(ended.error().sqlstate, "57P01");
    EXPECT_FALSE(connection->is_usable());
    auto refused = co_await connection->query("select 1");
    EXPECT_EQ(refused.error().error, system_error(EPROTO));
    auto again = co_await connection->reset();
    EXPECT_TRUE(again);
    // Between two queries.
    const std::string process = std::to_string(PQbackendPID(connection->get()));
    auto sent = co_await other->query("select pg_terminate_backend($1::int, 10000)", process);
    EXPECT_TRUE(sent);
    auto late = co_await connection->query("select 1");
    EXPECT_EQ(late.error().sqlstate, "57P01");
    EXPECT_FALSE(connection->is_usable());
  }());
}

TEST_F(Libpq, a_pipeline_has_many_queries_in_flight) {
  run([]() -> Task<> {
    auto connection = co_await connected();
    const std::size_t rounds = test::scaled(100);
    std::size_t results = 0;
    // A query that has failed leaves nothing behind.
    const auto wrong = co_await connection->query("selec 1");
    EXPECT_EQ(wrong.error().sqlstate, "42601");
    EXPECT_TRUE(connection->enter_pipeline());
    for (std::size_t round = 0; round < rounds; ++round) {
      for (int i = 0; i < 100; ++i)
        EXPECT_TRUE(connection->queue("select $1::int", std::to_string(i)));
      auto sent = co_await connection->sync();
      EXPECT_TRUE(sent);
      for (int i = 0; i < 100; ++i) {
        auto rows = co_await connection->next_rows();
        if (rows && value(*rows) == std::to_string(i)) ++results;
        auto end = co_await connection->next_rows();
        EXPECT_EQ(*end, nullptr);
      }
      auto end = co_await connection->next_rows();
      EXPECT_EQ(PQresultStatus(end->get()), PGRES_PIPELINE_SYNC);
    }
    EXPECT_EQ(results, rounds * 100);
    EXPECT_TRUE(connection->exit_pipeline());
    auto after = co_await connection->query("select 7");
    EXPECT_EQ(value(*after), "7");
  }());
}

TEST_F(Libpq, rows_are_copied_in_both_directions) {
  run([]() -> Task<> {
    auto connection = co_await connected();
    static_cast<void>(co_await connection->query("create temporary table t (a int, b text)"));
    auto begun = co_await connection->query("copy t from stdin");
    EXPECT_EQ(PQresultStatus(begun->get()), PGRES_COPY_IN);
    for (int i = 0; i < 1'000; ++i) {
      std::string row = std::to_string(i) + "\t" + std::string(1'000, 'y') + "\n";
      auto put = co_await connection->put_copy_data(std::move(row));
      EXPECT_TRUE(put);
    }
    auto ended = co_await connection->end_copy();
    EXPECT_STREQ(PQcmdTuples(ended->get()), "1000");
    auto out = co_await connection->query("copy t to stdout");
    EXPECT_EQ(PQresultStatus(out->get()), PGRES_COPY_OUT);
    std::size_t rows = 0;
    for (;;) {
      auto row = co_await connection->get_copy_data();
      if (!row || !row->has_value()) break;
      ++rows;
    }
    EXPECT_EQ(rows, 1'000U);
    // A COPY that was not read to its end, and one that the client gives up.
    static_cast<void>(co_await connection->query("copy t to stdout"));
    auto next = co_await connection->query("select 8");
    EXPECT_EQ(value(*next), "8");
    static_cast<void>(co_await connection->query("copy t from stdin"));
    auto given_up = co_await connection->end_copy("no more");
    EXPECT_NE(given_up.error().message.find("no more"), std::string::npos);
    auto last = co_await connection->query("select count(*) from t");
    EXPECT_EQ(value(*last), "1000");
  }());
}

TEST_F(Libpq, a_replication_is_begun_and_left) {
  run([]() -> Task<> {
    auto ready = co_await connected();
    auto connection =
        co_await PgConnection::connect(PostgresServer::shared().settings() + " replication=true");
    if (!connection) co_return ADD_FAILURE() << connection.error().message, void();
    auto system = co_await connection->query("IDENTIFY_SYSTEM");
    auto begun = co_await connection->query("START_REPLICATION PHYSICAL " + value(*system, 0, 2));
    if (!begun) co_return ADD_FAILURE() << begun.error().message, void();
    EXPECT_EQ(PQresultStatus(begun->get()), PGRES_COPY_BOTH);
    auto again = co_await connection->query("IDENTIFY_SYSTEM");
    if (!again) co_return ADD_FAILURE() << again.error().message, void();
    EXPECT_EQ(value(*again), value(*system));
  }());
}

TEST_F(Libpq, a_connection_is_replaced_by_another_one) {
  run([]() -> Task<> {
    auto connection = co_await connected();
    for (int i = 0; i < 10; ++i) {
      static_cast<void>(co_await connection->query("select 1"));
      auto other = co_await connected();
      static_cast<void>(co_await other->query("select 2"));
      *connection = std::move(*other);
      auto rows = co_await connection->query("select pg_sleep(0.001), 3");
      EXPECT_EQ(value(*rows, 0, 1), "3");
    }
  }());
}

TEST_F(Libpq, notifications_arrive) {
  run([]() -> Task<> {
    auto listener = co_await connected();
    auto sender = co_await connected();
    static_cast<void>(co_await listener->query("listen news"));
    auto early = co_await timeout(5ms, listener->next_notification());
    EXPECT_EQ(early.error().error, system_error(ETIMEDOUT));
    for (int i = 0; i < 10; ++i) {
      const std::string text = std::to_string(i);
      static_cast<void>(co_await sender->query("select pg_notify('news', $1)", text));
    }
    for (int i = 0; i < 10; ++i) {
      auto notification = co_await listener->next_notification();
      EXPECT_EQ((*notification)->extra, std::to_string(i));
    }
  }());
}

TEST_F(Libpq, a_query_is_cancelled_in_the_server) {
  run([]() -> Task<> {
    auto connection = co_await connected();
    auto other = co_await connected();
    const std::string id = std::to_string(PQbackendPID(connection->get()));
    auto slow = co_await timeout(20ms, connection->query("select pg_sleep(1000)"));
    EXPECT_EQ(slow.error().error, system_error(ETIMEDOUT));
    // Waits until the server runs the query: an earlier request has no effect.
    bool is_sleeping = false;
    for (int i = 0; i < 100'000 && !is_sleeping; ++i) {
      auto event = co_await other->query(
          "select max(wait_event) from pg_stat_activity where pid = $1::int", id);
      is_sleeping = event && value(*event) == "PgSleep";
    }
    auto cancelled = co_await connection->cancel();
    EXPECT_TRUE(cancelled);
    auto next = co_await connection->query("select 9");
    EXPECT_EQ(value(*next), "9");
  }());
}

Task<> sleep_in_server(PgConnection& connection) {
  static_cast<void>(co_await connection.query("select pg_sleep(0.01)"));
}

TEST_F(Libpq, a_query_may_be_moved_stopped_and_destroyed) {
  run([this]() -> Task<> {
    auto connection = co_await connected();
    auto first = connection->query("select $1::int", "1");
    auto moved = std::move(first);
    auto one = co_await std::move(moved);
    EXPECT_EQ(value(*one), "1");
    // Text that may change until the query is awaited is copied.
    char text[] = "select 3";
    auto kept = connection->query(text);
    text[7] = '4';
    auto three = co_await std::move(kept);
    EXPECT_EQ(value(*three), "3");
    std::stop_source stop;
    stop.request_stop();
    auto slow = connection->query("select pg_sleep(0.01)");
    auto stopped = co_await with_stop_token(stop.get_token(), std::move(slow));
    EXPECT_EQ(stopped.error().error, system_error(ECANCELED));
    static_cast<void>(co_await connection->query("select 1"));  // After the stopped query.
    // Once while it waits for its results, and once while it waits for those of the former query.
    for (int i = 0; i < 2; ++i) {
      TaskScope scope(loop);
      scope.spawn(sleep_in_server(*connection));
      static_cast<void>(co_await sleep_for(1ms));
    }
    auto two = co_await connection->query("select 2");
    EXPECT_EQ(value(*two), "2");
  }());
}

Task<> query_many(PgConnection connection, std::size_t queries, test::Random& random,
                  std::size_t& results, std::size_t& stopped) {
  for (std::size_t i = 0; i < queries; ++i) {
    const std::string number = std::to_string(i);
    if (random.below(2) == 0) {
      auto rows = co_await connection.query("select $1::int", number);
      if (rows && value(*rows) == number) ++results;
      continue;
    }
    const auto limit = std::chrono::microseconds(random.below(3'000));
    auto rows = co_await timeout(limit, connection.query("select $1::int", number));
    if (rows && value(*rows) == number) ++results;
    if (!rows && rows.error().error == system_error(ETIMEDOUT)) ++stopped;
  }
}

TEST_F(Libpq, half_of_the_queries_of_100_connections_are_stopped_at_random_points) {
  run([this]() -> Task<> {
    const std::size_t queries = test::scaled(100);
    test::Random random;
    std::size_t results = 0;
    std::size_t stopped = 0;
    TaskScope scope(loop);
    for (int i = 0; i < 100; ++i) {
      auto connection = co_await connected();
      scope.spawn(query_many(std::move(*connection), queries, random, results, stopped));
    }
    static_cast<void>(co_await scope.join());
    EXPECT_EQ(results + stopped, 100 * queries);
    EXPECT_GT(results, 0U);
    EXPECT_GT(stopped, 0U);
  }());
}

/// Performs `queries` queries, and more until the server has been restarted. Repeats each query
/// until it succeeds, on a connection that is reset if that is necessary.
Task<> query_always(PgConnection connection, std::size_t queries, const bool& is_restarted,
                    test::Outcomes& outcomes) {
  for (std::size_t i = 0; i < queries || !is_restarted;) {
    if (!connection.is_usable()) {
      const auto reset = co_await connection.reset();
      if (!reset) static_cast<void>(co_await sleep_for(5ms));
      continue;
    }
    auto rows = co_await connection.query("select $1::int", std::to_string(i));
    ++(rows ? outcomes.done : outcomes.failed);
    if (rows) ++i;
  }
}

TEST_F(Libpq, a_restart_of_the_server_fails_queries_and_connections_are_reset) {
  run([this]() -> Task<> {
    const std::size_t queries = test::scaled(100);
    auto connection = co_await connected();
    bool is_restarted = false;
    test::Outcomes outcomes;
    TaskScope scope(loop);
    for (int i = 0; i < 100; ++i) {
      auto other = co_await connected();
      scope.spawn(query_always(std::move(*other), queries, is_restarted, outcomes));
    }
    auto slow = connection->query("select pg_sleep(60)");
    auto stop = [&]() -> Task<> {
      while (outcomes.done < 20 * queries) static_cast<void>(co_await sleep_for(1ms));
      PostgresServer::shared().stop();
    };
    auto [outcome, ignored] = co_await when_all(std::move(slow), stop());
    EXPECT_FALSE(outcome);
    EXPECT_FALSE(connection->is_usable());
    auto refused = co_await connection->reset();
    EXPECT_FALSE(refused);
    PostgresServer::shared().start();
    is_restarted = true;
    static_cast<void>(co_await scope.join());
    EXPECT_GE(outcomes.done, 100 * queries);
    EXPECT_GT(outcomes.failed, 0U);
    auto again = co_await connected();
    auto rows = co_await again->query("select 10");
    EXPECT_EQ(value(*rows), "10");
  }());
}

}  // namespace
}  // namespace tambour::libpq_test
