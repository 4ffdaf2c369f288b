// evdns with what another thread may do whenever a lock is free: functions of the tests run at each
// acquisition and allocation of a lock.

#include <functional>
#include <utility>

#include <event2/thread.h>

#include "evdns/nameserver.h"

namespace {

struct Lock {
  int depth = 0;
};

/// The locks of one thread, which never wait. `between` runs when no lock is held.
struct Locks {
  static inline std::function<void()> between;
  static inline std::function<void()> before_allocation;
  static inline int held = 0;

  /// The function does not run within itself.
  static void run(std::function<void()>& function) {
    if (!function) return;
    auto once = std::exchange(function, nullptr);
    once();
    if (!function) function = std::move(once);
  }
  static void* allocate(unsigned /*type*/) {
    run(before_allocation);
    return new Lock;
  }
  static void free(void* lock, unsigned /*type*/) { delete static_cast<Lock*>(lock); }
  static int acquire(unsigned /*mode*/, void* lock) {
    if (held == 0) run(between);
    ++held;
    ++static_cast<Lock*>(lock)->depth;
    return 0;
  }
  static int release(unsigned /*mode*/, void* lock) {
    EXPECT_GT(static_cast<Lock*>(lock)->depth--, 0) << "the lock is not held";
    --held;
    return 0;
  }
};

class DnsLocks : public Dns {
 protected:
  static void SetUpTestSuite() {
    constexpr evthread_lock_callbacks callbacks{.lock_api_version = EVTHREAD_LOCK_API_VERSION,
                                                .supported_locktypes = EVTHREAD_LOCKTYPE_RECURSIVE,
                                                .alloc = &Locks::allocate,
                                                .free = &Locks::free,
                                                .lock = &Locks::acquire,
                                                .unlock = &Locks::release};
    ASSERT_EQ(evthread_set_lock_callbacks(&callbacks), 0);
    evthread_set_id_callback([]() -> unsigned long { return 1; });
  }
  ~DnsLocks() override { Locks::between = Locks::before_allocation = nullptr; }
};

TEST_F(DnsLocks, lookups_may_be_cancelled_at_any_time) {
  Nameserver server(base_, [](const std::string& query) {
    return type_of(query) == 1 ? respond_with_address(query)
                               : respond(query, "\x81\x80", bytes("\0\0\0\0\0\0"), "");
  });
  server.add_to(dns_);
  evutil_addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  for (const int family : {PF_INET, PF_UNSPEC}) {
    hints.ai_family = family;
    bool is_cancelled = true;
    for (int nth = 1; is_cancelled; ++nth) {
      SCOPED_TRACE("acquisition " + std::to_string(nth));
      AddressResult result;
      evdns_getaddrinfo_request* const request = evdns_getaddrinfo(
          dns_, "name.test", nullptr, &hints, &AddressResult::on_addresses, &result);
      ASSERT_NE(request, nullptr);
      is_cancelled = false;
      int left = nth;
      Locks::between = [&] {
        if (--left != 0 || result.calls != 0) return;
        is_cancelled = true;
        evdns_getaddrinfo_cancel(request);
      };
      wait_for([&] { return result.calls != 0; });
      Locks::between = nullptr;
      settle();
      EXPECT_EQ(result.calls, 1);
      EXPECT_EQ(result.error, is_cancelled ? EVUTIL_EAI_CANCEL : 0);
      if (HasFailure()) break;
    }
  }
}

TEST_F(DnsLocks, ports_of_servers_have_a_lock_before_they_have_events) {
  const int fd = bound_socket();
  const int client = bound_socket();
  const sockaddr_in address = loopback(port_of(fd));
  const std::string query = bytes("\1\2\1\0\0\1\0\0\0\0\0\0\4name\4test\0\0\1\0\1");
  ASSERT_EQ(sendto(client, query.data(), query.size(), 0,
                   reinterpret_cast<const sockaddr*>(&address), sizeof address),
            static_cast<ssize_t>(query.size()));
  int requests = 0;
  // The loop of another thread.
  Locks::before_allocation = [&] {
    event_base_loop(base_, EVLOOP_NONBLOCK);
    EXPECT_EQ(requests, 0);
  };
  evdns_server_port* const port = evdns_add_server_port_with_base(
      base_, fd, 0,
      [](evdns_server_request* request, void* argument) {
        ++*static_cast<int*>(argument);
        evdns_server_request_respond(request, 0);
      },
      &requests);
  Locks::before_allocation = nullptr;
  ASSERT_NE(port, nullptr);
  wait_for([&] { return requests != 0; });
  evdns_close_server_port(port);
  settle();
  close(client);
}

}  // namespace
