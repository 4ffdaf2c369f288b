// Reads a response: checks that it answers the question, follows aliases, and takes the records,
// their time to live and the error.
#include "dns/resolver/answer.h"

#include <algorithm>

namespace tambour::dns {
namespace {

/// Sorting them takes a few system calls for each.
constexpr std::size_t addresses_max = 256;
constexpr std::uint16_t cookie_option = DnsOption::cookie;

bool is_wanted(DnsType type, DnsType wanted) noexcept {
  return type == wanted || wanted == DnsType::any;
}

/// True if `name` is `zone` or below it. Both are in wire form.
bool is_within_zone(std::string_view name, std::string_view zone) noexcept {
  while (name.size() > zone.size()) name.remove_prefix(static_cast<std::uint8_t>(name[0]) + 1U);
  return equal_ignoring_case(name, zone);
}

class ResponseReader {
 public:
  ResponseReader(Bytes packet, std::string_view key, Answer& answer, ResponseInfo& info) noexcept
      : reader_(packet), type_(type_of_key(key)), answer_(answer), info_(info) {
    owner_.assign(name_of_key(key));
  }

  bool read() {
    const Header header = Header::read(reader_);
    info_.rcode = header.rcode();
    info_.truncated = (header.flags & Header::truncated) != 0;
    info_.has_question = header.questions != 0;
    if (info_.has_question) {
      reader_.skip_name();
      reader_.u32();
    }
    if (info_.truncated || reader_.failed()) return !reader_.failed();
    read_answers(header.answers);
    for (unsigned i = 0; i < header.authorities && !reader_.failed(); ++i) read_authority();
    for (unsigned i = 0; i < header.additionals && !reader_.failed(); ++i) read_additional();
    if (reader_.failed()) return false;
    info_.size = reader_.position();
    conclude();
    return true;
  }

 private:
  /// Usually the aliases are in order, and one pass finds everything.
  void read_answers(unsigned count) {
    const Reader begin = reader_;
    for (unsigned records = 0; records <= alias_records_max; records += count) {
      reader_ = begin;
      const unsigned cnames_before = cnames_;
      for (unsigned i = 0; i < count && !reader_.failed(); ++i) read_answer();
      if (reader_.failed() || cnames_ == cnames_before || found_ != 0) return;
    }
  }

  void read_answer() {
    reader_.name(name_);
    const RecordHead head = RecordHead::read(reader_);
    const std::size_t former_end = reader_.enter(head.size);
    if (reader_.failed()) return;
    const bool is_ours =
        head.record_class == DnsClass::in && equal_ignoring_case(name_.view(), owner_.view());
    if (is_ours && is_wanted(head.type, type_)) {
      ++found_;
      ttl_s_ = std::min(ttl_s_, ttl_of(head.ttl));
      read_data(head);
    } else if (is_ours && head.type == DnsType::cname) {
      ++cnames_;
      ttl_s_ = std::min(ttl_s_, ttl_of(head.ttl));
      found_ = 0;
      answer_.addresses.clear();
      reader_.name(owner_);
    } else {
      reader_.rest();
    }
    reader_.leave(former_end);
  }

  void read_data(const RecordHead& head) {
    const bool is_v6 = head.type == DnsType::aaaa;
    const bool is_address = (is_v6 || head.type == DnsType::a) && type_ != DnsType::any;
    if (!is_address || answer_.addresses.size() == addresses_max) {
      reader_.rest();
      return;
    }
    const std::string_view bytes =
        reader_.text(is_v6 ? sizeof(IpAddress::V6Bytes) : sizeof(IpAddress::V4Bytes));
    const std::span octets(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    if (const auto address = IpAddress::from_bytes(octets)) answer_.addresses.push_back(*address);
  }

  /// The time to live of a negative answer: RFC 2308, section 5.
  void read_authority() {
    reader_.name(name_);
    const RecordHead head = RecordHead::read(reader_);
    const std::size_t former_end = reader_.enter(head.size);
    if (reader_.failed()) return;
    if (head.type == DnsType::soa && is_within_zone(owner_.view(), name_.view())) {
      reader_.skip_name();
      reader_.skip_name();
      reader_.text(16);
      negative_ttl_s_ = std::min(ttl_of(head.ttl), ttl_of(reader_.u32()));
    } else {
      reader_.rest();
    }
    reader_.leave(former_end);
  }

  void read_additional() {
    reader_.skip_name();
    const RecordHead head = RecordHead::read(reader_);
    const std::size_t former_end = reader_.enter(head.size);
    if (reader_.failed()) return;
    if (head.type != DnsType::opt) {
      reader_.rest();
    } else {
      info_.has_edns = true;
      info_.rcode |= head.ttl >> 24U << 4U;
      while (reader_.left() != 0) {
        const std::uint16_t code = reader_.u16();
        const std::string_view data = reader_.text(reader_.u16());
        if (code == cookie_option) info_.cookie = data;
      }
    }
    reader_.leave(former_end);
  }

  void conclude() noexcept {
    answer_.error = error_of();
    const bool is_negative =
        answer_.error == DnsError::no_data || answer_.error == DnsError::no_such_name;
    if (is_negative) answer_.addresses.clear();
    // The aliases of a negative answer limit it, too.
    answer_.ttl_s = is_negative ? std::min(negative_ttl_s_, ttl_s_) : ttl_s_;
  }

  [[nodiscard]] DnsError error_of() const noexcept {
    switch (DnsRcode(info_.rcode)) {
      case DnsRcode::no_error:
        return found_ != 0 ? no_error : DnsError::no_data;
      case DnsRcode::format_error:
      case DnsRcode::server_failure:
      case DnsRcode::no_such_name:
      case DnsRcode::not_implemented:
      case DnsRcode::refused:
        return DnsError(info_.rcode);
      default:
        return DnsError::bad_response;
    }
  }

  Reader reader_;
  DnsType type_;
  Answer& answer_;
  ResponseInfo& info_;
  WireName owner_;  ///< The name of the question, or that of its last cname.
  WireName name_;
  unsigned cnames_ = 0;
  unsigned found_ = 0;
  std::uint32_t ttl_s_ = UINT32_MAX;
  std::uint32_t negative_ttl_s_ = 0;
};

}  // namespace

bool is_response_to(Bytes packet, std::uint16_t id, std::string_view name, DnsType type,
                    bool exact_case) noexcept {
  Reader reader(packet);
  const Header header = Header::read(reader);
  if (reader.failed() || header.id != id || (header.flags & Header::response) == 0) return false;
  if (header.opcode() != 0) return false;
  if (header.questions == 0) return header.rcode() != 0;
  if (header.questions != 1) return false;
  const std::string_view question = reader.text(name.size());
  if (reader.failed()) return false;
  if (exact_case ? question != name : !equal_ignoring_case(question, name)) return false;
  return DnsType(reader.u16()) == type && DnsClass(reader.u16()) == DnsClass::in &&
         !reader.failed();
}

bool read_response(Bytes packet, std::string_view key, Answer& answer, ResponseInfo& info) {
  return ResponseReader(packet, key, answer, info).read();
}

Result<DnsMessage> message_of(const Answer& answer, std::string_view key, std::uint32_t age_s) {
  auto message = DnsMessage::parse(as_bytes(answer.message));
  if (!message) return message;
  const DnsType type = type_of_key(key);
  DnsName owner = DnsNameAccess::make(name_of_key(key));
  std::vector<DnsRecord>& answers = message->answers;
  std::vector<DnsRecord> kept;
  std::vector<bool> is_kept(answers.size());
  std::size_t kept_before = SIZE_MAX;
  // Usually the aliases are in order, and one pass finds everything.
  for (std::size_t records = 0; records <= alias_records_max && kept.size() != kept_before;
       records += answers.size()) {
    kept_before = kept.size();
    for (std::size_t i = 0; i < answers.size(); ++i) {
      const DnsRecord& record = answers[i];
      if (is_kept[i] || record.record_class != DnsClass::in || record.name != owner) continue;
      const auto* const cname = record.as<DnsCname>();
      const bool is_answer = is_wanted(record.type, type);
      if (!is_answer && cname == nullptr) continue;
      if (!is_answer) owner = cname->target;
      kept.push_back(record);
      is_kept[i] = true;
    }
  }
  answers = std::move(kept);
  for (std::vector<DnsRecord>* section :
       {&message->answers, &message->authorities, &message->additionals}) {
    for (DnsRecord& each : *section) each.ttl -= std::min(each.ttl, age_s);
  }
  message->id = 0;
  return message;
}

}  // namespace tambour::dns
