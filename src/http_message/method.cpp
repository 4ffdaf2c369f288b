// HTTP request methods.
#include <tambour/http/method.h>

#include "http_message/characters.h"
#include "http_message/failure.h"

namespace tambour::http {

Result<Method> Method::parse(std::string_view name) noexcept {
  if (name.empty() || name.size() > size_max || !all_are(name, token_char))
    return failure(ErrorCode::bad_method_name);
  return Method(name);
}

bool Method::is_safe() const noexcept {
  return *this == get || *this == head || *this == options || *this == trace;
}

bool Method::is_idempotent() const noexcept {
  return is_safe() || *this == put || *this == delete_;
}

}  // namespace tambour::http
