// HTTP request methods.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/error.h>

#pragma GCC visibility push(default)

namespace tambour::http {

/// A request method: one of the constants below, or any other token (RFC 9110, section 9).
/// Methods are case-sensitive. A value that allocates nothing.
class Method {
 public:
  /// The longest registered method has 17 bytes.
  static constexpr std::size_t size_max = 31;

  static const Method get;
  static const Method head;
  static const Method post;
  static const Method put;
  static const Method delete_;  // NOLINT(readability-identifier-naming): a keyword.
  static const Method connect;
  static const Method options;
  static const Method trace;
  static const Method patch;  ///< RFC 5789.

  /// GET.
  constexpr Method() noexcept : Method("GET") {}

  /// Fails with http::ErrorCode::bad_method_name if `name` is not a token, or longer than size_max.
  [[nodiscard]] static Result<Method> parse(std::string_view name) noexcept;

  /// The name, for example "GET"; methods are case-sensitive.
  [[nodiscard]] constexpr std::string_view name() const noexcept { return {text_.data(), size_}; }

  /// True if the method is defined to read only (RFC 9110, section 9.2.1): GET, HEAD, OPTIONS,
  /// TRACE.
  [[nodiscard]] bool is_safe() const noexcept;
  /// True if a client may repeat the request after its connection has failed (RFC 9110, section
  /// 9.2.2): the safe methods, PUT and DELETE.
  [[nodiscard]] bool is_idempotent() const noexcept;

  constexpr bool operator==(const Method& other) const noexcept {
    // All bytes in words: shorter than a call that compares texts of any size.
    using Words = std::array<std::uint64_t, 4>;
    const auto words = std::bit_cast<Words>(*this);
    const auto others = std::bit_cast<Words>(other);
    return words[0] == others[0] && words[1] == others[1] && words[2] == others[2] &&
           words[3] == others[3];
  }
  constexpr auto operator<=>(const Method& other) const noexcept = default;

 private:
  explicit constexpr Method(std::string_view name) noexcept
      : size_(static_cast<std::uint8_t>(name.size())) {
    for (std::size_t i = 0; i < name.size(); ++i) text_[i] = name[i];
  }

  std::array<char, size_max> text_{};  ///< Filled up with null bytes.
  std::uint8_t size_;
};

inline constexpr Method Method::get{"GET"};
inline constexpr Method Method::head{"HEAD"};
inline constexpr Method Method::post{"POST"};
inline constexpr Method Method::put{"PUT"};
inline constexpr Method Method::delete_{"DELETE"};
inline constexpr Method Method::connect{"CONNECT"};
inline constexpr Method Method::options{"OPTIONS"};
inline constexpr Method Method::trace{"TRACE"};
inline constexpr Method Method::patch{"PATCH"};

}  // namespace tambour::http

template <>
struct std::hash<tambour::http::Method> {
  std::size_t operator()(const tambour::http::Method& method) const noexcept {
    return std::hash<std::string_view>()(method.name());
  }
};

#pragma GCC visibility pop
