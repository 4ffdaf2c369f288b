// Checks of the parsers of untrusted input, and of buffers, against simple models. Each check takes
// one input, from libFuzzer or from the tests.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tambour::fuzz {

using Bytes = std::span<const std::uint8_t>;

/// Thrown by a check if the library and the model disagree.
struct Wrong {
  std::string text;
};

inline void expect(bool holds, std::string_view text) {
  if (!holds) throw Wrong{std::string(text)};
}

inline std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Calls on four buffers that share blocks, compared with strings.
void check_buffer(Bytes bytes);
/// Parses text and socket addresses as endpoints, compared with inet_pton(3).
void check_endpoint(Bytes bytes);
/// Messages in a stream, divided in several ways, compared with a simple parser of the whole
/// stream.
void check_codec(Bytes bytes);
/// PROXY headers: parses the bytes unchanged, and headers serialized from values derived from the
/// bytes.
void check_proxy(Bytes bytes);
/// DNS messages, compared with a plain walk over their structure and with their round trip; and the
/// text of names.
void check_dns(Bytes bytes);
/// Replies as the libevent drop-in reads them, compared with the records of DNS messages.
void check_evdns(Bytes bytes);
/// URLs: the components compared with a plain division of the text; references, normal forms.
void check_url(Bytes bytes);
/// Messages of HTTP/1.1, divided in several ways, compared with a plain parser of the whole text.
void check_http(Bytes bytes);
/// Field blocks of HTTP/2, compared with libnghttp2; lists of fields and texts that are encoded and
/// decoded again.
void check_hpack(Bytes bytes);
/// Frames of HTTP/2, divided in several ways, compared with a plain parser of the whole text; and
/// frames that are written and read again.
void check_h2_frames(Bytes bytes);
/// What a client sends to an HTTP server in a simulation: each request gets one complete response,
/// and the connection ends.
void check_http_server(Bytes bytes);
/// Content codings: arbitrary bytes in each decoder, and texts that are encoded and decoded again.
void check_coding(Bytes bytes);
/// Cookies: arbitrary fields, read and written again, and in a jar.
void check_cookie(Bytes bytes);
/// Lists of addresses that proxies append to: a client cannot choose its address. And text that is
/// escaped for JSON and HTML.
void check_forwarded(Bytes bytes);
/// Forms of multipart/form-data, divided in several ways, compared with a plain search for the
/// boundary; parameters of fields, and names of files.
void check_multipart(Bytes bytes);
/// WebSocket frames, divided in several ways, compared with a plain parser of the whole text;
/// UTF-8, handshakes and compressed messages.
void check_websocket(Bytes bytes);
/// Event streams, divided in several ways, compared with a plain parser of the whole text.
void check_event_stream(Bytes bytes);

}  // namespace tambour::fuzz
