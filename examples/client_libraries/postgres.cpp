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

/// An Error with the text of libpq. It converts from and to Error: timeout() can return it.
struct PgError {
  PgError(const Error& code) : error(code), message(code.message()) {}
  explicit PgError(PGconn* connection)
      : error(system_error(EPROTO)), message(PQerrorMessage(connection)) {}
  operator const Error&() const noexcept { return error; }

  Error error;
  std::string message;
};

template <class T = void>
using PgResult = Result<T, PgError>;

Task<PgResult<>> finish_connecting(PGconn* connection) {
  if (PQstatus(connection) == CONNECTION_BAD) co_return std::unexpected(PgError(connection));
  PostgresPollingStatusType status = PGRES_POLLING_WRITING;
  while (status != PGRES_POLLING_OK) {
    if (status == PGRES_POLLING_FAILED) co_return std::unexpected(PgError(connection));
    // The socket may be another one after each step: a host has several addresses.
    const Events next = status == PGRES_POLLING_READING ? Events::read : Events::write;
    const auto ready = co_await wait_ready(PQsocket(connection), next);
    if (!ready) co_return std::unexpected(ready.error());
    status = PQconnectPoll(connection);
  }
  if (PQsetnonblocking(connection, 1) != 0) co_return std::unexpected(PgError(connection));
  co_return {};
}

/// Sends what libpq has buffered. It must read meanwhile: the server may wait for that.
Task<PgResult<>> flush(PGconn* connection) {
  for (;;) {
    const int left = PQflush(connection);
    if (left == 0) co_return {};
    if (left < 0) co_return std::unexpected(PgError(connection));
    const auto ready = co_await wait_ready(PQsocket(connection), Events::read | Events::write);
    if (!ready) co_return std::unexpected(ready.error());
    if (has(*ready, Events::read) && PQconsumeInput(connection) == 0)
      co_return std::unexpected(PgError(connection));
  }
}

/// The next result of a query; null after the last one.
Task<PgResult<Rows>> next_rows(PGconn* connection) {
  while (PQisBusy(connection) != 0) {
    const auto ready = co_await wait_ready(PQsocket(connection), Events::read);
    if (!ready) co_return std::unexpected(ready.error());
    if (PQconsumeInput(connection) == 0) co_return std::unexpected(PgError(connection));
  }
  co_return Rows(PQgetResult(connection), &PQclear);
}

Task<PgResult<>> print_query(std::string settings, std::string query) {
  const PgConnection owner(PQconnectStart(settings.c_str()), &PQfinish);
  PGconn* const connection = owner.get();
  auto connected = co_await timeout(10s, finish_connecting(connection));
  if (!connected) co_return connected;
  if (PQsendQuery(connection, query.c_str()) == 0) co_return std::unexpected(PgError(connection));
  auto sent = co_await flush(connection);
  if (!sent) co_return sent;
  for (;;) {
    auto rows = co_await timeout(30s, next_rows(connection));
    if (!rows) co_return std::unexpected(rows.error());
    if (*rows == nullptr) co_return {};
    if (PQresultStatus(rows->get()) == PGRES_FATAL_ERROR)
      co_return std::unexpected(PgError(connection));
    for (int row = 0; row < PQntuples(rows->get()); ++row)
      std::puts(PQgetvalue(rows->get(), row, 0));
  }
}

int main(int argc, char** argv) {
  if (argc != 3) return std::fputs("usage: postgres SETTINGS QUERY\n", stderr), 2;
  EventLoop loop;
  PgResult<> outcome;
  spawn(loop, [&]() -> Task<> { outcome = co_await print_query(argv[1], argv[2]); });
  loop.run();
  if (!outcome) std::fprintf(stderr, "%s\n", outcome.error().message.c_str());
  return outcome ? 0 : 1;
}
