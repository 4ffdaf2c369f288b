// evdns_getaddrinfo(): one or two requests, whose results are combined.
#pragma once

#include <array>
#include <cstdint>

#include <event2/dns.h>
#include <event2/event_struct.h>
#include <event2/util.h>

#include "libevent/evdns/names.h"

struct evdns_base;
struct evdns_request;

/// The lock of the base is held wherever a lookup is used, except during the callback.
// NOLINTNEXTLINE(readability-identifier-naming): the name is libevent's.
struct evdns_getaddrinfo_request {
  evdns_getaddrinfo_request(evdns_base& owner, const evutil_addrinfo& adjusted, int number,
                            evdns_getaddrinfo_cb function, void* user) noexcept;
  evdns_getaddrinfo_request(const evdns_getaddrinfo_request&) = delete;
  evdns_getaddrinfo_request& operator=(const evdns_getaddrinfo_request&) = delete;

  /// Returns false if no request could be started.
  bool start(const char* name) noexcept;
  /// The callback will be invoked with EVUTIL_EAI_CANCEL.
  void cancel() noexcept;
  /// The callback will not be invoked.
  void discard() noexcept;
  void destroy() noexcept;

  evdns_getaddrinfo_request* next = nullptr;
  evdns_getaddrinfo_request* previous = nullptr;
  evdns_base& base;

 private:
  struct Part {
    evdns_request* request = nullptr;  ///< Null if it is complete, or was not started.
    evutil_addrinfo* found = nullptr;
  };

  static void on_v4(int result, char type, int count, int ttl, void* addresses, void* argument);
  static void on_v6(int result, char type, int count, int ttl, void* addresses, void* argument);
  static void on_event(evutil_socket_t fd, short kind, void* argument);
  static void on_finalize(event* ev, void* argument);

  /// Called with the lock of the base, which it releases.
  void take(Part& part, const Part& other, int result, int count, const void* addresses) noexcept;
  void convert(Part& part, int count, const void* addresses) noexcept;
  /// Called with the lock of the base, which it releases.
  void complete() noexcept;
  /// Nothing happens any more, except for the callback.
  void end() noexcept;
  void drop_requests() noexcept;

  event event_{};  ///< The second answer is late; or the lookup was cancelled.
  evutil_addrinfo hints_;
  int port_;
  evdns_getaddrinfo_cb callback_;
  void* argument_;
  Part v4_;
  Part v6_;
  int error_ = 0;  ///< That of the last answer, if none has addresses.
  bool is_cancelled_ = false;
  bool is_done_ = false;
  tambour::libevent::NameText canonical_{'\0'};
};
