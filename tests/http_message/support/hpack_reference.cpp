// Wraps libnghttp2.
#include "http_message/support/hpack_reference.h"

#include <cstdlib>

#ifdef TAMBOUR_HAS_NGHTTP2
#include <nghttp2/nghttp2.h>
#endif

namespace tambour::test {

#ifdef TAMBOUR_HAS_NGHTTP2

namespace {

std::uint8_t* bytes_of(const std::string& text) {
  return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));
}

std::string text_of(const std::uint8_t* bytes, std::size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

}  // namespace

bool has_reference_hpack() noexcept { return true; }

struct ReferenceDecoder::Impl {
  nghttp2_hd_inflater* inflater = nullptr;
};

ReferenceDecoder::ReferenceDecoder() : impl_(std::make_unique<Impl>()) {
  if (nghttp2_hd_inflate_new(&impl_->inflater) != 0) std::abort();
}
ReferenceDecoder::~ReferenceDecoder() { nghttp2_hd_inflate_del(impl_->inflater); }

void ReferenceDecoder::set_table_size_max(std::uint32_t bytes) {
  if (nghttp2_hd_inflate_change_table_size(impl_->inflater, bytes) != 0) std::abort();
}

std::optional<FieldList> ReferenceDecoder::decode(std::string_view block) {
  FieldList list;
  const auto* at = reinterpret_cast<const std::uint8_t*>(block.data());
  std::size_t left = block.size();
  while (true) {
    nghttp2_nv field{};
    int flags = 0;
    const auto used = nghttp2_hd_inflate_hd2(impl_->inflater, &field, &flags, at, left, 1);
    if (used < 0) return std::nullopt;
    at += used;
    left -= static_cast<std::size_t>(used);
    if ((flags & NGHTTP2_HD_INFLATE_EMIT) != 0)
      list.emplace_back(text_of(field.name, field.namelen), text_of(field.value, field.valuelen));
    if ((flags & NGHTTP2_HD_INFLATE_FINAL) == 0) continue;
    nghttp2_hd_inflate_end_headers(impl_->inflater);
    return list;
  }
}

struct ReferenceEncoder::Impl {
  nghttp2_hd_deflater* deflater = nullptr;
};

ReferenceEncoder::ReferenceEncoder() : impl_(std::make_unique<Impl>()) {
  if (nghttp2_hd_deflate_new(&impl_->deflater, 4096) != 0) std::abort();
}
ReferenceEncoder::~ReferenceEncoder() { nghttp2_hd_deflate_del(impl_->deflater); }

void ReferenceEncoder::set_table_size_max(std::uint32_t bytes) {
  if (nghttp2_hd_deflate_change_table_size(impl_->deflater, bytes) != 0) std::abort();
}

std::string ReferenceEncoder::encode(const FieldList& list) {
  std::vector<nghttp2_nv> fields;
  for (const auto& [name, value] : list)
    fields.push_back({bytes_of(name), bytes_of(value), name.size(), value.size(), 0});
  std::string block(nghttp2_hd_deflate_bound(impl_->deflater, fields.data(), fields.size()), '\0');
  const auto size = nghttp2_hd_deflate_hd(impl_->deflater, bytes_of(block), block.size(),
                                          fields.data(), fields.size());
  if (size < 0) std::abort();
  block.resize(static_cast<std::size_t>(size));
  return block;
}

#else

bool has_reference_hpack() noexcept { return false; }

struct ReferenceDecoder::Impl {};
ReferenceDecoder::ReferenceDecoder() { std::abort(); }
ReferenceDecoder::~ReferenceDecoder() = default;
void ReferenceDecoder::set_table_size_max(std::uint32_t) {}
std::optional<FieldList> ReferenceDecoder::decode(std::string_view) { return std::nullopt; }

struct ReferenceEncoder::Impl {};
ReferenceEncoder::ReferenceEncoder() { std::abort(); }
ReferenceEncoder::~ReferenceEncoder() = default;
void ReferenceEncoder::set_table_size_max(std::uint32_t) {}
std::string ReferenceEncoder::encode(const FieldList&) { return {}; }

#endif

}  // namespace tambour::test
