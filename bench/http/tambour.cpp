// The server on Tambour: http::Server with a function as its handler, or, with
// TAMBOUR_BENCH_STYLE=tasks, with a task.
#include <tambour/tambour.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "http/http.h"

namespace {

namespace http = tambour::http;

class Tambour {
 public:
  explicit Tambour(const bench::ServerOptions& options)
      : body_(std::string(std::size_t(options.answer_bytes), 'b')), server_(listen(options.port)) {}

  void run() { loop_.run(); }

  bench::SubjectInfo info() const {
    return {"tambour", std::string(tambour::version), std::string(loop_.backend().name)};
  }

 private:
  void answer(http::Request& request, http::Response& response) const {
    if (request.path() != bench::http_target) return response.set_status(http::Status::not_found);
    response.fields().set("Content-Type", "text/plain");
    response.send(body_.slice());
  }

  http::Server listen(std::uint16_t port) {
    const char* const style = std::getenv("TAMBOUR_BENCH_STYLE");
    http::Handler handler = [this](http::Request& request, http::Response& response) {
      answer(request, response);
    };
    if (style != nullptr && std::string_view(style) == "tasks") {
      handler = [this](http::Request& request, http::Response& response) -> tambour::Task<> {
        answer(request, response);
        co_return;
      };
    }
    return tambour::or_throw(
        http::Server::listen(loop_, tambour::Endpoint::loopback_v4(port), std::move(handler)));
  }

  tambour::Buffer body_;
  tambour::EventLoop loop_;
  http::Server server_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_http<Tambour>(argc, argv); }
