// The server on libevent: evhttp with a callback for the path.
#include <string>

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>

#include "http/http.h"

namespace {

class Libevent {
 public:
  explicit Libevent(const bench::ServerOptions& options)
      : body_(std::size_t(options.answer_bytes), 'b') {
    if (evhttp_bind_socket(http_, "127.0.0.1", options.port) != 0) bench::fail_errno("listening");
    evhttp_set_cb(http_, bench::http_target, &on_request, this);
  }

  void run() { event_base_dispatch(base_); }

  bench::SubjectInfo info() const {
    return {"libevent", event_get_version(), event_base_get_method(base_)};
  }

 private:
  static void on_request(evhttp_request* request, void* context) {
    const std::string& body = static_cast<Libevent*>(context)->body_;
    evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Type", "text/plain");
    evbuffer_add_reference(evhttp_request_get_output_buffer(request), body.data(), body.size(),
                           nullptr, nullptr);
    evhttp_send_reply(request, 200, "OK", nullptr);
  }

  std::string body_;
  event_base* base_ = event_base_new();
  evhttp* http_ = evhttp_new(base_);
};

}  // namespace

int main(int argc, char** argv) { return bench::run_http<Libevent>(argc, argv); }
