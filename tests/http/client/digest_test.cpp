// Digest authentication: challenges, the examples of RFC 7616, and clients of servers and proxies.
#include "http_message/auth/digest.h"

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "client/digest_hash.h"
#include "http/support/scripted_server.h"
#include "http_message/auth/challenge.h"

namespace tambour::digest_test {
namespace {

using detail::client::digest_hash;
using http::Client;
using http::ClientOptions;
using http::ClientRequest;
using http::Fields;
using http::Method;
using test::Answer;
using test::Arrived;
using test::ok;
using test::ScriptedServer;
using namespace http::detail::auth;

std::string text_of(std::string_view value) {
  Fields fields;
  or_throw(fields.add("WWW-Authenticate", value));
  std::string text;
  for (const Challenge& challenge : parse_challenges(fields, "www-authenticate")) {
    text += challenge.scheme + "(";
    for (const auto& [name, parameter] : challenge.parameters)
      text.append(name).append("=").append(parameter).append(";");
    text += ")";
  }
  return text;
}

TEST(Challenges, lists) {
  EXPECT_EQ(text_of("Basic realm=\"a, \\\"b\\\"\""), "Basic(realm=a, \"b\";)");
  EXPECT_EQ(text_of("Newauth realm=\"apps\", type=1, title=\"Login to \\\"apps\\\"\", "
                    "Basic realm=\"simple\""),
            "Newauth(realm=apps;type=1;title=Login to \"apps\";)Basic(realm=simple;)");
  EXPECT_EQ(text_of("Negotiate, Digest realm = x ,nonce=\"\""),
            "Negotiate()Digest(realm=x;nonce=;)");
  EXPECT_EQ(text_of("Negotiate YWI+/==, Basic realm=x"), "Negotiate()Basic(realm=x;)");
  EXPECT_EQ(text_of(", ,Basic,, Digest a=b,,c=d , "), "Basic()Digest(a=b;c=d;)");
  EXPECT_EQ(text_of("Basic a=\"b"), "");
  EXPECT_EQ(text_of("Basic a=b, Digest c=d e=f"), "Basic(a=b;)");
  EXPECT_EQ(text_of("=\""), "");
  EXPECT_EQ(text_of(""), "");
}

DigestChallenge challenge_of(std::string_view value) {
  Fields fields;
  or_throw(fields.add("WWW-Authenticate", value));
  return strongest_challenge(fields, "WWW-Authenticate", digest_hash).value();
}

/// The value of a parameter of credentials.
std::string parameter(const std::string& credentials, const std::string& name) {
  Fields fields;
  or_throw(fields.add("A", credentials));
  const auto parsed = parse_challenges(fields, "A");
  const std::string* const found = parsed.empty() ? nullptr : parsed.front().find(name);
  return found == nullptr ? "none" : *found;
}

/// The answer to a GET with a body; the nonce of the client is a text of the RFC.
std::string answer_of(std::string_view challenge, const http::BasicCredentials& credentials,
                      std::string_view target, const Buffer* body = nullptr) {
  DigestSession session(challenge_of(challenge), digest_hash, {0x1234, 0xabcd});
  const Method method = Method::get;
  return session.authorize(credentials, {.method = method, .target = target, .body = body})
      .value_or("refused");
}

std::string md5(const std::string& text) {
  return digest_hash(HashAlgorithm::md5, Buffer(text)).value();
}

TEST(Digest, hashes) {
  EXPECT_EQ(md5("abc"), "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(digest_hash(HashAlgorithm::sha256, Buffer("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(digest_hash(HashAlgorithm::sha512_256, Buffer("abc")),
            "53048e2681941ef99b2e29b76b4c7dabe4c2d0c634fc6d46e0e2f13107e7af23");
}

TEST(Digest, the_answer_of_rfc_2617_without_quality) {
  // RFC 2069, with the values of RFC 2617, section 3.5.
  const std::string answer = answer_of(
      "Digest realm=\"testrealm@host.com\", nonce=\"dcd98b7102dd2f0e8b11d0f600bfb0c093\", "
      "opaque=\"5ccc069c403ebaf9f0171e9517f40e41\"",
      {"Mufasa", "Circle Of Life"}, "/dir/index.html");
  EXPECT_EQ(answer,
            "Digest username=\"Mufasa\", realm=\"testrealm@host.com\", "
            "nonce=\"dcd98b7102dd2f0e8b11d0f600bfb0c093\", uri=\"/dir/index.html\", "
            "response=\"670fd8c2df070c60b045671b8b24ff02\", "
            "opaque=\"5ccc069c403ebaf9f0171e9517f40e41\"");
}

/// The computation of RFC 7616, section 3.4, written plainly.
TEST(Digest, qualities_and_sessions) {
  const std::string nonce = "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v";
  const std::string client_nonce = "0000000000001234000000000000abcd";
  const std::string user = "Mufasa:http-auth@example.org:Circle of Life";
  const std::string start = "Digest realm=\"http-auth@example.org\", nonce=\"" + nonce + "\", ";
  const http::BasicCredentials mufasa{"Mufasa", "Circle of Life"};
  const std::string rest = ":" + nonce + ":00000001:" + client_nonce + ":";

  std::string answer =
      answer_of(start + "qop=\"auth, auth-int\", algorithm=MD5", mufasa, "/dir/index.html");
  EXPECT_EQ(parameter(answer, "response"),
            md5(md5(user) + rest + "auth:" + md5("GET:/dir/index.html")));
  EXPECT_EQ(parameter(answer, "qop"), "auth");
  EXPECT_EQ(parameter(answer, "nc"), "00000001");
  EXPECT_EQ(parameter(answer, "cnonce"), client_nonce);
  EXPECT_EQ(parameter(answer, "algorithm"), "MD5");

  const Buffer body("text");
  answer = answer_of(start + "qop=\"auth-int\", algorithm=MD5-sess", mufasa, "/x?y", &body);
  const std::string secret = md5(md5(user) + ":" + nonce + ":" + client_nonce);
  EXPECT_EQ(parameter(answer, "response"),
            md5(secret + rest + "auth-int:" + md5("GET:/x?y:" + md5("text"))));
  EXPECT_EQ(parameter(answer, "algorithm"), "MD5-sess");
  EXPECT_EQ(answer_of(start + "qop=\"auth-int\"", mufasa, "/"), "refused") << "an unknown body";
  EXPECT_EQ(answer_of(start + "qop=auth", {"a\nb", "c"}, "/"), "refused");

  answer = answer_of(start + "qop=auth, algorithm=SHA-256", mufasa, "/dir/index.html");
  const auto sha = [](const std::string& text) {
    return digest_hash(HashAlgorithm::sha256, Buffer(text)).value();
  };
  EXPECT_EQ(parameter(answer, "response"),
            sha(sha(user) + rest + "auth:" + sha("GET:/dir/index.html")));
}

TEST(Digest, names_of_users) {
  const std::string start = "Digest realm=\"api@example.org\", nonce=\"n\", qop=\"auth\", ";
  const http::BasicCredentials user{"J\xc3\xa4s\xc3\xb8n Doe", "Secret, or not?"};
  std::string answer =
      answer_of(start + "algorithm=SHA-512-256, charset=UTF-8, userhash=true", user, "/doe.json");
  // RFC 7616, section 3.9.2, prints another value, which is that of a truncated SHA-512.
  EXPECT_EQ(parameter(answer, "username"),
            digest_hash(HashAlgorithm::sha512_256, Buffer(user.user + ":api@example.org")));
  EXPECT_EQ(parameter(answer, "userhash"), "true");
  answer = answer_of(start + "charset=UTF-8", user, "/");
  EXPECT_EQ(parameter(answer, "username*"), "UTF-8''J%C3%A4s%C3%B8n%20Doe");
  EXPECT_EQ(parameter(answer_of(start + "x=y", {"a\"b\\c", "p"}, "/"), "username"), "a\"b\\c");
}

TEST(Digest, the_strongest_challenge) {
  const std::string weak = "Digest realm=r, nonce=n, qop=auth";
  const std::string strong = "Digest realm=r, nonce=n, qop=auth, algorithm=sha-256-sess";
  for (const std::string& list : {weak + ", " + strong, strong + ", " + weak}) {
    const DigestChallenge chosen = challenge_of(list + ", Basic realm=x");
    EXPECT_EQ(chosen.algorithm, HashAlgorithm::sha256);
    EXPECT_TRUE(chosen.is_session);
  }
  for (const char* const text :
       {"Basic realm=r", "Digest nonce=n", "Digest realm=r", "Digest realm=r, nonce=n, algorithm=X",
        "Digest realm=r, nonce=n, qop=other"}) {
    Fields fields;
    or_throw(fields.add("WWW-Authenticate", text));
    EXPECT_FALSE(strongest_challenge(fields, "WWW-Authenticate", digest_hash)) << text;
  }
}

std::string unauthorized(std::string_view challenge, std::string_view status = "401 No") {
  const std::string field = status.starts_with("407") ? "Proxy-Authenticate" : "WWW-Authenticate";
  return "HTTP/1.1 " + std::string(status) + "\r\n" + field + ": " + std::string(challenge) +
         "\r\nContent-Length: 2\r\n\r\nno";
}

class DigestClient : public testing::Test {
 protected:
  std::string got(Client& client, ClientRequest request) {
    std::string text;
    spawn(loop, [&]() -> Task<> {
      auto response = co_await client.send(std::move(request));
      if (response) {
        auto body = co_await response->read_text();
        text = std::to_string(http::code_of(response->status())) + " " + body.value_or("error");
      } else {
        text = response.error().message();
      }
      loop.stop();
    });
    loop.run();
    return text;
  }
  /// Stops or destroys the task after each number of iterations of the loop, until it ends with
  /// `expected` before. Then invokes `verify`.
  void cancel_at_every_await(const std::function<Task<>(std::string&)>& task,
                             const std::string& expected, const std::function<void()>& verify) {
    for (const bool destroys : {false, true}) {
      for (int iterations = 0;; ++iterations) {
        SCOPED_TRACE(testing::Message() << iterations << " iterations, destroys: " << destroys);
        std::string outcome;
        std::optional<TaskScope> scope(std::in_place, loop);
        scope->spawn(task(outcome));
        for (int i = 0; i < iterations && outcome.empty(); ++i) loop.run_once();
        const bool has_ended = !outcome.empty();
        scope->request_stop();
        if (destroys) scope.reset();
        while (!destroys && outcome.empty()) loop.run_once();
        if (has_ended) {
          EXPECT_EQ(outcome, expected);
          EXPECT_GE(iterations, 4) << "the challenge is awaited";
        } else if (!destroys && outcome != expected) {
          EXPECT_EQ(outcome, system_error(ECANCELED).message());
        }
        verify();
        if (has_ended || HasFailure()) break;
      }
    }
  }
  static ClientOptions digest() {
    ClientOptions options;
    options.authentication = http::Authentication::digest;
    options.connect.proxy_authentication = http::Authentication::digest;
    return options;
  }
  /// The URL with a user.
  std::string url(std::string_view target = "/") const {
    return "http://user:secret@" + server.authority() + std::string(target);
  }
  /// True if the credentials are those of the user, for this nonce.
  static bool is_right(const Arrived& arrived, const std::string& credentials,
                       const std::string& nonce) {
    const std::string second =
        md5(std::string(arrived.head.method.name()) + ":" + parameter(credentials, "uri"));
    return parameter(credentials, "nonce") == nonce &&
           parameter(credentials, "uri") == arrived.head.target &&
           parameter(credentials, "response") ==
               md5(md5("user:r:secret") + ":" + nonce + ":" + parameter(credentials, "nc") + ":" +
                   parameter(credentials, "cnonce") + ":auth:" + second);
  }
  static std::string challenge(const std::string& nonce, std::string_view more = "") {
    return "Digest realm=\"r\", qop=\"auth\", nonce=\"" + nonce + "\"" + std::string(more);
  }

  /// A proxy that demands credentials for tunnels, with the nonce "n".
  void serve_tunnels() {
    script = [this](const Arrived& arrived) -> Answer {
      const std::string given = arrived.head.fields.joined("Proxy-Authorization");
      counts.push_back(given.empty() ? "-" : parameter(given, "uri"));
      if (!given.empty() && is_right(arrived, given, "n")) {
        Answer answer("HTTP/1.1 200 OK\r\n\r\n");
        answer.reads_the_rest = true;
        return answer;
      }
      return test::and_close(unauthorized(challenge("n"), "407 No"));
    };
  }
  Task<> reach(std::string password, std::string& into) {
    ConnectOptions options;
    options.proxy = "http://user:" + password + "@" + server.authority();
    options.proxy_authentication = http::Authentication::digest;
    auto stream = co_await connect("origin.test", 443, options);
    into = stream ? "connected" : stream.error().message();
  }

  EventLoop loop;
  std::vector<std::string> counts;  ///< "-" for requests without credentials.
  std::string nonce = "first";
  std::string next_nonce;
  std::function<Answer(const Arrived&)> script = [this](const Arrived& arrived) -> Answer {
    const std::string given = arrived.head.fields.joined("Authorization");
    counts.push_back(given.empty() ? "-" : parameter(given, "nc"));
    if (!given.empty() && is_right(arrived, given, nonce)) {
      std::string info;
      if (!next_nonce.empty()) {
        info = "Authentication-Info: nextnonce=\"" + next_nonce + "\"\r\n";
        nonce = std::exchange(next_nonce, "");
      }
      return ok("welcome " + arrived.body, info);
    }
    const bool is_stale = !given.empty() && parameter(given, "nonce") != nonce;
    return unauthorized(challenge(nonce, is_stale ? ", stale=true" : ""));
  };
  ScriptedServer server{loop, [this](const Arrived& arrived) { return script(arrived); }};
};

TEST_F(DigestClient, challenges_are_answered_and_remembered) {
  Client client(loop, digest());
  EXPECT_EQ(got(client, ClientRequest(url("/a?b"))), "200 welcome ");
  EXPECT_EQ(got(client, ClientRequest(Method::post, url("/c"), Buffer("body"))),
            "200 welcome body");
  EXPECT_EQ(counts, (std::vector<std::string>{"-", "00000001", "00000002"}));
  EXPECT_EQ(server.connections(), 1) << "the body of the 401 is read";
  nonce = "second";
  EXPECT_EQ(got(client, ClientRequest(url())), "200 welcome ");
  EXPECT_EQ(counts.size(), 5U);
  EXPECT_EQ(counts.back(), "00000001") << "stale=true";
  next_nonce = "third";
  EXPECT_EQ(got(client, ClientRequest(url())), "200 welcome ");
  EXPECT_EQ(got(client, ClientRequest(url())), "200 welcome ");
  EXPECT_EQ(counts.size(), 7U);
  EXPECT_EQ(counts.back(), "00000001") << "nextnonce";
  EXPECT_EQ(got(client, ClientRequest(server.url())), "401 no") << "no user";
}

TEST_F(DigestClient, a_wrong_password) {
  Client client(loop, digest());
  const std::string wrong = "http://user:wrong@" + server.authority() + "/";
  EXPECT_EQ(got(client, ClientRequest(wrong)), "401 no");
  EXPECT_EQ(counts.size(), 2U);
  script = [this](const Arrived& arrived) -> Answer {
    counts.push_back(arrived.head.fields.joined("Authorization"));
    return unauthorized(challenge("n" + std::to_string(counts.size()), ", stale=true"));
  };
  counts.clear();
  EXPECT_EQ(got(client, ClientRequest(wrong)), "401 no");
  EXPECT_LE(counts.size(), 6U) << "a server that finds every nonce stale";
}

TEST_F(DigestClient, no_password_for_basic) {
  script = [this](const Arrived& arrived) -> Answer {
    counts.push_back(arrived.head.fields.joined("Authorization"));
    return unauthorized("Basic realm=\"r\"");
  };
  Client client(loop, digest());
  EXPECT_EQ(got(client, ClientRequest(url())), "401 no");
  EXPECT_EQ(counts, std::vector<std::string>{""});
}

TEST_F(DigestClient, cancellation_at_every_await) {
  std::optional<Client> client;
  const auto send = [&](std::string& into) -> Task<> {
    client.emplace(loop, digest());
    auto response = co_await client->send(ClientRequest(Method::post, url(), Buffer("body")));
    if (!response) {
      into = response.error().message();
      co_return;
    }
    const auto text = co_await response->read_text();
    into = text ? *text : text.error().message();
  };
  cancel_at_every_await(send, "welcome body", [&] {
    EXPECT_EQ(got(*client, ClientRequest(url())), "200 welcome ") << "the client can be used";
  });
}

TEST_F(DigestClient, redirects) {
  const std::string port = server.authority().substr(server.authority().rfind(':'));
  script = [inner = script, port](const Arrived& arrived) -> Answer {
    if (arrived.head.target == "/same")
      return "HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n";
    if (arrived.head.target == "/other")
      return "HTTP/1.1 302 Found\r\nLocation: http://localhost" + port +
             "/\r\nContent-Length: 0\r\n\r\n";
    return inner(arrived);
  };
  Client client(loop, digest());
  EXPECT_EQ(got(client, ClientRequest(url("/same"))), "200 welcome ");
  EXPECT_EQ(got(client, ClientRequest(url("/other"))), "401 no") << "another origin";
  EXPECT_EQ(counts.back(), "-");
}

TEST_F(DigestClient, sources_are_not_repeated) {
  class Source final : public http::BodySource {
   public:
    Task<Result<>> read(Buffer& into) override {
      if (!std::exchange(done_, true)) into.append("streamed");
      co_return {};
    }

   private:
    bool done_ = false;
  };
  Client client(loop, digest());
  for (const char* const expected : {"401 no", "200 welcome streamed"}) {
    ClientRequest request(Method::post, url());
    request.source = std::make_unique<Source>();
    EXPECT_EQ(got(client, std::move(request)), expected);
  }
}

TEST_F(DigestClient, forwarding_proxies) {
  script = [this](const Arrived& arrived) -> Answer {
    const std::string given = arrived.head.fields.joined("Proxy-Authorization");
    counts.push_back(given.empty() ? "-" : parameter(given, "nc"));
    if (!given.empty() && is_right(arrived, given, "n")) return ok("forwarded");
    return unauthorized(challenge("n"), "407 No");
  };
  ClientOptions options = digest();
  options.connect.proxy = "http://user:secret@" + server.authority();
  Client client(loop, options);
  EXPECT_EQ(got(client, ClientRequest("http://origin.test/x")), "200 forwarded");
  EXPECT_EQ(got(client, ClientRequest("http://other.test/y")), "200 forwarded");
  EXPECT_EQ(counts, (std::vector<std::string>{"-", "00000001", "00000002"}));
  options.connect.proxy = "http://user:wrong@" + server.authority();
  Client wrong(loop, options);
  EXPECT_EQ(got(wrong, ClientRequest("http://origin.test/x")), "407 no");
  EXPECT_EQ(counts.size(), 5U);
}

TEST_F(DigestClient, tunnels) {
  serve_tunnels();
  const auto reached = [this](const std::string& password) {
    std::string text;
    spawn(loop, [&]() -> Task<> {
      co_await reach(password, text);
      loop.stop();
    });
    loop.run();
    return text;
  };
  EXPECT_EQ(reached("secret"), "connected");
  EXPECT_EQ(counts, (std::vector<std::string>{"-", "origin.test:443"}));
  EXPECT_EQ(reached("wrong"), Error(ProxyError::authentication_required).message());
  EXPECT_EQ(counts.size(), 4U);
}

TEST_F(DigestClient, cancellation_of_tunnels_at_every_await) {
  serve_tunnels();
  const auto task = [this](std::string& into) { return reach("secret", into); };
  cancel_at_every_await(task, "connected", [this] {
    std::string text;
    spawn(loop, reach("secret", text));
    while (text.empty()) loop.run_once();
    EXPECT_EQ(text, "connected");
  });
}

}  // namespace
}  // namespace tambour::digest_test
