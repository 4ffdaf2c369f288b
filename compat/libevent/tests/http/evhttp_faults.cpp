// Makes each allocation of HTTP exchanges between an evhttp server and an evhttp client fail in
// turn: no crash, no leak, and every request ends. libevent crashes in some of them.

#include <netinet/in.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include <cstdio>
#include <cstdlib>

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>

#include "failing_allocations.h"
#include "failing_new.h"

using failing_allocations::allocate;
using failing_allocations::countdown;
using failing_allocations::live;
using failing_allocations::reallocate;
using failing_allocations::release;

namespace {

int failures = 0;

void report(const char* what, int failing) {
  std::printf("allocation %d: %s\n", failing, what);
  ++failures;
}

struct Exchange {
  event_base* base = nullptr;
  evhttp_connection* client = nullptr;
  int ended = 0;
  int answered = 0;
  bool hung = false;
};

void on_plain(evhttp_request* request, void* /*argument*/) {
  evhttp_add_header(evhttp_request_get_output_headers(request), "X-Answer", "plain");
  evbuffer* const body = evbuffer_new();
  if (body != nullptr) {
    evbuffer_add_buffer(body, evhttp_request_get_input_buffer(request));
    evbuffer_add(body, "\n", 1);
  }
  evhttp_send_reply(request, HTTP_OK, nullptr, body);
  if (body != nullptr) evbuffer_free(body);
}

void on_chunked(evhttp_request* request, void* /*argument*/) {
  evhttp_send_reply_start(request, HTTP_OK, "Parts");
  for (int i = 0; i < 3; ++i) {
    evbuffer* const part = evbuffer_new();
    if (part == nullptr) continue;
    evbuffer_add(part, "a part of the body\n", 19);
    evhttp_send_reply_chunk(request, part);
    evbuffer_free(part);
  }
  evhttp_send_reply_end(request);
}

void end_one(Exchange& exchange) {
  if (++exchange.ended == 4) event_base_loopbreak(exchange.base);
}

void on_response(evhttp_request* request, void* argument) {
  auto& exchange = *static_cast<Exchange*>(argument);
  if (request != nullptr && evhttp_request_get_response_code(request) == HTTP_OK)
    ++exchange.answered;
  end_one(exchange);
}

void make_request(Exchange& exchange, evhttp_cmd_type type, const char* target, bool has_body) {
  evhttp_request* const request =
      exchange.client != nullptr ? evhttp_request_new(on_response, &exchange) : nullptr;
  if (request == nullptr) return end_one(exchange);
  evkeyvalq* const fields = evhttp_request_get_output_headers(request);
  evhttp_add_header(fields, "Host", "a.example:80");
  evhttp_add_header(fields, "X-Field", "a value of some length, which is copied");
  if (has_body) evbuffer_add(evhttp_request_get_output_buffer(request), "the body", 8);
  if (evhttp_make_request(exchange.client, request, type, target) != 0) end_one(exchange);
}

int port_of(evhttp_bound_socket* bound) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ::getsockname(evhttp_bound_socket_get_fd(bound), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

/// Everything but the base and the timer that ends a wait.
void run(Exchange& exchange) {
  evhttp* const http = evhttp_new(exchange.base);
  if (http == nullptr) return;
  evhttp_set_cb(http, "/plain", on_plain, nullptr);
  evhttp_set_gencb(http, on_chunked, nullptr);
  evhttp* const host = evhttp_new(exchange.base);
  if (host != nullptr && evhttp_add_virtual_host(http, "*.b.example", host) != 0) evhttp_free(host);
  evhttp_add_server_alias(http, "a.example");
  evhttp_bound_socket* const bound = evhttp_bind_socket_with_handle(http, "127.0.0.1", 0);
  if (bound != nullptr) {
    exchange.client = evhttp_connection_base_new(exchange.base, nullptr, "127.0.0.1",
                                                 static_cast<unsigned short>(port_of(bound)));
    make_request(exchange, EVHTTP_REQ_POST, "/plain?query", true);
    make_request(exchange, EVHTTP_REQ_GET, "/chunked", false);
    make_request(exchange, EVHTTP_REQ_HEAD, "http://other.example/plain", false);
    make_request(exchange, EVHTTP_REQ_TRACE, "/refused", false);
    if (exchange.ended < 4) event_base_dispatch(exchange.base);
  }
  if (exchange.client != nullptr) evhttp_connection_free(exchange.client);
  evhttp_free(http);
  // Frees bufferevents whose callbacks have ended.
  event_base_loop(exchange.base, EVLOOP_NONBLOCK);
}

const char* scenario(int failing) {
  Exchange exchange;
  exchange.base = event_base_new();
  event* const limit = evtimer_new(
      exchange.base,
      [](evutil_socket_t, short, void* argument) {
        auto& hung = *static_cast<Exchange*>(argument);
        hung.hung = true;
        event_base_loopbreak(hung.base);
      },
      &exchange);
  constexpr timeval seconds{10, 0};
  event_add(limit, &seconds);
  countdown = failing;
  run(exchange);
  const bool failed = countdown < 0;
  countdown = -1;
  event_free(limit);
  event_base_free(exchange.base);
  if (exchange.hung) return "a request does not end";
  if (!failed && exchange.answered != 3) return "not every request was answered";
  return failed ? "" : nullptr;
}

}  // namespace

int main() {
  event_set_mem_functions(allocate, reallocate, release);
  event_set_log_callback([](int, const char*) {});
  constexpr int none = 1 << 30;
  // What is kept until the process ends is allocated now.
  scenario(none);
  int failing = 0;
  for (const char* result = ""; result != nullptr; ++failing) {
    const int before = live;
    result = scenario(failing);
    if (result != nullptr && *result != '\0') report(result, failing);
    if (live != before) report("a leak", failing);
  }
  std::printf("%d allocations, %d failures\n", failing - 1, failures);
  return failures == 0 ? 0 : 1;
}
