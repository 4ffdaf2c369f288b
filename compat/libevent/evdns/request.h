// A lookup of evdns: the handle that programs have.
//
// A request exists until its callback has returned, or until it is discarded: then its callback is
// not invoked. Its event is the timeout of the packet that was sent; once the result is known, the
// event delivers it from the loop. The lock of the base is held wherever a request is used, except
// during the callback.
#pragma once

#include <cstdint>
#include <optional>

#include <event2/dns.h>
#include <event2/event_struct.h>

#include <tambour/net/ip_address.h>

#include "libevent/evdns/reply.h"
#include "libevent/evdns/search.h"

namespace tambour::libevent {
class Nameserver;
class TcpQuery;
}  // namespace tambour::libevent

// NOLINTNEXTLINE(readability-identifier-naming): the name is libevent's.
struct evdns_request {
  using Nameserver = tambour::libevent::Nameserver;
  using DnsType = tambour::dns::Type;

  enum class State : std::uint8_t {
    created,
    waiting,  ///< For a nameserver, or because too many requests are in flight.
    in_flight,
    complete,   ///< The callback will be invoked.
    finishing,  ///< The callback has been invoked, or never will be.
  };

  evdns_request(evdns_base& owner, DnsType wanted, evdns_callback_type function,
                void* user) noexcept;
  evdns_request(const evdns_request&) = delete;
  evdns_request& operator=(const evdns_request&) = delete;

  /// Null if there is no memory. Keeps a reference to the base.
  static evdns_request* make(evdns_base& owner, DnsType wanted, evdns_callback_type function,
                             void* user) noexcept;

  /// Sets what to ask for. Returns false if it is not a name.
  bool set_name(const char* text, bool may_search) noexcept;
  /// Sends the query, or lets it wait.
  void submit() noexcept;
  /// Like submit(), with this server, which may have failed.
  void start_probe(Nameserver& probed) noexcept;
  /// Sends a request that was waiting.
  void send_to(Nameserver& chosen) noexcept;
  void transmit() noexcept;
  /// Sends the query to another nameserver after this one has failed.
  void move_to(Nameserver& other) noexcept;
  [[nodiscard]] bool may_move() const noexcept;
  /// Back to the requests that wait, in front of them.
  void suspend() noexcept;
  void take_reply(tambour::dns::detail::Bytes packet) noexcept;
  /// The reply over TCP; empty if there is none.
  void take_tcp_reply(tambour::dns::detail::Bytes packet) noexcept;

  /// The callback will be invoked with this error, or with the reply.
  void finish(int error) noexcept;
  /// The callback will be invoked with these addresses, of the type that was asked for.
  void finish_with(const tambour::IpAddress* addresses, std::size_t count) noexcept;
  /// The callback will not be invoked.
  void discard() noexcept;

  /// The query for a new packet, with a name in random case.
  [[nodiscard]] std::size_t write(std::uint8_t* into) const noexcept;
  static constexpr std::size_t query_bytes_max = 12 + tambour::dns::Name::bytes_max + 4;

  // Links of the list that the request is in, and of those with a similar id.
  evdns_request* next = nullptr;
  evdns_request* previous = nullptr;
  evdns_request* next_of_head = nullptr;

  evdns_base& base;
  Nameserver* server = nullptr;  ///< To which it was sent last.
  State state = State::created;
  bool is_probe = false;          ///< Of a nameserver; it has no callback.
  bool transmit_pending = false;  ///< The socket was full.
  std::uint16_t id = 0;
  const DnsType type;

  [[nodiscard]] const char* canonical_name() const noexcept { return reply_.canonical.data(); }

 private:
  static void on_event(evutil_socket_t fd, short kind, void* argument);
  static void on_finalize(event* ev, void* argument);

  void time_out() noexcept;
  void deliver() noexcept;
  void handle_reply(tambour::libevent::Verdict verdict, unsigned rcode) noexcept;
  void handle_failure(int error) noexcept;
  bool reissue() noexcept;
  bool ask_over_tcp() noexcept;
  void stop_tcp() noexcept;
  void ask_again_in_any_case() noexcept;
  /// Takes the request from where it waits or is in flight.
  void unlink() noexcept;
  void destroy() noexcept;
  void set_case() noexcept;
  [[nodiscard]] tambour::libevent::DnsQuestionView question() const noexcept;

  // The search: the name itself is tried before the domains (-1), or behind them.
  bool set_candidate(int index) noexcept;
  /// Sets the next candidate that is a name. Returns false if there is none.
  bool try_candidates() noexcept;
  /// Asks for the next candidate.
  bool try_next_candidate() noexcept;
  [[nodiscard]] bool is_name_first() const noexcept;

  event event_{};
  evdns_callback_type callback_;
  void* argument_;
  int error_ = DNS_ERR_NONE;
  int transmissions_ = 0;
  int reissues_ = 0;
  bool is_truncated_ = false;  ///< Otherwise it is asked over TCP because of the case of the name.
  tambour::libevent::TcpQuery* tcp_ = nullptr;
  tambour::libevent::SearchList* search_ = nullptr;
  int candidate_ = -1;
  std::optional<std::uint16_t> next_id_;    ///< Random, with the case of the name.
  tambour::libevent::NameText text_{'\0'};  ///< As the program asked.
  tambour::dns::detail::WireName name_;     ///< As it is sent.
  tambour::libevent::DnsReply reply_;
};
