// What the pages of an inspector share: access, fields of responses, lists.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tambour/base/clock.h>
#include <tambour/http/handler.h>
#include <tambour/http/request.h>
#include <tambour/http/response.h>
#include <tambour/http/router.h>
#include <tambour/http/status.h>
#include <tambour/loop/event_loop.h>
#include <tambour/task/task.h>

#include "inspector/json.h"
#include "inspector/search.h"
#include "inspector/sockets.h"

namespace tambour::inspector {

inline constexpr std::size_t rows_max = 500;  ///< Of one answer.

[[nodiscard]] inline double seconds(std::int64_t ns) noexcept {
  return static_cast<double>(ns) / 1e9;
}
[[nodiscard]] inline double seconds(Duration time) noexcept { return seconds(time.count()); }

/// Passes requests of peers that may use the inspector to the next handler: those that
/// `authenticate` accepts, or if it is empty, those of this host.
[[nodiscard]] http::Middleware access_check(http::Middleware authenticate);

/// The page for browsers, and its files.
void add_page(http::Router& router);

void set_fields(http::Response& response, std::string_view type);
void send_json(http::Response& response, Json& json, http::Status status = http::Status::ok);

/// Empty if the request was rejected.
[[nodiscard]] std::optional<ListQuery> query_of(http::Request& request);

/// Begins the object of a list. Its rows follow.
void begin_list(Json& json, const auto& list, std::size_t offset) {
  json.begin_object()
      .member("total", list.total)
      .member("matching", list.matching)
      .member("offset", offset)
      .member("is_complete", list.is_complete);
  json.key("silent_loops").begin_array();
  for (const std::string& name : list.silent_loops) json.value(name);
  json.end_array();
}

/// The answer of "connections". `list` must exist until the task has ended.
[[nodiscard]] Task<> send_sockets(http::Request& request, http::Response& response,
                                  const SocketList& list, std::size_t offset);

/// Appends the rows of a page, which may take a millisecond, in slices. Returns false if the task
/// is cancelled.
template <class Row, class Append>
[[nodiscard]] Task<bool> append_rows(EventLoop& loop, Json& json, const std::vector<Row>& rows,
                                     Append append) {
  Slices slices(loop);
  for (const Row& row : rows) {
    append(json, row);
    if (!slices.is_over()) continue;
    const Result<> resumed = co_await slices.next();
    if (!resumed) co_return false;
  }
  co_return true;
}

/// Of the callbacks of one place, in all loops.
struct CallTotals {
  std::uint64_t calls = 0;
  std::int64_t total_ns = 0;
  std::int64_t longest_ns = 0;

  void add(const auto& times) noexcept {
    calls += times.calls;
    total_ns += times.total_ns;
    longest_ns = std::max(longest_ns, times.longest_ns);
  }
};

/// The answer of "callbacks".
void send_callbacks(http::Response& response, const std::map<std::string, CallTotals>& places);

/// The answer of "health". `blocked` is an array of what blocks the loops.
void send_health(http::Response& response, bool is_blocked, Json& blocked);
void send_ready(http::Response& response, bool is_ready, bool is_draining);

/// Begins the answer of "loops": the caller adds the objects of loops, and ends the array and the
/// object. `views` are the tabs of the page, separated by spaces.
void begin_loops(Json& json, std::string_view title, std::string_view views);
void append_lags(Json& json, const LagHistogram::Counts& lags);

}  // namespace tambour::inspector
