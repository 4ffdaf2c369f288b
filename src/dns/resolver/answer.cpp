// Reads a response: checks that it answers the question, follows aliases, and takes the records,
// their time to live and the error.
#include "dns/resolver/answer.h"

#include <algorithm>

namespace tambour::dns::detail {
namespace {

/// Sorting them takes a few system calls for each.
constexpr std::size_t addresses_max = 256;
constexpr std::uint16_t cookie_option = dns::Option::cookie;

bool is_wanted(dns::Type type, dns::Type wanted) noexcept {
  return type == wanted || wanted == dns::Type::any;
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
    if (info_.truncated || reader_.has_failed()) return !reader_.has_failed();
    read_answers(header.answers);
    for (unsigned i = 0; i < header.authorities && !reader_.has_failed(); ++i) read_authority();
    for (unsigned i = 0; i < header.additionals && !reader_.has_failed(); ++i) read_additional();
    if (reader_.has_failed()) return false;
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
      for (unsigned i = 0; i < count && !reader_.has_failed(); ++i) read_answer();
      if (reader_.has_failed() || cnames_ == cnames_before || found_ != 0) return;
    }
  }

  void read_answer() {
    reader_.name(name_);
    const RecordHead head = RecordHead::read(reader_);
    const std::size_t former_end = reader_.enter(head.size);
    if (reader_.has_failed()) return;
    const bool is_ours =
        head.record_class == dns::Class::in && equal_ignoring_case(name_.view(), owner_.view());
    if (is_ours && is_wanted(head.type, type_)) {
      ++found_;
      ttl_s_ = std::min(ttl_s_, ttl_of(head.ttl));
      read_data(head);
    } else if (is_ours && head.type == dns::Type::cname) {
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
    const bool is_v6 = head.type == dns::Type::aaaa;
    const bool is_address = (is_v6 || head.type == dns::Type::a) && type_ != dns::Type::any;
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
    if (reader_.has_failed()) return;
    if (head.type == dns::Type::soa && is_within_zone(owner_.view(), name_.view())) {
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
    if (reader_.has_failed()) return;
    if (head.type != dns::Type::opt) {
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
        answer_.error == dns::ErrorCode::no_data || answer_.error == dns::ErrorCode::no_such_name;
    if (is_negative) answer_.addresses.clear();
    // The aliases of a negative answer limit it, too.
    answer_.ttl_s = is_negative ? std::min(negative_ttl_s_, ttl_s_) : ttl_s_;
  }

  [[nodiscard]] dns::ErrorCode error_of() const noexcept {
    switch (dns::Rcode(info_.rcode)) {
      case dns::Rcode::no_error:
        return found_ != 0 ? no_error : dns::ErrorCode::no_data;
      case dns::Rcode::format_error:
      case dns::Rcode::server_failure:
      case dns::Rcode::no_such_name:
      case dns::Rcode::not_implemented:
      case dns::Rcode::refused:
        return dns::ErrorCode(info_.rcode);
      default:
        return dns::ErrorCode::bad_response;
    }
  }

  Reader reader_;
  dns::Type type_;
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

bool is_response_to(Bytes packet, std::uint16_t id, std::string_view name, dns::Type type,
                    bool exact_case) noexcept {
  Reader reader(packet);
  const Header header = Header::read(reader);
  if (reader.has_failed() || header.id != id || (header.flags & Header::response) == 0)
    return false;
  if (header.opcode() != 0) return false;
  if (header.questions == 0) return header.rcode() != 0;
  if (header.questions != 1) return false;
  const std::string_view question = reader.text(name.size());
  if (reader.has_failed()) return false;
  if (exact_case ? question != name : !equal_ignoring_case(question, name)) return false;
  return dns::Type(reader.u16()) == type && dns::Class(reader.u16()) == dns::Class::in &&
         !reader.has_failed();
}

bool read_response(Bytes packet, std::string_view key, Answer& answer, ResponseInfo& info) {
  return ResponseReader(packet, key, answer, info).read();
}

Result<dns::Message> message_of(const Answer& answer, std::string_view key, std::uint32_t age_s) {
  auto message = dns::Message::parse(as_bytes(answer.message));
  if (!message) return message;
  const dns::Type type = type_of_key(key);
  dns::Name owner = NameAccess::make(name_of_key(key));
  std::vector<dns::Record>& answers = message->answers;
  std::vector<dns::Record> kept;
  std::vector<bool> is_kept(answers.size());
  std::size_t kept_before = SIZE_MAX;
  // Usually the aliases are in order, and one pass finds everything.
  for (std::size_t records = 0; records <= alias_records_max && kept.size() != kept_before;
       records += answers.size()) {
    kept_before = kept.size();
    for (std::size_t i = 0; i < answers.size(); ++i) {
      const dns::Record& record = answers[i];
      if (is_kept[i] || record.record_class != dns::Class::in || record.name != owner) continue;
      const auto* const cname = record.as<dns::Cname>();
      const bool is_answer = is_wanted(record.type, type);
      if (!is_answer && cname == nullptr) continue;
      if (!is_answer) owner = cname->target;
      kept.push_back(record);
      is_kept[i] = true;
    }
  }
  answers = std::move(kept);
  for (std::vector<dns::Record>* section :
       {&message->answers, &message->authorities, &message->additionals}) {
    for (dns::Record& entry : *section) entry.ttl -= std::min(entry.ttl, age_s);
  }
  message->id = 0;
  return message;
}

}  // namespace tambour::dns::detail
