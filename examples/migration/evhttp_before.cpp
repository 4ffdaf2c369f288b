// A service with evhttp of libevent 2.1: what docs/coming-from-evhttp.md begins with.
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdio>

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>

void hello(evhttp_request* request, void* /*argument*/) {
  const char* query = evhttp_uri_get_query(evhttp_request_get_evhttp_uri(request));
  evkeyvalq parameters{};
  evhttp_parse_query_str(query != nullptr ? query : "", &parameters);
  const char* name = evhttp_find_header(&parameters, "name");
  evbuffer* body = evbuffer_new();
  evbuffer_add_printf(body, "Hello, %s\n", name != nullptr ? name : "");
  evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Type", "text/plain");
  evhttp_send_reply(request, HTTP_OK, nullptr, body);
  evbuffer_free(body);
  evhttp_clear_headers(&parameters);
}

void echo(evhttp_request* request, void* /*argument*/) {
  if (evhttp_request_get_command(request) != EVHTTP_REQ_POST) {
    evhttp_send_error(request, HTTP_BADMETHOD, nullptr);
    return;
  }
  evhttp_send_reply(request, HTTP_OK, nullptr, evhttp_request_get_input_buffer(request));
}

struct Ticks {
  evhttp_request* request;
  event* timer;
  int sent;
};

void tick(evutil_socket_t /*fd*/, short /*events*/, void* argument) {
  auto* ticks = static_cast<Ticks*>(argument);
  evbuffer* piece = evbuffer_new();
  evbuffer_add_printf(piece, "tick %d\n", ticks->sent++);
  evhttp_send_reply_chunk(ticks->request, piece);
  evbuffer_free(piece);
  const timeval delay{.tv_sec = 0, .tv_usec = 10'000};
  if (ticks->sent < 3) {
    evtimer_add(ticks->timer, &delay);
    return;
  }
  evhttp_send_reply_end(ticks->request);
  event_free(ticks->timer);
  delete ticks;
}

void send_ticks(evhttp_request* request, void* argument) {
  auto* ticks = new Ticks{request, nullptr, 0};
  ticks->timer = evtimer_new(static_cast<event_base*>(argument), tick, ticks);
  evhttp_send_reply_start(request, HTTP_OK, nullptr);
  tick(-1, 0, ticks);
}

int main() {
  event_base* base = event_base_new();
  evhttp* http = evhttp_new(base);
  evhttp_set_max_body_size(http, 1'000'000);
  evhttp_set_cb(http, "/hello", hello, nullptr);
  evhttp_set_cb(http, "/echo", echo, nullptr);
  evhttp_set_cb(http, "/ticks", send_ticks, base);
  evhttp_bound_socket* socket = evhttp_bind_socket_with_handle(http, "127.0.0.1", 0);
  if (socket == nullptr) return 1;
  sockaddr_in at{};
  socklen_t size = sizeof at;
  ::getsockname(evhttp_bound_socket_get_fd(socket), reinterpret_cast<sockaddr*>(&at), &size);
  std::printf("http://127.0.0.1:%d\n", ntohs(at.sin_port));
  std::fflush(stdout);
  event_base_dispatch(base);
  evhttp_free(http);
  event_base_free(base);
}
