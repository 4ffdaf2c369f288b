// The requests of DNS servers: parsed, and answered.

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

#include <event2/util.h>

#include <tambour/dns/message.h>

#include "base/system_call.h"
#include "dns_message/writer.h"
#include "libevent/evdns/base.h"
#include "libevent/evdns/names.h"
#include "libevent/evdns/server_port.h"
#include "libevent/event/core.h"
#include "libevent/event/log.h"

using tambour::dns::detail::Header;
using tambour::dns::detail::WireName;
using tambour::libevent::HeldLock;
using tambour::libevent::lock;
using tambour::libevent::NameText;
using tambour::libevent::ServerRequest;
using tambour::libevent::unlock;
using tambour::libevent::wire_of;
namespace base = tambour::detail::base;
namespace dns = tambour::dns;

namespace tambour::libevent {

ServerRequest::ServerRequest(evdns_server_port& owner) noexcept
    : evdns_server_request{}, port(owner) {}

ServerRequest* ServerRequest::parse(evdns_server_port& port, dns::detail::Bytes packet,
                                    const sockaddr* from, socklen_t from_size) noexcept {
  dns::detail::Reader reader(packet);
  const Header header = Header::read(reader);
  if (reader.has_failed() || (header.flags & Header::response) != 0) return nullptr;
  void* const memory = event_mm_malloc_(sizeof(ServerRequest));
  if (memory == nullptr) return nullptr;
  auto* const created = new (memory) ServerRequest(port);
  created->id_ = header.id;
  created->opcode_ = header.opcode();
  created->flags = header.flags & (Header::recursion_desired | Header::checking_disabled);
  created->peer_size_ = std::min<socklen_t>(from_size, sizeof created->peer_);
  std::memcpy(&created->peer_, from, created->peer_size_);
  if (!created->read_questions(reader, header.questions)) {
    created->free_memory();
    return nullptr;
  }
  ++port.references;
  return created;
}

bool ServerRequest::read_questions(dns::detail::Reader& reader, unsigned count) noexcept {
  constexpr std::size_t question_bytes_min = 5;
  if (count == 0 || count > reader.left() / question_bytes_min) return false;
  questions =
      static_cast<evdns_server_question**>(event_mm_calloc_(count, sizeof(evdns_server_question*)));
  if (questions == nullptr) return false;
  for (unsigned i = 0; i < count; ++i) {
    WireName name;
    NameText text;
    reader.name(name);
    const std::uint16_t type = reader.u16();
    const std::uint16_t question_class = reader.u16();
    if (reader.has_failed() || !text_of(name.view(), text)) return false;
    const std::size_t size = std::strlen(text.data()) + 1;
    auto* const question =
        static_cast<evdns_server_question*>(event_mm_malloc_(sizeof(evdns_server_question) + size));
    if (question == nullptr) return false;
    question->type = type;
    question->dns_question_class = question_class;
    std::memcpy(question->name, text.data(), size);
    questions[nquestions++] = question;
  }
  return true;
}

void ServerRequest::free_records() noexcept {
  for (ServerRecord*& first : sections_) {
    while (first != nullptr) event_mm_free_(std::exchange(first, first->next));
  }
}

void ServerRequest::free_memory() noexcept {
  for (int i = 0; i < nquestions; ++i) event_mm_free_(questions[i]);
  if (questions != nullptr) event_mm_free_(static_cast<void*>(questions));
  free_records();
  if (response_ != nullptr) event_mm_free_(response_);
  event_mm_free_(this);
}

void ServerRequest::free() noexcept {
  evdns_server_port& owner = port;
  free_memory();
  owner.release();
}

bool ServerRequest::add(int section, const WireName& name, dns::Type type, dns::Class record_class,
                        std::uint32_t ttl, bool has_name, std::string_view data) noexcept {
  void* const memory = event_mm_malloc_(sizeof(ServerRecord) + data.size());
  if (memory == nullptr) return false;
  auto* const added = new (memory) ServerRecord{.next = nullptr,
                                                .name = name,
                                                .type = type,
                                                .record_class = record_class,
                                                .ttl = ttl,
                                                .has_name = has_name,
                                                .size = data.size()};
  std::ranges::copy(data, reinterpret_cast<char*>(added + 1));
  ServerRecord** link = &sections_[section];
  while (*link != nullptr) link = &(*link)->next;
  *link = added;
  return true;
}

namespace {

void write_record(dns::detail::Writer& writer, const ServerRecord& record) {
  writer.compressed_name(record.name.view());
  writer.u16(static_cast<std::uint16_t>(record.type));
  writer.u16(static_cast<std::uint16_t>(record.record_class));
  writer.u32(record.ttl);
  const std::size_t size_at = writer.size();
  writer.u16(0);
  if (record.has_name) {
    writer.compressed_name(record.data());
  } else {
    writer.text(record.data());
  }
  writer.set_u16(size_at, static_cast<std::uint16_t>(writer.size() - size_at - 2));
}

}  // namespace

std::string ServerRequest::write(unsigned rcode) const {
  std::string out;
  dns::detail::Writer writer(out);
  unsigned bits = static_cast<unsigned>(flags) | Header::response | opcode_ << 11U | rcode;
  std::uint16_t counts[4]{};
  bool is_full = false;
  writer.text(std::string_view("\0\0\0\0\0\0\0\0\0\0\0\0", Header::bytes));
  // Nothing is cut in its middle, and nothing smaller is sent in place of what did not fit.
  const auto add = [&](std::size_t section, auto write_one) {
    if (is_full) return;
    const std::size_t before = writer.size();
    write_one();
    is_full = writer.size() > dns::Message::udp_bytes_plain;
    if (!is_full) {
      ++counts[section];
      return;
    }
    writer.truncate(before);
    // Additional records are optional: RFC 2181, section 9.
    if (section != 3) bits |= Header::truncated;
  };
  for (int i = 0; i < nquestions; ++i) {
    WireName name;
    if (!wire_of(questions[i]->name, name)) continue;
    add(0, [&] {
      writer.compressed_name(name.view());
      writer.u16(static_cast<std::uint16_t>(questions[i]->type));
      writer.u16(static_cast<std::uint16_t>(questions[i]->dns_question_class));
    });
  }
  for (std::size_t section = 0; section < std::size(sections_); ++section) {
    for (const ServerRecord* server_record = sections_[section]; server_record != nullptr;
         server_record = server_record->next)
      add(section + 1, [&] { write_record(writer, *server_record); });
  }
  writer.set_u16(0, id_);
  writer.set_u16(2, static_cast<std::uint16_t>(bits));
  for (std::size_t i = 0; i < std::size(counts); ++i) writer.set_u16(4 + 2 * i, counts[i]);
  return out;
}

bool ServerRequest::build(unsigned rcode) noexcept {
  try {
    const std::string bytes = write(rcode);
    response_ = static_cast<char*>(event_mm_malloc_(bytes.size()));
    if (response_ == nullptr) return false;
    response_size_ = bytes.copy(response_, bytes.size());
  } catch (const std::bad_alloc&) {
    return false;
  }
  free_records();
  return true;
}

bool ServerRequest::send() noexcept {
  const ssize_t sent = detail::base::uninterrupted(
      detail::base::Call::send, ::sendto, port.fd, static_cast<const void*>(response_),
      response_size_, MSG_DONTWAIT | MSG_NOSIGNAL, peer(), peer_size_);
  if (sent >= 0) return true;
  if (errno == EAGAIN) return false;
  evdns_log(EVENT_LOG_WARN, "Error %s (%d) while writing response to port; dropping",
            evutil_socket_error_to_string(errno), errno);
  return true;
}

}  // namespace tambour::libevent

namespace {

ServerRequest& of(evdns_server_request* request) noexcept {
  return *static_cast<ServerRequest*>(request);
}

/// One record for each address.
int add_addresses(evdns_server_request* request, const char* name, dns::Type type, int count,
                  const void* addresses, int ttl) noexcept {
  const int size = type == dns::Type::aaaa ? 16 : 4;
  if (count <= 0 || addresses == nullptr) return -1;
  const auto* text = static_cast<const char*>(addresses);
  for (int i = 0; i < count; ++i, text += size) {
    if (evdns_server_request_add_reply(request, EVDNS_ANSWER_SECTION, name, static_cast<int>(type),
                                       EVDNS_CLASS_INET, ttl, size, 0, text) != 0)
      return -1;
  }
  return 0;
}

}  // namespace

int evdns_server_request_add_reply(evdns_server_request* req, int section, const char* name,
                                   int type, int dns_class, int ttl, int datalen, int is_name,
                                   const char* data) {
  ServerRequest& request = of(req);
  const HeldLock locked(request.port.lock);
  WireName owner;
  WireName target;
  if (request.is_built() || section < EVDNS_ANSWER_SECTION || section > EVDNS_ADDITIONAL_SECTION)
    return -1;
  if (!wire_of(name, owner)) return -1;
  std::string_view bytes;
  if (data != nullptr && is_name != 0) {
    if (!wire_of(data, target)) return -1;
    bytes = target.view();
  } else if (data != nullptr) {
    if (datalen < 0 || datalen > UINT16_MAX) return -1;
    bytes = {data, static_cast<std::size_t>(datalen)};
  }
  const bool is_added =
      request.add(section, owner, dns::Type(type), dns::Class(dns_class),
                  static_cast<std::uint32_t>(ttl), is_name != 0 && data != nullptr, bytes);
  return is_added ? 0 : -1;
}

int evdns_server_request_add_a_reply(evdns_server_request* req, const char* name, int n,
                                     const void* addrs, int ttl) {
  return add_addresses(req, name, dns::Type::a, n, addrs, ttl);
}

int evdns_server_request_add_aaaa_reply(evdns_server_request* req, const char* name, int n,
                                        const void* addrs, int ttl) {
  return add_addresses(req, name, dns::Type::aaaa, n, addrs, ttl);
}

int evdns_server_request_add_ptr_reply(evdns_server_request* req, in_addr* in,
                                       const char* inaddr_name, const char* hostname, int ttl) {
  if ((in == nullptr) == (inaddr_name == nullptr)) return -1;
  char text[sizeof "255.255.255.255.in-addr.arpa"];
  if (in != nullptr) {
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(in);
    std::snprintf(text, sizeof text, "%u.%u.%u.%u.in-addr.arpa", bytes[3], bytes[2], bytes[1],
                  bytes[0]);
    inaddr_name = text;
  }
  return evdns_server_request_add_reply(req, EVDNS_ANSWER_SECTION, inaddr_name, EVDNS_TYPE_PTR,
                                        EVDNS_CLASS_INET, ttl, -1, 1, hostname);
}

int evdns_server_request_add_cname_reply(evdns_server_request* req, const char* name,
                                         const char* cname, int ttl) {
  return evdns_server_request_add_reply(req, EVDNS_ANSWER_SECTION, name, EVDNS_TYPE_CNAME,
                                        EVDNS_CLASS_INET, ttl, -1, 1, cname);
}

void evdns_server_request_set_flags(evdns_server_request* req, int flags) {
  req->flags &= ~(EVDNS_FLAGS_AA | EVDNS_FLAGS_RD);
  req->flags |= flags;
}

int evdns_server_request_respond(evdns_server_request* req, int err) {
  constexpr int rcode_max = 15;
  ServerRequest& request = of(req);
  evdns_server_port& port = request.port;
  lock(port.lock);
  const bool is_valid = err >= 0 && err <= rcode_max;
  if (!request.is_built() && (!is_valid || !request.build(static_cast<unsigned>(err)))) {
    unlock(port.lock);
    return -1;
  }
  return port.respond(request) ? 0 : 1;
}

int evdns_server_request_drop(evdns_server_request* req) {
  ServerRequest& request = of(req);
  lock(request.port.lock);
  request.free();
  return 0;
}

int evdns_server_request_get_requesting_addr(evdns_server_request* req, sockaddr* sa,
                                             int addr_len) {
  const ServerRequest& request = of(req);
  const auto size = static_cast<int>(request.peer_size());
  if (addr_len < size) return -1;
  std::memcpy(sa, request.peer(), request.peer_size());
  return size;
}
