// evhttp_connection: one end of a connection of HTTP/1, in a server or a client.
//
// `requests` are those that the connection works on: the first one is in progress, and the others
// wait. A server has at most one. A request that is not in a list has no connection: `evcon` is
// null. The user may call functions for it nevertheless.
//
// Every callback of the user may free the connection. It is then unlinked from everything else and
// `freed` is set; its memory is released by the last `Kept`.
#pragma once

#include <sys/queue.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <event2/http.h>
#include <event2/http_struct.h>

#include "libevent/event/core.h"
#include "libevent/http/message_reader.h"

struct evdns_base;
struct evrpc_pool;

namespace tambour::libevent {

enum class HttpState : std::uint8_t {
  disconnected,
  connecting,
  idle,  ///< Of a client: connected, without a request.
  reading_head,
  reading_body,
  reading_trailers,
  writing,  ///< A client writes a request, or a server works on a response.
};

/// Flags of a connection besides those of event2/http.h.
namespace connection_flags {
inline constexpr int incoming = 0x0001;
inline constexpr int outgoing = 0x0002;
/// The end of an idle connection of a client is waited for.
inline constexpr int detects_close = 0x0004;
inline constexpr int free_on_completion = EVHTTP_CON_PUBLIC_FLAGS_END;
/// Writing has failed, and the response is read nevertheless.
inline constexpr int reads_after_error = EVHTTP_CON_PUBLIC_FLAGS_END << 1;
/// The connection cannot be used after the current message.
inline constexpr int closes = EVHTTP_CON_PUBLIC_FLAGS_END << 2;
/// A server has not read all of the request, so that closing would reset the connection.
inline constexpr int lingers = EVHTTP_CON_PUBLIC_FLAGS_END << 3;
}  // namespace connection_flags

}  // namespace tambour::libevent

struct evhttp_connection {
  using State = tambour::libevent::HttpState;
  using Written = void (*)(evhttp_connection* connection, void* argument);

  TAILQ_ENTRY(evhttp_connection) next;  ///< In the list of a server, or of a pool of evrpc.
  TAILQ_HEAD(, evhttp_request) requests;

  bufferevent* bufev = nullptr;
  event_base* base = nullptr;
  evdns_base* dns = nullptr;
  evhttp* server = nullptr;
  evrpc_pool* pool = nullptr;
  int fd = -1;
  int flags = 0;
  State state = State::disconnected;
  bool freed = false;
  bool in_close_callback = false;
  bool waits_for_retry = false;
  bool reads_more = false;  ///< `read_more` is scheduled.
  /// What has been read ahead is parsed before more is read.
  bool suspends_reading = false;
  int references = 1;

  tambour::libevent::MessageReader reader;
  std::size_t head_bytes_max = SIZE_MAX;
  std::uint64_t body_bytes_max = UINT64_MAX;

  char* address = nullptr;
  char* bind_address = nullptr;
  std::uint16_t port = 0;
  std::uint16_t bind_port = 0;
  int family = 0;
  timeval timeout{};  ///< Zero: the defaults.

  event retry{};
  timeval initial_retry_timeout{2, 0};
  int interim_responses = 0;  ///< Before the current response.
  int retries = 0;
  int retries_max = 0;

  /// Invoked when the output has been written.
  Written written = nullptr;
  void* written_argument = nullptr;
  void (*close_callback)(evhttp_connection*, void*) = nullptr;
  void* close_argument = nullptr;
  /// Reads what is in the input already, from the loop.
  event_callback read_more{};

  [[nodiscard]] bool has(int flag) const noexcept { return (flags & flag) != 0; }
  [[nodiscard]] bool is_connected() const noexcept {
    return state != State::disconnected && state != State::connecting;
  }
  [[nodiscard]] evhttp_request* current() const noexcept { return TAILQ_FIRST(&requests); }
  [[nodiscard]] evbuffer* input() const noexcept { return bufferevent_get_input(bufev); }
  [[nodiscard]] bool is_input_full() const noexcept;
  [[nodiscard]] evbuffer* output() const noexcept { return bufferevent_get_output(bufev); }

  /// Removes the request from the list.
  void unlink(evhttp_request& request) noexcept;
  /// Removes and frees it, unless it is the user's.
  void drop(evhttp_request& request) noexcept;

  void schedule_reading() noexcept;
  void cancel_reading() noexcept;
  void suspend_reading() noexcept;
  void resume_reading() noexcept;
  /// Begins to read a message.
  void start_reading() noexcept;
  /// Writes what is in the output, and then invokes the function.
  void start_writing(Written then, void* argument) noexcept;
  /// Ends the current request with an error.
  void fail(evhttp_request_error error) noexcept;
  /// Closes the descriptor and discards what is buffered. A client can connect again.
  void reset() noexcept;
  /// What evhttp_connection_free() does.
  void retire() noexcept;
  void release() noexcept;

  // Of servers.
  void end_response() noexcept;
  /// Without memory for a response: closes the connection. The request stays the user's.
  void abandon_response() noexcept;

  // Of clients.
  /// Returns -1 if the connection could not be started. The request is still in the list then.
  int connect() noexcept;
  void retry_or_give_up() noexcept;
  /// Sends the first request.
  void dispatch() noexcept;
  /// Writes what is in the output, and then reads the response.
  void send_request() noexcept;
  void lose_idle() noexcept;

  static void on_read(bufferevent* bev, void* self);
  static void on_written(bufferevent* bev, void* self);
  static void on_event(bufferevent* bev, short kind, void* self);

 private:
  void read() noexcept;
  void read_head(evhttp_request& request) noexcept;
  [[nodiscard]] tambour::libevent::ReadResult store_target(evhttp_request& request) noexcept;
  void take_response_head(evhttp_request& request) noexcept;
  void take_interim_response(evhttp_request& request) noexcept;
  void begin_body(evhttp_request& request) noexcept;
  [[nodiscard]] bool continues(evhttp_request& request) noexcept;
  void read_body(evhttp_request& request) noexcept;
  void read_length(evhttp_request& request) noexcept;
  void read_until_close(evhttp_request& request) noexcept;
  void read_chunks(evhttp_request& request) noexcept;
  void read_trailers(evhttp_request& request) noexcept;
  void refuse_body(evhttp_request& request) noexcept;
  void fail_reading(tambour::libevent::ReadResult result, evhttp_request_error invalid) noexcept;
  /// Returns false if the callback has ended the request or the connection.
  [[nodiscard]] bool pass_chunk(evhttp_request& request) noexcept;
  void complete() noexcept;
  void complete_response(evhttp_request& request) noexcept;
  void fail_incoming(evhttp_request& request, evhttp_request_error error) noexcept;
  void fail_outgoing(evhttp_request& request, evhttp_request_error error) noexcept;
  void handle_event(short kind) noexcept;
  void read_after_error(evhttp_request& request) noexcept;
  void set_connected() noexcept;
  void detect_close(bool enabled) noexcept;
  void invoke_close_callback() noexcept;
  void close() noexcept;
  static void on_request_written(evhttp_connection* self, void* argument);
  static void on_connected(bufferevent* bev, short kind, void* self);
};

namespace tambour::libevent {

/// Keeps the memory of a connection until the end of a function.
class Kept {
 public:
  explicit Kept(evhttp_connection& connection) noexcept : connection_(connection) {
    ++connection_.references;
  }
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;
  ~Kept() { connection_.release(); }

 private:
  evhttp_connection& connection_;
};

/// Defers freeing a request while a callback of the user runs. If they are nested, the outer one
/// frees it.
class DeferredFree {
 public:
  explicit DeferredFree(evhttp_request& request) noexcept
      : request_(request), nested_((request.flags & EVHTTP_REQ_DEFER_FREE) != 0) {
    request_.flags |= EVHTTP_REQ_DEFER_FREE;
  }
  DeferredFree(const DeferredFree&) = delete;
  DeferredFree& operator=(const DeferredFree&) = delete;

  /// Returns false if the user has freed or cancelled the request. It is freed then.
  [[nodiscard]] bool end() noexcept {
    const bool is_freed = (request_.flags & EVHTTP_REQ_NEEDS_FREE) != 0;
    if (nested_) return !is_freed;
    request_.flags &= ~(EVHTTP_REQ_DEFER_FREE | EVHTTP_REQ_NEEDS_FREE);
    if (!is_freed) return true;
    request_.flags &= ~EVHTTP_USER_OWNED;
    // Cancelling has taken it from the connection already, but freeing has not.
    evhttp_cancel_request(&request_);
    return false;
  }

 private:
  evhttp_request& request_;
  bool nested_;
};

/// Whether the sender of these fields closes the connection after the message.
[[nodiscard]] bool asks_to_close(const evhttp_request& request, const evkeyvalq& fields) noexcept;
[[nodiscard]] bool asks_to_keep_alive(const evkeyvalq& fields) noexcept;
/// Whether one side has asked to close it.
[[nodiscard]] bool is_last(const evhttp_request& request) noexcept;
/// Of methods that have no bit of their own. A server answers them with 501.
inline constexpr unsigned unknown_type = 1U << 15;
/// The type of a request. It may be a value that evhttp_cmd_type does not have: unknown_type, or
/// another one of the program.
[[nodiscard]] inline unsigned type_of(const evhttp_request& request) noexcept {
  unsigned type = 0;
  std::memcpy(&type, &request.type, sizeof type);
  return type;
}
/// The method of a request, or null if it is unknown.
[[nodiscard]] const http::Method* method_of(const evhttp_request& request) noexcept;
[[nodiscard]] bool is_at_least_1_1(const evhttp_request& request) noexcept;
/// Whether the response has a body.
[[nodiscard]] bool has_body(const evhttp_request& response) noexcept;
enum class Expect : std::uint8_t { nothing, to_continue, other };
/// What the Expect field among the fields of a request asks for.
[[nodiscard]] Expect expectation(const evhttp_request& request, const evkeyvalq& fields) noexcept;

/// Appends the head and the body of a message to the output. Returns false if there is no memory.
[[nodiscard]] bool write_request(evhttp_connection& connection, evhttp_request& request) noexcept;
/// How the end of a response's body is marked.
enum class BodyEnd : std::uint8_t { length, chunked, close };
[[nodiscard]] bool write_response(evhttp_connection& connection, evhttp_request& response,
                                  BodyEnd end) noexcept;

/// Removes a connection that is freed from its pool of evrpc.
void leave_pool(evhttp_connection& connection) noexcept;

/// Frees a request, unless it is the user's.
void free_unless_owned(evhttp_request& request) noexcept;
/// Stores the reason phrase of the status, if `reason` is null.
void set_status(evhttp_request& request, int status, const char* reason) noexcept;

}  // namespace tambour::libevent
