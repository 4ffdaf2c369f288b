// The fields (headers and trailers) of HTTP messages.
//
// A list of names and values in the order in which they were received or added. Names are compared
// without regard to case. A name or value that would end the field, and so inject another one,
// cannot be added. Changing, moving or destroying the list invalidates the views into it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/error.h>

namespace tambour::http::detail {
class FieldWriter;
}  // namespace tambour::http::detail

#pragma GCC visibility push(default)

namespace tambour::http {

/// The name and value of one field, as views into a Fields.
struct Field {
  std::string_view name{};
  std::string_view value{};

  bool operator==(const Field&) const = default;
};

/// A list of fields. A name may occur more than once.
///
/// Memory: one text, of the lines as HTTP/1 sends them, and one list of 16 bytes for each field,
/// which keep their capacity when the fields are cleared.
/// Errors: functions that add fields throw std::bad_alloc; the list is then unchanged.
class Fields {
 public:
  /// The maximum of bytes().
  static constexpr std::size_t bytes_max = std::size_t{16} * 1024 * 1024;

  Fields() = default;
  Fields(Fields&& other) noexcept
      : text_(std::move(other.text_)),
        entries_(std::move(other.entries_)),
        names_(std::exchange(other.names_, 0)),
        bytes_(std::exchange(other.bytes_, 0)),
        has_lines_(std::exchange(other.has_lines_, true)) {}
  Fields& operator=(Fields&& other) noexcept {
    text_ = std::move(other.text_);
    entries_ = std::move(other.entries_);
    names_ = std::exchange(other.names_, 0);
    bytes_ = std::exchange(other.bytes_, 0);
    has_lines_ = std::exchange(other.has_lines_, true);
    return *this;
  }
  Fields(const Fields&) = default;
  Fields& operator=(const Fields&) = default;
  ~Fields() = default;

  /// The number of fields.
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }
  /// The total size of all names and values.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

  [[nodiscard]] Field operator[](std::size_t index) const noexcept {
    return field_of(entries_[index]);
  }

  /// Iterates over the fields in the order in which they were received or added.
  class Iterator {
   public:
    using value_type = Field;
    using difference_type = std::ptrdiff_t;
    using iterator_concept = std::forward_iterator_tag;

    Iterator() = default;
    /// `index`: of the field that it refers to.
    Iterator(const Fields& fields, std::size_t index) noexcept : fields_(&fields), index_(index) {}
    Field operator*() const noexcept { return (*fields_)[index_]; }
    Iterator& operator++() noexcept {
      ++index_;
      return *this;
    }
    Iterator operator++(int) noexcept {
      Iterator before = *this;
      ++index_;
      return before;
    }
    bool operator==(const Iterator& other) const noexcept { return index_ == other.index_; }

   private:
    const Fields* fields_ = nullptr;
    std::size_t index_ = 0;
  };
  [[nodiscard]] Iterator begin() const noexcept { return {*this, 0}; }
  [[nodiscard]] Iterator end() const noexcept { return {*this, size()}; }

  /// The value of the first field with this name.
  [[nodiscard]] std::optional<std::string_view> get(std::string_view name) const noexcept;
  [[nodiscard]] bool contains(std::string_view name) const noexcept {
    return find(name, 0) != size();
  }
  /// The number of fields with this name, without regard to case.
  [[nodiscard]] std::size_t count(std::string_view name) const noexcept;
  /// The index of the first field with this name at or after `from`; size() if there is none.
  [[nodiscard]] std::size_t find(std::string_view name, std::size_t from = 0) const noexcept;
  /// The values of all fields with this name as one list, separated by ", " (RFC 9110, section
  /// 5.3). Not for Set-Cookie, whose values contain commas. Throws std::bad_alloc.
  [[nodiscard]] std::string joined(std::string_view name) const;
  /// True if a field with this name has `token` among the elements of its list, without regard to
  /// case: `fields.has_token("Connection", "close")`. Elements end at commas; parameters are part
  /// of the element.
  [[nodiscard]] bool has_token(std::string_view name, std::string_view token) const noexcept;

  /// Appends a field; `value` is stored without surrounding spaces and tabs. Fails with
  /// http::ErrorCode::bad_field_name, bad_field_value and fields_too_large; nothing is added then.
  /// The arguments may be views into this object.
  Result<> add(std::string_view name, std::string_view value);
  /// Replaces all fields with this name by one, at the position of the first. Fails like add();
  /// nothing is changed then.
  Result<> set(std::string_view name, std::string_view value);
  /// Removes all fields with this name; returns their number.
  std::size_t remove(std::string_view name) noexcept;
  void clear() noexcept;

  /// True if the fields are the same in the same order, without regard to the case of names.
  bool operator==(const Fields& other) const noexcept;

 private:
  friend class detail::FieldWriter;

  /// The value follows the name in the text. `value_gap` is what separates them, for example the
  /// colon and space of a received field.
  struct Entry {
    std::uint32_t at = 0;
    std::uint32_t hash = 0;
    std::uint32_t value_size = 0;
    std::uint16_t name_size = 0;
    std::uint16_t value_gap = 0;
  };

  [[nodiscard]] Field field_of(const Entry& entry) const noexcept {
    const char* const name = text_.data() + entry.at;
    return {{name, entry.name_size}, {name + entry.name_size + entry.value_gap, entry.value_size}};
  }
  [[nodiscard]] bool has_name(const Entry& entry, std::string_view name,
                              std::uint32_t hash) const noexcept;
  std::size_t drop_named(std::string_view name, std::size_t from) noexcept;
  [[nodiscard]] std::size_t find(std::string_view name, std::uint32_t hash,
                                 std::size_t from) const noexcept;
  Result<> add(std::string_view name, std::string_view value, std::uint32_t hash);
  [[nodiscard]] std::uint32_t append(std::string_view name, std::string_view value);
  [[nodiscard]] std::uint32_t append_to_new_text(std::string_view name, std::string_view value);
  [[nodiscard]] static bool is_valid_line(const char* name, std::size_t name_size,
                                          std::size_t value_size) noexcept;

  std::string text_;
  std::vector<Entry> entries_;
  std::uint64_t names_ = 0;  ///< Bits for the names, and for some that were removed.
  std::uint32_t bytes_ = 0;  ///< At most bytes_max.
  /// The text consists of "Name: value" and CR LF for each field, in their order, and of nothing
  /// else.
  bool has_lines_ = true;
};

}  // namespace tambour::http

#pragma GCC visibility pop
