// A connection of HTTP/1.1 or HTTP/1.0 that a server has accepted.
//
// One task serves the connection: it reads requests, starts a handler for each, and completes the
// response. While a handler waits, this task sends earlier responses and waits for the handler.
// Responses of handlers that do not wait are collected, and sent together when no further request
// is in the input.
//
// A head is parsed where it was received: in memory that all connections of a server on one loop
// share, and that a connection uses only between a read and its next wait. What follows the head is
// copied to the connection.
//
// All that requests need is here. A connection that waits for a request needs nothing of it, so the
// owner destroys it then, unless few connections of the loop wait: see IdleConnection.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/loop/event_loop.h>
#include <tambour/task/task.h>

#include "http/exchange/exchange.h"
#include "http/exchange/settings.h"
#include "http/server/h1_wire.h"
#include "http/server/idle/idle_connection.h"
#include "http/server/idle/server_on_loop.h"
#include "loop/iteration_budget.h"
#include "net/pace/lingering_close.h"

namespace tambour::http {

class H1Connection final {
 public:
  /// Takes the stream of `idle`. `stop` is the token of the task that calls serve().
  H1Connection(IdleConnection& idle, std::stop_token stop);
  H1Connection(const H1Connection&) = delete;
  H1Connection& operator=(const H1Connection&) = delete;
  ~H1Connection() = default;

  /// Serves until the connection has ended, or waits for a request. `received` is the result of a
  /// read into ServerOnLoop::input_memory(). Throws what a handler has thrown, at the end.
  [[nodiscard]] Task<> serve(Result<std::size_t> received);
  /// Prefetches what the next request needs.
  void prefetch() const noexcept;
  /// True after serve() if the connection waits for a request.
  [[nodiscard]] bool is_idle() const noexcept { return is_released_; }
  /// After serve(): the task with which the connection goes on, without this object, after a
  /// handler has upgraded it; empty: it has ended. Throws std::bad_alloc.
  [[nodiscard]] Task<> start_continuation() { return exchange_.start_continuation(); }
  /// After serve() if the connection is idle: gives the stream back.
  void move_to(IdleConnection& idle) noexcept;
  /// True after serve() if the client speaks HTTP/2, and so does the server.
  [[nodiscard]] bool is_http_2() const noexcept { return is_http_2_; }
  // After serve() if the client speaks HTTP/2: the stream, which is open, and what has been
  // received, which begins with the preface.
  [[nodiscard]] SocketStream take_stream() noexcept { return std::move(wire_.socket()); }
  [[nodiscard]] Buffer take_input() noexcept { return std::move(wire_.input().bytes()); }

 private:
  struct Drain {
    H1Connection& self;
    void operator()() const noexcept { self.begin_drain(); }
  };

  [[nodiscard]] bool begin_receiving() noexcept;
  [[nodiscard]] bool begin_idle_wait() noexcept;
  [[nodiscard]] bool end_receiving(Result<std::size_t> received);
  [[nodiscard]] Task<bool> wait_for_next_iteration();
  void begin_request() noexcept;
  void reject(const Error& error);
  [[nodiscard]] Task<> close_gracefully();
  void begin_drain() noexcept;
  [[nodiscard]] const ServerOptions& options() const noexcept { return exchange_.options(); }

  EventLoop& loop_;
  ServerOnLoop& server_;
  H1Wire wire_;
  detail::Exchange exchange_;  ///< After the wire, which its tasks use.
  detail::loop::IterationBudget budget_;
  TimePoint head_deadline_;
  bool is_idle_ = true;  ///< Waiting for the first byte of a request.
  bool is_released_ = false;
  bool was_kept_ = false;  ///< Before it was released.
  bool has_served_;
  bool is_http_2_ = false;
  ServerOnLoop::KeptConnection kept_;               ///< While it waits for a request.
  detail::net::LingeringClose* closing_ = nullptr;  ///< While the connection lingers.
  std::optional<std::stop_callback<Drain>> drain_;
};

}  // namespace tambour::http
