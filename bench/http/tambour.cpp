// The server on Tambour: http::Server with a router, or, with TAMBOUR_BENCH_STYLE=tasks, with a
// task for each request.
#include <tambour/tambour.h>

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "common/observed.h"
#include "http/arena.h"
#include "http/http.h"

namespace {

namespace http = tambour::http;

class Tambour {
 public:
  explicit Tambour(const bench::ServerOptions& options)
      : text_(std::size_t(options.answer_bytes), 'b'),
        body_(text_),
        observed_(loop_, options.metrics_port),
        server_(listen(options)) {}

  void run() { loop_.run(); }

  bench::SubjectInfo info() const {
    return {"tambour", std::string(tambour::version), std::string(loop_.backend().name)};
  }

 private:
  void answer(http::Response& response) const {
    response.headers().set("Content-Type", "text/plain");
    // Long texts are shared by all responses.
    if (text_.size() <= copied_bytes_max) {
      response.send(text_);
    } else {
      response.send(body_.slice());
    }
  }

  static void answer(http::Response& response, const std::string& text) {
    response.headers().set("Content-Type", "text/plain");
    response.send(text);
  }

  static tambour::Task<> receive(http::Request& request, http::Response& response) {
    std::size_t bytes = 0;
    while (!request.body().is_complete()) {
      const auto piece = co_await request.body().read();
      if (!piece) co_return;
      bytes += piece->size();
    }
    answer(response, std::to_string(bytes));
  }

  static long sum_of(http::Request& request) {
    long sum = 0;
    for (const auto& [name, value] :
         tambour::or_throw(http::parse_query(request.query().value_or(""))))
      sum += std::atol(value.c_str());
    return sum;
  }
  static void add_values(http::Request& request, http::Response& response) {
    answer(response, std::to_string(sum_of(request)));
  }
  static tambour::Task<> add_values_and_body(http::Request& request, http::Response& response) {
    const long sum = sum_of(request);
    const auto body = co_await request.body().read_text();
    if (!body) co_return;
    answer(response, std::to_string(sum + std::atol(body->c_str())));
  }

  static void send_items(http::Request& request, http::Response& response) {
    const auto count = request.parameter_as<int>("count");
    const auto multiplier = request.query_parameter_as<int>("m");
    if (!count || !multiplier) return;  // Answered with 400.
    response.headers().set("Content-Type", "application/json");
    response.send(bench::arena_json(*count, multiplier->value_or(1)));
  }

  /// What the profiles of HttpArena request.
  static void add_arena(http::Router& router) {
    router.get(bench::sum_target, &add_values);
    router.post(bench::sum_target, &add_values_and_body);
    router.get(bench::ok_target,
               [](http::Request&, http::Response& response) { answer(response, "ok"); });
    router.get(std::string(bench::items_target) + "{count}", &send_items);
    http::Router compressed;
    compressed.use(tambour::or_throw(
        http::compress({.codings = {http::Coding::gzip}, .gzip_level = bench::gzip_level})));
    compressed.get("/{count}", &send_items);
    router.mount("/json-comp", std::move(compressed));
  }

  http::Handler handler(const bench::ServerOptions& options) {
    http::Router router;
    const char* const style = std::getenv("TAMBOUR_BENCH_STYLE");
    if (style != nullptr && std::string_view(style) == "tasks") {
      router.get(bench::http_target,
                 [this](http::Request&, http::Response& response) -> tambour::Task<> {
                   answer(response);
                   co_return;
                 });
    } else {
      router.get(bench::http_target,
                 [this](http::Request&, http::Response& response) { answer(response); });
    }
    router.get(bench::json_target,
               [bytes = options.answer_bytes](http::Request&, http::Response& response) {
                 response.headers().set("Content-Type", "application/json");
                 response.send(bench::json_text(bytes));
               });
    router.get(bench::baseline_target, &add_values);
    router.get(bench::small_target, [](http::Request&, http::Response& response) {
      response.headers().set("Content-Type", "text/plain");
      response.send(std::string(bench::small_bytes, 's'));
    });
    router.post(bench::upload_target, &receive);
    add_arena(router);
    // As nginx's open_file_cache_valid.
    http::FileOptions files;
    files.check_interval = std::chrono::seconds(60);
    router.get("/{path...}", http::serve_files(options.folder + "/files", std::move(files)));
    return std::move(router).handler();
  }

  http::Server listen(const bench::ServerOptions& options) {
    http::ServerOptions mode;
    if (options.tls) {
      const auto pem = tambour::tls::Pem::file(options.folder + "/server.pem");
      tambour::tls::ServerOptions tls;
      if (options.http_2) tls.alpn = {"h2", "http/1.1"};
      tls.identities.push_back({.certificate = pem, .key = pem});
      mode.listen.tls = tambour::or_throw(tambour::tls::ServerContext::create(tls));
    }
    return tambour::or_throw(http::Server::listen(
        loop_, tambour::Endpoint::loopback_v4(options.port), handler(options), std::move(mode)));
  }

  static constexpr std::size_t copied_bytes_max = 1024;

  std::string text_;
  tambour::Buffer body_;
  tambour::EventLoop loop_;
  bench::Observed observed_;
  http::Server server_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_http<Tambour>(argc, argv); }
