// Responses to errors: their forms, the fields that they keep, and the exceptions behind them.
#include <chrono>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "http/support/serving.h"

namespace tambour::errors_test {
namespace {

using namespace std::chrono_literals;
using http::Request;
using http::Response;
using http::Status;
using test::response_of;

std::string get(const std::string& target, const std::string& fields = "") {
  return "GET " + target + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + fields + "\r\n";
}

class HttpErrors : public test::Serving {
 public:
  /// The fields that middleware sets for each response, and routes with errors.
  void serve_errors(http::ErrorRenderer renderer) {
    server_.reset();
    http::Router router;
    router.use(or_throw(http::cors({.origins = {"https://a"}})));
    router.get("/throws", [](Request&, Response& response) {
      response.headers().set("Set-Cookie", "session=1");
      response.headers().set("Content-Type", "image/png");
      response.headers().set("Cache-Control", "max-age=9");
      throw std::runtime_error("secret");
    });
    router.get("/sends", [](Request&, Response& response) {
      response.headers().set("ETag", "\"1\"");
      response.headers().set("Cache-Control", "no-store");
      EXPECT_TRUE(response.send_error(Status::conflict, "a < \"b\"\xFF"));
      EXPECT_EQ(response.send_error(Status::conflict).error(), http::ErrorCode::response_begun);
    });
    http::ServerOptions options;
    options.error_renderer = std::move(renderer);
    options.on_exception = [this](const Request& request, const std::exception_ptr& thrown) {
      try {
        std::rethrow_exception(thrown);
      } catch (const std::exception& exception) {
        exceptions_.push_back(std::string(request.path()) + ": " + exception.what());
      }
    };
    serve(std::move(router).handler(), std::move(options));
  }

  std::vector<std::string> exceptions_;
};

const std::string origin = "Origin: https://a\r\n";
const std::string cors_fields = "Vary: Origin\r\nAccess-Control-Allow-Origin: https://a\r\n";

std::string error_with(const std::string& status, const std::string& fields,
                       const std::string& body) {
  return "HTTP/1.1 " + status + "\r\n" + fields +
         "Content-Type: text/plain\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\nConnection: close\r\n\r\n" + body;
}

TEST_F(HttpErrors, keep_the_fields_of_middleware) {
  serve_errors({});
  EXPECT_EQ(ask(get("/none", origin)), error_with("404 Not Found", cors_fields, "404 Not Found\n"));
  EXPECT_EQ(ask(get("/throws", origin)),
            error_with("500 Internal Server Error", cors_fields, "500 Internal Server Error\n"));
  EXPECT_EQ(ask(get("/sends", origin)),
            error_with("409 Conflict", cors_fields + "Cache-Control: no-store\r\n",
                       "409 Conflict: a < \"b\"\xFF\n"));
  EXPECT_EQ(exceptions_, std::vector<std::string>{"/throws: secret"});
  EXPECT_EQ(server_->handler_exceptions(), 1U);
}

/// The body and the type of a response.
std::string body_of(const std::string& response) {
  const std::size_t type = response.find("Content-Type: ") + 14;
  return response.substr(type, response.find("\r\n", type) - type) + " " +
         response.substr(response.find("\r\n\r\n") + 4);
}

TEST_F(HttpErrors, have_the_form_of_the_renderer) {
  serve_errors(http::render_json);
  EXPECT_EQ(body_of(ask(get("/sends"))),
            "application/json {\"status\":409,\"error\":\"Conflict\","
            "\"detail\":\"a < \\\"b\\\"\xEF\xBF\xBD\"}\n");
  serve_errors(http::render_problem_details);
  EXPECT_EQ(body_of(ask(get("/none"))),
            "application/problem+json {\"status\":404,\"title\":\"Not Found\"}\n");
  serve_errors(http::render_html);
  EXPECT_EQ(body_of(ask(get("/sends"))),
            "text/html; charset=utf-8 <!DOCTYPE html>\n<html lang=\"en\"><head>"
            "<meta charset=\"utf-8\"><title>409 Conflict</title></head>\n"
            "<body><h1>409 Conflict</h1><p>a &lt; \"b\"\xEF\xBF\xBD</p></body></html>\n");
}

TEST_F(HttpErrors, have_the_form_that_the_client_prefers) {
  serve_errors(http::render_negotiated);
  const auto type_for = [this](const std::string& accept) {
    const std::string body =
        body_of(ask(get("/none", accept.empty() ? "" : "Accept: " + accept + "\r\n")));
    return body.substr(0, body.find_first_of("; "));
  };
  EXPECT_EQ(type_for(""), "application/problem+json");
  EXPECT_EQ(type_for("*/*"), "application/problem+json");
  EXPECT_EQ(type_for("application/json"), "application/json");
  EXPECT_EQ(type_for("text/html,application/xml;q=0.9,*/*;q=0.8"), "text/html");
  EXPECT_EQ(type_for("text/*"), "text/html");
  EXPECT_EQ(type_for("text/plain, text/*;q=0.5"), "text/plain");
  EXPECT_EQ(type_for("*/*, application/problem+json;q=0"), "application/json");
  EXPECT_EQ(type_for("image/png"), "application/problem+json");
  const std::string answer = ask(get("/none", "Accept: text/html\r\n"));
  EXPECT_NE(answer.find("\r\nVary: Accept\r\n"), std::string::npos) << answer;
}

TEST_F(HttpErrors, of_the_parser_have_it_too) {
  serve_errors(http::render_problem_details);
  EXPECT_EQ(body_of(ask("GET / HTTP/1.1\r\nHost: a\r\nBad Field: x\r\n\r\n")).substr(0, 38),
            "application/problem+json {\"status\":400");
  EXPECT_NE(ask("\x16\x03\x01").find("{\"status\":400"), std::string::npos);
  const std::string long_field = "X: " + std::string(40'000, 'x') + "\r\n";
  EXPECT_NE(ask(get("/", long_field)).find("{\"status\":431"), std::string::npos);
  EXPECT_NE(ask_in_pieces({"GET / HTTP/1.1\r\nHo"}).find("{\"status\":408"), std::string::npos);
}

TEST_F(HttpErrors, are_plain_if_the_renderer_fails) {
  const std::string plain = "text/plain 404 Not Found\n";
  serve_errors([](const Request&, Response&, const http::ErrorDescription&) {});
  EXPECT_EQ(body_of(ask(get("/none"))), plain);
  serve_errors([](const Request&, Response& response, const http::ErrorDescription&) {
    response.headers().set("X-Begun", "1");
    throw std::runtime_error("renderer");
  });
  // The renderer has thrown in the router, and again after this exception.
  EXPECT_EQ(body_of(ask(get("/none"))), "text/plain 500 Internal Server Error\n");
  EXPECT_EQ(exceptions_, std::vector<std::string>{"/none: renderer"});
}

TEST_F(HttpErrors, may_have_a_renderer_of_the_program) {
  serve_errors([](const Request& request, Response& response, const http::ErrorDescription& error) {
    response.headers().set("Content-Type", "text/x-error");
    response.send(std::string(request.method().name()) + " " +
                  std::to_string(code_of(error.status)) + std::string(error.detail));
  });
  EXPECT_EQ(body_of(ask(get("/none"))), "text/x-error GET 404");
  EXPECT_EQ(body_of(ask(get("/sends"))), "text/x-error GET 409a < \"b\"\xFF");
}

TEST_F(HttpErrors, of_handlers_are_reported_with_their_request) {
  http::ServerOptions options;
  int reported = 0;
  options.listen.on_error = [&](const std::exception_ptr& thrown) {
    ++reported;
    EXPECT_THROW(std::rethrow_exception(thrown), std::bad_alloc);
  };
  options.on_exception = [](const Request& request, const std::exception_ptr& thrown) {
    EXPECT_THROW(std::rethrow_exception(thrown), std::logic_error);
    EXPECT_EQ(request.parameter("id"), "7");
    EXPECT_EQ(request.route(), "/users/{id}");
    throw std::bad_alloc();
  };
  http::Router router;
  router.get("/users/{id}", [](Request&, Response&) -> Task<> {
    EXPECT_TRUE(co_await sleep_for(1s));
    throw std::logic_error("x");
  });
  serve(std::move(router).handler(), options);
  EXPECT_TRUE(ask(get("/users/7")).starts_with("HTTP/1.1 500 "));
  EXPECT_EQ(reported, 1);
}

TEST_F(HttpErrors, are_refused_with_a_status_of_success) {
  serve([](Request&, Response& response) {
    EXPECT_EQ(response.send_error(Status::ok).error(), http::ErrorCode::bad_status);
    EXPECT_EQ(response.send_error(Status(1000)).error(), http::ErrorCode::bad_status);
    response.send("x");
  });
  EXPECT_EQ(ask(get("/")), response_of("200 OK", "x", "Connection: close\r\n"));
}

TEST_F(HttpErrors, after_a_part_of_the_response_reset_the_connection) {
  serve([](Request&, Response& response) -> Task<> {
    const auto written = co_await response.write("part");
    EXPECT_TRUE(written);
    response.abort();
  });
  const std::string answer = ask(get("/"));
  EXPECT_NE(answer.find("part"), std::string::npos) << answer;
  EXPECT_EQ(answer.find("\r\n0\r\n"), std::string::npos) << answer;
  EXPECT_NE(answer.find("error: "), std::string::npos) << answer;
}

class HttpInterim : public test::Serving {};

TEST_F(HttpInterim, responses_precede_the_response) {
  serve([](Request&, Response& response) -> Task<> {
    http::Fields links;
    links.add("Link", "</a.css>; rel=preload");
    links.add("Content-Length", "7");
    const Result<> sent = co_await response.send_interim(Status::early_hints, std::move(links));
    EXPECT_TRUE(sent);
    for (const Status other : {Status::continue_, Status::switching_protocols, Status::ok}) {
      const Result<> refused = co_await response.send_interim(other);
      EXPECT_EQ(refused.error(), http::ErrorCode::bad_status);
    }
    response.send("x");
    const Result<> late = co_await response.send_interim(Status::processing);
    EXPECT_EQ(late.error(), http::ErrorCode::response_begun);
  });
  const std::string expected = response_of("200 OK", "x", "Connection: close\r\n");
  EXPECT_EQ(ask(get("/")),
            "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n" + expected);
  EXPECT_EQ(ask("GET / HTTP/1.0\r\n\r\n"), expected);
}

}  // namespace
}  // namespace tambour::errors_test
