// Domain names: RFC 1035, section 3.1.
//
// A dns::Name is stored as it is sent: labels with their lengths, without compression. Labels may
// contain any byte; host names are a subset. Names are compared without regard to ASCII case, and
// keep the case that they were made with.
#pragma once

#include <compare>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/dns/error.h>

namespace tambour::dns::detail {
struct NameAccess;
}  // namespace tambour::dns::detail

#pragma GCC visibility push(default)

namespace tambour::dns {

/// A domain name, always absolute, as a value type. At most 255 bytes with the lengths of its
/// labels, which have at most 63 bytes.
class Name {
 public:
  static constexpr std::size_t bytes_max = 255;
  static constexpr std::size_t label_bytes_max = 63;

  /// The root, ".".
  Name() : wire_(1, '\0') {}

  /// Parses the presentation format: "example.org" or "example.org.", where `\.` is a dot within a
  /// label and `\032` a byte in decimal (RFC 4343, section 2.1). Bytes outside ASCII are accepted:
  /// DNS carries them, although no host name has them. Fails with dns::ErrorCode::bad_name if the
  /// text is empty, has an empty label or an unfinished escape, and with
  /// dns::ErrorCode::name_too_long.
  [[nodiscard]] static Result<Name> parse(std::string_view text);

  /// A name in wire form without compression. Fails with dns::ErrorCode::bad_name if `bytes` are
  /// not exactly one such name.
  [[nodiscard]] static Result<Name> from_wire(std::span<const std::byte> bytes);

  /// The name for PTR records of an IPv4 or IPv6 address, in network byte order: RFC 1035, section
  /// 3.5; RFC 3596, section 2.5. `address` has 4 or 16 bytes; aborts with a message otherwise.
  [[nodiscard]] static Name for_address(std::span<const std::byte> address);

  /// The presentation format with a trailing dot; bytes that are not printable are escaped.
  [[nodiscard]] std::string to_string() const;

  /// Labels with their lengths, and the zero byte of the root.
  [[nodiscard]] std::string_view wire() const noexcept { return wire_; }

  /// True for ".", which has no labels.
  [[nodiscard]] bool is_root() const noexcept { return wire_.size() == 1; }
  /// The number of labels without the root: 2 for "example.org.".
  [[nodiscard]] std::size_t label_count() const noexcept;
  /// The first label, unescaped; empty for the root.
  [[nodiscard]] std::string_view label() const noexcept {
    return std::string_view(wire_).substr(1, static_cast<unsigned char>(wire_[0]));
  }
  /// The name without its first label: "org." for "example.org.". The parent of the root is the
  /// root.
  [[nodiscard]] Name parent() const;
  /// True if this name is `zone` or below it.
  [[nodiscard]] bool is_within(const Name& zone) const noexcept;
  /// The name followed by the labels of `suffix`. Fails with dns::ErrorCode::name_too_long.
  [[nodiscard]] Result<Name> with_suffix(const Name& suffix) const;

  /// Without regard to ASCII case.
  [[nodiscard]] bool operator==(const Name& other) const noexcept;
  /// The canonical order of RFC 4034, section 6.1: by labels from the right.
  [[nodiscard]] std::weak_ordering operator<=>(const Name& other) const noexcept;
  [[nodiscard]] std::size_t hash() const noexcept;

 private:
  explicit Name(std::string wire) noexcept : wire_(std::move(wire)) {}
  friend struct detail::NameAccess;

  std::string wire_;
};

}  // namespace tambour::dns

template <>
struct std::hash<tambour::dns::Name> {
  std::size_t operator()(const tambour::dns::Name& name) const noexcept { return name.hash(); }
};

#pragma GCC visibility pop
