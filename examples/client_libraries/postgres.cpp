// PostgreSQL through libpq on a loop: connects, and sends a query whose result comes in rows.
//
//   build/examples/postgres "host=/run/postgresql dbname=test" "select generate_series(1, 3)"
//
// libpq has a socket, and says what to wait for. The task waits with wait_ready(), so that it can
// be cancelled and limited in time like every other task.
#include <libpq-fe.h>

#include <cstdio>
#include <memory>
#include <string>

#include <tambour/tambour.h>

using namespace tambour;
using namespace std::chrono_literals;

using PgConnection = std::unique_ptr<PGconn, decltype(&PQfinish)>;
using Rows = std::unique_ptr<PGresult, decltype(&PQclear)>;

/// Fails with EPROTO if libpq reports an error: PQerrorMessage() has its text.
Task<Result<>> finish_connecting(PGconn* connection) {
  PostgresPollingStatusType status = PGRES_POLLING_WRITING;
  while (status != PGRES_POLLING_OK) {
    if (status == PGRES_POLLING_FAILED) co_return std::unexpected(system_error(EPROTO));
    // The socket may be another one after each step: a host has several addresses.
    const Events next = status == PGRES_POLLING_READING ? Events::read : Events::write;
    const auto ready = co_await wait_ready(PQsocket(connection), next);
    if (!ready) co_return std::unexpected(ready.error());
    status = PQconnectPoll(connection);
  }
  if (PQsetnonblocking(connection, 1) != 0) co_return std::unexpected(system_error(EPROTO));
  co_return {};
}

/// Sends what libpq has buffered. It must read meanwhile: the server may wait for that.
Task<Result<>> flush(PGconn* connection) {
  for (;;) {
    const int left = PQflush(connection);
    if (left == 0) co_return {};
    if (left < 0) co_return std::unexpected(system_error(EPROTO));
    const auto ready = co_await wait_ready(PQsocket(connection), Events::read | Events::write);
    if (!ready) co_return std::unexpected(ready.error());
    if (has(*ready, Events::read) && PQconsumeInput(connection) == 0)
      co_return std::unexpected(system_error(EPROTO));
  }
}

/// The next result of a query; null after the last one.
Task<Result<Rows>> next_rows(PGconn* connection) {
  while (PQisBusy(connection) != 0) {
    const auto ready = co_await wait_ready(PQsocket(connection), Events::read);
    if (!ready) co_return std::unexpected(ready.error());
    if (PQconsumeInput(connection) == 0) co_return std::unexpected(system_error(EPROTO));
  }
  co_return Rows(PQgetResult(connection), &PQclear);
}

Task<Result<>> print_query(std::string settings, std::string query) {
  const PgConnection connection(PQconnectStart(settings.c_str()), &PQfinish);
  const auto report = [&connection](const char* step) {
    std::fprintf(stderr, "%s: %s", step, PQerrorMessage(connection.get()));
  };
  const auto connected = co_await timeout(10s, finish_connecting(connection.get()));
  if (!connected) report("connect");
  if (!connected) co_return connected;
  const bool is_accepted = PQsendQuery(connection.get(), query.c_str()) == 1;
  const auto sent = co_await flush(connection.get());
  if (!is_accepted || !sent) report("send");
  if (!sent) co_return sent;
  for (;;) {
    const auto rows = co_await timeout(30s, next_rows(connection.get()));
    if (!rows) report("receive");
    if (!rows) co_return std::unexpected(rows.error());
    if (*rows == nullptr) co_return {};
    if (PQresultStatus(rows->get()) == PGRES_FATAL_ERROR) report("query");
    for (int row = 0; row < PQntuples(rows->get()); ++row)
      std::puts(PQgetvalue(rows->get(), row, 0));
  }
}

int main(int argc, char** argv) {
  if (argc != 3) return std::fputs("usage: postgres SETTINGS QUERY\n", stderr), 2;
  EventLoop loop;
  Result<> outcome;
  spawn(loop, [&]() -> Task<> { outcome = co_await print_query(argv[1], argv[2]); });
  loop.run();
  return outcome ? 0 : 1;
}
