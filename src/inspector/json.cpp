// Json: numbers and places.
#include "inspector/json.h"

#include <array>
#include <charconv>

namespace tambour::inspector {

std::string text_of(const std::source_location& place) {
  if (place.line() == 0) return {};
  std::string_view file = place.file_name();
  const std::size_t slash = file.rfind('/');
  if (slash != std::string_view::npos && slash > 0) {
    const std::size_t before = file.rfind('/', slash - 1);
    if (before != std::string_view::npos) file.remove_prefix(before + 1);
  }
  return std::string(file) + ':' + std::to_string(place.line());
}

Json& Json::value(double number) {
  separate();
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  text_.append(digits.data(), end);
  return *this;
}

}  // namespace tambour::inspector
