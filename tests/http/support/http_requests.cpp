// The requests for which curl is the oracle.
#include "http/support/http_requests.h"

#include <initializer_list>
#include <utility>

namespace tambour::test {
namespace {

using namespace std::string_literals;
using Requests = std::vector<HttpRequest>;

void add_ranges(Requests& all) {
  for (const char* range : {"0-0", "0-4", "5-", "-3", "-1", "-100", "9-9", "0-9", "0-999", "3-3"})
    all.push_back({.fields = {"Range: bytes="s + range}});
  for (const char* range : {"10-", "100-200"})
    all.push_back({.fields = {"Range: bytes="s + range}, .has_own_text = true});
  for (const char* ranges : {"0-0,4-5", "0-0,-1", "1-2,4-5,7-8", "0-0, 9-", "0-5,3-9"})
    all.push_back({.fields = {"Range: bytes="s + ranges}});
  all.push_back({.fields = {"Range: items=0-1"}});
  all.push_back({.fields = {"RANGE: bytes=2-3"}});
  all.push_back({.target = "/big.bin", .fields = {"Range: bytes=100000-200000"}});
  all.push_back({.target = "/big.bin", .fields = {"Range: bytes=-1"}});
  all.push_back({.target = "/big.bin", .fields = {"Range: bytes=0-0,65535-65536,299999-"}});
  all.push_back({.fields = {"Range: bytes=0-4", "If-Range: ETAG"}});
  all.push_back({.fields = {"Range: bytes=0-4", "If-Range: \"other\""}});
  all.push_back({.fields = {"Range: bytes=0-4", "If-Range: "s + modified_text}});
  all.push_back({.fields = {"Range: bytes=0-4", "If-Range: Tue, 31 Dec 2019 00:00:00 GMT"}});
  all.push_back({.curl = {"-C", "4"}});
  all.push_back({.target = "/big.bin", .curl = {"-C", "299990"}});
  all.push_back({.curl = {"-r", "2-4"}});
}

void add_conditions(Requests& all) {
  const std::string same = modified_text;
  const std::string earlier = "Tue, 31 Dec 2019 23:59:59 GMT";
  const std::string later = "Thu, 02 Jan 2020 00:00:00 GMT";
  for (const std::string& field :
       {"If-None-Match: ETAG"s, "If-None-Match: \"other\""s, "If-None-Match: *"s,
        "If-None-Match: \"other\", ETAG"s, "If-None-Match: W/ETAG"s, "If-None-Match: W/\"other\""s,
        "If-Modified-Since: " + same, "If-Modified-Since: " + later,
        "If-Modified-Since: " + earlier, "If-Modified-Since: yesterday"s,
        "If-Modified-Since: Wednesday, 01-Jan-20 00:00:00 GMT"s,
        "If-Modified-Since: Wed Jan  1 00:00:00 2020"s, "If-Unmodified-Since: " + same,
        "If-Unmodified-Since: " + later, "If-Match: ETAG"s, "If-Match: *"s,
        "If-Match: \"other\", ETAG"s})
    all.push_back({.fields = {field}});
  for (const std::string& field :
       {"If-Unmodified-Since: " + earlier, "If-Match: \"other\""s, "If-Match: W/ETAG"s})
    all.push_back({.fields = {field}, .has_own_text = true});
  all.push_back({.fields = {"If-None-Match: \"other\"", "If-Modified-Since: " + same}});
  all.push_back({.fields = {"If-None-Match: ETAG", "Range: bytes=0-4"}});
  all.push_back({.method = "HEAD", .fields = {"If-None-Match: ETAG"}});
  all.push_back({.curl = {"-z", same}});
  all.push_back({.curl = {"-z", earlier}});
}

void add_redirects(Requests& all) {
  for (const char* target : {"/301", "/302", "/303", "/307", "/308", "/chain", "/sub"}) {
    all.push_back({.target = target, .has_own_text = true});
    all.push_back({.target = target, .follows = true});
  }
  for (const char* target : {"/301", "/302", "/303"})
    all.push_back({.method = "POST", .target = target, .body = "x", .follows = true});
  for (const char* target : {"/307-put", "/308-put"})
    all.push_back({.method = "PUT", .target = target, .body = "x", .follows = true});
  all.push_back({.target = "/loop", .follows = true, .has_own_text = true});
  all.push_back({.method = "HEAD", .target = "/302", .follows = true});
}

void add_uploads(Requests& all) {
  const std::string kilobyte(1024, 'k');
  const std::string megabyte(1024 * 1024, 'm');
  const auto put = [&](std::string target, std::string body, std::vector<std::string> fields,
                       bool is_chunked = false) {
    all.push_back({.method = "PUT",
                   .target = "/put/" + target,
                   .fields = std::move(fields),
                   .body = std::move(body),
                   .is_chunked = is_chunked,
                   .has_own_text = true});
    all.push_back({.target = "/put/" + target});
  };
  put("new", kilobyte, {});
  put("new", "replaced", {});
  put("empty", "", {});
  put("chunked", kilobyte, {}, true);
  put("expect", kilobyte, {"Expect: 100-continue"});
  put("expect-chunked", kilobyte, {"Expect: 100-continue"}, true);
  put("large", megabyte, {});
  put("large-chunked", megabyte, {}, true);
  all.push_back({.method = "PUT",
                 .target = "/put/too-large",
                 .fields = {"Expect: 100-continue"},
                 .body = std::string(5 * 1024 * 1024, 'x'),
                 .has_own_text = true});
  all.push_back({.method = "DELETE", .target = "/put/new", .has_own_text = true});
  all.push_back({.method = "DELETE", .target = "/put/new", .has_own_text = true});
  all.push_back({.target = "/put/new", .has_own_text = true});
}

void add_codings(Requests& all) {
  for (const char* target : {"/text.txt", "/a.txt", "/big.bin", "/sub/"}) {
    all.push_back({.target = target, .is_coded = true, .curl = {"--compressed"}});
    all.push_back({.target = target, .is_coded = true});
  }
  for (const char* accepted : {"identity", "gzip;q=0", "x-other"})
    all.push_back(
        {.target = "/text.txt", .fields = {"Accept-Encoding: "s + accepted}, .is_coded = true});
  all.push_back(
      {.method = "HEAD", .target = "/text.txt", .is_coded = true, .curl = {"--compressed"}});
}

void add_cookies(Requests& all) {
  for (const char* target : {"/cookies", "/cookie-set", "/cookie-path", "/cookie-expired",
                             "/cookie-replaced", "/cookie-domain"}) {
    all.push_back({.target = target, .follows = true, .stores_cookies = true});
    all.push_back(
        {.target = target, .fields = {"Cookie: own=1"}, .follows = true, .stores_cookies = true});
  }
}

}  // namespace

// Not here, because nginx departs from RFC 9110: Range with HEAD (section 14.2: only GET), and
// If-Modified-Since with If-None-Match (section 13.1.3: ignored).
std::vector<HttpRequest> http_requests() {
  Requests all;
  for (const char* target : {"/a.txt", "/empty.html", "/big.bin", "/%61.txt", "/a.txt?x=y&z",
                             "/name%20with%20space", "/sub/", "/sub/index.html", "/204"}) {
    all.push_back({.target = target});
    all.push_back({.method = "HEAD", .target = target});
  }
  for (const char* target : {"/missing", "/sub/missing", "/a.txt/", "/a.txt/x"})
    all.push_back({.target = target, .has_own_text = true});
  for (const char* method : {"POST", "DELETE", "FOO"})
    all.push_back({.method = method, .has_own_text = true});
  add_ranges(all);
  add_conditions(all);
  add_redirects(all);
  add_uploads(all);
  add_codings(all);
  add_cookies(all);
  // Connections.
  all.push_back({.more = {"/sub/", "/big.bin"}});
  all.push_back({.curl = {"-0"}, .more = {"/sub/"}});
  all.push_back({.fields = {"Connection: keep-alive"}, .curl = {"-0"}, .more = {"/sub/"}});
  all.push_back({.fields = {"Connection: close"}, .curl = {"--http1.1"}, .more = {"/sub/"}});
  all.push_back({.target = "/missing", .has_own_text = true, .more = {"/301", "/missing"}});
  all.push_back({.curl = {"-0", "-H", "Host:"}});
  all.push_back({.has_own_text = true, .curl = {"-H", "Host:"}});
  return all;
}

}  // namespace tambour::test
