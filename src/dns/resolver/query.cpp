// Query: which server is asked, when it is asked again, by UDP or TCP, with or without EDNS, and
// what each response or error leads to.
#include "dns/resolver/query.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "dns/resolver/engine.h"
#include "dns_message/writer.h"
#include "loop/core.h"

namespace tambour::dns::detail {
namespace {

constexpr std::size_t servers_max = 32;
constexpr unsigned doublings_max = 6;
/// The delay after which sending is tried again if there was no memory.
constexpr std::int64_t no_memory_ns = 100'000'000;

AnswerPointer answer_with(dns::ErrorCode error) {
  return std::make_shared<const Answer>(Answer{.error = error});
}

/// Queries are padded to a multiple of this: RFC 8467, section 4.1.
constexpr std::size_t padding_block = 128;
constexpr std::size_t option_head_bytes = 4;

/// What a query carries besides its question.
struct QueryOptions {
  bool wants_ad = false;
  bool has_edns = false;
  std::string_view cookie{};  ///< Empty: none.
  bool is_padded = false;
};

/// RFC 6891; RFC 7873; RFC 7830.
void write_edns(std::string& packet, Writer& writer, const QueryOptions& options) {
  writer.u8(0);
  writer.u16(static_cast<std::uint16_t>(dns::Type::opt));
  writer.u16(dns::Edns::udp_bytes_default);
  writer.u32(0);
  const std::string_view cookie = options.cookie;
  std::size_t size = cookie.empty() ? 0 : option_head_bytes + cookie.size();
  std::size_t padding = 0;
  if (options.is_padded) {
    size += option_head_bytes;
    padding = (padding_block - (packet.size() + 2 + size) % padding_block) % padding_block;
    size += padding;
  }
  writer.u16(static_cast<std::uint16_t>(size));
  if (!cookie.empty()) {
    writer.u16(dns::Option::cookie);
    writer.u16(static_cast<std::uint16_t>(cookie.size()));
    writer.text(cookie);
  }
  if (options.is_padded) {
    writer.u16(dns::Option::padding);
    writer.u16(static_cast<std::uint16_t>(padding));
    writer.text(std::string(padding, '\0'));
  }
}

/// RFC 1035, section 4.1.1.
void write_query(std::string& packet, std::uint16_t id, std::string_view name, dns::Type type,
                 const QueryOptions& options) {
  Writer writer(packet);
  writer.u16(id);
  writer.u16(Header::recursion_desired | (options.wants_ad ? Header::authentic_data : 0));
  writer.u16(1);
  writer.u32(0);
  writer.u16(options.has_edns ? 1 : 0);
  writer.name(name);
  writer.u16(static_cast<std::uint16_t>(type));
  writer.u16(static_cast<std::uint16_t>(dns::Class::in));
  if (options.has_edns) write_edns(packet, writer, options);
}

/// A server, or an attacker, may set the bit. It counts if the configuration trusts both.
void clear_authentic_data(std::string& message) noexcept {
  constexpr std::size_t low_byte_of_flags = 3;
  char& flags = message[low_byte_of_flags];
  flags = static_cast<char>(static_cast<unsigned char>(flags) & ~Header::authentic_data);
}

}  // namespace

void Waiter::leave() noexcept {
  Query* const query = std::exchange(query_, nullptr);
  if (query == nullptr) return;
  unlink();
  query->engine_.waiter_left();
  if (!query->has_waiters()) query->engine_.drop(*query);
}

Query::Query(Engine& engine, std::string_view key)
    : engine_(engine),
      key_(key),
      set_(engine.servers()),
      timer_(engine.loop(), [this] { expired(); }) {
  if (!engine.options().random_case) return;
  cased_name_ = name_of_key(key);
  for (char& byte : cased_name_) {
    if (byte >= 'a' && byte <= 'z' && engine.entropy().next() % 2 == 0)
      byte = static_cast<char>(byte - ('a' - 'A'));
  }
}

Query::~Query() {
  forget_attempts();
  engine_.retire(std::move(set_));
}

void Query::add(Waiter& waiter) noexcept {
  waiter.query_ = this;
  waiters_.push_back(waiter);
}

void Query::finish_waiters(const AnswerPointer& answer) noexcept {
  while (Waiter* const waiter = waiters_.front()) {
    waiter->unlink();
    waiter->query_ = nullptr;
    engine_.waiter_left();
    waiter->answered(answer);
  }
}

void Query::start() {
  const ResolvConf& conf = *set_->conf;
  // The time of the loop is that of its last iteration, which is long past if it does not run.
  deadline_ns_ = base::saturating_add(
      engine_.core().clock_ns(), base::saturating_multiply(conf.timeout.count(), conf.attempts));
  send_to_next();
}

void Query::start_or_retry() noexcept {
  try {
    start();
  } catch (const std::bad_alloc&) {
    retry_later();
  }
}

void Query::retry_later() noexcept {
  const std::int64_t left_ns = deadline_ns_ - engine_.core().now_ns();
  timer_.start(Duration(std::clamp<std::int64_t>(left_ns, 0, no_memory_ns)));
}

void Query::restart() {
  if (deadline_ns_ == 0) return;
  attempts_.clear();
  for (const auto& server : set_->servers) server->close_all();
  tried_ = 0;
  timer_.start(Duration::zero());
}

void Query::expired() {
  if (last_ != nullptr) std::exchange(last_, nullptr)->timed_out();
  try {
    if (engine_.core().now_ns() >= deadline_ns_) return finish_with(error_);
    send_to_next();
  } catch (const std::bad_alloc&) {
    retry_later();
  }
}

Server* Query::choose() noexcept {
  const auto& servers = set_->servers;
  const std::size_t count = std::min(servers.size(), servers_max);
  if (set_->conf->rotate && attempts_.empty() && !has_sent_) ++set_->rotation;
  const std::size_t first = set_->conf->rotate ? set_->rotation % count : 0;
  Server* best = nullptr;
  for (std::size_t i = 0; i < count; ++i) {
    Server& server = *servers[(first + i) % count];
    if (is_tried(server)) continue;
    const bool is_better = best == nullptr || (best->is_dead() && !server.is_dead()) ||
                           (best->is_dead() == server.is_dead() && !set_->conf->rotate &&
                            server.cost_ns() < best->cost_ns());
    if (is_better) best = &server;
  }
  return best;
}

/// Returns true if an error is final: the servers that have not answered with one are dead.
bool Query::has_failed_everywhere() const noexcept {
  if (failed_ == 0) return false;
  return std::ranges::all_of(set_->servers, [this](const auto& entry) {
    return (failed_ >> entry->number() & 1U) != 0 || entry->is_dead() ||
           entry->number() >= servers_max;
  });
}

void Query::send_to_next() {
  Server* server = choose();
  if (server == nullptr) {
    if (has_failed_everywhere()) return finish_with(error_);
    tried_ = 0;
    ++rounds_;
    server = choose();
  }
  const Transport transport = server->is_tcp_only() ? Transport::tcp : Transport::udp;
  for (const auto& entry : set_->servers) {
    if (entry.get() != server && entry->wants_probe(engine_.core().now_ns()))
      send(*entry, transport, true);
  }
  send(*server, transport);
}

void Query::send(Server& server, Transport transport, bool is_probe) {
  if (!is_probe) tried_ |= 1U << server.number();
  const Attempt* const sent = transport == Transport::tcp ? attempt_over_tcp(server) : nullptr;
  if (sent != nullptr) {
    // TCP loses nothing as long as the connection exists.
    if (is_probe) return;
    start_timer(server, engine_.core().clock_ns());
    return server.tcp().renew_if_silent(sent->sent_ns);
  }
  UdpPort* port = nullptr;
  if (transport == Transport::udp) {
    Error error;
    port = server.port(error);
    if (port == nullptr) {
      if (!is_probe) server_failed(server);
      return;
    }
  }
  std::uint16_t id;
  do id = static_cast<std::uint16_t>(engine_.entropy().next());
  while (port != nullptr ? port->has_id(id) : server.tcp().has_id(id));
  const dns::ResolverOptions& options = engine_.options();
  // An attacker can neither spoof nor read the packets of a secure transport, but see their sizes.
  const bool is_secure = options.transport != nullptr;
  const bool has_edns = options.edns && server.has_edns() && !is_plain(server);
  std::string& packet = engine_.packet();
  packet.clear();
  write_query(packet, id, name(), type_of_key(key_),
              {.wants_ad = set_->conf->trust_ad,
               .has_edns = has_edns,
               .cookie = options.cookies && !is_secure ? server.cookie() : std::string_view(),
               .is_padded = is_secure});
  const bool is_repeated = std::exchange(has_sent_, true);
  if (is_repeated) engine_.count_retry();
  const std::int64_t now_ns = engine_.core().clock_ns();
  attempts_.push_back(
      {.server = &server, .port = port, .id = id, .has_edns = has_edns, .sent_ns = now_ns});
  if (!is_probe) start_timer(server, now_ns);
  try {
    if (port != nullptr) {
      port->send(*this, id, packet, is_repeated);
    } else {
      server.tcp().send(*this, id, packet);
    }
  } catch (...) {
    attempts_.pop_back();
    throw;
  }
}

void Query::start_timer(const Server& server, std::int64_t now_ns) noexcept {
  last_ = const_cast<Server*>(&server);
  const std::int64_t timeout_ns = server.timeout_ns() << std::min(rounds_, doublings_max);
  const std::int64_t limit_ns = set_->conf->timeout.count();
  const std::int64_t end_ns = base::saturating_add(now_ns, std::min(timeout_ns, limit_ns));
  timer_.start_at(TimePoint(Duration(std::min(end_ns, deadline_ns_))));
}

const Query::Attempt* Query::attempt_over_tcp(const Server& server) const noexcept {
  const auto found = std::ranges::find_if(attempts_, [&](const Attempt& attempt) {
    return attempt.server == &server && attempt.port == nullptr;
  });
  return found != attempts_.end() ? &*found : nullptr;
}

Query::Attempt Query::end_attempt(Server& server, UdpPort* port, std::uint16_t id) noexcept {
  const auto found = std::ranges::find_if(attempts_, [&](const Attempt& attempt) {
    return attempt.server == &server && attempt.port == port && attempt.id == id;
  });
  const Attempt ended = *found;
  attempts_.erase(found);
  forget(ended);
  return ended;
}

void Query::take_udp(Server& server, UdpPort& port, std::uint16_t id, Bytes packet) {
  Answer answer;
  ResponseInfo info;
  const bool is_ours =
      is_response_to(packet, id, name(), type_of_key(key_), engine_.options().random_case) &&
      read_response(packet, key_, answer, info);
  const std::int64_t now_ns = engine_.core().now_ns();
  const bool uses_cookies = engine_.options().cookies && engine_.options().edns;
  if (!is_ours) return engine_.count_rejected();
  const bool is_suspect =
      uses_cookies && !info.truncated && !server.accept_cookie(info.cookie, now_ns);
  if (is_suspect) engine_.count_rejected();
  if (is_suspect && !info.cookie.empty()) return;
  const Attempt attempt = end_attempt(server, &port, id);
  // Either the response is forged, or the server has stopped to send cookies. TCP needs none.
  if (is_suspect) return send(server, Transport::tcp);
  server.answered(now_ns - attempt.sent_ns);
  take(attempt, packet, std::move(answer), info);
}

bool Query::take_tcp(Server& server, std::uint16_t id, Bytes packet) {
  const bool is_ours = is_response_to(packet, id, name(), type_of_key(key_), false);
  if (!is_ours) {
    engine_.count_rejected();
    return false;
  }
  const Attempt attempt = end_attempt(server, nullptr, id);
  if (server.is_tcp_only()) server.answered(engine_.core().now_ns() - attempt.sent_ns);
  Answer answer;
  ResponseInfo info;
  if (read_response(packet, key_, answer, info) && !info.truncated) {
    take(attempt, packet, std::move(answer), info);
  } else {
    // It would be the same again.
    engine_.count_rejected();
    try_next(server, dns::ErrorCode::bad_response);
  }
  return true;
}

void Query::take(const Attempt& attempt, Bytes packet, Answer answer, const ResponseInfo& info) {
  Server& server = *attempt.server;
  const Transport transport = attempt.port == nullptr ? Transport::tcp : Transport::udp;
  if (info.truncated) return send(server, Transport::tcp);
  const bool is_about_edns = answer.error == dns::ErrorCode::format_error ||
                             answer.error == dns::ErrorCode::not_implemented;
  if (is_about_edns && attempt.has_edns && !info.has_edns) {
    // If the query was sent without EDNS already, its answer is still to come.
    if (is_plain(server)) return;
    plain_ |= 1U << server.number();
    return send(server, transport);
  }
  if (dns::Rcode(info.rcode) == dns::Rcode::bad_cookie && transport == Transport::udp) {
    // The response has brought a new cookie. If that one is not accepted either, TCP needs none.
    return send(server, std::exchange(retried_cookie_, true) ? Transport::tcp : Transport::udp);
  }
  // An error without the question could belong to another query, so that it says only that this
  // server does not answer this query: it is not cached, and other servers are asked.
  const bool is_answer =
      info.has_question && (answer.error == no_error || answer.error == dns::ErrorCode::no_data ||
                            answer.error == dns::ErrorCode::no_such_name);
  if (!is_answer) return try_next(server, answer.error);
  // Not at the first error, which may have another reason.
  if (is_plain(server) && !attempt.has_edns && server.has_edns()) server.disable_edns();
  answer.message.assign(reinterpret_cast<const char*>(packet.data()), info.size);
  if (!set_->conf->trust_ad) clear_authentic_data(answer.message);
  finish(std::make_shared<const Answer>(std::move(answer)));
}

void Query::attempt_failed(Server& server, const UdpPort* port, dns::ErrorCode error) noexcept {
  std::erase_if(attempts_, [&](const Attempt& attempt) {
    return attempt.server == &server && attempt.port == port;
  });
  const bool is_final = error != dns::ErrorCode::timeout;
  if (last_ != &server && !is_final) return;
  try {
    if (is_final) return try_next(server, error);
    server_failed(server);
  } catch (const std::bad_alloc&) {
    retry_later();
  }
}

void Query::server_failed(Server& server) {
  last_ = nullptr;
  if (choose() != nullptr) return send_to_next();
  // Not at once, since that would be a busy loop. Another round may succeed.
  const std::int64_t left_ns = deadline_ns_ - engine_.core().now_ns();
  const std::int64_t delay_ns = server.timeout_ns() << std::min(rounds_, doublings_max);
  timer_.start(Duration(std::max<std::int64_t>(std::min(left_ns, delay_ns), 0)));
}

void Query::try_next(Server& server, dns::ErrorCode error) {
  // SERVFAIL is the error that says most.
  if (error_ != dns::ErrorCode::server_failure) error_ = error;
  failed_ |= 1U << server.number();
  if (last_ != &server && last_ != nullptr) return;  // Another server is still to answer.
  last_ = nullptr;
  send_to_next();
}

void Query::forget(const Attempt& attempt) noexcept {
  if (attempt.port != nullptr) {
    attempt.port->forget(attempt.id);
  } else {
    attempt.server->tcp().forget(*this);
  }
}

void Query::forget_attempts() noexcept {
  for (const Attempt& attempt : attempts_) forget(attempt);
  attempts_.clear();
}

void Query::finish(const AnswerPointer& answer) {
  timer_.stop();
  forget_attempts();
  engine_.end(*this, answer);
}

void Query::finish_with(dns::ErrorCode error) { finish(answer_with(error)); }

}  // namespace tambour::dns::detail
