// Replies as the libevent drop-in reads them: compared with the records of dns::Message, which are
// followed from the question in a plain way.

#include <algorithm>
#include <cstring>
#include <vector>

#include <tambour/dns/message.h>

#include "fuzz/bytes_checks.h"
#include "libevent/evdns/reply.h"

namespace tambour::fuzz {
namespace {

using libevent::DnsQuestionView;
using libevent::DnsReply;
using libevent::Verdict;

constexpr std::size_t aliases_max = 16;

/// The name that the aliases of `name` lead to. A name may be an alias once in each pass.
dns::Name follow(const dns::Message& message, dns::Name name, dns::Type type,
                 std::size_t& aliases) {
  for (std::size_t before = aliases;; before = aliases) {
    bool has_data = false;
    for (const dns::Record& answer : message.answers) {
      if (answer.record_class != dns::Class::in || answer.name != name) continue;
      if (answer.type == type) {
        has_data = true;
      } else if (const auto* const alias = answer.as<dns::Cname>();
                 alias && aliases < aliases_max) {
        ++aliases;
        name = alias->target;
      }
    }
    if (has_data || aliases == before) return name;
  }
}

/// How many answers there are if none is an alias.
std::size_t count_of(const dns::Message& message, const dns::Question& question) {
  return static_cast<std::size_t>(std::ranges::count_if(message.answers, [&](const auto& entry) {
    return entry.record_class == dns::Class::in && entry.name == question.name &&
           entry.type == question.type;
  }));
}

void compare(const dns::Message& message, const dns::Question& question, const DnsReply& reply) {
  const bool has_alias = std::ranges::any_of(message.answers, [](const dns::Record& entry) {
    return entry.type == dns::Type::cname && entry.record_class == dns::Class::in;
  });
  if (has_alias) {
    std::size_t aliases = 0;
    const dns::Name last = follow(message, question.name, question.type, aliases);
    libevent::NameText text;
    const bool has_text = aliases != 0 && question.type != dns::Type::ptr;
    if (has_text && libevent::text_of(last.wire(), text))
      expect(std::strcmp(text.data(), reply.canonical.data()) == 0, "evdns: another last alias");
    return;
  }
  const std::size_t limit = question.type == dns::Type::ptr ? 1 : DnsReply::addresses_max;
  expect(reply.count == std::min(count_of(message, question), limit), "evdns: another count");
  if (question.type == dns::Type::ptr || reply.count == 0) return;
  const auto first = std::ranges::find_if(message.answers, [&](const dns::Record& record) {
    return record.record_class == dns::Class::in && record.name == question.name &&
           record.type == question.type;
  });
  const auto* const v4 = first->as<dns::A>();
  const auto* const v6 = first->as<dns::Aaaa>();
  if (v4 != nullptr)
    expect(std::ranges::equal(v4->address, std::span(reply.addresses).first(4)),
           "evdns: another IPv4 address");
  if (v6 != nullptr)
    expect(std::ranges::equal(v6->address, std::span(reply.addresses).first(16)),
           "evdns: another IPv6 address");
}

void check_reply(dns::detail::Bytes packet, const dns::Question& question,
                 const dns::Message* message) {
  DnsReply reply;
  unsigned rcode = 0;
  const DnsQuestionView view{
      .name = question.name.wire(), .type = question.type, .exact_case = true};
  const Verdict verdict = read_reply(packet, view, reply, rcode);
  expect(reply.count <= DnsReply::addresses_max, "evdns: too many addresses");
  expect(std::ranges::find(reply.canonical, '\0') != reply.canonical.end(),
         "evdns: a name without an end");
  if (message == nullptr) return;
  // Only NUL bytes in names are malformed here and not there.
  expect(verdict != Verdict::other_case, "evdns: the name is the one of the packet");
  if (message->truncated)
    return expect(verdict == Verdict::truncated || verdict == Verdict::foreign,
                  "evdns: a truncated message was accepted");
  if (verdict == Verdict::complete && rcode == 0) compare(*message, question, reply);
}

}  // namespace

void check_evdns(Bytes bytes) {
  const auto packet = std::as_bytes(bytes);
  const auto message = dns::Message::parse(packet);
  constexpr dns::Type types[] = {dns::Type::a, dns::Type::aaaa, dns::Type::ptr};
  for (const dns::Type type : types) {
    dns::Question question{.name = *dns::Name::parse("example.org"), .type = type};
    const bool has_question = message && message->questions.size() == 1;
    if (has_question) question.name = message->questions[0].name;
    check_reply(packet, question,
                has_question && message->questions[0].type == type ? &*message : nullptr);
  }
  // As if the question were the first bytes.
  dns::detail::Reader reader(
      packet.subspan(std::min<std::size_t>(packet.size(), dns::detail::Header::bytes)));
  const dns::Name name = reader.name();
  for (const dns::Type type : types) check_reply(packet, {.name = name, .type = type}, nullptr);
}

}  // namespace tambour::fuzz
