// HPACK of libnghttp2, with which tests compare the library's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "http_message/support/hpack.h"

namespace tambour::test {

/// False if the tests were built without libnghttp2. Then the classes must not be used.
[[nodiscard]] bool has_reference_hpack() noexcept;

class ReferenceDecoder {
 public:
  ReferenceDecoder();
  ~ReferenceDecoder();
  ReferenceDecoder(const ReferenceDecoder&) = delete;
  ReferenceDecoder& operator=(const ReferenceDecoder&) = delete;

  void set_table_size_max(std::uint32_t bytes);
  /// Returns nullopt if the block is malformed; the decoder must not be used any more then.
  [[nodiscard]] std::optional<FieldList> decode(std::string_view block);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

class ReferenceEncoder {
 public:
  ReferenceEncoder();
  ~ReferenceEncoder();
  ReferenceEncoder(const ReferenceEncoder&) = delete;
  ReferenceEncoder& operator=(const ReferenceEncoder&) = delete;

  void set_table_size_max(std::uint32_t bytes);
  [[nodiscard]] std::string encode(const FieldList& list);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tambour::test
