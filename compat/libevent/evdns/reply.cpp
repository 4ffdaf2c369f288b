// Reads a reply with the codec of layer dns_message, and follows the aliases of the name.
#include "libevent/evdns/reply.h"

#include <algorithm>

namespace tambour::libevent {
namespace {

using dns::detail::equal_ignoring_case;
using dns::detail::Header;
using dns::detail::Reader;
using dns::detail::RecordHead;
using dns::detail::ttl_of;
using dns::detail::WireName;

constexpr auto no_such_name = 3U;
constexpr std::uint32_t ttl_unknown = UINT32_MAX;

class ReplyReader {
 public:
  ReplyReader(dns::detail::Bytes packet, const DnsQuestionView& question, DnsReply& reply) noexcept
      : reader_(packet), question_(question), reply_(reply) {}

  Verdict read(unsigned& rcode) noexcept {
    const Header header = Header::read(reader_);
    rcode = header.rcode();
    if (reader_.has_failed() || (header.flags & Header::response) == 0 || header.opcode() != 0)
      return Verdict::foreign;
    // Servers that cannot parse a query, or do not want to, may omit the question.
    if (header.questions == 0 && rcode != 0) return Verdict::complete;
    const bool is_refusal = rcode != 0 && rcode != no_such_name;
    if (const Verdict verdict = match(header); verdict != Verdict::complete) return verdict;
    if ((header.flags & Header::truncated) != 0) return Verdict::truncated;
    if (is_refusal) return Verdict::complete;
    read_answers(header.answers);
    for (unsigned i = 0; reply_.count == 0 && i < header.authorities; ++i) read_authority();
    if (reader_.has_failed() || !copy_names()) return Verdict::malformed;
    reply_.ttl_s = ttl_s_ == ttl_unknown ? 0 : ttl_s_;
    return Verdict::complete;
  }

 private:
  /// Compares the question.
  Verdict match(const Header& header) noexcept {
    if (header.questions != 1) return Verdict::foreign;
    reader_.name(owner_);
    const auto type = dns::Type(reader_.u16());
    const auto question_class = dns::Class(reader_.u16());
    if (reader_.has_failed() || type != question_.type || question_class != dns::Class::in ||
        !equal_ignoring_case(owner_.view(), question_.name))
      return Verdict::foreign;
    const bool is_exact = !question_.exact_case || owner_.view() == question_.name;
    return is_exact ? Verdict::complete : Verdict::other_case;
  }

  /// Usually the aliases are in order, and one pass finds everything. Servers of evdns may send the
  /// addresses of the name before an alias that only tells its canonical name.
  void read_answers(unsigned count) noexcept {
    const Reader begin = reader_;
    for (unsigned records = 0; records <= dns::detail::alias_records_max; records += count) {
      const unsigned before = aliases_;
      reader_ = begin;
      for (unsigned i = 0; i < count && !reader_.has_failed(); ++i) read_answer();
      if (reader_.has_failed() || aliases_ == before || reply_.count != 0) return;
    }
  }

  void read_answer() noexcept {
    reader_.name(name_);
    const RecordHead head = RecordHead::read(reader_);
    const std::size_t former_end = reader_.enter(head.size);
    if (reader_.has_failed()) return;
    const bool is_ours =
        head.record_class == dns::Class::in && equal_ignoring_case(name_.view(), owner_.view());
    if (is_ours && head.type == question_.type) {
      ttl_s_ = std::min(ttl_s_, ttl_of(head.ttl));
      read_data(head);
    } else if (is_ours && head.type == dns::Type::cname) {
      ++aliases_;
      ttl_s_ = std::min(ttl_s_, ttl_of(head.ttl));
      reader_.name(owner_);
    } else {
      reader_.rest();
    }
    reader_.leave(former_end);
  }

  /// The servers of evdns used to put several addresses into one record.
  void read_data(const RecordHead& head) noexcept {
    if (head.type == dns::Type::ptr) {
      reader_.name(name_);
      if (reply_.count == 0) target_ = name_;
      reply_.count = 1;
      return;
    }
    const std::size_t size = head.type == dns::Type::aaaa ? 16 : 4;
    if (head.size % size != 0) return reader_.fail(dns::ErrorCode::bad_record);
    for (std::size_t i = 0; i < head.size / size; ++i) {
      const std::string_view bytes = reader_.text(size);
      if (reply_.count == DnsReply::addresses_max) continue;
      std::ranges::copy(bytes, reply_.addresses.data() + size * reply_.count++);
    }
  }

  /// The time to live of a negative answer: RFC 2308, section 5.
  void read_authority() noexcept {
    reader_.name(name_);
    const RecordHead head = RecordHead::read(reader_);
    const std::size_t former_end = reader_.enter(head.size);
    if (reader_.has_failed()) return;
    if (head.type == dns::Type::soa && head.record_class == dns::Class::in) {
      reader_.skip_name();
      reader_.skip_name();
      reader_.text(16);
      ttl_s_ = std::min({ttl_s_, ttl_of(head.ttl), ttl_of(reader_.u32())});
    } else {
      reader_.rest();
    }
    reader_.leave(former_end);
  }

  bool copy_names() noexcept {
    if (question_.type == dns::Type::ptr)
      return reply_.count == 0 || text_of(target_.view(), reply_.name);
    return aliases_ == 0 || text_of(owner_.view(), reply_.canonical);
  }

  Reader reader_;
  const DnsQuestionView& question_;
  DnsReply& reply_;
  WireName owner_;  ///< The name whose records are wanted.
  WireName name_;
  WireName target_;
  unsigned aliases_ = 0;
  std::uint32_t ttl_s_ = ttl_unknown;
};

}  // namespace

Verdict read_reply(dns::detail::Bytes packet, const DnsQuestionView& question, DnsReply& reply,
                   unsigned& rcode) noexcept {
  reply.ttl_s = 0;
  reply.count = 0;
  reply.canonical[0] = '\0';
  return ReplyReader(packet, question, reply).read(rcode);
}

}  // namespace tambour::libevent
