// recover().
#include <tambour/http/recover.h>

#include <memory>
#include <utility>

namespace tambour::http {
namespace {

void answer_exception(const RecoverOptions& options, const Request& request, Response& response,
                      const std::exception_ptr& thrown) {
  if (options.on_exception) options.on_exception(request, thrown);
  if (response.has_begun()) std::rethrow_exception(thrown);
  response.drop_handler_fields();
  if (options.answer) options.answer(request, response, thrown);
  if (!response.has_begun()) static_cast<void>(response.send_error(Status::internal_server_error));
}

Task<> recover_from(Task<> task, std::shared_ptr<const RecoverOptions> options,
                    const Request& request, Response& response) {
  std::exception_ptr thrown;
  try {
    co_await std::move(task);
  } catch (...) {
    thrown = std::current_exception();
  }
  if (thrown != nullptr) answer_exception(*options, request, response, thrown);
}

}  // namespace

Middleware recover(RecoverOptions options) {
  return [shared = std::make_shared<const RecoverOptions>(std::move(options))](
             Request& request, Response& response, const Handler& next) -> Task<> {
    try {
      Task<> task = next.start(request, response);
      return task ? recover_from(std::move(task), shared, request, response) : Task<>();
    } catch (...) {
      answer_exception(*shared, request, response, std::current_exception());
    }
    return {};
  };
}

}  // namespace tambour::http
