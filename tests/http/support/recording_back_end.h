// http::Server behind a front end, with a record of what the front end has sent and of what the
// server has read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tambour/net/unix.h>
#include <tambour/tambour.h>

namespace tambour::test {

/// A request that the server has read.
struct ReadRequest {
  std::string method;
  std::string target;
  std::string body;
  bool is_complete = false;  ///< The server has read the whole body.
  bool is_rejected = false;  ///< The handler has not seen it.
};

/// A connection of the front end to the back end.
struct RecordedConnection {
  std::string sent;  ///< Everything that the front end has sent.
  std::vector<ReadRequest> read;
  std::size_t answered = 0;
};

/// Compares what a front end has sent with what a server has read from it. The front end adds
/// `mark` to the head of each request, and no client sends it: a request without a mark was parsed
/// from a body. Returns what differs, or an empty text.
std::string disagreement(const RecordedConnection& connection, std::string_view mark);

/// Listens on a Unix path. The bytes pass through a relay that records them.
class RecordingBackEnd {
 public:
  RecordingBackEnd(EventLoop& loop, const std::string& path);

  [[nodiscard]] const std::map<std::uint16_t, RecordedConnection>& connections() const noexcept {
    return connections_;
  }
  /// What the answer to a request contains.
  static std::string answer_to(std::string_view method, std::string_view target);

 private:
  Task<> relay(UnixStream from);
  Task<> answer(http::Request& request, http::Response& response);
  void count(const http::Request& request, const http::Response& response);
  /// By the port of the relay.
  RecordedConnection& connection_of(const http::Request& request);

  std::map<std::uint16_t, RecordedConnection> connections_;
  http::Server server_;
  UnixServer relay_;
};

}  // namespace tambour::test
