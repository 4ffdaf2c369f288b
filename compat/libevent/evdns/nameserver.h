// A nameserver of evdns, with its socket and its state.
//
// A server that has failed is not asked as long as there is another one. A probe, which is a lookup
// of its own, finds out whether it has recovered.
#pragma once

#include <sys/socket.h>

#include <cstdint>

#include <event2/event.h>
#include <event2/event_struct.h>

struct evdns_base;
struct evdns_request;

namespace tambour::libevent {

class Nameserver {
 public:
  enum class Sent : std::uint8_t { now, later, failed };

  Nameserver(const Nameserver&) = delete;
  Nameserver& operator=(const Nameserver&) = delete;

  /// Returns null and sets `error` as evdns_base_nameserver_sockaddr_add() returns it.
  static Nameserver* make(evdns_base& base, const sockaddr* address, socklen_t size,
                          int& error) noexcept;
  /// Closes the socket. The memory is freed once none of the callbacks runs.
  void remove() noexcept;

  /// If the socket is full, the request's turn comes when it is writable.
  Sent send(const void* packet, std::size_t size) noexcept;
  /// Does not ask the server any more, and starts to probe it.
  void fail(const char* why) noexcept;
  void recover() noexcept;
  /// A request to the server got no answer in time.
  void note_timeout() noexcept;
  void take_probe_result(int error) noexcept;
  void count_in_flight(int by) noexcept;
  /// The server changes the case of names, and does not answer over TCP.
  void accept_any_case() noexcept { accepts_any_case_ = true; }
  [[nodiscard]] bool accepts_any_case() const noexcept { return accepts_any_case_; }

  [[nodiscard]] const sockaddr* address() const noexcept {
    return reinterpret_cast<const sockaddr*>(&address_);
  }
  [[nodiscard]] socklen_t address_size() const noexcept { return address_size_; }
  [[nodiscard]] bool is_up() const noexcept { return is_up_; }
  [[nodiscard]] bool is_choked() const noexcept { return is_choked_; }

  // A ring.
  Nameserver* next = nullptr;
  Nameserver* previous = nullptr;

 private:
  explicit Nameserver(evdns_base& base) noexcept : base_(base) {}

  static void on_readable(evutil_socket_t fd, short kind, void* argument);
  static void on_writable(evutil_socket_t fd, short kind, void* argument);
  static void on_probe_time(evutil_socket_t fd, short kind, void* argument);
  static void on_finalize(event_callback* callback, void* argument);

  /// Opens and configures a socket; the former one is closed. Returns an error as make().
  int open() noexcept;
  bool connect() noexcept;
  void close() noexcept;
  void receive() noexcept;
  bool receive_one() noexcept;
  void send_probe() noexcept;
  void schedule_probe() noexcept;
  void end_probe() noexcept;
  void log_change(int severity, const char* before, const char* after) noexcept;

  evdns_base& base_;
  sockaddr_storage address_{};
  socklen_t address_size_ = 0;
  int fd_ = -1;
  bool is_connected_ = false;
  bool is_up_ = true;
  bool is_choked_ = false;  ///< The socket was full.
  bool is_removed_ = false;
  bool accepts_any_case_ = false;
  int failures_ = 0;  ///< How often it was found not to have recovered.
  int timeouts_ = 0;  ///< In a row.
  int in_flight_ = 0;
  int queries_of_port_ = 0;
  evdns_request* probe_ = nullptr;
  event readable_{};
  event writable_{};
  event probe_time_{};
};

}  // namespace tambour::libevent
