// Messages on which Tambour's parser and llhttp are compared.
#include "http/support/reference_messages.h"

#include <initializer_list>

namespace tambour::test {
namespace {

using namespace std::string_literals;

constexpr bool rejected = true;

void add_request_lines(std::vector<ReferenceMessage>& all) {
  for (const char* method :
       {"GET",        "HEAD",  "DELETE",     "OPTIONS",     "TRACE",    "PROPFIND", "COPY",
        "LOCK",       "MKCOL", "MOVE",       "SEARCH",      "UNLOCK",   "BIND",     "REPORT",
        "MERGE",      "PURGE", "MKACTIVITY", "CHECKOUT",    "M-SEARCH", "NOTIFY",   "SUBSCRIBE",
        "MKCALENDAR", "LINK",  "UNLINK",     "SOURCE",      "REBIND",   "UNBIND",   "ACL",
        "PATCH",      "POST",  "PUT",        "UNSUBSCRIBE", "PROPPATCH"})
    all.push_back({method + " /x HTTP/1.1\r\nHost: a\r\n\r\n"s, 1});
  for (const char* method : {"QUERY", "FOO", "get", "X"})  // llhttp knows a list.
    all.push_back({method + " /x HTTP/1.1\r\nHost: a\r\n\r\n"s, 1});
  for (const char* target :
       {"/", "//", "/a/b/c.html", "/?", "/?a=b&c=d", "/a?b?c", "/a%20b%2F", "/;p=1", "/a:b@c",
        "/?http://other/", "/~a/!$&'()*+,", "http://a/", "http://a:8080/x?y", "http://a",
        "http://[::1]:80/", "https://a/?b", "/?q=[1]{2}|3^"})
    all.push_back({"GET "s + target + " HTTP/1.1\r\nHost: a\r\n\r\n", 1});
  all.push_back({"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 1});
  all.push_back({"CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n", 1});
  all.push_back({"CONNECT a:443 HTTP/1.0\r\nUser-Agent: x\r\nProxy-Authorization: y\r\n\r\n", 1});
  for (const char* line : {"GET /x",
                           "GET  /x HTTP/1.1",
                           "GET /x  HTTP/1.1",
                           "GET /x HTTP/1.1 ",
                           "GET /x y HTTP/1.1",
                           "GET /x HTTP/11.1",
                           "GET /x HTTP/1",
                           "GET /x HTTP/1.01",
                           "GET /x HTTP/1.x",
                           "GET /x http/1.1",
                           "GET /x HTTPS/1.1",
                           "GET /x FTP/1.1",
                           "GET /x HTTP/3.0",
                           "GET /x HTTP/0.9",
                           "GET /x#y HTTP/1.1",
                           "GET /\xC3\xA9 HTTP/1.1",
                           "GET \x7F HTTP/1.1",
                           "GET x HTTP/1.1",
                           "GET * HTTP/1.1",
                           "CONNECT /x HTTP/1.1",
                           "CONNECT a:b HTTP/1.1",
                           "GET ftp://a/ HTTP/1.1",
                           "GET http://u@a/ HTTP/1.1",
                           "G=T /x HTTP/1.1",
                           " GET /x HTTP/1.1",
                           "GET\t/x HTTP/1.1",
                           "GET /x\tHTTP/1.1",
                           "GET / RTSP/1.0",
                           "HTTP/1.1 200 OK"})
    all.push_back({line + "\r\nHost: a\r\n\r\n"s, 0, rejected});
}

void add_request_fields(std::vector<ReferenceMessage>& all) {
  const auto add = [&](const std::string& fields, bool is_rejected = false) {
    all.push_back(
        {"GET / HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n", is_rejected ? 0U : 1U, is_rejected});
  };
  for (const char* fields : {"",
                             "User-Agent: curl/7.88.1\r\nAccept: */*\r\n",
                             "X:y\r\n",
                             "X:\ty \t\r\n",
                             "X:\r\n",
                             "X: \r\n",
                             "X: a b  c\r\n",
                             "X: \"q, r\"\r\n",
                             "X: y\r\nX: z\r\n",
                             "X: \xE9\xFF\r\n",
                             "x!#$%&'*+-.^_`|~: y\r\n",
                             "X: a:b:c\r\n",
                             "Cookie: a=b; c=d\r\n",
                             "Connection: close\r\n",
                             "Connection: keep-alive\r\n",
                             "Connection: Close, x\r\n",
                             "Connection: x,keep-alive\r\n",
                             "Connection: close\r\nConnection: keep-alive\r\n",
                             "Connection: xclose\r\n",
                             "Connection:close \r\n",
                             "Proxy-Connection: close\r\n",
                             "Upgrade: x\r\n",
                             "Connection: Upgrade\r\n",
                             "Expect: 100-continue\r\n",
                             "Content-Length: 0\r\n",
                             "Transfer-Encodings: x\r\n",
                             "Content-Lengths: 5\r\n",
                             "Content-Length2: 5\r\n"})
    add(fields);
  for (const char* fields : {"X : y\r\n",        "X\t: y\r\n",      " X: y\r\n",
                             "\tX: y\r\n",       "X\r\n",           ": y\r\n",
                             "X y: z\r\n",       "X(: y\r\n",       "X\x01: y\r\n",
                             "X\xC3\xA9: y\r\n", "X: \x01\r\n",     "X: a\x7F\r\n",
                             "X: y\r\n z\r\n",   "X: y\r\n\tz\r\n", "X:\r\n z\r\n",
                             "X: y\n",           "X: y\r",          "X: y\rZ: w\r\n",
                             "X: y\nZ: w\r\n",   "X: y\r\r\n",      "X: y\r\n\nZ: w\r\n",
                             "X[]: y\r\n",       "Host: b\r\n"})
    add(fields, rejected);
  add("X: \0\r\n"s, rejected);
  add("X\0: y\r\n"s, rejected);
  all.push_back({"GET / HTTP/1.0\r\n\r\n", 1});
  all.push_back({"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET / HTTP/1.0\r\n\r\n", 2});
  all.push_back({"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 1});
  all.push_back({"GET / HTTP/1.1\r\n\r\n", 0, rejected});
}

void add_request_bodies(std::vector<ReferenceMessage>& all) {
  const std::string post = "POST / HTTP/1.1\r\nHost: a\r\n";
  const std::string next = "GET /next HTTP/1.1\r\nHost: a\r\n\r\n";
  for (const char* length : {"5", "005", "5 ", "\t5"})
    all.push_back({post + "Content-Length: " + length + "\r\n\r\nhello" + next, 2});
  all.push_back({post + "Content-Length: 5\r\nConnection: close\r\n\r\nhello", 1});
  all.push_back({post + "Content-Length: 5\r\n\r\nhel", 0});
  all.push_back({post + "\r\n" + next, 2});
  for (const char* fields : {"Content-Length: 4 2",
                             "Content-Length: 5 x",
                             "Content-Length: -5",
                             "Content-Length: +5",
                             "Content-Length: 5,5",
                             "Content-Length:",
                             "Content-Length: 0x5",
                             "Content-Length: 5.0",
                             "Content-Length: 99999999999999999999",
                             "Content-Length: 5\r\nContent-Length: 5",
                             "Content-Length: 5\r\nContent-Length: 6",
                             "Content-Length: 5\r\nTransfer-Encoding: chunked",
                             "Transfer-Encoding: chunked\r\nContent-Length: 5",
                             "Content-Length : 5",
                             "Content-Length\t: 5",
                             "Content-Length: 5\r\n 0",
                             "Transfer-Encoding : chunked",
                             "Transfer-Encoding: chunked, deflate",
                             "Transfer-Encoding: deflate",
                             "Transfer-Encoding: xchunked",
                             "Transfer-Encoding: chunked chunked",
                             "Transfer-Encoding: identity",
                             "Transfer-Encoding: chunked\r\n , x",
                             "Transfer-Encoding: deflate, chunked",
                             "Transfer-Encoding: deflate\r\nTransfer-Encoding: x",
                             "Transfer-Encoding: \"chunked\"",
                             "Transfer-Encoding: chunked;q=1",
                             "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"})
    all.push_back({post + fields + "\r\n\r\n5\r\nhello\r\n0\r\n\r\n", 0, rejected});
  const std::string chunked = post + "Transfer-Encoding: chunked\r\n\r\n";
  for (const char* body :
       {"0\r\n\r\n", "5\r\nhello\r\n0\r\n\r\n", "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n",
        "a\r\n0123456789\r\n0\r\n\r\n", "A\r\n0123456789\r\n0\r\n\r\n",
        "00005\r\nhello\r\n000\r\n\r\n", "5;a\r\nhello\r\n0;b\r\n\r\n",
        "5;a=b\r\nhello\r\n0\r\n\r\n", "5;a=b;c=d\r\nhello\r\n0\r\n\r\n",
        "5;a=\"b;c\"\r\nhello\r\n0\r\n\r\n", "5;a=\"b \\\" c\"\r\nhello\r\n0\r\n\r\n",
        "5 ;a\r\nhello\r\n0\r\n\r\n", "5;a = b\r\nhello\r\n0\r\n\r\n",
        "5\r\nhello\r\n0\r\nX: y\r\nZ: w\r\n\r\n", "0\r\nX: y\r\n\r\n"})
    all.push_back({chunked + body + next, 2});
  for (const char* body : {"5\nhello\r\n0\r\n\r\n",
                           "5\r\nhello\n0\r\n\r\n",
                           "5\r\nhello\r\n0\n\r\n",
                           "5\r\nhello\r\n0\r\n\n",
                           "5\rhello\r\n0\r\n\r\n",
                           "5\r\nhello0\r\n\r\n",
                           "5\r\nhelloworld\r\n0\r\n\r\n",
                           "g\r\n\r\n",
                           "-1\r\n\r\n",
                           "0x5\r\nhello\r\n0\r\n\r\n",
                           "\r\nhello",
                           "5 x\r\nhello\r\n0\r\n\r\n",
                           "5 \r\nhello\r\n0\r\n\r\n",
                           " 5\r\nhello\r\n0\r\n\r\n",
                           "5;\x01\r\nhello\r\n0\r\n\r\n",
                           "5;a=\"b\r\nhello\r\n0\r\n\r\n",
                           "5;a=b c\r\nhello\r\n0\r\n\r\n",
                           "5;a\nb\r\nhello\r\n0\r\n\r\n",
                           "5;\r\nhello\r\n0\r\n\r\n",
                           "fffffffffffffffff\r\n",
                           "1fffffffffffffff\r\n",
                           "0\r\nX : y\r\n\r\n",
                           "0\r\n X: y\r\n\r\n",
                           "0\r\nX: y\r\n z\r\n\r\n",
                           "0\r\nContent-Length: 5\r\n\r\n",
                           "0\r\nTransfer-Encoding: chunked\r\n\r\n"})
    all.push_back({chunked + body, 0, rejected});
  all.push_back({chunked + "5\r\nhello\r\n", 0});
  all.push_back({chunked + "5\r\nhel", 0});
}

void add_pipelines(std::vector<ReferenceMessage>& all) {
  const std::string get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  const std::string post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
  const std::string last = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
  all.push_back({get + get + get, 3});
  all.push_back({post + get + post, 3});
  all.push_back({get + "\r\n" + post, 2});
  all.push_back({get + last, 2});
  all.push_back({get + "GET / HTTP/1.1\r\nHost : a\r\n\r\n", 1, rejected});
  all.push_back({post + "d" + get, 2});  // The method is "dGET".
  all.push_back({get + "\r\n\r\n" + get, 1, rejected});
  all.push_back({get.substr(0, 10), 0});
  all.push_back({get + get.substr(0, get.size() - 1), 1});
  all.push_back({"", 0});
}

}  // namespace

std::vector<ReferenceMessage> reference_requests() {
  std::vector<ReferenceMessage> all;
  add_request_lines(all);
  add_request_fields(all);
  add_request_bodies(all);
  add_pipelines(all);
  return all;
}

std::vector<ReferenceMessage> reference_responses() {
  std::vector<ReferenceMessage> all;
  const std::string ok = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";
  for (const char* line :
       {"HTTP/1.1 200 OK", "HTTP/1.1 404 Not Found", "HTTP/1.1 299 ", "HTTP/1.1 500 a:b \xE9\tc",
        "HTTP/1.1 999 x", "HTTP/1.0 301 Moved", "HTTP/1.1 226 IM Used"})
    all.push_back({line + "\r\nContent-Length: 3\r\n\r\nabc"s, 1});
  for (const char* line :
       {"HTTP/1.1 20 OK", "HTTP/1.1 2000 OK", "HTTP/1.1 2x0 OK", "HTTP/1.1  200 OK",
        "HTTP/1.1\t200 OK", "HTTP/1.1 200\tOK", "HTTP/1.1 200", "HTTP/1.1 099 OK", "HTTP/1.1",
        "HTTP/2.0 200 OK", "HTTP/1.x 200 OK", "http/1.1 200 OK", "HTTP /1.1 200 OK", "ICY 200 OK",
        "HTTP/1.1 200 O\x01K", "HTTP/1.1 200 OK\r", "HTTP/1.1 200 OK\nX: y", "GET / HTTP/1.1",
        " HTTP/1.1 200 OK"})
    all.push_back({line + "\r\nContent-Length: 3\r\n\r\nabc"s, 0, rejected});
  for (const char* status : {"204 No Content", "304 Not Modified", "100 Continue"})
    all.push_back({"HTTP/1.1 "s + status + "\r\nX: y\r\n\r\n" + ok, 2});
  all.push_back({"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n" + ok, 2});
  all.push_back({"HTTP/1.1 200 OK\r\n\r\nuntil the end", 1});
  all.push_back({"HTTP/1.0 200 OK\r\nConnection: close\r\n\r\nuntil the end", 1});
  all.push_back({"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n\r\nuntil the end" + ok, 1});
  all.push_back({ok + ok + ok, 3});
  all.push_back({"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" + ok, 2});
  all.push_back({"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", 0});
  all.push_back({"HTTP/1.1 200 OK\r\nX: y", 0});
  const std::string chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const char* body : {"0\r\n\r\n", "5\r\nhello\r\n0\r\n\r\n", "5;a=b\r\nhello\r\n0\r\n\r\n",
                           "5\r\nhello\r\n0\r\nX: y\r\n\r\n"})
    all.push_back({chunked + body + ok, 2});
  for (const char* body :
       {"5\nhello\r\n0\r\n\r\n", "5\r\nhello0\r\n\r\n", "x\r\n", "5\r\nhello\r\n0\r\nX\r\n\r\n"})
    all.push_back({chunked + body, 0, rejected});
  for (const char* fields :
       {"Content-Length: 3\r\nContent-Length: 3", "Content-Length: 3\r\nContent-Length: 4",
        "Content-Length: 3,3", "Content-Length: x", "Content-Length: -3",
        "Content-Length: 3\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\n x",
        "Transfer-Encoding: gzip", "Transfer-Encoding: chunked, gzip", "X : y", "X", " X: y",
        "X: y\r\n z", "X: \x01", "X\nZ: w", "X: y\rz"})
    all.push_back({"HTTP/1.1 200 OK\r\n"s + fields + "\r\n\r\nabc", 0, rejected});
  all.push_back({"", 0});
  return all;
}

}  // namespace tambour::test
