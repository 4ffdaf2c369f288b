// The error category of HTTP.
#include <tambour/http_error.h>

namespace tambour {
namespace {

class HttpCategory final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "http"; }
  [[nodiscard]] std::string message(int value) const override { return text(HttpError(value)); }

 private:
  static const char* text(HttpError error) noexcept {
    switch (error) {
      case HttpError::url_bad_character:
        return "The URL contains a character that must be percent-encoded";
      case HttpError::url_bad_encoding:
        return "The URL contains a percent sign without two hexadecimal digits";
      case HttpError::url_bad_scheme:
        return "The URL has text before its first colon that is not a scheme";
      case HttpError::url_bad_host:
        return "The URL has a host that is neither a name nor an address";
      case HttpError::url_bad_port:
        return "The URL has a port that is not a number from 0 to 65535";
      case HttpError::url_ambiguous_path:
        return "The path would be read as another component of the URL";
      case HttpError::url_not_absolute:
        return "The URL has no scheme, but must be absolute";
      case HttpError::url_too_long:
        return "The URL is longer than 65535 bytes";
      default:
        return text_of_names(error);
    }
  }
  static const char* text_of_names(HttpError error) noexcept {
    switch (error) {
      case HttpError::bad_method_name:
        return "The method is not a token, or too long";
      case HttpError::bad_field_name:
        return "The name of the field is not a token";
      case HttpError::bad_field_value:
        return "The value of the field contains a control character";
      case HttpError::bad_status:
        return "The status is not between 100 and 999";
      case HttpError::bad_reason:
        return "The reason phrase contains a control character";
      case HttpError::fields_too_large:
        return "The fields exceed the bytes that they may have";
      default:
        return "Unknown HTTP error";
    }
  }
};

}  // namespace

const std::error_category& http_category() noexcept {
  static const HttpCategory category;
  return category;
}

}  // namespace tambour
