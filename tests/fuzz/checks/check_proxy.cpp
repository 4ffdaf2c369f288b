// PROXY headers: arbitrary bytes, and headers that were written from values and then changed.
#include <cerrno>

#include <tambour/net/proxy_protocol.h>

#include "fuzz/bytes_checks.h"
#include "fuzz/input.h"

namespace tambour::fuzz {
namespace {

using Taken = Result<std::optional<ProxyHeader>>;

Taken take(std::string_view bytes, std::size_t& left) {
  Buffer buffer(bytes);
  auto taken = take_proxy_header(buffer);
  left = buffer.size();
  expect(buffer == bytes.substr(bytes.size() - left),
         "the buffer does not hold the end of the bytes");
  expect((taken && *taken) || left == bytes.size(),
         "bytes were removed although there is no header");
  if (!taken) {
    expect(taken.error() == system_error(EPROTO) || taken.error() == system_error(EBADMSG),
           "the error is neither EPROTO nor EBADMSG");
  }
  return taken;
}

/// Every parsed header can be serialized and parsed again.
void check_header(const ProxyHeader& header) {
  expect(header.source.has_value() == header.destination.has_value(),
         "a header has a source without a destination, or the reverse");
  Buffer written;
  expect(append_proxy_header(written, header).has_value(),
         "append_proxy_header() rejected a header that was read");
  const auto again = take_proxy_header(written);
  expect(again && *again && **again == header,
         "a header changed when it was written and read again");
  expect(written.empty(), "bytes remain after the header that was written");
  const auto value = header.find(ProxyField::tls);
  if (!value) return;
  const auto tls = ProxyTls::parse(*value);
  if (!tls)
    return expect(tls.error() == system_error(EBADMSG),
                  "the error of ProxyTls::parse() is not EBADMSG");
  const auto once_more = ProxyTls::parse(tls->to_value().value());
  expect(once_more && *once_more == *tls,
         "TLS information changed when it was written and read again");
}

/// Parses the bytes unchanged. The result must not depend on how they are divided.
void check_bytes(std::string_view bytes) {
  std::size_t left = 0;
  const Taken whole = take(bytes, left);
  if (whole && *whole) check_header(**whole);
  const Buffer pieces(bytes);
  Buffer slow;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    slow.append(pieces.slice(i, 1));
    const auto taken = take_proxy_header(slow);
    if (!taken) return expect(whole == taken, "the error depends on how the bytes are divided");
    if (!*taken) continue;
    expect(whole && *whole && **whole == **taken,
           "the header depends on how the bytes are divided");
    return expect(i + 1 + left == bytes.size(),
                  "the end of the header depends on how the bytes are divided");
  }
  expect(whole && !*whole, "a header was found only when all bytes arrived at once");
}

Endpoint endpoint_of(Input& input, std::size_t family) {
  const auto port = static_cast<std::uint16_t>(input.byte() * 257);
  if (family == 0) {
    return Endpoint::parse("10.0." + std::to_string(input.byte()) + ".1", port).value();
  }
  if (family == 1) {
    return Endpoint::parse("2001:db8::" + std::to_string(input.byte()), port).value();
  }
  const std::string name(input.below(106) + 1, 'n');
  return Endpoint::unix_name((input.flag() ? "@" : "/") + name.substr(1) + "x").value();
}

ProxyHeader header_of(Input& input) {
  ProxyHeader header{.version = input.flag() ? 1 : 2};
  const std::size_t family = input.below(header.version == 1 ? 3 : 5);
  if (family == 4) {
    header.is_local = true;
    return header;
  }
  if (family < (header.version == 1 ? 2U : 3U)) {
    header.source = endpoint_of(input, family);
    header.destination = endpoint_of(input, family);
  }
  if (header.version == 1) return header;
  if (header.source && input.flag()) header.socket_type = SOCK_DGRAM;
  header.has_checksum = input.flag();
  for (std::size_t left = input.below(4); left > 0; --left) {
    std::uint8_t type = input.byte();
    if (type == ProxyField::checksum || type == ProxyField::padding) type = ProxyField::tls;
    header.fields.push_back({.type = type, .value = std::string(input.below(129), 'v')});
  }
  return header;
}

/// Serializes a header derived from the bytes. Checks some of its prefixes, which must be
/// incomplete, and some flipped bits, chosen by the bytes;
/// tests/framing/proxy_header_test.cpp checks all.
void check_written(Input input) {
  const ProxyHeader header = header_of(input);
  Buffer buffer;
  expect(append_proxy_header(buffer, header).has_value(),
         "append_proxy_header() rejected a valid header");
  const std::string bytes = buffer.to_string();
  std::size_t left = 0;
  const auto same = take(bytes, left);
  expect(same && *same && **same == header && left == 0,
         "the header that was read differs from the one written");
  for (int i = 0; i < 8; ++i) {
    const std::size_t place = (input.byte() * 256U + input.byte()) % (8 * bytes.size());
    const auto part = take(std::string_view(bytes).substr(0, place / 8), left);
    expect(part && !*part, "a part of a header was not reported as incomplete");
    std::string flipped = bytes;
    flipped[place / 8] = static_cast<char>(flipped[place / 8] ^ 1 << place % 8);
    const auto other = take(flipped, left);
    if (other && *other) check_header(**other);
  }
}

}  // namespace

void check_proxy(Bytes bytes) {
  const std::string_view text = text_of(bytes);
  check_bytes(text);
  check_bytes("PROXY " + std::string(text));
  check_bytes(std::string("\r\n\r\n\0\r\nQUIT\n\x21", 13) + std::string(text));
  check_written(Input(bytes));
}

}  // namespace tambour::fuzz
