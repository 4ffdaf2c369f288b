// The server on Drogon, with one thread for connections. Its main thread only waits.
#include <drogon/drogon.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "http/arena.h"
#include "http/http.h"

namespace {

using drogon::HttpRequestPtr;
using drogon::HttpResponsePtr;
using Respond = std::function<void(const HttpResponsePtr&)>;

class Drogon {
 public:
  explicit Drogon(const bench::ServerOptions& options)
      : bytes_(options.answer_bytes), body_(std::size_t(options.answer_bytes), 'b') {
    constexpr std::size_t upload_bytes_max = std::size_t{1} << 30;
    const std::string pem = options.folder + "/server.pem";
    drogon::app()
        .addListener("127.0.0.1", options.port, options.tls, options.tls ? pem : "",
                     options.tls ? pem : "")
        .setThreadNum(1)
        .setLogLevel(trantor::Logger::kError)
        .setIdleConnectionTimeout(600)
        .setClientMaxBodySize(upload_bytes_max)
        .setClientMaxMemoryBodySize(upload_bytes_max)
        .setDocumentRoot(options.folder + "/files")
        .setFileTypes({"css", "js", "html", "woff2", "svg", "webp", "json", "txt"})
        .enableGzip(true)
        .setUploadPath(options.folder)
        .disableSigtermHandling();
    add_handlers();
  }

  void run() { drogon::app().run(); }

  static bench::SubjectInfo info() { return {"drogon", drogon::getVersion(), "epoll"}; }

 private:
  static void send(const Respond& respond, drogon::ContentType type, std::string text) {
    const HttpResponsePtr response = drogon::HttpResponse::newHttpResponse();
    response->setContentTypeCode(type);
    response->setBody(std::move(text));
    respond(response);
  }

  static void send_items(const HttpRequestPtr& request, Respond&& respond,
                         const std::string& count) {
    const std::string multiplier = request->getParameter("m");
    send(respond, drogon::CT_APPLICATION_JSON,
         bench::arena_json(std::atoi(count.c_str()), std::atoi(multiplier.c_str())));
  }

  void add_handlers() {
    auto& app = drogon::app();
    app.registerHandler(bench::http_target, [this](const HttpRequestPtr&, Respond&& respond) {
      send(respond, drogon::CT_TEXT_PLAIN, body_);
    });
    app.registerHandler(bench::json_target, [this](const HttpRequestPtr&, Respond&& respond) {
      send(respond, drogon::CT_APPLICATION_JSON, bench::json_text(bytes_));
    });
    app.registerHandler(bench::ok_target, [](const HttpRequestPtr&, Respond&& respond) {
      send(respond, drogon::CT_TEXT_PLAIN, "ok");
    });
    app.registerHandler(bench::upload_target,
                        [](const HttpRequestPtr& request, Respond&& respond) {
                          send(respond, drogon::CT_TEXT_PLAIN,
                               std::to_string(request->body().size()));
                        },
                        {drogon::Post});
    app.registerHandler(bench::sum_target, [](const HttpRequestPtr& request, Respond&& respond) {
      long sum = std::atol(std::string(request->body()).c_str());
      for (const auto& [name, value] : request->getParameters()) sum += std::atol(value.c_str());
      send(respond, drogon::CT_TEXT_PLAIN, std::to_string(sum));
    });
    app.registerHandler(std::string(bench::items_target) + "{count}", &send_items);
    app.registerHandler(std::string(bench::compressed_items_target) + "{count}", &send_items);
  }

  int bytes_;
  std::string body_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_http<Drogon>(argc, argv); }
