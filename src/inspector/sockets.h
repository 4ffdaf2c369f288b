// The sockets of the process, and what the loops wait for on them.
//
// Nothing is recorded for this when a connection is opened: a backend knows which operation waits
// on which descriptor, and the kernel knows the rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tambour/base/clock.h>
#include <tambour/task/task.h>

#include "inspector/observed_loops.h"

namespace tambour::inspector {

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
  std::vector<SocketRow> rows{};  ///< Those that match, by descriptor.
  std::size_t total = 0;          ///< Matching or not.
  std::vector<std::string> silent_loops{};
  bool is_complete = true;  ///< False if there are more than the limit.
};

/// A part of a list that a client has chosen.
struct SocketQuery {
  std::string text{};  ///< That a row must contain, in any column. Case is ignored in ASCII.
  std::string sort{};  ///< A column; another value: the descriptor.
  bool is_descending = false;
  std::size_t offset = 0;
  std::size_t limit = 100;
};

/// Lists the sockets that match `text`. Loops that do not answer within `patience` are silent;
/// their sockets are listed without what the loop knows. Sockets of simulations are not listed.
/// Throws std::bad_alloc.
[[nodiscard]] Task<SocketList> list_sockets(ObservedLoops loops, Duration patience,
                                            std::size_t sockets_max, std::string text);

/// The rows of the chosen part, in their order. Takes linear time. Throws std::bad_alloc.
[[nodiscard]] std::vector<const SocketRow*> select_rows(const std::vector<SocketRow>& rows,
                                                        const SocketQuery& query);

}  // namespace tambour::inspector
