// libmariadb, the client of MariaDB and MySQL, on a loop: connections and queries as tasks.
//
//   MariadbSettings settings{.host = "127.0.0.1", .user = "test", .database = "test"};
//   auto connection = co_await MariadbConnection::connect(settings);
//   auto rows = co_await connection->query("select 41 + 1");
//
// Link with libmariadb (pkg-config). Requires libmariadb 3.1 or later.
#pragma once

#include <errmsg.h>
#include <mysql.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <tambour/adapters/socket_wait.h>
#include <tambour/base/result.h>
#include <tambour/loop/readiness.h>
#include <tambour/task/combinators.h>
#include <tambour/task/sleep.h>
#include <tambour/task/task.h>

#pragma GCC visibility push(default)

namespace tambour::adapters {

/// An Error with the text of libmariadb. The error is ECONNREFUSED, ECONNRESET or ENOMEM where
/// libmariadb reports that, EPROTO for other errors of libmariadb and the server, and otherwise
/// that of the wait: ECANCELED, ETIMEDOUT.
struct MariadbError {
  /// Without a text: of a wait.
  MariadbError(const Error& failed, std::string text = {})  // NOLINT(google-explicit-constructor)
      : error(failed), message(std::move(text)) {}
  operator const Error&() const noexcept { return error; }  // NOLINT(google-explicit-constructor)

  Error error;
  std::string message;
  unsigned code = 0;     ///< ER_DUP_ENTRY and others, see mysqld_error.h; 0 for a wait.
  std::string sqlstate;  ///< Empty for a wait.
};
template <class T = void>
using MariadbResult = Result<T, MariadbError>;

/// A result with rows in memory, for mysql_fetch_row() and others; null if a statement has none.
using MariadbRows = std::unique_ptr<MYSQL_RES, decltype(&mysql_free_result)>;

/// The arguments of mysql_real_connect().
struct MariadbSettings {
  /// libmariadb resolves names with a blocking call: give a numeric address.
  std::string host;
  std::string user;
  std::string password;
  std::string database;
  unsigned port = 0;
  std::string unix_path;  ///< Of a socket, in place of `host`.
  unsigned long flags = 0;
  /// Sets options before connecting: MYSQL_OPT_SSL_CA, MYSQL_OPT_CONNECT_TIMEOUT and others.
  std::function<void(MYSQL*)> configure;
};

/// A connection to a MariaDB or MySQL server, with one query at a time.
///
/// Ownership: owns the connection. Thread: that of the loop whose tasks use it. One task at a time
/// may use it; it must not be moved or destroyed while a task waits in it.
/// Cancellation: all functions may be stopped and limited in time. A query that was stopped goes on
/// in the server; the next query() first waits for its end and discards its results. To end it,
/// send KILL QUERY with mysql_thread_id(get()) through another connection.
/// Reconnection: if is_usable() is false after an error, connect again.
class MariadbConnection {
 public:
  /// Connects and authenticates. Fails with ECONNREFUSED, and with EPROTO if the server refuses the
  /// user.
  static Task<MariadbResult<MariadbConnection>> connect(MariadbSettings settings) {
    MariadbConnection opened(std::make_unique<State>(std::move(settings)));
    opened.state_->start(Step::connect);
    auto connected = co_await opened.finish();
    if (!connected) co_return std::unexpected(std::move(connected.error()));
    co_return std::move(opened);
  }

  MariadbConnection(MariadbConnection&&) noexcept = default;
  MariadbConnection& operator=(MariadbConnection&&) noexcept = default;

  /// For libmariadb's other functions that do not wait: mysql_affected_rows(), mysql_insert_id().
  [[nodiscard]] MYSQL* get() const noexcept { return &state_->mysql; }
  [[nodiscard]] bool is_usable() const noexcept {
    return state_ != nullptr && state_->is_connected && state_->fd() >= 0;
  }

  /// Sends one statement, or several with CLIENT_MULTI_STATEMENTS, and returns the last result that
  /// has rows, or the first error. Put values into it with quoted().
  Task<MariadbResult<MariadbRows>> query(std::string text) {
    if (state_->step != Step::none) {
      auto former = co_await finish();
      // The error of a former query is not that of this one.
      if (!former && former.error().code == 0) co_return std::move(former);
    }
    if (!is_usable()) co_return std::unexpected(MariadbError(system_error(ENOTCONN)));
    state_->text = std::move(text);
    state_->start(Step::query);
    auto rows = co_await finish();
    co_return std::move(rows);
  }

  /// A string literal with this value, in the character set of the connection.
  [[nodiscard]] std::string quoted(std::string_view value) const {
    std::string text(2 * value.size() + 3, '\'');
    const auto size = mysql_real_escape_string(get(), text.data() + 1, value.data(),
                                               static_cast<unsigned long>(value.size()));
    text.resize(size + 1);
    return text += '\'';
  }

 private:
  enum class Step : std::uint8_t { none, connect, query, store, next };

  [[nodiscard]] MariadbError error() const {
    if (state_->fd() < 0) state_->socket.forget();  // libmariadb has closed it.
    const unsigned code = mysql_errno(get());
    int number = EPROTO;
    if (code == CR_CONNECTION_ERROR || code == CR_CONN_HOST_ERROR) number = ECONNREFUSED;
    if (code == CR_SERVER_GONE_ERROR || code == CR_SERVER_LOST) number = ECONNRESET;
    if (code == CR_OUT_OF_MEMORY) number = ENOMEM;
    MariadbError failed(system_error(number), mysql_error(get()));
    failed.code = code;
    failed.sqlstate = mysql_sqlstate(get());
    return failed;
  }

  /// libmariadb runs an operation on a stack of its own, and suspends it: all of this must stay
  /// until the operation ends.
  struct State {
    explicit State(MariadbSettings all) : settings(std::move(all)) {
      mysql_init(&mysql);
      mysql_options(&mysql, MYSQL_OPT_NONBLOCK, nullptr);
      if (settings.configure) settings.configure(&mysql);
    }
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State() {
      socket.forget();
      // In the middle of an operation, mysql_close() could wait for the server.
      if (step != Step::none && fd() >= 0) ::shutdown(fd(), SHUT_RDWR);
      mysql_free_result(rows);
      mysql_close(&mysql);
    }

    [[nodiscard]] int fd() noexcept { return mysql_get_socket(&mysql); }
    void start(Step next_step) {
      step = next_step;
      const auto text_or_null = [](const std::string& part) {
        return part.empty() ? nullptr : part.c_str();
      };
      if (step == Step::connect) {
        status = mysql_real_connect_start(
            &connected, &mysql, text_or_null(settings.host), text_or_null(settings.user),
            text_or_null(settings.password), text_or_null(settings.database), settings.port,
            text_or_null(settings.unix_path), settings.flags);
      } else if (step == Step::query) {
        status = mysql_real_query_start(&failed, &mysql, text.data(),
                                        static_cast<unsigned long>(text.size()));
      } else if (step == Step::store) {
        status = mysql_store_result_start(&rows, &mysql);
      } else {
        status = mysql_next_result_start(&failed, &mysql);
      }
    }
    void resume(int ready) {
      if (step == Step::connect)
        status = mysql_real_connect_cont(&connected, &mysql, ready);
      else if (step == Step::query)
        status = mysql_real_query_cont(&failed, &mysql, ready);
      else if (step == Step::store)
        status = mysql_store_result_cont(&rows, &mysql, ready);
      else
        status = mysql_next_result_cont(&failed, &mysql, ready);
    }

    MariadbSettings settings;
    MYSQL mysql{};
    WatchedSocket socket;
    bool is_connected = false;
    Step step = Step::none;
    int status = 0;  ///< What the step waits for: MYSQL_WAIT_READ and others.
    std::string text;
    MYSQL* connected = nullptr;
    MYSQL_RES* rows = nullptr;
    int failed = 0;
  };

  explicit MariadbConnection(std::unique_ptr<State> state) : state_(std::move(state)) {}

  /// The steps up to the end of an operation.
  Task<MariadbResult<MariadbRows>> finish() {
    State& state = *state_;
    MariadbRows last(nullptr, &mysql_free_result);
    while (state.step != Step::none) {
      while (state.status != 0) {
        const auto ready = co_await wait();
        if (!ready) co_return std::unexpected(MariadbError(ready.error()));
        state.resume(*ready);
      }
      const Step ended = state.step;
      if (MYSQL_RES* const rows = std::exchange(state.rows, nullptr)) last.reset(rows);
      const bool is_failed = ended == Step::connect ? state.connected == nullptr
                             : ended == Step::store ? mysql_errno(get()) != 0
                                                    : state.failed != 0;
      state.step = Step::none;
      if (is_failed) co_return std::unexpected(error());
      if (ended == Step::connect) state.is_connected = true;
      if (ended == Step::query || ended == Step::next) state.start(Step::store);
      if (ended == Step::store && mysql_more_results(get()) != 0) state.start(Step::next);
    }
    co_return std::move(last);
  }
  /// Returns what the step is to be told.
  Task<Result<int>> wait() {
    const int status = state_->status;
    const Events interest = ((status & MYSQL_WAIT_READ) != 0 ? Events::read : Events::none) |
                            ((status & MYSQL_WAIT_WRITE) != 0 ? Events::write : Events::none);
    Result<Events> ready;
    if ((status & MYSQL_WAIT_TIMEOUT) != 0) {
      const std::chrono::milliseconds limit(mysql_get_timeout_value_ms(get()));
      ready = co_await timeout(limit, wait_ready(state_->fd(), interest));
    } else if (state_->step == Step::connect) {
      // The socket may be another one with the same number: a host has several addresses.
      ready = co_await wait_ready(state_->fd(), interest);
    } else {
      ready = co_await state_->socket.wait(state_->fd(), interest);
    }
    if (!ready && ready.error() == system_error(ETIMEDOUT)) co_return MYSQL_WAIT_TIMEOUT;
    if (!ready) co_return std::unexpected(ready.error());
    co_return (has(*ready, Events::read) ? MYSQL_WAIT_READ : 0) |
        (has(*ready, Events::write) ? MYSQL_WAIT_WRITE : 0);
  }

  std::unique_ptr<State> state_;
};

}  // namespace tambour::adapters

#pragma GCC visibility pop
