// The server on libevent: evhttp with a callback for each path. TLS is that of bufferevent_openssl.
#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#ifdef BENCH_TLS
#include <event2/bufferevent_ssl.h>
#include <openssl/ssl.h>
#endif

#include "http/arena.h"
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
    evhttp_set_cb(http_, bench::sum_target, &on_sum, this);
    evhttp_set_cb(http_, bench::ok_target, &on_ok, this);
    // The path of the rest has a parameter, which evhttp does not support.
    evhttp_set_gencb(http_, &on_items, this);
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
  static void reply(evhttp_request* request, const char* type, const std::string& text) {
    evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Type", type);
    evbuffer_add(evhttp_request_get_output_buffer(request), text.data(), text.size());
    evhttp_send_reply(request, 200, "OK", nullptr);
  }
  static void on_json(evhttp_request* request, void* context) {
    reply(request, "application/json", bench::json_text(static_cast<Libevent*>(context)->bytes_));
  }
  /// evhttp has the whole body in memory.
  static void on_upload(evhttp_request* request, void*) {
    const std::size_t size = evbuffer_get_length(evhttp_request_get_input_buffer(request));
    reply(request, "text/plain", std::to_string(size));
  }
  static void on_sum(evhttp_request* request, void*) {
    const char* const query = evhttp_uri_get_query(evhttp_request_get_evhttp_uri(request));
    evkeyvalq values;
    evhttp_parse_query_str(query, &values);
    long sum = 0;
    for (const evkeyval* value = values.tqh_first; value != nullptr; value = value->next.tqe_next)
      sum += std::atol(value->value);
    evhttp_clear_headers(&values);
    evbuffer* const body = evhttp_request_get_input_buffer(request);
    std::string text(evbuffer_get_length(body), '\0');
    evbuffer_remove(body, text.data(), text.size());
    reply(request, "text/plain", std::to_string(sum + std::atol(text.c_str())));
  }
  static void on_ok(evhttp_request* request, void*) { reply(request, "text/plain", "ok"); }
  static void on_items(evhttp_request* request, void*) {
    const std::string_view target(evhttp_request_get_uri(request));
    if (!target.starts_with(bench::items_target))
      return evhttp_send_error(request, HTTP_NOTFOUND, nullptr);
    reply(request, "application/json",
          bench::arena_json(target.substr(bench::items_target.size())));
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
