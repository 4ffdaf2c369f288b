// What the connections of a server on one loop share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <utility>

#include <tambour/detail/namespaces.h>

#include "http/exchange/settings.h"
#include "http/exchange/shutdown_hooks.h"
#include "http/server/idle/idle_waits.h"

namespace tambour::http {

/// Ownership: shared by the server and its connections. Thread: that of the loop, except that any
/// thread may destroy it.
class ServerOnLoop {
 public:
  /// The connections of HTTP/1 that may wait for a request with all that they need to serve it, so
  /// that busy connections allocate nothing for a request. At first the minimum. It becomes one
  /// more for each connection that waited without and got a request soon, and one less for each
  /// that waited in vain.
  static constexpr std::size_t kept_min = 1024;
  static constexpr std::size_t kept_limit = 16 * kept_min;

  /// Counts one of these connections while it waits.
  class KeptConnection {
   public:
    KeptConnection() = default;
    KeptConnection(const KeptConnection&) = delete;
    KeptConnection& operator=(const KeptConnection&) = delete;
    ~KeptConnection() { leave(); }

    /// Returns false if there are too many.
    [[nodiscard]] bool enter(ServerOnLoop& server) noexcept {
      if (server.kept >= server.kept_max) return false;
      ++server.kept;
      server_ = &server;
      return true;
    }
    void leave() noexcept {
      if (server_ == nullptr) return;
      --server_->kept;
      server_ = nullptr;
    }

   private:
    ServerOnLoop* server_ = nullptr;
  };

  /// Throws std::bad_alloc.
  ServerOnLoop(std::shared_ptr<const ServerSettings> server_settings, std::stop_token token)
      : settings(std::move(server_settings)),
        shutdown(std::move(token)),
        drain_(shutdown, Drain{*this}) {}
  ServerOnLoop(const ServerOnLoop&) = delete;
  ServerOnLoop& operator=(const ServerOnLoop&) = delete;
  ~ServerOnLoop() = default;

  // For the connections.

  /// Counts a connection until it ends. When nearly all connections of a burst have ended, and once
  /// more when all have, the memory that they have left goes back to the system: malloc(3) keeps
  /// it, because some objects are between the free ones.
  void begin_connection() noexcept {
    if (++connections_ <= connections_max_) return;
    connections_max_ = connections_;
    if (connections_max_ >= burst_min) burst_end_ = connections_max_ / 16;
  }
  void end_connection() noexcept {
    if (--connections_ == burst_end_) end_burst();
  }

  void keep_more() noexcept {
    if (kept_max < kept_limit) ++kept_max;
  }
  void keep_fewer() noexcept {
    if (kept_max > kept_min) --kept_max;
  }

  const std::shared_ptr<const ServerSettings> settings;
  const std::stop_token shutdown;
  IdleWaits waits;
  ShutdownHooks shutdown_hooks;
  std::size_t kept = 0;
  std::size_t kept_max = kept_min;

 private:
  /// The number of connections at a time that make a burst.
  static constexpr std::size_t burst_min = 1024;

  /// An idle connection stays open for a request that the client may have sent already.
  struct Drain {
    ServerOnLoop& self;
    void operator()() const noexcept {
      self.waits.shorten(self.settings->options.drain_timeout);
      self.shutdown_hooks.run();
    }
  };

  void end_burst() noexcept;

  std::size_t connections_ = 0;
  std::size_t connections_max_ = 0;   ///< At a time, since the last burst.
  std::size_t burst_end_ = SIZE_MAX;  ///< The number of connections at which a burst ends.
  std::stop_callback<Drain> drain_;
};

}  // namespace tambour::http
