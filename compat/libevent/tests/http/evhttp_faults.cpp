// Makes each allocation of HTTP exchanges between an evhttp server and an evhttp client fail in
// turn, and each one of calls by evrpc: no crash, no leak, and every request ends. libevent crashes
// in some of them.

#include <netinet/in.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include <cstdlib>
#include <initializer_list>

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/rpc.h>
#include <event2/rpc_struct.h>

#include "allocation_faults.h"
#include "failing_new.h"

using failing_allocations::allocate;
using failing_allocations::release;

namespace {

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
void run_requests(Exchange& exchange) {
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
}

// Messages of evrpc: one byte each.
int remember(void* context, evhttp_request* /*request*/, evbuffer* /*body*/, void* /*argument*/) {
  evrpc_hook_add_meta(context, "key", "value", 6);
  return EVRPC_CONTINUE;
}
int pause(void* /*context*/, evhttp_request* /*request*/, evbuffer* /*body*/, void* /*argument*/) {
  return EVRPC_PAUSE;
}
void marshal(evbuffer* to, void* message) { evbuffer_add(to, message, 1); }
int unmarshal(void* message, evbuffer* from) { return evbuffer_remove(from, message, 1) - 1; }

void on_reply(evrpc_status* status, void* /*request*/, void* reply, void* argument) {
  auto& exchange = *static_cast<Exchange*>(argument);
  if (status->error == EVRPC_STATUS_ERR_NONE && *static_cast<char*>(reply) == 'r')
    ++exchange.answered;
  end_one(exchange);
}

void call(Exchange& exchange, evrpc_pool* pool, char* request, char* reply) {
  evrpc_send_request_generic(
      pool, request, reply, &on_reply, &exchange, "Call", &marshal, [](void*) {}, &unmarshal);
}

void run_calls(Exchange& exchange) {
  evhttp* const http = evhttp_new(exchange.base);
  if (http == nullptr) return;
  evrpc_base* const rpc = evrpc_init(http);
  evrpc_pool* const pool = evrpc_pool_new(exchange.base);
  evhttp_bound_socket* const bound = evhttp_bind_socket_with_handle(http, "127.0.0.1", 0);
  if (rpc != nullptr && pool != nullptr && bound != nullptr) {
    evrpc_register_generic(
        rpc, "Call", [](evrpc_req_generic* state, void*) { evrpc_request_done(state); }, nullptr,
        [](void*) { return allocate(1); }, nullptr, &release, &unmarshal,
        [](void*) {
          void* const reply = allocate(1);
          if (reply != nullptr) *static_cast<char*>(reply) = 'r';
          return reply;
        },
        nullptr, &release, [](void*) { return 0; }, &marshal);
    for (void* const hooks : {static_cast<void*>(rpc), static_cast<void*>(pool)}) {
      evrpc_add_hook(hooks, EVRPC_INPUT, &remember, nullptr);
      evrpc_add_hook(hooks, EVRPC_OUTPUT, &remember, nullptr);
    }
    evhttp_connection* const connection = evhttp_connection_base_new(
        exchange.base, nullptr, "127.0.0.1", static_cast<unsigned short>(port_of(bound)));
    if (connection != nullptr) {
      evrpc_pool_add_connection(pool, connection);
      char requests[] = "abcdef";
      char replies[sizeof requests] = {};
      for (int i = 0; i < 4; ++i) call(exchange, pool, &requests[i], &replies[i]);
      if (exchange.ended < 4) event_base_dispatch(exchange.base);
      // One is paused, and one waits, when the pool is freed.
      evrpc_add_hook(pool, EVRPC_OUTPUT, &pause, nullptr);
      call(exchange, pool, &requests[4], &replies[4]);
      call(exchange, pool, &requests[5], &replies[5]);
    }
  }
  if (pool != nullptr) evrpc_pool_free(pool);
  if (rpc != nullptr) evrpc_free(rpc);
  evhttp_free(http);
}

using Run = void (*)(Exchange& exchange);

/// Returns whether the allocation was reached.
bool scenario(Run run, int failing, int answers) {
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
  constexpr timeval seconds{60, 0};
  event_add(limit, &seconds);
  const bool was_reached = faults::fail_at(failing, [&] {
    run(exchange);
    // Frees bufferevents whose callbacks have ended.
    event_base_loop(exchange.base, EVLOOP_NONBLOCK);
  });
  event_free(limit);
  event_base_free(exchange.base);
  if (exchange.hung) faults::report("allocation %d: a request does not end", failing);
  if (!was_reached && exchange.answered != answers)
    faults::report("allocation %d: not every request was answered", failing);
  return was_reached;
}

void fail_each(const char* name, Run run, int answers) {
  // What is kept until the process ends is allocated now.
  scenario(run, faults::none, answers);
  faults::fail_each(name, [&](int failing) { return scenario(run, failing, answers); });
}

}  // namespace

int main() {
  faults::replace_memory_functions();
  fail_each("requests", &run_requests, 3);
  fail_each("calls", &run_calls, 4);
  return faults::failures != 0 ? 1 : 0;
}
