// c-ares, a DNS client, on a loop: lookups as awaitables.
//
//   AresChannel channel(loop);
//   const auto found = co_await channel.resolve("example.org", "443");
//   for (const ares_addrinfo_node* node = (*found)->nodes; node != nullptr; node = node->ai_next)
//   ...
//
// Link with -lcares. Requires c-ares 1.16 or later; call ares_library_init() before. For new
// programs, dns::Resolver (<tambour/dns/resolver.h>) needs no other library.
#pragma once

#include <sys/time.h>

#include <cerrno>
#include <chrono>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include <ares.h>

#include <tambour/adapters/call.h>
#include <tambour/base/result.h>
#include <tambour/loop/event_loop.h>
#include <tambour/loop/fd_watcher.h>
#include <tambour/loop/timer.h>

#pragma GCC visibility push(default)

namespace tambour::adapters {

/// The category of a status of c-ares: ARES_ENOTFOUND and others.
inline const std::error_category& ares_category() noexcept {
  class Category final : public std::error_category {
    [[nodiscard]] const char* name() const noexcept override { return "c-ares"; }
    [[nodiscard]] std::string message(int status) const override { return ares_strerror(status); }
  };
  static const Category category;
  return category;
}

/// The result of ares_getaddrinfo(3).
using AresAddresses = std::unique_ptr<ares_addrinfo, decltype(&ares_freeaddrinfo)>;

/// An ares_channel: one configuration, its sockets and its queries in flight.
///
/// Ownership: owns the channel. Lifetime: may be destroyed at any time, except inside a callback
/// that the program has given to c-ares; lookups in flight then fail with ECANCELED. Thread: the
/// loop's.
/// Cancellation: c-ares cannot withdraw a query. A wait that is stopped or has timed out fails at
/// once, and the query ends by its own time limits: ARES_OPT_TIMEOUTMS and ARES_OPT_TRIES.
class AresChannel {
 public:
  /// `options` and `mask` as for ares_init_options(3), without ARES_OPT_SOCK_STATE_CB. Throws
  /// std::system_error with ares_category(), or std::bad_alloc.
  explicit AresChannel(EventLoop& loop, ares_options options = {}, int mask = 0)
      : loop_(loop), timer_(loop, [this] { act(ARES_SOCKET_BAD, Events::none); }) {
    options.sock_state_cb = &socket_changed;
    options.sock_state_cb_data = this;
    const int status = ares_init_options(&channel_, &options, mask | ARES_OPT_SOCK_STATE_CB);
    if (status == ARES_ENOMEM) throw std::bad_alloc();
    if (status != ARES_SUCCESS) throw std::system_error(status, ares_category());
  }
  AresChannel(const AresChannel&) = delete;
  AresChannel& operator=(const AresChannel&) = delete;
  ~AresChannel() { ares_destroy(channel_); }

  /// For ares_query(3) and others; call update() after them.
  [[nodiscard]] ares_channel get() const noexcept { return channel_; }

  /// Resolves a name as ares_getaddrinfo(3). `service` may be empty.
  Call<AresAddresses>::Wait resolve(const std::string& name, const std::string& service = {},
                                    const ares_addrinfo_hints& hints = {}) {
    auto [call, wait] = Call<AresAddresses>::begin();
    ares_getaddrinfo(channel_, name.c_str(), service.empty() ? nullptr : service.c_str(), &hints,
                     &resolved, call);
    update();
    return std::move(wait);
  }
  /// Sends a query as ares_query(3), with the search domains as ares_search(3) if `is_search`.
  /// Returns the response message, for ares_parse_txt_reply(3) and others.
  Call<std::string>::Wait query(const std::string& name, int record_class, int type,
                                bool is_search = false) {
    auto [call, wait] = Call<std::string>::begin();
    const auto send = is_search ? &ares_search : &ares_query;
    send(channel_, name.c_str(), record_class, type, &answered, call);
    update();
    return std::move(wait);
  }

  /// Applies the time limits of c-ares' queries.
  void update() noexcept {
    timeval limit{};
    if (ares_timeout(channel_, nullptr, &limit) == nullptr) return timer_.stop();
    timer_.start(std::chrono::seconds(limit.tv_sec) + std::chrono::microseconds(limit.tv_usec));
  }

 private:
  static Error error_of(int status) noexcept {
    if (status == ARES_EDESTRUCTION || status == ARES_ECANCELLED) return system_error(ECANCELED);
    return status == ARES_ENOMEM ? system_error(ENOMEM) : Error(status, ares_category());
  }
  // c-ares forbids to destroy the channel inside its callbacks, so tasks are resumed later.
  static void resolved(void* data, int status, int /*timeouts*/, ares_addrinfo* found) {
    AresAddresses addresses(found, &ares_freeaddrinfo);
    auto* const call = static_cast<Call<AresAddresses>*>(data);
    if (status != ARES_SUCCESS) return call->finish_later(std::unexpected(error_of(status)));
    call->finish_later(std::move(addresses));
  }
  static void answered(void* data, int status, int /*timeouts*/, unsigned char* bytes, int size) {
    auto* const call = static_cast<Call<std::string>*>(data);
    if (status != ARES_SUCCESS) return call->finish_later(std::unexpected(error_of(status)));
    try {
      call->finish_later(std::string(bytes, bytes + size));
    } catch (const std::bad_alloc&) {  // It must not leave a function that c-ares calls.
      call->finish_later(std::unexpected(system_error(ENOMEM)));
    }
  }
  static void socket_changed(void* self, ares_socket_t fd, int reads, int writes) {
    try {
      static_cast<AresChannel*>(self)->watch(fd, (reads != 0 ? Events::read : Events::none) |
                                                     (writes != 0 ? Events::write : Events::none));
    } catch (const std::bad_alloc&) {
      // The query fails by its time limit.
    }
  }

  void watch(ares_socket_t fd, Events interest) {
    if (interest == Events::none) {
      watchers_.erase(fd);  // Possibly inside its callback. c-ares closes the socket afterwards.
      return;
    }
    const auto [at, is_new] =
        watchers_.try_emplace(fd, loop_, fd, interest, [this, fd](Events e) { act(fd, e); });
    if (!is_new) return at->second.set(interest);
    static_cast<void>(at->second.start());  // A failure is reported to the callback.
  }
  void act(ares_socket_t fd, Events events) {
    const bool reads = has(events, Events::read) || has(events, Events::error);
    ares_process_fd(channel_, reads ? fd : ARES_SOCKET_BAD,
                    has(events, Events::write) ? fd : ARES_SOCKET_BAD);
    update();
  }

  EventLoop& loop_;
  std::map<ares_socket_t, FdWatcher> watchers_;
  Timer timer_;
  ares_channel channel_ = nullptr;
};

}  // namespace tambour::adapters

#pragma GCC visibility pop
