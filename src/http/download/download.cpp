// download(): requests for what is missing, until the file is whole.
#include <tambour/http/download.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <tambour/task/sleep.h>

#include "client/retry_delays.h"
#include "http/client/temporary.h"
#include "http/download/content_range.h"
#include "http/download/partial_file.h"
#include "http_message/failure.h"
#include "loop/core.h"

namespace tambour::http {
namespace detail::download {
namespace {

using client::is_temporary;

class Download {
 public:
  Download(Client& client, std::string url, std::string path, DownloadOptions options)
      : client_(client),
        url_(std::move(url)),
        options_(std::move(options)),
        part_(url_, std::move(path)),
        delays_(options_.retry) {}

  Task<DownloadResult> run();

 private:
  [[nodiscard]] Task<Result<>> repeat();
  /// One request. Fails with an error that may pass, or not.
  [[nodiscard]] Task<Result<>> attempt();
  [[nodiscard]] Result<ClientRequest> request() const;
  /// Checks the response, and prepares the file for its body.
  [[nodiscard]] Task<Result<>> accept(ClientResponse& response);
  [[nodiscard]] Result<> check_range(const ClientResponse& response);
  [[nodiscard]] Task<Result<>> receive(ClientResponse& response);
  [[nodiscard]] bool may_repeat(const Error& error) const noexcept;

  Client& client_;
  std::string url_;
  DownloadOptions options_;
  PartialFile part_;
  tambour::detail::client::RetryDelays delays_;
  DownloadedFile result_;
  std::optional<Status> status_;
  bool must_restart_ = false;  ///< The server cannot continue, or has another version.
};

Task<DownloadResult> Download::run() {
  Result<> done = co_await part_.open();
  result_.resumed_bytes = part_.can_continue() ? part_.bytes() : 0;
  if (done) done = co_await repeat();
  if (done) done = co_await part_.finish(options_.sync);
  if (!done) {
    co_await part_.abandon();
    co_return std::unexpected(DownloadError(done.error(), status_));
  }
  result_.bytes = part_.bytes();
  DownloadResult result(std::move(result_));
  co_return result;
}

Task<Result<>> Download::repeat() {
  const TaskContext& context = co_await this_task;
  std::uint64_t most_received = part_.can_continue() ? part_.bytes() : 0;
  for (unsigned attempts = 1;;) {
    const auto received = co_await attempt();
    if (received && part_.is_whole()) co_return {};
    // A server that begins anew each time makes none.
    const bool has_progress = part_.can_continue() && part_.bytes() > most_received;
    most_received = std::max(most_received, part_.bytes());
    if (!received && !may_repeat(received.error())) co_return received;
    if (has_progress) {
      attempts = 0;
      delays_.reset();
    }
    // A server may send less than was asked for.
    if (received && has_progress) continue;
    if (attempts >= std::max(options_.retry.attempts_max, 1U)) {
      const Error truncated = StreamError::truncated;
      co_return std::unexpected(received ? truncated : received.error());
    }
    ++attempts;
    const Duration delay = delays_.next(loop::core_of(*context.loop).backend().random());
    const auto slept = co_await sleep_for(delay);
    if (!slept) co_return slept;
  }
}

bool Download::may_repeat(const Error& error) const noexcept {
  if (error == http::ErrorCode::unexpected_status) return must_restart_ || is_temporary(*status_);
  if (error == http::ErrorCode::bad_content_range) return must_restart_;
  return is_temporary(error);
}

Task<Result<>> Download::attempt() {
  auto wanted = request();
  if (!wanted) co_return std::unexpected(wanted.error());
  must_restart_ = false;
  ++result_.requests;
  auto response = co_await client_.send(std::move(*wanted));
  if (!response) co_return std::unexpected(response.error());
  status_ = response->status();
  result_.url = response->url();
  result_.headers = response->headers();
  if (const auto accepted = co_await accept(*response); !accepted) co_return accepted;
  co_return co_await receive(*response);
}

Result<ClientRequest> Download::request() const {
  ClientRequest request(url_);
  request.fields = options_.fields;
  // A coding would change the bytes that a range counts.
  static_cast<void>(request.fields.set("Accept-Encoding", "identity"));
  request.fields.remove("Range");
  request.fields.remove("If-Range");
  if (!part_.can_continue() || must_restart_) return request;
  static_cast<void>(request.fields.set("Range", "bytes=" + std::to_string(part_.bytes()) + "-"));
  if (auto set = request.fields.set("If-Range", part_.validator()); !set)
    return std::unexpected(set.error());
  return request;
}

Task<Result<>> Download::accept(ClientResponse& response) {
  const Status status = response.status();
  if (status == Status::partial_content) {
    const auto checked = check_range(response);
    must_restart_ = !checked && part_.can_continue();
    co_return checked;
  }
  // The part is longer than the file of the server.
  must_restart_ = status == Status::range_not_satisfiable && part_.can_continue();
  if (status != Status::ok) co_return failure(http::ErrorCode::unexpected_status);
  const std::optional<std::uint64_t> total = response.body().length();
  if (total && *total > options_.bytes_max) co_return failure(http::ErrorCode::body_too_large);
  auto restarting = part_.restart(validator_of(response.headers()), total);
  co_return co_await std::move(restarting);
}

Result<> Download::check_range(const ClientResponse& response) {
  const auto field = response.headers().get("Content-Range");
  const auto range = field ? parse_content_range(*field) : std::nullopt;
  if (!range || !part_.can_continue() || range->first != part_.bytes())
    return failure(http::ErrorCode::bad_content_range);
  // If-Range has compared the versions; a server that ignores it shows here.
  const std::string validator = validator_of(response.headers());
  if (!validator.empty() && part_.validator().starts_with('"') && validator != part_.validator())
    return failure(http::ErrorCode::bad_content_range);
  if (range->total && part_.total() && *range->total != *part_.total())
    return failure(http::ErrorCode::bad_content_range);
  if (range->total) part_.set_total(*range->total);
  // A range of unknown length may end before the file does.
  if (!part_.total()) return failure(http::ErrorCode::bad_content_range);
  if (part_.total() && *part_.total() > options_.bytes_max)
    return failure(http::ErrorCode::body_too_large);
  return {};
}

Task<Result<>> Download::receive(ClientResponse& response) {
  for (;;) {
    auto piece = co_await response.body().read();
    if (!piece) co_return std::unexpected(piece.error());
    if (piece->empty()) co_return {};
    if (piece->size() > options_.bytes_max - std::min(part_.bytes(), options_.bytes_max))
      co_return failure(http::ErrorCode::body_too_large);
    if (part_.total() && piece->size() > *part_.total() - part_.bytes())
      co_return failure(http::ErrorCode::bad_content_range);
    if (const auto written = co_await part_.append(std::move(*piece)); !written) co_return written;
    if (options_.on_progress) options_.on_progress(part_.bytes(), part_.total());
  }
}

}  // namespace
}  // namespace detail::download

Task<DownloadResult> download(Client& client, std::string url, std::string path,
                              DownloadOptions options) {
  detail::download::Download download(client, std::move(url), std::move(path), std::move(options));
  co_return co_await download.run();
}

}  // namespace tambour::http
