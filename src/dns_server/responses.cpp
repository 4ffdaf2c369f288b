// Builds responses: of errors, truncated for UDP, with a length for TCP, and zone transfers in
// several messages.
#include "dns_server/responses.h"

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "base/failure.h"

namespace tambour::detail::dns_server {
namespace {

constexpr std::size_t records_max = 1000;
/// A query has one question, and records for EDNS, a signature and IXFR. The limits keep a peer
/// from making a server hold much memory while a handler runs: a parsed record, string or option
/// takes up to 40 times the memory that it takes in the packet.
constexpr std::size_t query_bytes_max = 4096;
constexpr std::size_t query_entries_max = 16;

/// The records of queries: RFC 1995 (SOA), RFC 2931 (SIG), RFC 8945 (TSIG). dns::Message::edns is
/// what an OPT record says.
bool belongs_to_query(const dns::Record& record) noexcept {
  constexpr dns::Type sig{24};
  constexpr dns::Type tsig{250};
  return record.type == dns::Type::soa || record.type == sig || record.type == tsig;
}

void keep_records_of_queries(std::vector<dns::Record>& records) {
  std::vector<dns::Record> kept;
  for (dns::Record& record : records) {
    if (belongs_to_query(record)) kept.push_back(std::move(record));
  }
  records = std::move(kept);
}

bool is_zone_transfer(const dns::Message& response) noexcept {
  return !response.questions.empty() && response.questions.front().type == dns::Type::axfr &&
         !response.answers.empty();
}

}  // namespace

bool is_query(dns::detail::Bytes packet) noexcept {
  dns::detail::Reader reader(packet);
  const dns::detail::Header header = dns::detail::Header::read(reader);
  return !reader.has_failed() && (header.flags & dns::detail::Header::response) == 0;
}

std::optional<dns::Message> refuse(dns::detail::Bytes packet, dns::Message& query) {
  const auto with_code = [](dns::Message response, dns::Rcode code) {
    response.rcode = code;
    return response;
  };
  dns::detail::Reader reader(packet);
  const dns::detail::Header header = dns::detail::Header::read(reader);
  const std::size_t entries =
      std::size_t{header.questions} + header.answers + header.authorities + header.additionals;
  const bool is_long = entries > query_entries_max || packet.size() > query_bytes_max;
  auto parsed =
      is_long ? Result<dns::Message>(base::failure(EMSGSIZE)) : dns::Message::parse(packet);
  if (!parsed) {
    // What has a header may be a query.
    dns::Message response;
    response.id = header.id;
    response.opcode = static_cast<dns::Opcode>(header.opcode());
    response.is_response = true;
    const bool is_other = is_long && response.opcode != dns::Opcode::query;
    return with_code(std::move(response),
                     is_other ? dns::Rcode::not_implemented : dns::Rcode::format_error);
  }
  query = std::move(*parsed);
  for (auto* records : {&query.answers, &query.authorities, &query.additionals})
    keep_records_of_queries(*records);
  const dns::Message response = dns::Message::response_to(query);
  if (query.opcode != dns::Opcode::query) return with_code(response, dns::Rcode::not_implemented);
  if (query.questions.size() != 1) return with_code(response, dns::Rcode::format_error);
  if (query.edns && query.edns->version != 0) return with_code(response, dns::Rcode::bad_version);
  return std::nullopt;
}

std::string bytes_of(const dns::Message& response, std::size_t limit) {
  if (auto bytes = response.write(limit)) return std::move(*bytes);
  dns::Message failure = response;
  failure.rcode = dns::Rcode::server_failure;
  failure.answers.clear();
  failure.authorities.clear();
  failure.additionals.clear();
  return failure.write(limit).value_or(std::string());
}

std::string framed(const std::string& message) {
  std::string bytes;
  bytes.reserve(message.size() + 2);
  bytes += static_cast<char>(message.size() >> 8U);
  bytes += static_cast<char>(message.size());
  return bytes += message;
}

Messages::Messages(dns::Message response)
    : response_(std::move(response)),
      is_transfer_(is_zone_transfer(response_)),
      count_(records_max) {
  if (is_transfer_) records_ = std::exchange(response_.answers, {});
}

std::string Messages::next() {
  if (has_ended_) return {};
  if (is_transfer_) return next_of_transfer();
  has_ended_ = true;
  return framed(bytes_of(response_, dns::Message::bytes_max));
}

std::string Messages::next_of_transfer() {
  for (;;) {
    const std::size_t count = std::min(count_, records_.size() - sent_);
    const auto first = records_.begin() + static_cast<std::ptrdiff_t>(sent_);
    response_.answers.assign(first, first + static_cast<std::ptrdiff_t>(count));
    const std::string message = bytes_of(response_, dns::Message::bytes_max);
    // A message that does not fit is truncated.
    const bool fits = message.size() > 2 && (message[2] & 2) == 0;
    if (!fits && count > 1) {
      count_ = count / 2;
      continue;
    }
    sent_ += count;
    has_ended_ = sent_ == records_.size();
    return framed(message);
  }
}

}  // namespace tambour::detail::dns_server
