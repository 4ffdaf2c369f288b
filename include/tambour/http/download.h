// Downloads of files, which continue after a lost connection, and after a restart of the program.
//
//   auto file = co_await http::download(client, "https://example.org/image.iso", "/tmp/image.iso");
//   if (!file) std::fprintf(stderr, "%s\n", file.error().message().c_str());
// The most common mistake: two concurrent downloads to the same path. In one process, the second
// one fails with EBUSY; two processes would write to the same partial file.
#pragma once

#include <chrono>
#include <cstdint>
#include <expected>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include <tambour/base/callback.h>
#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/client.h>
#include <tambour/http/fields.h>
#include <tambour/http/status.h>
#include <tambour/http/url.h>
#include <tambour/net/retry_policy.h>
#include <tambour/task/task.h>

#pragma GCC visibility push(default)

namespace tambour::http {

/// How download() requests, repeats and limits a download. Not an aggregate, because of GCC 12: see
/// ClientRequest.
struct DownloadOptions {
  DownloadOptions() noexcept {}  // NOLINT(modernize-use-equals-default)

  /// `attempts_max` counts attempts in a row that received no more than an earlier one. An attempt
  /// is repeated after a temporary error, a truncated body, and the statuses 429, 500, 502, 503 and
  /// 504.
  RetryPolicy retry{
      .attempts_max = 5, .delay = std::chrono::seconds(1), .delay_max = std::chrono::minutes(1)};
  /// Fields of each request, in addition to Accept-Encoding, Range and If-Range.
  Fields fields{};
  /// A larger file fails with http::ErrorCode::body_too_large.
  std::uint64_t bytes_max = std::numeric_limits<std::uint64_t>::max();
  /// Waits until contents and name are on the disk: fsync(2).
  bool sync = true;
  /// Invoked after each piece that was written, with the size of the file so far, and that of the
  /// whole file, if it is known. Must not destroy the task.
  Callback<void(std::uint64_t bytes, std::optional<std::uint64_t> total)> on_progress{};
};

/// What download() has received.
struct DownloadedFile {
  std::uint64_t bytes = 0;
  std::uint64_t resumed_bytes = 0;  ///< That an earlier call had received.
  unsigned requests = 0;
  Url url{};         ///< Of the last response, after redirects.
  Fields headers{};  ///< Of the last response.
};

/// An Error, with the status of the last response. Compares and converts like an Error.
class DownloadError : public Error {
 public:
  DownloadError() noexcept = default;
  /// An error, with the status of the response if one has arrived.
  DownloadError(const Error& error,  // NOLINT(google-explicit-constructor): as a Result has it.
                std::optional<Status> status = std::nullopt) noexcept
      : Error(error), status_(status) {}

  /// Not set if there was no response.
  [[nodiscard]] std::optional<Status> status() const noexcept { return status_; }

 private:
  std::optional<Status> status_;
};

/// What download() returns.
using DownloadResult = Result<DownloadedFile, DownloadError>;

/// Downloads `url` to the file `path`, which appears with all of its contents at once, and replaces
/// an existing file.
///
/// Until then, the contents are in `path`.part, and the URL and the version in `path`.part.info,
/// which only the owner may read, because the query of a URL may be a secret; user name and
/// password of the URL are not stored. An attempt continues there (RFC 9110, section 14) if the
/// response had a strong validator: an ETag that is not weak, or a Last-Modified that is at least a
/// minute older than the Date. If the file on the server has changed, the download starts over.
/// Without a validator, the partial file is removed when the call fails. After a power failure,
/// remove it: its end may be missing.
///
/// Time limits: those of the client for each attempt; set ClientOptions::total_timeout only if it
/// suffices for the whole file. `timeout(1h, download(...))` limits all attempts together.
/// Cancellation: fails with ECANCELED; what was received stays for the next call.
/// Errors: those of Client::send() and IncomingBody::read(), of files, and
/// http::ErrorCode::unexpected_status and bad_content_range; EBUSY if this process downloads to the
/// same path already, which is compared as a text. Throws std::bad_alloc.
/// Lifetime: the client must exist until the task has ended.
[[nodiscard]] Task<DownloadResult> download(Client& client, std::string url, std::string path,
                                            DownloadOptions options = {});

}  // namespace tambour::http

#pragma GCC visibility pop
