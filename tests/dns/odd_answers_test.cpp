// Answers that deviate from RFC 1035 and that the resolvers of the field accept: errors without the
// question, bytes after the message, aliases in any number and order.
#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "dns/name_server.h"
#include "dns/resolver_fixture.h"
#include "dns_message/reader.h"

namespace tambour::odd_answers_test {
namespace {

using namespace std::chrono_literals;
using test::dns_name;

class OddAnswers : public test::ResolverTest {
 protected:
  /// Server 0 answers with `code` and without anything else, to queries with EDNS or to all.
  void refuse_without_question(dns::Rcode code, bool only_with_edns) {
    servers[0]->set_change([=](const dns::Message& question, dns::Message& response, bool) {
      if (only_with_edns && !question.edns) return true;
      response.rcode = code;
      response.questions.clear();
      response.answers.clear();
      response.authorities.clear();
      response.edns.reset();
      return true;
    });
  }
  void use_only_the_first_server() { make({.servers = {test::endpoint_of(*hosts[0])}}); }
  Duration duration_of(const std::function<void()>& work) {
    const TimePoint begin = loop->now();
    work();
    return loop->now() - begin;
  }
};

TEST_F(OddAnswers, an_error_without_the_question_leads_to_a_query_without_edns) {
  for (const dns::Rcode code : {dns::Rcode::format_error, dns::Rcode::not_implemented}) {
    refuse_without_question(code, true);
    use_only_the_first_server();
    const std::uint64_t before = servers[0]->udp_questions;
    const Duration elapsed =
        duration_of([&] { EXPECT_EQ(text_of("www.example.org", AddressFamily::v4), "192.0.2.1"); });
    EXPECT_EQ(servers[0]->udp_questions - before, 2U);
    EXPECT_LT(elapsed, 1s);
  }
}

TEST_F(OddAnswers, an_error_without_the_question_leads_to_the_next_server) {
  for (const dns::Rcode code :
       {dns::Rcode::format_error, dns::Rcode::server_failure, dns::Rcode::no_such_name,
        dns::Rcode::not_implemented, dns::Rcode::refused, dns::Rcode(9)}) {
    refuse_without_question(code, false);
    make();
    const Duration elapsed =
        duration_of([&] { EXPECT_EQ(text_of("www.example.org", AddressFamily::v4), "192.0.2.1"); });
    EXPECT_LT(elapsed, 100ms) << static_cast<int>(code);
  }
}

TEST_F(OddAnswers, an_error_without_the_question_over_tcp_leads_to_the_next_server) {
  configure("options use-vc\n");
  refuse_without_question(dns::Rcode::server_failure, false);
  const Duration elapsed =
      duration_of([&] { EXPECT_EQ(text_of("www.example.org", AddressFamily::v4), "192.0.2.1"); });
  EXPECT_LT(elapsed, 100ms);
}

TEST_F(OddAnswers, an_error_without_the_question_is_no_negative_answer) {
  refuse_without_question(dns::Rcode::no_such_name, false);
  use_only_the_first_server();
  EXPECT_FALSE(resolve("www.example.org", AddressFamily::v4));
  servers[0]->set_change(nullptr);
  pass(2s);  // Longer than failures are kept.
  EXPECT_EQ(text_of("www.example.org", AddressFamily::v4), "192.0.2.1");
}

TEST_F(OddAnswers, a_response_without_question_and_error_is_ignored) {
  servers[0]->set_change([](const dns::Message&, dns::Message& response, bool) {
    response.questions.clear();
    response.answers = {test::a_record("www.example.org", {6, 6, 6, 6})};
    return true;
  });
  EXPECT_EQ(text_of("www.example.org", AddressFamily::v4), "192.0.2.1");
}

TEST_F(OddAnswers, bytes_after_the_message_are_ignored) {
  for (const std::size_t count : {1, 2, 11, 300}) {
    servers[0]->set_byte_change([=](std::string& bytes) { bytes.append(count, '\xff'); });
    use_only_the_first_server();
    EXPECT_EQ(text_of("www.example.org", AddressFamily::v4), "192.0.2.1");
    const auto message = run(the_resolver().query("www.example.org", dns::Type::a));
    ASSERT_TRUE(message) << message.error().message();
    EXPECT_EQ(message->answers.size(), 1U);
  }
}

/// The records of a chain of `length` aliases that ends at an address.
std::vector<dns::Record> chain(int length, bool is_reversed) {
  std::vector<dns::Record> records;
  const auto name = [](int i) { return "n" + std::to_string(i) + ".example.org"; };
  for (int i = 0; i < length; ++i) records.push_back(test::cname_record(name(i), name(i + 1)));
  records.push_back(test::a_record(name(length), {192, 0, 2, 9}));
  if (is_reversed) std::ranges::reverse(records);
  return records;
}

TEST_F(OddAnswers, aliases_are_followed_in_any_number_and_order) {
  for (const bool is_reversed : {false, true}) {
    for (const int length : {1, 15, 16, 17, 40, 80}) {
      servers[0]->set_change([=](const dns::Message&, dns::Message& response, bool) {
        response.rcode = dns::Rcode::no_error;
        response.authorities.clear();
        response.answers = chain(length, is_reversed);
        return true;
      });
      use_only_the_first_server();
      EXPECT_EQ(text_of("n0.example.org", AddressFamily::v4), "192.0.2.9") << length << is_reversed;
      const auto message = run(the_resolver().query("n0.example.org", dns::Type::a));
      ASSERT_TRUE(message) << message.error().message();
      EXPECT_EQ(message->answers.size(), std::size_t(length) + 1);
    }
  }
}

/// A root name, and pointers each of which points to the one before.
std::string pointers(unsigned count) {
  std::string bytes(1, '\0');
  for (unsigned i = 0; i < count; ++i) {
    const std::size_t target = i == 0 ? 0 : bytes.size() - 2;
    bytes += static_cast<char>(0xc0U | target >> 8U);
    bytes += static_cast<char>(target);
  }
  return bytes;
}

TEST(OddNames, may_not_have_more_pointers_than_labels_fit_into_a_name) {
  for (const unsigned count : {1U, 127U, 128U, 8000U}) {
    const std::string bytes = pointers(count);
    dns::detail::Reader reader(dns::detail::as_bytes(bytes));
    reader.text(bytes.size() - 2);
    dns::detail::WireName name;
    reader.name(name);
    EXPECT_EQ(reader.has_failed(), count > 127) << count;
  }
}

TEST_F(OddAnswers, search_entries_may_begin_with_a_dot) {
  configure("search .example.org ..bad . other.test\n");
  EXPECT_EQ(text_of("www", AddressFamily::v4), "192.0.2.1");
}

}  // namespace
}  // namespace tambour::odd_answers_test
