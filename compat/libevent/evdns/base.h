// The implementation of `struct evdns_base`, the resolver of event2/dns.h, on the codec of src/dns.
//
// Callbacks of the user are invoked from the loop, without the lock. The base is referred to by the
// program and by each request, and freed with the last of them.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <event2/dns.h>
#include <event2/event.h>

#include "dns_message/hosts.h"
#include "libevent/evdns/request.h"
#include "libevent/evdns/search.h"
#include "libevent/event/core.h"

struct evdns_getaddrinfo_request;

namespace tambour::libevent {

/// A list through `next` and `previous`.
template <class T>
class LinkedList {
 public:
  [[nodiscard]] T* first() const noexcept { return first_; }
  void push_back(T& added) noexcept {
    added.previous = last_;
    added.next = nullptr;
    (last_ != nullptr ? last_->next : first_) = &added;
    last_ = &added;
  }
  void push_front(T& added) noexcept {
    added.previous = nullptr;
    added.next = first_;
    (first_ != nullptr ? first_->previous : last_) = &added;
    first_ = &added;
  }
  void remove(T& removed) noexcept {
    (removed.previous != nullptr ? removed.previous->next : first_) = removed.next;
    (removed.next != nullptr ? removed.next->previous : last_) = removed.previous;
    removed.next = removed.previous = nullptr;
  }

 private:
  T* first_ = nullptr;
  T* last_ = nullptr;
};

/// Prints a message, or passes it to the function of evdns_set_log_fn().
[[gnu::format(printf, 2, 3)]] void evdns_log(int severity, const char* format, ...);
extern evdns_debug_log_fn_type evdns_log_function;

/// The base of the functions of event2/dns_compat.h.
extern evdns_base* evdns_global_base;

}  // namespace tambour::libevent

// NOLINTNEXTLINE(readability-identifier-naming): the name is libevent's.
struct evdns_base {
  using Nameserver = tambour::libevent::Nameserver;

  struct Options {
    timeval timeout{.tv_sec = 5, .tv_usec = 0};
    timeval allowed_skew{.tv_sec = 3, .tv_usec = 0};  ///< Between the two answers to a getaddrinfo.
    timeval probe_timeout{.tv_sec = 10, .tv_usec = 0};
    int attempts = 3;
    int reissues = 1;
    int timeouts_max = 3;
    int in_flight_max = 64;
    int randomize_case = 1;
    int receive_buffer = 0;
    int send_buffer = 0;
    sockaddr_storage bind_to{};
    int bind_to_size = 0;
  };

  evdns_base(event_base* loop, bool only_active) noexcept
      : events(loop), only_when_active(only_active) {}
  evdns_base(const evdns_base&) = delete;
  evdns_base& operator=(const evdns_base&) = delete;

  void retain() noexcept { ++references; }
  /// The lock must be held, and is released.
  void release() noexcept;
  /// Ends the requests: with DNS_ERR_SHUTDOWN, or without a callback.
  void shut_down(bool fail_requests) noexcept;

  // Nameservers.
  int add_nameserver(const sockaddr* address, socklen_t size) noexcept;
  void clear_nameservers() noexcept;
  /// The next nameserver in turn, one that has not failed if possible. Null if there is none.
  Nameserver* pick_nameserver() noexcept;
  [[nodiscard]] Nameserver* nameserver(int index) const noexcept;
  /// Moves the requests that a failed server has not answered to others.
  void move_requests(const Nameserver& from) noexcept;

  // Requests.
  [[nodiscard]] bool has_space() const noexcept { return in_flight_count < options.in_flight_max; }
  /// Starts a request. Null if the text is not a name, or there is no memory.
  evdns_request* resolve(tambour::dns::Type type, const char* name, bool may_search,
                         evdns_callback_type callback, void* argument) noexcept;
  void add_in_flight(evdns_request& added) noexcept;
  void remove_in_flight(evdns_request& removed) noexcept;
  [[nodiscard]] evdns_request* find(std::uint16_t id) const noexcept;
  /// A random id that is not in use: this one, if it is not.
  [[nodiscard]] std::uint16_t pick_id(std::optional<std::uint16_t> drawn) const noexcept;
  /// Sends requests that wait, as far as there is space.
  void pump() noexcept;
  /// Sends what had to wait for a socket.
  void transmit_pending() noexcept;

  // Configuration.
  bool set_in_flight_max(int limit) noexcept;
  int set_option(std::string_view name, const char* value, int flags) noexcept;
  int parse_resolv_conf(int flags, const char* path) noexcept;
  /// A search list that is not shared, so that it may be changed. Null if there is no memory.
  tambour::libevent::SearchList* own_search() noexcept;
  void clear_search() noexcept;
  void search_domain_of_host() noexcept;
  int load_hosts(const char* path) noexcept;
  /// Appends the addresses that the hosts files have for a name; none if there is no memory.
  void find_host(std::string_view name, std::vector<tambour::IpAddress>& into) const noexcept;

  void* lock = nullptr;
  event_base* events;
  int references = 1;
  const bool only_when_active;  ///< EVDNS_BASE_DISABLE_WHEN_INACTIVE
  bool is_closing = false;
  Options options{};

  Nameserver* servers = nullptr;  ///< A ring; the next one in turn.
  int servers_up = 0;

  tambour::libevent::LinkedList<evdns_request> waiting{};
  tambour::libevent::LinkedList<evdns_request> in_flight{};
  tambour::libevent::LinkedList<evdns_request> complete{};
  tambour::libevent::LinkedList<evdns_getaddrinfo_request> lookups{};
  int in_flight_count = 0;
  evdns_request** heads = nullptr;  ///< Of the requests in flight, by id.
  std::size_t head_count = 0;

  tambour::libevent::SearchList* search = nullptr;
  tambour::dns::detail::Hosts* hosts = nullptr;
};
