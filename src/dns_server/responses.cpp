// Builds responses: of errors, truncated for UDP, with a length for TCP, and zone transfers in
// several messages.
#include "dns_server/responses.h"

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "base/failure.h"

namespace tambour::dns_server {
namespace {

constexpr std::size_t records_max = 1000;
/// A query has one question, and records for EDNS, a signature and IXFR. The limits keep a peer
/// from making a server hold much memory while a handler runs: a parsed record, string or option
/// takes up to 40 times the memory that it takes in the packet.
constexpr std::size_t query_bytes_max = 4096;
constexpr std::size_t query_entries_max = 16;

/// The records of queries: RFC 1995 (SOA), RFC 2931 (SIG), RFC 8945 (TSIG). DnsMessage::edns is
/// what an OPT record says.
bool belongs_to_query(const DnsRecord& record) noexcept {
  constexpr DnsType sig{24};
  constexpr DnsType tsig{250};
  return record.type == DnsType::soa || record.type == sig || record.type == tsig;
}

void keep_records_of_queries(std::vector<DnsRecord>& records) {
  std::vector<DnsRecord> kept;
  for (DnsRecord& record : records) {
    if (belongs_to_query(record)) kept.push_back(std::move(record));
  }
  records = std::move(kept);
}

bool is_zone_transfer(const DnsMessage& response) noexcept {
  return !response.questions.empty() && response.questions.front().type == DnsType::axfr &&
         !response.answers.empty();
}

}  // namespace

bool is_query(dns::Bytes packet) noexcept {
  dns::Reader reader(packet);
  const dns::Header header = dns::Header::read(reader);
  return !reader.failed() && (header.flags & dns::Header::response) == 0;
}

std::optional<DnsMessage> refuse(dns::Bytes packet, DnsMessage& query) {
  const auto with_code = [](DnsMessage response, DnsRcode code) {
    response.rcode = code;
    return response;
  };
  dns::Reader reader(packet);
  const dns::Header header = dns::Header::read(reader);
  const std::size_t entries =
      std::size_t{header.questions} + header.answers + header.authorities + header.additionals;
  const bool is_long = entries > query_entries_max || packet.size() > query_bytes_max;
  auto parsed = is_long ? Result<DnsMessage>(base::failure(EMSGSIZE)) : DnsMessage::parse(packet);
  if (!parsed) {
    // What has a header may be a query.
    DnsMessage response;
    response.id = header.id;
    response.opcode = static_cast<DnsOpcode>(header.opcode());
    response.is_response = true;
    const bool is_other = is_long && response.opcode != DnsOpcode::query;
    return with_code(std::move(response),
                     is_other ? DnsRcode::not_implemented : DnsRcode::format_error);
  }
  query = std::move(*parsed);
  for (auto* records : {&query.answers, &query.authorities, &query.additionals})
    keep_records_of_queries(*records);
  const DnsMessage response = DnsMessage::response_to(query);
  if (query.opcode != DnsOpcode::query) return with_code(response, DnsRcode::not_implemented);
  if (query.questions.size() != 1) return with_code(response, DnsRcode::format_error);
  if (query.edns && query.edns->version != 0) return with_code(response, DnsRcode::bad_version);
  return std::nullopt;
}

std::string bytes_of(const DnsMessage& response, std::size_t limit) {
  if (auto bytes = response.write(limit)) return std::move(*bytes);
  DnsMessage failure = response;
  failure.rcode = DnsRcode::server_failure;
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

Messages::Messages(DnsMessage response)
    : response_(std::move(response)),
      is_transfer_(is_zone_transfer(response_)),
      count_(records_max) {
  if (is_transfer_) records_ = std::exchange(response_.answers, {});
}

std::string Messages::next() {
  if (has_ended_) return {};
  if (is_transfer_) return next_of_transfer();
  has_ended_ = true;
  return framed(bytes_of(response_, DnsMessage::bytes_max));
}

std::string Messages::next_of_transfer() {
  for (;;) {
    const std::size_t count = std::min(count_, records_.size() - sent_);
    const auto first = records_.begin() + static_cast<std::ptrdiff_t>(sent_);
    response_.answers.assign(first, first + static_cast<std::ptrdiff_t>(count));
    const std::string message = bytes_of(response_, DnsMessage::bytes_max);
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

}  // namespace tambour::dns_server
