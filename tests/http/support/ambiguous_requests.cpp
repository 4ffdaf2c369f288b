// Requests whose end two servers may see in different places.
#include "http/support/ambiguous_requests.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace tambour::test {
namespace {

using namespace std::string_literals;

enum Factor : std::size_t {
  method,
  target,
  version,
  host,
  length,
  coding,
  line_end,
  other,
  order,
  body,
  factors
};
using Values = std::array<std::vector<std::string>, factors>;
constexpr std::size_t no_coding = 1;
/// The index of a value for each factor.
using Choice = std::array<std::size_t, factors>;

Values all_values() {
  Values values;
  values[method] = {"POST", "GET", "PUT", "HEAD", "OPTIONS", "DELETE", "FOO", "get"};
  values[target] = {"/",
                    "/a?b=c",
                    "http://localhost/",
                    "http://other/",
                    "//other/",
                    "/%00%0d%0a",
                    "/a#b",
                    "*",
                    "/\xC3\xA9",
                    "/../a",
                    "/" + std::string(9000, 'a')};
  values[version] = {"HTTP/1.1", "HTTP/1.0", "HTTP/1.2", "HTTP/2.0", "http/1.1", "HTTP/1.1 "};
  values[host] = {"Host: localhost\n", "Host: other\n",        "",
                  "Host:\n",           "Host : localhost\n",   "Host: localhost\nHost: other\n",
                  "Host: a b\n",       "HOST: localhost:80\n", "Host:\n localhost\n"};
  values[length] = {"",
                    "Content-Length: 5\n",
                    "Content-Length: 0\n",
                    "Content-Length: 50\n",
                    "content-length:5\n",
                    "Content-Length: +5\n",
                    "Content-Length: -5\n",
                    "Content-Length: 0x5\n",
                    "Content-Length: 05\n",
                    "Content-Length: 5, 5\n",
                    "Content-Length: 5, 50\n",
                    "Content-Length: 5\nContent-Length: 5\n",
                    "Content-Length: 5\nContent-Length: 50\n",
                    "Content-Length: 0\nContent-Length: 5\n",
                    "Content-Length : 5\n",
                    "Content-Length:\t5 \n",
                    "Content-Length: 5\x0B\n",
                    "Content-Length: 5;\n",
                    "Content-Length:\n",
                    "Content-Length:\n 5\n",
                    "Content_Length: 5\n",
                    "Content-Length\0: 5\n"s,
                    "X: y\r Content-Length: 5\n",
                    "Content-Length: 18446744073709551621\n",
                    "Content-Length: 4294967301\n"};
  values[coding] = {"Transfer-Encoding: chunked\n",
                    "",
                    "transfer-encoding:chunked\n",
                    "Transfer-Encoding : chunked\n",
                    "Transfer-Encoding: Chunked \t\n",
                    "Transfer-Encoding: xchunked\n",
                    "Transfer-Encoding: chunked, identity\n",
                    "Transfer-Encoding: identity, chunked\n",
                    "Transfer-Encoding: gzip, chunked\n",
                    "Transfer-Encoding: chunked, chunked\n",
                    "Transfer-Encoding: chunked\nTransfer-Encoding: x\n",
                    "Transfer-Encoding: x\nTransfer-Encoding: chunked\n",
                    "Transfer-Encoding: \x0B"
                    "chunked\n",
                    "Transfer-Encoding: chunked\x0C\n",
                    "Transfer-Encoding:\n chunked\n",
                    "Transfer_Encoding: chunked\n",
                    "Transfer-Encoding\0: chunked\n"s,
                    "Transfer-Encoding: \"chunked\"\n",
                    "Transfer-Encoding: chunked;q=1\n",
                    "Transfer-Encoding: identity\n",
                    "Transfer-Encoding:\n",
                    "X: y\rTransfer-Encoding: chunked\n",
                    " Transfer-Encoding: chunked\n",
                    "Transfer-Encoding\xC2\xA0: chunked\n"};
  values[line_end] = {"\r\n", "\n", "\r\r\n"};
  values[other] = {"",
                   "Connection: close\n",
                   "Connection: keep-alive, Content-Length\n",
                   "Connection: Transfer-Encoding\n",
                   "Connection: Host\n",
                   "Expect: 100-continue\n",
                   "Expect: 200-ok\n",
                   "Upgrade: h2c\nConnection: Upgrade, HTTP2-Settings\nHTTP2-Settings: AAMAAABk\n",
                   "X: " + std::string(7000, 'a') + "\n",
                   "X: " + std::string(40000, 'a') + "\n",
                   "X: a\n b\n",
                   ": a\n",
                   "X Y: z\n",
                   "X_Y: z\n",
                   "X: \0\n"s,
                   "Trailer: Content-Length\nTE: trailers\n",
                   "X\n"};
  values[order] = {"length first", "coding first"};
  const std::string smuggled = "GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n";
  values[body] = {"5\r\nhello\r\n0\r\n\r\n",
                  "hello",
                  "",
                  "0\r\n\r\n" + smuggled,
                  "hello" + smuggled,
                  "0005;a=\"b\"\r\nhello\r\n0\r\n\r\n",
                  "5 ;a\r\nhello\r\n0 \r\n\r\n",
                  "5\nhello\n0\n\n",
                  "5;\nx\r\nhello\r\n0\r\n\r\n",
                  "0x5\r\nhello\r\n0\r\n\r\n",
                  "+5\r\nhello\r\n0\r\n\r\n",
                  "5\r\nhelloxx0\r\n\r\n",
                  "5\r\r\nhello\r\n0\r\n\r\n",
                  "5\rhello\r\n0\r\n\r\n",
                  "10000000000000005\r\nhello\r\n0\r\n\r\n",
                  "FFFFFFFFFFFFFFFB\r\nhello\r\n0\r\n\r\n",
                  "5\r\nhello\r\n0\r\nContent-Length: 50\r\nHost: other\r\n\r\n",
                  "5\r\nhello\r\n0\r\nX: y\n\r\n" + smuggled,
                  "5\r\nhello\r\n\r\n0\r\n\r\n",
                  "5\r\nhello\r\n0;\r\n\r\n",
                  "5;" + std::string(5000, 'a') + "\r\nhello\r\n0\r\n\r\n"};
  return values;
}

/// How many peculiar values of two factors are combined: all where they decide about the length of
/// the body.
std::array<std::size_t, 2> combined(std::size_t a, std::size_t b) {
  constexpr std::size_t few = 4;
  constexpr std::size_t all = SIZE_MAX;
  if (a == length && b == coding) return {all, all};
  if ((a == length || a == coding) && b == body) return {few, all};
  return {few, few};
}

/// The first value of each factor is the usual one.
std::vector<Choice> choices_of(const Values& values) {
  std::vector<Choice> choices;
  const auto add = [&](std::size_t a, std::size_t i, std::size_t b, std::size_t j) {
    Choice choice{};
    choice[a] = i;
    choice[b] = j;
    // Usually the body is chunked.
    if (choice[length] > 0 && a != coding && b != coding) choice[coding] = no_coding;
    if (a != order && b != order) choice[order] = choices.size() % 2;
    choices.push_back(choice);
  };
  for (std::size_t a = 0; a < factors; ++a) {
    for (std::size_t i = 1; i < values[a].size(); ++i) add(a, i, a, i);
    for (std::size_t b = a + 1; b < factors; ++b) {
      const auto [most_a, most_b] = combined(a, b);
      for (std::size_t i = 1; i < values[a].size() && i <= most_a; ++i)
        for (std::size_t j = 1; j < values[b].size() && j <= most_b; ++j) add(a, i, b, j);
    }
  }
  return choices;
}

std::string text_of(const Values& values, const Choice& choice) {
  const auto value = [&](Factor factor) { return values[factor][choice[factor]]; };
  const std::string framing =
      choice[order] == 0 ? value(length) + value(coding) : value(coding) + value(length);
  const std::string head = value(method) + " " + value(target) + " " + value(version) + "\n" +
                           value(host) + framing + value(other) + "\n";
  std::string text;
  for (const char c : head) text += c == '\n' ? value(line_end) : std::string(1, c);
  return text + value(body) + "GET /second HTTP/1.1\r\nHost: localhost\r\n\r\n";
}

}  // namespace

std::vector<std::string> ambiguous_requests() {
  const Values values = all_values();
  std::vector<std::string> texts;
  for (const Choice& choice : choices_of(values)) texts.push_back(text_of(values, choice));
  return texts;
}

}  // namespace tambour::test
