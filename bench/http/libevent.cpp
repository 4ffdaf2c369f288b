// The server on libevent: evhttp with a callback for each path. TLS is that of bufferevent_openssl.
#include <string>

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#ifdef BENCH_TLS
#include <event2/bufferevent_ssl.h>
#include <openssl/ssl.h>
#endif

#include "http/http.h"

namespace {

class Libevent {
 public:
  explicit Libevent(const bench::ServerOptions& options)
      : bytes_(options.answer_bytes), body_(std::size_t(options.answer_bytes), 'b') {
    if (options.tls) use_tls(options.folder + "/server.pem");
    if (evhttp_bind_socket(http_, "127.0.0.1", options.port) != 0) bench::fail_errno("listening");
    evhttp_set_cb(http_, bench::http_target, &on_text, this);
    evhttp_set_cb(http_, bench::json_target, &on_json, this);
    evhttp_set_cb(http_, bench::upload_target, &on_upload, this);
  }

  void run() { event_base_dispatch(base_); }

  bench::SubjectInfo info() const {
    return {"libevent", event_get_version(), event_base_get_method(base_)};
  }

 private:
  static void on_text(evhttp_request* request, void* context) {
    const std::string& body = static_cast<Libevent*>(context)->body_;
    evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Type", "text/plain");
    evbuffer_add_reference(evhttp_request_get_output_buffer(request), body.data(), body.size(),
                           nullptr, nullptr);
    evhttp_send_reply(request, 200, "OK", nullptr);
  }
  static void on_json(evhttp_request* request, void* context) {
    const std::string text = bench::json_text(static_cast<Libevent*>(context)->bytes_);
    evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Type",
                      "application/json");
    evbuffer_add(evhttp_request_get_output_buffer(request), text.data(), text.size());
    evhttp_send_reply(request, 200, "OK", nullptr);
  }
  /// evhttp has the whole body in memory.
  static void on_upload(evhttp_request* request, void*) {
    evbuffer_add(evhttp_request_get_output_buffer(request), "ok", 2);
    evhttp_send_reply(request, 200, "OK", nullptr);
  }

#ifdef BENCH_TLS
  void use_tls(const std::string& pem) {
    static SSL_CTX* const context = SSL_CTX_new(TLS_server_method());
    if (SSL_CTX_use_certificate_chain_file(context, pem.c_str()) != 1 ||
        SSL_CTX_use_PrivateKey_file(context, pem.c_str(), SSL_FILETYPE_PEM) != 1)
      bench::fail("cannot load " + pem);
    evhttp_set_bevcb(
        http_,
        [](event_base* base, void*) {
          return bufferevent_openssl_socket_new(base, -1, SSL_new(context),
                                                BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE);
        },
        nullptr);
  }
#else
  void use_tls(const std::string&) { bench::fail("built without TLS"); }
#endif

  int bytes_;
  std::string body_;
  event_base* base_ = event_base_new();
  evhttp* http_ = evhttp_new(base_);
};

}  // namespace

int main(int argc, char** argv) { return bench::run_http<Libevent>(argc, argv); }
