// Lists of addresses: a client cannot choose its address by what it sends before the proxy appends.
#include <optional>
#include <string>

#include <tambour/tambour.h>

#include "fuzz/bytes_checks.h"
#include "http/errors/escape.h"
#include "http/middleware/forwarded.h"
#include "http_message/ws/utf8.h"

namespace tambour::fuzz {
namespace {

/// The client if a proxy has appended 192.0.2.7 to `sent`, in the same field or in one of its own.
std::optional<IpAddress> found(std::string_view sent, http::ForwardingField field, bool is_apart) {
  const bool is_forwarded = field == http::ForwardingField::forwarded;
  const std::string name = is_forwarded ? "Forwarded" : "X-Forwarded-For";
  const std::string appended = is_forwarded ? "for=192.0.2.7;by=10.0.0.1" : "192.0.2.7";
  http::Fields fields;
  if (is_apart) {
    if (!fields.add(name, sent)) return std::nullopt;
    or_throw(fields.add(name, appended));
  } else if (!fields.add(name, std::string(sent) + ", " + appended)) {
    return std::nullopt;
  }
  http::TrustedPeers proxies;
  proxies.networks.push_back(or_throw(IpNetwork::parse("10.0.0.0/8")));
  return http::find_client(fields, field, proxies);
}

void check_escapes(std::string_view text) {
  std::string json;
  http::append_json_string(json, text);
  expect(http::detail::ws::is_utf8(json), "JSON is not UTF-8");
  expect(json.front() == '"' && json.back() == '"' && json.size() >= 2, "JSON has no quotes");
  for (std::size_t i = 1; i + 1 < json.size(); ++i) {
    expect(static_cast<unsigned char>(json[i]) >= 0x20, "JSON has a control character");
    expect(json[i] != '"', "JSON ends early");
    if (json[i] == '\\') ++i;
    expect(i + 1 < json.size(), "JSON ends within an escape");
  }
  std::string html;
  http::append_html_text(html, text);
  expect(http::detail::ws::is_utf8(html), "HTML is not UTF-8");
  expect(html.find_first_of("<>") == std::string::npos, "HTML has an element");
}

}  // namespace

void check_forwarded(Bytes bytes) {
  const std::string_view text = text_of(bytes);
  const IpAddress appended = or_throw(IpAddress::parse("192.0.2.7"));
  for (const bool is_apart : {false, true}) {
    const auto listed = found(text, http::ForwardingField::x_forwarded_for, is_apart);
    const auto forwarded = found(text, http::ForwardingField::forwarded, is_apart);
    expect(!listed || *listed == appended, "X-Forwarded-For is forged");
    expect(!forwarded || *forwarded == appended, "Forwarded is forged");
  }
  check_escapes(text);
}

}  // namespace tambour::fuzz
