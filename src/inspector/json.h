// Writes JSON (RFC 8259).
#pragma once

#include <concepts>
#include <cstdint>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>

#include "http/errors/escape.h"

namespace tambour::inspector {

/// "directory/file.cpp:12": the directories of the build are of no interest. Empty if unknown.
[[nodiscard]] std::string text_of(const std::source_location& place);

/// Appends values and puts the commas. The caller begins and ends objects and arrays in pairs. All
/// functions throw std::bad_alloc.
class Json {
 public:
  Json& begin_object() { return begin('{'); }
  Json& end_object() { return end('}'); }
  Json& begin_array() { return begin('['); }
  Json& end_array() { return end(']'); }
  Json& key(std::string_view name) {
    separate();
    http::append_json_string(text_, name);
    text_ += ':';
    is_first_ = true;
    return *this;
  }
  Json& value(std::string_view text) {
    separate();
    http::append_json_string(text_, text);
    return *this;
  }
  Json& value(const char* text) { return value(std::string_view(text)); }
  Json& value(bool truth) {
    separate();
    text_ += truth ? "true" : "false";
    return *this;
  }
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Json& value(T number) {
    separate();
    text_ += std::to_string(number);
    return *this;
  }
  /// Finite.
  Json& value(double number);
  template <class T>
  Json& member(std::string_view name, const T& content) {
    return key(name).value(content);
  }

  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  Json& begin(char bracket) {
    separate();
    text_ += bracket;
    is_first_ = true;
    return *this;
  }
  Json& end(char bracket) {
    text_ += bracket;
    is_first_ = false;
    return *this;
  }
  void separate() {
    if (!std::exchange(is_first_, false)) text_ += ',';
  }

  std::string text_;
  bool is_first_ = true;
};

}  // namespace tambour::inspector
