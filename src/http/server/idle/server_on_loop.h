// What the connections of a server on one loop share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string_view>
#include <utility>

#include <tambour/detail/namespaces.h>
#include <tambour/net/stream.h>

#include "http/exchange/date_clock.h"
#include "http/exchange/settings.h"
#include "http/exchange/shutdown_hooks.h"
#include "http/server/idle/idle_waits.h"
#include "http_message/date.h"
#include "loop/core.h"

namespace tambour::http {

/// A connection whose bytes are in the memory of a server: see ServerOnLoop::input_memory() and
/// output_memory().
class MemoryUser {
 public:
  MemoryUser(const MemoryUser&) = delete;
  MemoryUser& operator=(const MemoryUser&) = delete;

  /// Another connection needs the memory.
  virtual void leave_memory() noexcept = 0;

 protected:
  MemoryUser() = default;
  ~MemoryUser() = default;
};

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

  /// True if there are so many connections that what one of them needs is rarely in a cache.
  [[nodiscard]] bool outgrows_caches() const noexcept { return connections_ > cached_max; }

  void keep_more() noexcept {
    if (kept_max < kept_limit) ++kept_max;
  }
  void keep_fewer() noexcept {
    if (kept_max > kept_min) --kept_max;
  }

  /// A connection has waited in vain with all that it needs, and has destroyed it. When nearly all
  /// of at least burst_min connections have, and once more when all have, the memory goes back to
  /// the system.
  void note_release() noexcept {
    ++released_;
    const bool are_nearly_all = released_ >= burst_min && kept <= released_ / 16;
    if (!are_nearly_all && (kept > 0 || !has_returned_)) return;
    has_returned_ = kept > 0;
    return_memory();
  }

  /// Where connections receive the heads of requests, with a ReadRequests. Its connection has taken
  /// the bytes before it waits again, so no connection holds memory while it waits.
  [[nodiscard]] std::span<std::byte> input_memory() noexcept { return {input_.get(), input_bytes}; }
  /// The bytes of the last read.
  [[nodiscard]] std::string_view input_text(std::size_t size) const noexcept {
    return {reinterpret_cast<const char*>(input_.get()), size};
  }

  /// Where a connection collects responses until it sends them, as the user of the memory.
  [[nodiscard]] std::span<char> output_memory() noexcept { return {output_.get(), output_bytes}; }

  /// The user leaves the memory before another connection reads or responds: a handler may run the
  /// loop inside.
  void begin_use(MemoryUser& user) noexcept {
    if (memory_user_ == &user) return;
    free_memory();
    memory_user_ = &user;
  }
  void end_use(MemoryUser& user) noexcept {
    if (memory_user_ == &user) memory_user_ = nullptr;
  }
  void free_memory() noexcept {
    if (memory_user_ != nullptr) [[unlikely]]
      std::exchange(memory_user_, nullptr)->leave_memory();
  }

  /// The Date field of a response that begins in this iteration of the loop.
  [[nodiscard]] std::string_view date_line(const detail::loop::Core& core) noexcept {
    return cached_date_line(date_clock_.wall_ns(core));
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
  /// The number of connections whose objects a cache of a processor core holds: with those of the
  /// kernel, several KiB each.
  static constexpr std::size_t cached_max = 256;
  /// Holds the requests that a client sends at once. Behind a head, a part of a body is copied.
  static constexpr std::size_t input_bytes = std::size_t{16} * 1024;
  /// Holds the responses to the requests that a client sends at once.
  static constexpr std::size_t output_bytes = std::size_t{16} * 1024;

  /// An idle connection stays open for a request that the client may have sent already.
  struct Drain {
    ServerOnLoop& self;
    void operator()() const noexcept {
      self.waits.shorten(self.settings->options.drain_timeout);
      self.shutdown_hooks.run();
    }
  };

  void end_burst() noexcept;
  void return_memory() noexcept;

  // NOLINTNEXTLINE(modernize-avoid-c-arrays): memory that is not initialized.
  std::unique_ptr<std::byte[]> input_ = std::make_unique_for_overwrite<std::byte[]>(input_bytes);
  // NOLINTNEXTLINE(modernize-avoid-c-arrays): the same.
  std::unique_ptr<char[]> output_ = std::make_unique_for_overwrite<char[]>(output_bytes);
  MemoryUser* memory_user_ = nullptr;  ///< Null: none.
  DateClock date_clock_;
  std::size_t released_ = 0;   ///< Connections, since memory went back.
  bool has_returned_ = false;  ///< When more connections were kept.
  std::size_t connections_ = 0;
  std::size_t connections_max_ = 0;   ///< At a time, since the last burst.
  std::size_t burst_end_ = SIZE_MAX;  ///< The number of connections at which a burst ends.
  std::stop_callback<Drain> drain_;
};

/// A read into the memory of a server.
class ReadRequests : public Stream::Read {
 public:
  ReadRequests(Stream& stream, ServerOnLoop& server) noexcept
      : Read(stream, server.input_memory()), server_(server) {}

 protected:
  [[nodiscard]] bool step(detail::loop::Core& core) noexcept override {
    server_.free_memory();
    return Read::step(core);
  }

 private:
  ServerOnLoop& server_;
};

}  // namespace tambour::http
