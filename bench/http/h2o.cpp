// The server on libh2o: handlers in C for what is in memory, and h2o's handlers for files and for
// compression, which the program h2o has too. One thread with h2o's own event loop.
#include <sys/socket.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#define H2O_USE_LIBUV 0
#include <h2o.h>
#include <h2o/http1.h>
#include <h2o/http2.h>
#include <h2o/version.h>

#include "common/network.h"
#include "http/arena.h"
#include "http/http.h"

namespace {

constexpr std::uint64_t idle_timeout_ms = 600'000;
constexpr const char* text_plain = "text/plain";
constexpr const char* json = "application/json";

class H2o {
 public:
  explicit H2o(const bench::ServerOptions& options) : options_(options) {
    text_ = std::string(std::size_t(options.answer_bytes), 'b');
    h2o_config_init(&config_);
    config_.http1.req_timeout = idle_timeout_ms;
    config_.http2.idle_timeout = idle_timeout_ms;
    h2o_hostconf_t* const host =
        h2o_config_register_host(&config_, h2o_iovec_init(H2O_STRLIT("default")), 65535);
    add_handlers(host);
    const std::string files = options.folder + "/files";
    h2o_file_register(h2o_config_register_path(host, "/", 0), files.c_str(), nullptr, nullptr, 0);
    h2o_context_init(&context_, h2o_evloop_create(), &config_);
    accept_.ctx = &context_;
    accept_.hosts = config_.hosts;
    if (options.tls) use_tls();
    listen();
  }
  H2o(const H2o&) = delete;
  H2o& operator=(const H2o&) = delete;

  void run() {
    while (h2o_evloop_run(context_.loop, INT32_MAX) == 0) continue;
  }

  static bench::SubjectInfo info() { return {"h2o", H2O_VERSION, "epoll"}; }

 private:
  using OnRequest = int (*)(h2o_handler_t*, h2o_req_t*);

  static void add(h2o_pathconf_t* path, OnRequest on_request) {
    h2o_create_handler(path, sizeof(h2o_handler_t))->on_req = on_request;
  }
  static void add(h2o_hostconf_t* host, const char* path, OnRequest on_request) {
    add(h2o_config_register_path(host, path, 0), on_request);
  }

  static void add_handlers(h2o_hostconf_t* host) {
    add(host, bench::http_target, [](h2o_handler_t*, h2o_req_t* request) {
      return send(request, text_plain, {text_.data(), text_.size()});
    });
    add(host, bench::small_target, [](h2o_handler_t*, h2o_req_t* request) {
      static std::string small(bench::small_bytes, 's');
      return send(request, text_plain, {small.data(), small.size()});
    });
    add(host, bench::ok_target, [](h2o_handler_t*, h2o_req_t* request) {
      return send(request, text_plain, h2o_iovec_init(H2O_STRLIT("ok")));
    });
    // Before /json, which is a prefix of it.
    add(host, "/json/", &send_items);
    add(host, bench::json_target, [](h2o_handler_t*, h2o_req_t* request) {
      return send_copy(request, json, bench::json_text(int(text_.size())));
    });
    add(host, bench::upload_target, [](h2o_handler_t*, h2o_req_t* request) {
      return send_copy(request, text_plain, std::to_string(request->entity.len));
    });
    add(host, bench::baseline_target, &send_sum);
    add(host, bench::sum_target, &send_sum);
    h2o_pathconf_t* const compressed = h2o_config_register_path(host, "/json-comp/", 0);
    h2o_compress_args_t arguments{};
    arguments.min_size = 100;  // As the program h2o.
    arguments.gzip.quality = bench::gzip_level;
    arguments.brotli.quality = -1;
    h2o_compress_register(compressed, &arguments);
    add(compressed, &send_items);
  }

  static int send(h2o_req_t* request, const char* type, h2o_iovec_t body) {
    static h2o_generator_t generator{nullptr, nullptr};
    request->res.status = 200;
    request->res.reason = "OK";
    request->res.content_length = body.len;
    h2o_add_header(&request->pool, &request->res.headers, H2O_TOKEN_CONTENT_TYPE, nullptr, type,
                   std::string_view(type).size());
    h2o_start_response(request, &generator);
    h2o_send(request, &body, 1, H2O_SEND_STATE_FINAL);
    return 0;
  }
  static int send_copy(h2o_req_t* request, const char* type, const std::string& body) {
    return send(request, type, h2o_strdup(&request->pool, body.data(), body.size()));
  }

  static std::string_view target_of(const h2o_req_t* request) {
    return {request->path.base, request->path.len};
  }
  static int send_sum(h2o_handler_t*, h2o_req_t* request) {
    const std::string body(request->entity.base != nullptr ? request->entity.base : "",
                           request->entity.len);
    return send_copy(
        request, text_plain,
        std::to_string(bench::sum_of_query(target_of(request)) + std::atol(body.c_str())));
  }
  static int send_items(h2o_handler_t*, h2o_req_t* request) {
    const std::string_view target = target_of(request);
    return send_copy(request, json, bench::arena_json(target.substr(target.find('/', 1) + 1)));
  }

  void use_tls() {
    const std::string pem = options_.folder + "/server.pem";
    accept_.ssl_ctx = SSL_CTX_new(TLS_server_method());
    if (SSL_CTX_use_certificate_chain_file(accept_.ssl_ctx, pem.c_str()) != 1 ||
        SSL_CTX_use_PrivateKey_file(accept_.ssl_ctx, pem.c_str(), SSL_FILETYPE_PEM) != 1)
      bench::fail("cannot load " + pem);
    if (options_.http_2) h2o_ssl_register_alpn_protocols(accept_.ssl_ctx, h2o_http2_alpn_protocols);
  }

  void listen() {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int enabled = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &enabled, sizeof enabled);
    const sockaddr_in address = bench::loopback(options_.port);
    if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(fd, 4096) != 0)
      bench::fail_errno("listening");
    h2o_socket_t* const listener =
        h2o_evloop_socket_create(context_.loop, fd, H2O_SOCKET_FLAG_DONT_READ);
    listener->data = &accept_;
    h2o_socket_read_start(listener, &on_accept);
  }

  static void on_accept(h2o_socket_t* listener, const char* error) {
    // At most 16 at a time, as the program h2o.
    for (int left = 16; error == nullptr && left > 0; --left) {
      h2o_socket_t* const socket = h2o_evloop_socket_accept(listener);
      if (socket == nullptr) return;
      h2o_accept(static_cast<h2o_accept_ctx_t*>(listener->data), socket);
    }
  }

  static inline std::string text_;  // A handler gets nothing but the request.
  bench::ServerOptions options_;
  h2o_globalconf_t config_{};
  h2o_context_t context_{};
  h2o_accept_ctx_t accept_{};
};

}  // namespace

int main(int argc, char** argv) { return bench::run_http<H2o>(argc, argv); }
