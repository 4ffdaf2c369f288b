// time_limit().
#include <tambour/http/time_limit.h>

#include <cerrno>
#include <utility>

#include <tambour/task/combinators.h>
#include <tambour/task/event.h>
#include <tambour/task/scope.h>

#include "base/failure.h"
#include "task/scope_access.h"

namespace tambour::http {
namespace {

/// Sets an event when the task has ended, or was destroyed.
class SetAtEnd {
 public:
  explicit SetAtEnd(TaskEvent& event) noexcept : event_(event) {}
  SetAtEnd(const SetAtEnd&) = delete;
  SetAtEnd& operator=(const SetAtEnd&) = delete;
  ~SetAtEnd() { event_.set(); }

 private:
  TaskEvent& event_;
};

Task<> run_and_set(Task<> task, TaskEvent& ended) {
  const SetAtEnd at_end(ended);
  co_await std::move(task);
}

Task<> run_limited(Duration limit, Task<> task, Response& response) {
  const TaskContext& context = co_await this_task;
  TaskEvent ended(*context.loop);  // Outlives the scope, whose task sets it.
  TaskScope scope(*context.loop, context.stop);
  scope.spawn(run_and_set(std::move(task), ended), context.spawned_at);
  const Result<> waited = co_await timeout(limit, ended.wait());
  if (waited || waited.error() != system_error(ETIMEDOUT) || ended.is_set()) {
    co_await detail::task::ScopeAccess::join_to_end(scope);
    co_return;
  }
  const bool has_begun = response.has_begun();
  if (has_begun && !response.has_ended()) response.abort();
  if (!has_begun)
    static_cast<void>(
        response.send_error(Status::service_unavailable, "the time limit has passed"));
  scope.request_stop();
  // Sent now, because the handler may take long to end. If that fails, so does the connection.
  if (!has_begun) static_cast<void>(co_await response.flush());
  co_await detail::task::ScopeAccess::join_to_end(scope);
}

}  // namespace

Result<Middleware> time_limit(Duration limit) {
  if (limit <= Duration::zero()) return detail::base::failure(EINVAL);
  return Middleware([limit](Request& request, Response& response, const Handler& next) -> Task<> {
    Task<> task = next.start(request, response);
    return task ? run_limited(limit, std::move(task), response) : Task<>();
  });
}

}  // namespace tambour::http
