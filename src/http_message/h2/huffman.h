// The Huffman code of HPACK: RFC 7541, section 5.2 and appendix B.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string_view>

#include <tambour/detail/namespaces.h>

#include "http_message/h2/violation.h"

namespace tambour::http::detail::h2 {

/// The shortest code has 5 bits. decode_huffman() may write one more byte than it returns.
[[nodiscard]] constexpr std::size_t decoded_size_max(std::size_t coded_size) noexcept {
  return coded_size * 8 / 5 + 1;
}

/// Writes the decoded text to `to`, which has room for decoded_size_max(coded.size()) bytes, and
/// returns its size. Fails with Violation::bad_huffman_code if the text contains the code of EOS,
/// and with bad_huffman_padding if it does not end with less than 8 bits of padding that are all 1.
[[nodiscard]] std::expected<std::size_t, Violation> decode_huffman(std::string_view coded,
                                                                   char* to) noexcept;

/// Writes the coded text to `to` if it is shorter than `text`, and returns its end. Returns null if
/// it is not; the content of `to` is then unspecified. `to` has room for text.size() bytes.
[[nodiscard]] char* encode_huffman(std::string_view text, char* to) noexcept;

}  // namespace tambour::http::detail::h2
