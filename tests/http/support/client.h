// Reads responses in tests.
#pragma once

#include <string>
#include <utility>

#include <tambour/tambour.h>

#include "http_message/h1/parser.h"

namespace tambour::test {

struct Reply {
  http::Status status = http::Status::ok;
  http::Fields fields{};
  std::string body{};
  bool is_persistent = false;
};

/// Reads one response to a request with `method`. Bytes after it stay in `in`.
inline Task<Result<Reply>> read_reply(Stream& stream, Buffer& in,
                                      http::Method method = http::Method::get) {
  http::detail::h1::ResponseParser parser({}, http::detail::h1::ParsingMode::strict);
  Buffer body;
  bool has_head = false;
  for (;;) {
    if (!has_head) {
      const auto parsed = parser.parse_head(in, method);
      if (!parsed) co_return std::unexpected(parsed.error());
      has_head = *parsed;
    }
    if (has_head) {
      const auto read = parser.read_body(in, body, SIZE_MAX);
      if (!read) co_return std::unexpected(read.error());
    }
    if (parser.is_complete()) break;
    const auto got = co_await stream.read(in);
    if (!got) co_return std::unexpected(got.error());
    if (*got > 0) continue;
    if (const auto ended = parser.end_input(in); !ended) co_return std::unexpected(ended.error());
  }
  co_return Reply{.status = parser.head().status,
                  .fields = parser.head().fields,
                  .body = body.to_string(),
                  .is_persistent = parser.is_persistent()};
}

}  // namespace tambour::test
