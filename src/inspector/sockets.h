// The sockets of the process, and what the loops wait for on them.
//
// Nothing is recorded for this when a connection is opened: a backend knows which operation waits
// on which descriptor, and the kernel knows the rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include <tambour/base/clock.h>
#include <tambour/loop/readiness.h>
#include <tambour/task/task.h>

#include "inspector/observed_loops.h"
#include "inspector/search.h"

namespace tambour::inspector {

/// A descriptor on which a loop waits.
struct Watched {
  int fd = -1;
  Events events = Events::none;
  std::string_view loop{};
  std::source_location place{};
  const void* function = nullptr;  ///< The callback, of loops that know no source lines.
  std::int64_t unread_bytes = 0;   ///< In buffers of the program, besides those of the kernel.
  std::int64_t unsent_bytes = 0;
};
/// Returns the text of SocketRow::place.
using PlaceText = std::function<std::string(const Watched& watched)>;

struct SocketRow {
  int fd = -1;
  std::string loop{};  ///< Empty: no loop waits for the socket, whose handler is running.
  std::string_view type{};
  std::string_view state{};   ///< Of TCP; "listen" also for Unix sockets.
  std::string_view awaits{};  ///< "read", "write", "read and write" or empty.
  std::string peer{};
  std::string local{};
  std::int64_t idle_ms = 0;  ///< Since data was sent or received; of TCP.
  std::int64_t unread_bytes = 0;
  std::int64_t unsent_bytes = 0;  ///< Not sent, or not acknowledged.
  std::int64_t rtt_us = 0;        ///< Round-trip time; of TCP.
  std::int64_t backlog = 0;       ///< Connections that wait for accept(2), of listeners.
  std::string place{};            ///< Of the task or handler that waits.
};

struct SocketList {
  std::vector<SocketRow> rows{};  ///< The page.
  std::size_t matching = 0;       ///< On any page.
  std::size_t total = 0;          ///< Matching or not.
  std::vector<std::string> silent_loops{};
  bool is_complete = true;  ///< False if there are more than the limit.
};

/// Lists the sockets that a query selects, in the order of its column; of another name: of the
/// descriptor. Loops that do not answer within `patience` are silent; their sockets are listed
/// without what the loop knows. Sockets of simulations are not listed. Awaited on `loop`. Throws
/// std::bad_alloc.
[[nodiscard]] Task<SocketList> list_sockets(EventLoop& loop, ObservedLoops loops, Duration patience,
                                            std::size_t sockets_max, ListQuery query);

/// Appends the descriptors on which the loops wait, by number, and returns the end of their tables
/// of descriptors. Removes the loops that do not answer from `loops`, and names them in `silent`.
/// Throws std::bad_alloc.
[[nodiscard]] Task<std::size_t> list_watched(ObservedLoops& loops, Duration patience,
                                             std::vector<Watched>& watched,
                                             std::vector<std::string>& silent);

/// Lists the sockets below `fds_end` that `query` selects. `watched` is sorted by descriptor; it
/// and the names in it must exist until the task has ended. Awaited on `loop`. Throws
/// std::bad_alloc.
[[nodiscard]] Task<SocketList> describe_sockets(EventLoop& loop,
                                                const std::vector<Watched>& watched,
                                                std::size_t fds_end, std::size_t sockets_max,
                                                ListQuery query, PlaceText place_text);

}  // namespace tambour::inspector
