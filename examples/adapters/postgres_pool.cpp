// A pool of PostgreSQL connections, made of a TaskChannel and the adapter of libpq.
//
//   build/examples/postgres_pool "host=/run/postgresql dbname=test"
//
// A connection that is idle is in the channel: a task that needs one takes it out, or waits there
// until another task returns one. A connection that was lost is replaced when it is taken.
#include <cstdio>
#include <optional>
#include <string>

#include <tambour/adapters/libpq.h>
#include <tambour/tambour.h>

using namespace tambour;
using namespace std::chrono_literals;
using adapters::PgConnection;
using adapters::PgError;
using adapters::PgResult;
using adapters::PgRows;

/// Thread: the loop's. Use one pool for each loop of a group.
class PostgresPool {
 public:
  PostgresPool(EventLoop& loop, std::string settings, std::size_t connections_max)
      : settings_(std::move(settings)), idle_(loop, connections_max) {
    // Places for connections, which are opened when they are needed.
    for (std::size_t i = 0; i < connections_max; ++i) static_cast<void>(idle_.try_send({}));
  }

  /// A connection, which its destructor returns to the pool.
  class Lease {
   public:
    Lease(PostgresPool& pool, std::optional<PgConnection> connection)
        : pool_(&pool), connection_(std::move(connection)) {}
    Lease(Lease&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)), connection_(std::move(other.connection_)) {}
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (pool_ != nullptr) static_cast<void>(pool_->idle_.try_send(std::move(connection_)));
    }
    PgConnection* operator->() { return &*connection_; }

   private:
    friend class PostgresPool;
    PostgresPool* pool_;
    std::optional<PgConnection> connection_;
  };

  /// Waits for a connection; limit the wait with timeout().
  Task<PgResult<Lease>> acquire() {
    auto place = co_await idle_.receive();
    if (!place) co_return std::unexpected(PgError(place.error()));
    Lease lease(*this, std::move(*place));
    if (!lease.connection_ || !lease.connection_->is_usable()) {
      lease.connection_.reset();
      auto connection = co_await timeout(10s, PgConnection::connect(settings_));
      if (!connection) co_return std::unexpected(std::move(connection.error()));
      lease.connection_ = std::move(*connection);
    }
    co_return std::move(lease);
  }

 private:
  std::string settings_;
  TaskChannel<std::optional<PgConnection>> idle_;
};

Task<> work(PostgresPool& pool, int number, int& sum) {
  auto connection = co_await timeout(30s, pool.acquire());
  if (!connection) co_return;
  auto rows = co_await (*connection)->query("select $1::int", std::to_string(number));
  if (rows) sum += std::stoi(PQgetvalue(rows->get(), 0, 0));
}

Task<> run(EventLoop& loop, std::string settings) {
  PostgresPool pool(loop, std::move(settings), 4);
  int sum = 0;
  TaskScope scope(loop);
  for (int i = 1; i <= 100; ++i) scope.spawn(work(pool, i, sum));
  static_cast<void>(co_await scope.join());
  std::printf("%d\n", sum);
}

int main(int argc, char** argv) {
  if (argc != 2) return std::fputs("usage: postgres_pool SETTINGS\n", stderr), 2;
  EventLoop loop;
  spawn(loop, run(loop, argv[1]));
  loop.run();
}
