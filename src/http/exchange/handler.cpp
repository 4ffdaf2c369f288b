// Handler::run(): not inline, because a coroutine is compiled into each source file that sees it.
#include <tambour/http/handler.h>

#include <utility>

#include <tambour/http/request.h>
#include <tambour/http/response.h>

namespace tambour::http {

Task<> Handler::run(Request& request, Response& response) const {
  Task<> task = start(request, response);
  if (task) co_await std::move(task);
}

}  // namespace tambour::http
