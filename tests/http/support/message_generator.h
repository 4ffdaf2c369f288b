// Messages of HTTP/1.1 from a random generator: mostly valid, with the mistakes that attacks use.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <random>
#include <string>

namespace tambour::test {

class MessageGenerator {
 public:
  explicit MessageGenerator(unsigned seed) : random_(seed) {}

  /// One to three requests, or responses.
  std::string messages(bool has_requests) {
    std::string text;
    for (std::size_t left = 1 + below(3); left > 0; --left)
      text += has_requests ? request() : response();
    if (below(3) == 0) mutate(text);
    return text;
  }

 private:
  std::size_t below(std::size_t end) { return random_() % end; }
  bool one_in(std::size_t count) { return below(count) == 0; }
  const char* one_of(std::initializer_list<const char*> choices) {
    return choices.begin()[below(choices.size())];
  }
  std::string line_end() { return one_in(60) ? one_of({"\n", "\r", "\r\r\n"}) : "\r\n"; }

  std::string request() {
    std::string text = one_of({"GET", "GET", "POST", "PUT", "HEAD", "DELETE", "OPTIONS"});
    if (one_in(20)) text = one_of({"CONNECT", "FOO", "G@T", "get", ""});
    text += one_in(40) ? one_of({"  ", "\t", ""}) : " ";
    text += one_of({"/", "/a/b", "/?q=1", "/%41", "/a?b?c"});
    if (one_in(20)) text += one_of({"#f", "*", " ", "\xC3\xA9", "%", "\x01", "a:80", "|", "<"});
    text += one_in(40) ? one_of({"  ", "\t", ""}) : " ";
    text += one_in(20) ? one_of({"HTTP/1.0", "HTTP/1.2", "HTTP/2.0", "HTTP/0.9", "http/1.1",
                                 "HTTP/1.1 ", "HTTP/01.1"})
                       : "HTTP/1.1";
    text += line_end();
    if (!one_in(30)) text += one_in(20) ? "Host: a b\r\n" : "Host: a\r\n";
    return text + rest(true);
  }

  std::string response() {
    std::string text =
        one_in(20) ? one_of({"HTTP/1.0", "HTTP/2.0", "ICY", "HTTP/1.1 "}) : "HTTP/1.1";
    text += one_in(40) ? "  " : " ";
    text += one_of({"200", "200", "404", "204", "304", "100", "101", "999"});
    if (one_in(30)) text += one_of({"0", "x", " "});
    text += one_in(20) ? "" : " ";
    text += one_of({"OK", "Not Found", ""});
    return text + line_end() + rest(false);
  }

  /// The fields, and a body that belongs to them.
  std::string rest(bool is_request) {
    std::string text;
    std::string body;
    for (std::size_t left = below(3); left > 0; --left) text += field();
    switch (below(4)) {
      case 0:
        body = "hello";
        text += length_field();
        break;
      case 1:
        text += coding_field();
        body = chunks();
        break;
      default:
        if (!is_request) text += "Content-Length: 0\r\n";
    }
    if (one_in(40)) text += one_in(2) ? "Content-Length: 5\r\n" : "Transfer-Encoding: chunked\r\n";
    for (std::size_t left = below(2); left > 0; --left) text += field();
    return text + line_end() + body;
  }

  std::string field() {
    std::string text = one_of({"X", "Accept", "Content-Type", "X-Y_Z"});
    if (one_in(30)) text += one_of({" ", "\t", " \t", "(", "\x01", "\xC3", "\r", "@", " b"});
    if (!one_in(60)) text += ':';
    text += one_of({" ", "", "\t", "  "});
    text += one_of({"a", "text/plain", "a, b", "\xC3\xA9", "\"q\"", "a:b", ""});
    if (one_in(30)) text += one_of({"\x01", "\x7F", "\r", "\r\n b", "\r\n\tb", "\r\n ", "\x0B"});
    text += one_of({"", "", " ", "\t"});
    if (one_in(15))
      text = one_of({"Connection: close", "Connection: keep-alive", "Connection: upgrade",
                     "Upgrade: x", " folded: x"});
    return text + line_end();
  }

  std::string length_field() {
    std::string text = one_of({"Content-Length: ", "content-length:", "Content-Length:\t"});
    text += one_in(8) ? one_of({"5, 5", "+5", "0x5", "5 5", "-5", "5a", "", "05", "6", "4",
                                "99999999999999999999", "5,6", "5;"})
                      : "5";
    if (one_in(20)) text.insert(14, " ");
    return text + line_end();
  }

  std::string coding_field() {
    std::string text = one_of({"Transfer-Encoding: ", "transfer-encoding:"});
    text += one_in(6) ? one_of({"Chunked", "gzip, chunked", "chunked, gzip", "identity", "xchunked",
                                "chunked, chunked", "chunked;a", ", chunked", "", "chunked,",
                                "\"chunked\"", "chunked chunked", "chunked\x0B"})
                      : "chunked";
    return text + line_end();
  }

  std::string chunks() {
    std::string text;
    for (std::size_t left = below(3); left > 0; --left) {
      text += one_in(10)
                  ? one_of({"005", "5 ", " 5", "0x5", "+5", "5h", "-5", "5\t", "fffffffffffffffff"})
                  : "5";
      if (one_in(6))
        text += one_of({";a", ";a=b", ";a=\"b c\"", " ; a", ";", ";a=", ";\x01", ";a b", ";a=b;c",
                        ";=", ";a=\"\\\"\"", "; a = b", ";a\xC3"});
      text += line_end() + "hello" + (one_in(30) ? one_of({"x", "", "\n", "\r"}) : "\r\n");
    }
    text += "0" + line_end();
    for (std::size_t left = below(2); left > 0; --left)
      text +=
          one_in(6)
              ? one_of({"Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n", "Host: b\r\n"})
              : field();
    return text + line_end();
  }

  void mutate(std::string& text) {
    const std::size_t at = below(text.size());
    switch (below(4)) {
      case 0:
        text[at] = static_cast<char>(below(256));
        break;
      case 1:
        text.erase(at, 1 + below(3));
        break;
      case 2:
        text.insert(at, 1, one_of({" ", "\r", "\n", "\t", ":", ",", ";", "0", "\x7F"})[0]);
        break;
      default:
        text.resize(at);
    }
  }

  std::mt19937 random_;
};

}  // namespace tambour::test
