// Repairs field values that span lines (obs-fold) before they are copied.
#include "http_message/field_writer.h"

#include <span>

#include "http_message/characters.h"

namespace tambour::http::detail {
namespace {

constexpr bool is_line_end(char c) noexcept { return c == '\r' || c == '\n'; }
constexpr bool is_blank(char c) noexcept { return c == ' ' || c == '\t'; }

/// Makes one line of a value: a line end with the blanks around it becomes a space, and so does
/// each other control character. Returns the new size, without blanks at either end.
std::size_t unfold(std::span<char> value) noexcept {
  std::size_t size = 0;
  bool is_line_begin = false;
  const auto remove_blanks = [&] {
    while (size > 0 && is_blank(value[size - 1])) --size;
  };
  for (const char original : value) {
    if (is_line_end(original)) {
      remove_blanks();
      is_line_begin = true;
      continue;
    }
    const char c = is(original, value_char) ? original : ' ';
    if (is_blank(c) && (size == 0 || is_line_begin)) continue;
    if (is_line_begin && size > 0) value[size++] = ' ';
    is_line_begin = false;
    value[size++] = c;
  }
  remove_blanks();
  return size;
}

}  // namespace

void FieldWriter::repair(Fields& fields) noexcept {
  fields.bytes_ = 0;
  for (Fields::Entry& entry : fields.entries_) {
    const std::size_t value_at = entry.at + entry.name_size + std::size_t{entry.value_gap};
    const std::span<char> text(fields.text_);
    entry.value_size = static_cast<std::uint32_t>(unfold(text.subspan(value_at, entry.value_size)));
    fields.bytes_ += entry.name_size + entry.value_size;
  }
}

}  // namespace tambour::http::detail
