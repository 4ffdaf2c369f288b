// What clients and servers send, and keys, are in nothing that an operator reads: the pages of an
// inspector, metrics, dumps of tasks, log records, access logs, spans and standard error.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <fstream>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "inspector/observed_server.h"
#include "support/log_lines.h"
#include "support/temporary_folder.h"
#include "tls/support/certificates.h"

namespace tambour::secrets_test {
namespace {

using namespace std::chrono_literals;
using test::Contexts;

/// Each secret begins with this.
constexpr std::string_view planted = "planted-";

/// Appended to by the threads of the loops.
class Text {
 public:
  void add(std::string_view line) {
    const std::lock_guard lock(mutex_);
    (text_ += line) += '\n';
  }
  [[nodiscard]] std::string get() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

std::string without(std::string text, std::string_view part) {
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part))
    text.erase(at, part.size());
  return text;
}

class PlantedSecrets : public test::ObservedServer {
 public:
  PlantedSecrets() : collector_(registry_), requests_(registry_) {
    write(key_path_, Contexts::localhost().key);
    write(certificate_path_, Contexts::localhost().certificate);
    tls::ServerOptions tls;
    tls.identities = {
        {.certificate = tls::Pem::file(certificate_path_), .key = tls::Pem::file(key_path_)}};
    tls.file_check_interval = 1ns;  // Each handshake examines the files.
    tls.on_reload = [this](const Result<void, tls::Failure>& result) {
      reload_.add(result ? "loaded" : result.error().message);
    };
    tls_ = or_throw(tls::ServerContext::create(tls));
    http::ServerOptions options;
    options.listen.tls = tls_;
    options.on_response = [this](const http::Request& request, const http::Response& response) {
      requests_.record(request, response);
      const http::AccessRecord record = http::access_record(request, response);
      access_log_.add(http::format_common(record));
      access_log_.add(http::format_combined(record));
    };
    serve(make_handler(), std::move(options));
    collector_.add(loops_, "web");
    collector_.add(*server_, "api");
    inspector_.emplace(loops_, inspector::InspectorOptions{.collector = &collector_});
    debug_.emplace(or_throw(inspector_->listen(loop_, Endpoint::loopback_v4(0))));
  }
  ~PlantedSecrets() override {
    ends_ = true;
    server_.reset();
  }

  http::Handler make_handler() {
    http::Router router;
    router.use(http::trace_requests({.on_span = on_span_}));
    router.get("/hello", [](http::Request&, http::Response& response) {
      response.headers().set("Set-Cookie", "a=planted-set-cookie");
      response.send("planted-response");
    });
    router.get("/throws", [](http::Request&, http::Response&) {
      throw std::runtime_error("the order is unknown");
    });
    router.post("/wait/{id}", [this](http::Request& request, http::Response& response) {
      return wait(request, response);
    });
    return std::move(router).handler();
  }
  /// Asks a server that does not exist, and waits until the test has ended.
  Task<> wait(http::Request& request, http::Response& response) {
    const auto body = co_await request.body().read_all();
    http::Client client(request.connection().loop());
    http::ClientRequest query("http://ann:planted-password@127.0.0.1:1/?key=planted-query");
    query.fields.set("Authorization", "Bearer planted-token");
    const auto context = http::trace_context_of(request);
    static_cast<void>(co_await http::send_traced(client, std::move(query), *context, on_span_));
    ++waiting_;
    while (!ends_) static_cast<void>(co_await sleep_for(1ms));
    response.send("hello");
  }

  /// Returns the status. `large` is a field that the server refuses if it is large enough.
  Task<int> ask(http::Method method, std::string target, std::string large = {}) {
    http::ClientOptions options;
    options.connect.tls = client_tls_;
    http::Client client(loop_, std::move(options));
    http::ClientRequest request(
        method, "https://" + server_->endpoint().to_string() + target + "?token=planted-query");
    if (method == http::Method::post) request.body = Buffer("planted-body");
    request.fields.set("Authorization", "Bearer planted-bearer");
    request.fields.set("Cookie", "planted-name=planted-value");
    request.fields.set("X-Api-Key", "planted-key" + large);
    auto sent = co_await client.send(std::move(request));
    if (!sent) co_return 0;
    const auto text = co_await sent->read_text();
    co_return static_cast<int>(sent->status());
  }
  static void write(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }

  /// All that is known of the tasks of the loops of the server.
  std::string dumps() {
    Text all;
    std::atomic<std::size_t> done = 0;
    for (std::size_t i = 0; i < loops_.size(); ++i) {
      loops_[i].post([&, &of = loops_[i]] {
        all.add(dump_tasks(of));
        all.add(dump_tasks_as_json(of));
        ++done;
      });
    }
    while (done < loops_.size()) std::this_thread::yield();
    return all.get();
  }

  const test::TemporaryFolder folder_;
  const std::string certificate_path_ = folder_.path() + "/certificate.pem";
  const std::string key_path_ = folder_.path() + "/key.pem";
  Text access_log_;
  Text spans_;
  Text reload_;
  const http::SpanHook on_span_ = [this](const http::Span& span) {
    spans_.add(std::string(span.kind == http::Span::Kind::client ? "client " : "server ") +
               std::string(span.method) + ' ' + std::string(span.name) + ' ' +
               span.context.traceparent() + ' ' + span.context.state + ' ' + span.error.message());
  };
  std::atomic<int> waiting_ = 0;
  std::atomic<bool> ends_ = false;
  tls::ServerContext tls_;
  tls::ClientContext client_tls_ = Contexts().client;
  metrics::Registry registry_;
  inspector::Collector collector_;
  http::Metrics requests_;
  std::optional<inspector::Inspector> inspector_;
  std::optional<http::Server> debug_;
};

/// The lines of a key, without its first and last one.
std::vector<std::string> lines_of_key(const std::string& pem) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < pem.size();) {
    const std::size_t end = std::min(pem.find('\n', begin), pem.size());
    if (pem[begin] != '-') lines.push_back(pem.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

void expect_no_secrets(const std::string& name, const std::string& text, std::string_view part) {
  EXPECT_NE(text.find(part), std::string::npos) << name << " is not what it should be: " << text;
  EXPECT_EQ(text.find(planted), std::string::npos) << name << ": " << text;
  for (const std::string& line : lines_of_key(Contexts::localhost().key))
    EXPECT_EQ(text.find(line), std::string::npos) << name << ": " << text;
}

TEST_F(PlantedSecrets, are_in_nothing_that_an_operator_reads) {
  test::LogLines log;
  testing::internal::CaptureStderr();
  const auto dumps_on_signal = or_throw(dump_tasks_on(loop_, SIGQUIT));
  EXPECT_EQ(block_on(loop_, ask(http::Method::get, "/hello")), 200);
  EXPECT_EQ(block_on(loop_, ask(http::Method::get, "/throws")), 500);
  // A request that is rejected before it has a handler.
  EXPECT_EQ(block_on(loop_, ask(http::Method::get, "/hello", std::string(200'000, 'x'))), 431);
  write(key_path_, "-----BEGIN PRIVATE KEY-----\nplanted-key\n-----END PRIVATE KEY-----\n");
  while (!log.has("could not be loaded again"))
    static_cast<void>(block_on(loop_, ask(http::Method::get, "/hello")));

  // While a request waits in the server, and its response in the client.
  TaskScope scope(loop_);
  scope.spawn([](PlantedSecrets& test) -> Task<> {
    static_cast<void>(co_await test.ask(http::Method::post, "/wait/7"));
  }(*this));
  while (waiting_ == 0) loop_.run_ready();
  const std::string tasks = dumps() + dump_tasks(loop_) + dump_tasks_as_json(loop_);
  ::raise(SIGQUIT);
  std::string pages;
  for (const char* path :
       {"/", "/page.js", "/page.css", "/loops", "/callbacks", "/connections?limit=500",
        "/tasks?limit=500", "/workers", "/profiles", "/metrics", "/health", "/ready"})
    pages += get(debug_->endpoint(), path);
  scope.request_stop();
  loop_.run_ready();

  expect_no_secrets("standard error", testing::internal::GetCapturedStderr(), "\ntask 0x");
  expect_no_secrets("pages", pages, "secrets_test.cpp");
  expect_no_secrets("tasks", tasks, "secrets_test.cpp");
  expect_no_secrets("metrics", metrics::format_metrics(registry_), "route=\"/hello\"");
  expect_no_secrets("metrics", metrics::format_metrics(registry_, metrics::Format::open_metrics),
                    "# EOF");
  expect_no_secrets("spans", spans_.get(), "client GET 127.0.0.1");
  expect_no_secrets("spans", spans_.get(), "server GET /throws");
  // A target is what an access log is about.
  const std::string accesses = access_log_.get();
  EXPECT_NE(accesses.find("/throws?token=planted-query"), std::string::npos) << accesses;
  expect_no_secrets("access log", without(accesses, "planted-query"), "\"GET /hello");
  std::string records;
  for (const std::string& line : log.lines) records += line + '\n';
  expect_no_secrets("log", records, "message=\"certificates could not be loaded again\"");
  expect_no_secrets("log", records, "exception=\"the order is unknown\"");
  expect_no_secrets("on_reload", reload_.get(), "key.pem");
}

}  // namespace
}  // namespace tambour::secrets_test
