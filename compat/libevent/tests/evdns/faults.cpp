// Makes each allocation of a resolver and a server fail in turn: no crash, no leak, and each
// callback is invoked at most once. Counts the allocations of libevent and those of C++.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>

#include <event2/bufferevent.h>
#include <event2/dns.h>
#include <event2/dns_struct.h>
#include <event2/event.h>

#include "allocation_faults.h"
#include "failing_new.h"

namespace {

constexpr const char* hosts_path = "/etc/hosts";

int calls = 0;
void on_result(int, char, int, int, void*, void*) { ++calls; }
void on_addresses(int, evutil_addrinfo* addresses, void*) {
  ++calls;
  if (addresses != nullptr) evutil_freeaddrinfo(addresses);
}
void on_event(bufferevent*, short, void*) { ++calls; }

void answer(evdns_server_request* request, void*) {
  const char* const name = request->questions[0]->name;
  const char address[16] = {1, 2, 3, 4};
  evdns_server_request_add_cname_reply(request, name, "target.test", 9);
  evdns_server_request_add_a_reply(request, "target.test", 2, address, 9);
  evdns_server_request_add_aaaa_reply(request, "target.test", 1, address, 9);
  if (evdns_server_request_respond(request, 0) < 0) evdns_server_request_drop(request);
}

/// Returns how many callbacks are expected, at most.
int use(event_base* base, evdns_base* dns) {
  int expected = 0;
  evdns_base_search_add(dns, "search.test");
  evdns_base_search_ndots_set(dns, 2);
  evdns_base_load_hosts(dns, hosts_path);
  evdns_base_set_option(dns, "max-inflight", "3");
  evdns_base_set_option(dns, "timeout", "0.02");
  evdns_base_set_option(dns, "attempts", "2");
  evutil_addrinfo hints{};
  hints.ai_flags = EVUTIL_AI_CANONNAME;
  for (int i = 0; i < 3; ++i) {
    expected += evdns_base_resolve_ipv4(dns, "one", 0, on_result, nullptr) != nullptr ? 1 : 0;
    evdns_getaddrinfo(dns, i != 0 ? "two.test" : "localhost", "80", &hints, on_addresses, nullptr);
    ++expected;
  }
  evdns_request* const cancelled = evdns_base_resolve_ipv6(dns, "three", 0, on_result, nullptr);
  if (cancelled != nullptr) {
    ++expected;
    evdns_cancel_request(dns, cancelled);
  }
  bufferevent* const bev = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
  if (bev != nullptr) {
    bufferevent_setcb(bev, nullptr, nullptr, on_event, nullptr);
    bufferevent_socket_connect_hostname(bev, dns, AF_INET, "localhost", 1);
    ++expected;
  }
  for (int i = 0; i < 300 && calls < expected; ++i) {
    event_base_loop(base, EVLOOP_NONBLOCK);
    usleep(500);
  }
  if (bev != nullptr) bufferevent_free(bev);
  return expected;
}

/// Returns whether the allocation was reached.
bool run(int failing) {
  event_base* const base = event_base_new();
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  bind(fd, any, size);
  getsockname(fd, any, &size);
  calls = 0;
  int expected = 0;
  const bool was_reached = faults::fail_at(failing, [&] {
    evdns_server_port* const port = evdns_add_server_port_with_base(base, fd, 0, answer, nullptr);
    if (port == nullptr) close(fd);
    if (evdns_base* const dns = evdns_base_new(base, 0)) {
      evdns_base_nameserver_sockaddr_add(dns, any, size, 0);
      expected = use(base, dns);
      evdns_base_free(dns, failing % 2);
    }
    if (port != nullptr) evdns_close_server_port(port);
    for (int i = 0; i < 10; ++i) event_base_loop(base, EVLOOP_NONBLOCK);
  });
  event_base_free(base);
  if (calls > expected || (!was_reached && calls < expected))
    faults::report("allocation %d: %d callbacks, not %d", failing, calls, expected);
  return was_reached;
}

}  // namespace

int main() {
  faults::replace_memory_functions();
  run(faults::none);  // What is allocated once.
  faults::fail_each("resolver and server", &run);
  return faults::failures != 0 ? 1 : 0;
}
