// serve_events() and send_events().
#include <tambour/http/event_stream.h>

#include <cerrno>
#include <exception>
#include <string>
#include <type_traits>
#include <utility>

#include <tambour/task/combinators.h>
#include <tambour/task/event.h>
#include <tambour/task/scope.h>

#include "http_message/failure.h"
#include "task/scope_access.h"

namespace tambour::http {
namespace {

static_assert(std::is_trivially_destructible_v<ServerEvent>,
              "GCC 12 destroys an aggregate in braces inside co_await twice");

constexpr std::string_view line_ends = "\r\n";

/// Appends `name`, a space and a line for each line of `text`. CR, LF and CRLF end lines.
void append_lines(std::string& to, std::string_view name, std::string_view text) {
  for (bool is_last = false; !is_last;) {
    const std::size_t end = text.find_first_of(line_ends);
    is_last = end == std::string_view::npos;
    to.append(name).append(" ").append(text.substr(0, end)).append("\n");
    if (is_last) return;
    text.remove_prefix(text.substr(end).starts_with("\r\n") ? end + 2 : end + 1);
  }
}

bool is_one_line(std::string_view text) noexcept {
  return text.find_first_of(line_ends) == std::string_view::npos;
}

Result<std::string> text_of_event(const ServerEvent& event) {
  const std::string_view id = event.id.value_or("");
  if (!is_one_line(event.event) || !is_one_line(id) || id.find('\0') != std::string_view::npos)
    return failure(ErrorCode::bad_event);
  std::string text;
  if (event.id) append_lines(text, "id:", id);
  if (!event.event.empty()) append_lines(text, "event:", event.event);
  if (event.retry) append_lines(text, "retry:", std::to_string(event.retry->count()));
  if (event.data) append_lines(text, "data:", *event.data);
  text += '\n';
  return text;
}

Task<Result<>> failed(std::unexpected<Error> error) { co_return error; }

/// Sends a comment whenever the response has not grown for the time. A write that fails asks the
/// tasks of `work` to stop.
Task<> keep_alive(EventStream& events, const Response& response, TaskEvent& ended, TaskScope& work,
                  Duration interval) {
  if (interval <= Duration::zero()) co_return;
  std::uint64_t sent = response.body_bytes();
  while (!ended.is_set()) {
    const Result<> waited = co_await timeout(interval, ended.wait());
    if (waited || waited.error() != system_error(ETIMEDOUT)) co_return;
    // An event that waits for the client shows, too, when the client has vanished.
    if (std::exchange(sent, response.body_bytes()) != sent || events.is_sending()) continue;
    const Result<> written = co_await events.comment("");
    sent = response.body_bytes();
    if (!written) work.request_stop();
    if (!written) co_return;
  }
}

}  // namespace

Task<Result<>> EventStream::send(const ServerEvent& event) {
  const Result<std::string> text = text_of_event(event);
  return text ? send_text(Buffer(*text)) : failed(std::unexpected(text.error()));
}

Task<Result<>> EventStream::comment(std::string_view text) {
  std::string lines;
  append_lines(lines, ":", text);
  return send_text(Buffer(lines += '\n'));
}

Task<Result<>> EventStream::send_text(Buffer text) {
  is_sending_ = true;
  const Result<> written = co_await response_->write(std::move(text));
  is_sending_ = false;
  co_return written;
}

Task<> send_events(Request& request, Response& response, EventProducer source,
                   EventStreamOptions options) {
  static_cast<void>(response.headers().set("Content-Type", "text/event-stream"));
  static_cast<void>(response.headers().set("X-Accel-Buffering", "no"));
  if (!response.headers().contains("Cache-Control"))
    static_cast<void>(response.headers().set("Cache-Control", "no-store"));
  const Result<> begun = co_await response.write(std::string_view());
  if (!begun || request.method() == Method::head) co_return;
  const TaskContext& context = co_await this_task;
  EventStream events(request, response);
  TaskEvent ended(*context.loop);
  TaskScope work(*context.loop, context.stop);
  const auto stop = [&work] { work.request_stop(); };
  const std::stop_callback disconnected(request.disconnect_token(), stop);
  const std::stop_callback shut_down(request.shutdown_token(), stop);
  work.spawn(source(events));
  // A comment that is being sent must be sent whole: this task is not asked to stop.
  TaskScope keeping(*context.loop, context.stop);
  keeping.spawn(keep_alive(events, response, ended, work, options.keep_alive));
  std::exception_ptr thrown;
  try {
    co_await detail::task::ScopeAccess::join_to_end(work);
  } catch (...) {
    thrown = std::current_exception();
  }
  ended.set();
  co_await detail::task::ScopeAccess::join_to_end(keeping);
  if (thrown != nullptr) std::rethrow_exception(thrown);
}

Handler serve_events(EventProducer source, EventStreamOptions options) {
  return [source = std::move(source), options](Request& request, Response& response) {
    return send_events(request, response, source, options);
  };
}

}  // namespace tambour::http
