// The names of hosts(5).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tambour/detail/namespaces.h>
#include <tambour/net/ip_address.h>

namespace tambour::dns::detail {

/// An index of the lines of a file. Lines are added in slices, so that a large file does not block
/// the loop.
class Hosts {
 public:
  /// Makes room for a typical file of this size.
  void reserve(std::size_t file_bytes);
  /// Adds the next lines: whole lines, in the order of the file.
  void add(std::string_view lines);

  /// Appends the addresses of a name, in the order of the file. `name` is in lower case, without a
  /// trailing dot.
  void find(std::string_view name, std::vector<IpAddress>& into) const;
  /// The names of the first line with this address; empty if there is none.
  [[nodiscard]] std::vector<std::string> names_of(const IpAddress& address) const;

  [[nodiscard]] std::size_t size() const noexcept { return names_.size(); }

 private:
  static constexpr std::uint32_t none = UINT32_MAX;
  struct Name {
    std::uint32_t hash;
    std::uint32_t next;  ///< In the same bucket, an earlier one.
    std::uint32_t text;  ///< Where the name begins in `text_`.
    std::uint32_t line;
    std::uint16_t size;
  };

  void add_line(std::string_view line);
  void add_name(std::string_view name);
  void rehash(std::size_t buckets);
  [[nodiscard]] std::string_view text_of(const Name& name) const noexcept {
    return std::string_view(text_).substr(name.text, name.size);
  }

  std::string text_;  ///< The names, in the case of the file.
  std::vector<IpAddress> lines_;
  std::vector<Name> names_;
  std::vector<std::uint32_t> buckets_;  ///< The last name of each; a power of two of them.
};

}  // namespace tambour::dns::detail
