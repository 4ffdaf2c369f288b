// Counts instructions of HPACK, of the library and of libnghttp2:
//
//   valgrind --tool=callgrind --collect-atstart=no --toggle-collect="*measured*"
//     hpack_cost WORK MESSAGE COUNT [first]
//
// The messages are sent on one connection, and the second half of them is measured; with `first`,
// each of them is the first one of its connection. It is no test: the target must be named.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <nghttp2/nghttp2.h>

#include "http_message/h2/head_writer.h"
#include "http_message/h2/message.h"
#include "http_message/support/hpack.h"

namespace tambour {
namespace {

using test::FieldList;

const std::map<std::string, FieldList> messages = {
    {"curl",
     {{":method", "GET"},
      {":scheme", "https"},
      {":authority", "www.example.com"},
      {":path", "/"},
      {"user-agent", "curl/8.5.0"},
      {"accept", "*/*"}}},
    {"chromium",
     {{":method", "GET"},
      {":authority", "www.example.com"},
      {":scheme", "https"},
      {":path", "/"},
      {"sec-ch-ua", R"("Chromium";v="130", "Google Chrome";v="130", "Not?A_Brand";v="99")"},
      {"sec-ch-ua-mobile", "?0"},
      {"sec-ch-ua-platform", R"("Linux")"},
      {"user-agent",
       "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
       "Chrome/130.0.0.0 Safari/537.36"},
      {"accept",
       "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,"
       "image/apng,*/*;q=0.8"},
      {"sec-fetch-site", "same-origin"},
      {"sec-fetch-mode", "no-cors"},
      {"sec-fetch-dest", "script"},
      {"referer", "https://www.example.com/"},
      {"accept-encoding", "gzip, deflate, br, zstd"},
      {"accept-language", "en-US,en;q=0.9"},
      {"cookie", "session=0123456789abcdef0123456789abcdef; theme=dark; lang=en"},
      {"priority", "u=1, i"}}},
    {"response",
     {{":status", "200"},
      {"date", "Thu, 26 Nov 2026 22:00:00 GMT"},
      {"server", "tambour"},
      {"content-type", "text/html; charset=utf-8"},
      {"cache-control", "max-age=3600"},
      {"etag", ""},
      {"last-modified", "Mon, 23 Nov 2026 10:00:00 GMT"},
      {"vary", "accept-encoding"},
      {"content-length", ""}}}};

/// Path, ETag and Content-Length are others in each message.
FieldList changed(FieldList list, unsigned index) {
  const std::string number = std::to_string(100'000 + index * 7919 % 900'000);
  for (auto& [name, value] : list) {
    if (name == ":path") value = "/assets/item-" + number + ".js";
    if (name == "etag") value = "\"5f3a2c1d-" + number + '"';
    if (name == "content-length") value = number;
  }
  return list;
}

/// What one connection has.
struct Connection {
  Connection() {
    if (nghttp2_hd_deflate_new(&deflater, 4096) != 0 || nghttp2_hd_inflate_new(&inflater) != 0)
      std::abort();
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() {
    nghttp2_hd_deflate_del(deflater);
    nghttp2_hd_inflate_del(inflater);
  }

  http::detail::h2::HpackEncoder encoder;
  http::detail::h2::HpackDecoder decoder;
  nghttp2_hd_deflater* deflater = nullptr;
  nghttp2_hd_inflater* inflater = nullptr;
};

struct Message {
  FieldList list;
  std::string block;
  std::vector<nghttp2_nv> fields;
};

std::array<char, 16384> output;
http::Fields decoded;
std::size_t total = 0;

using Work = void (*)(Connection& connection, const Message& message);

void encode(Connection& connection, const Message& message) {
  char* to = connection.encoder.begin(output.data());
  for (const auto& [name, value] : message.list) {
    const std::uint32_t hash = http::hash_of_name(name);
    to = connection.encoder.encode(to, name, hash, http::detail::h2::find_known_name(name, hash),
                                   value);
  }
  total += static_cast<std::size_t>(to - output.data());
}

void encode_by_nghttp2(Connection& connection, const Message& message) {
  total += static_cast<std::size_t>(
      nghttp2_hd_deflate_hd(connection.deflater, reinterpret_cast<std::uint8_t*>(output.data()),
                            output.size(), message.fields.data(), message.fields.size()));
}

/// Into Fields, which includes the checks of each field.
void decode(Connection& connection, const Message& message) {
  static constexpr http::detail::h2::FieldLimits limits;
  http::detail::h2::FieldSection section(limits);
  if (!connection.decoder.decode(message.block, section)) std::abort();
  section.move_fields_to(decoded);
  total += decoded.size();
}

/// Without storing the fields.
void decode_by_nghttp2(Connection& connection, const Message& message) {
  const auto* at = reinterpret_cast<const std::uint8_t*>(message.block.data());
  std::size_t left = message.block.size();
  int flags = 0;
  while ((flags & NGHTTP2_HD_INFLATE_FINAL) == 0) {
    nghttp2_nv field{};
    const auto used = nghttp2_hd_inflate_hd2(connection.inflater, &field, &flags, at, left, 1);
    if (used < 0) std::abort();
    at += used;
    left -= static_cast<std::size_t>(used);
    total += field.valuelen;
  }
  nghttp2_hd_inflate_end_headers(connection.inflater);
}

const std::map<std::string, Work> works = {{"encode", encode},
                                           {"encode-nghttp2", encode_by_nghttp2},
                                           {"decode", decode},
                                           {"decode-nghttp2", decode_by_nghttp2}};

[[gnu::noinline]] void measured(Work work, Connection& connection, const Message& message) {
  work(connection, message);
}

Message make(const FieldList& list, nghttp2_hd_deflater* deflater) {
  Message message{.list = list, .block = std::string(16384, '\0'), .fields = {}};
  const auto bytes = [](const std::string& text) {
    return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));
  };
  for (const auto& [name, value] : message.list)
    message.fields.push_back({bytes(name), bytes(value), name.size(), value.size(),
                              NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE});
  message.block.resize(static_cast<std::size_t>(
      nghttp2_hd_deflate_hd(deflater, bytes(message.block), message.block.size(),
                            message.fields.data(), message.fields.size())));
  return message;
}

int run(const std::string& work, const std::string& kind, unsigned count, bool is_first) {
  std::vector<std::unique_ptr<Connection>> connections;
  Connection sender;
  for (unsigned i = 0; i < count; ++i) {
    if (is_first || connections.empty()) connections.push_back(std::make_unique<Connection>());
    Connection first;
    const FieldList list = changed(messages.at(kind), i);
    const Message message = make(list, is_first ? first.deflater : sender.deflater);
    if (is_first || i >= count / 2) {
      measured(works.at(work), *connections.back(), message);
    } else {
      works.at(work)(*connections.back(), message);
    }
  }
  std::printf("%u messages measured, %zu\n", is_first ? count : count - count / 2, total);
  return 0;
}

}  // namespace
}  // namespace tambour

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  return tambour::run(argv[1], argv[2], static_cast<unsigned>(std::atoi(argv[3])), argc > 4);
}
