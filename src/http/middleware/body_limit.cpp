// body_limit().
#include <tambour/http/body_limit.h>

namespace tambour::http {

Middleware body_limit(std::uint64_t bytes_max) {
  return [bytes_max](Request& request, Response& response, const Handler& next) -> Task<> {
    if (request.body().length().value_or(0) > bytes_max) {
      static_cast<void>(
          response.send_error(Status::content_too_large,
                              "the body may have at most " + std::to_string(bytes_max) + " bytes"));
      return {};
    }
    request.body().set_bytes_max(bytes_max);
    return next.start(request, response);
  };
}

}  // namespace tambour::http
