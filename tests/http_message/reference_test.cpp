// The parser of HTTP/1.1 compared with llhttp (Node.js): on generated messages, and on messages
// like those of llhttp's own tests at every split point. support/reference_comparison.h lists the
// kinds of differences.
#include <cstddef>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "http/support/every_way.h"
#include "http/support/message_generator.h"
#include "http/support/reference_comparison.h"
#include "http/support/reference_messages.h"
#include "support/scale.h"

namespace tambour::reference_test {
namespace {

class Reference : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::has_reference_parser()) GTEST_SKIP() << "built without llhttp";
  }

  static void compare(bool has_requests) {
    test::ReferenceComparison comparison(has_requests);
    const unsigned seeds = test::sanitized ? 2000 : 50000;
    for (unsigned seed = 1; seed <= seeds; ++seed) {
      const std::string text = test::MessageGenerator(seed).messages(has_requests);
      ASSERT_EQ(comparison.compare(text), "") << "seed " << seed << ":\n" << text;
    }
    // Otherwise the generator does not generate what the comparison is about.
    EXPECT_GT(comparison.agreed, seeds / 4);
    if (test::sanitized || !has_requests) return;
    for (const test::Looser& entry : test::looser)
      EXPECT_GT(comparison.seen[entry.llhttp], 0) << entry.llhttp;
  }
};

TEST_F(Reference, agrees_on_generated_requests) { compare(true); }

TEST_F(Reference, agrees_on_generated_responses) { compare(false); }

/// Compares the verdict on each message with the expected one, and with that of llhttp.
template <class Parser>
void expect_verdicts(const std::vector<test::ReferenceMessage>& messages, bool has_requests) {
  test::ReferenceComparison comparison(has_requests);
  for (const test::ReferenceMessage& reference_message : messages) {
    const test::Verdict verdict = test::read_in_every_way<Parser>(reference_message.text);
    std::size_t complete = 0;
    for (const test::Message& message : verdict.messages) complete += message.is_complete ? 1 : 0;
    EXPECT_EQ(complete, reference_message.complete) << verdict.error.message() << ":\n"
                                                    << reference_message.text;
    const bool is_cut =
        verdict.error == StreamError::eof || verdict.error == StreamError::truncated;
    EXPECT_EQ(!is_cut, reference_message.is_rejected) << verdict.error.message() << ":\n"
                                                      << reference_message.text;
    EXPECT_EQ(comparison.compare_in_every_way(reference_message.text), "")
        << reference_message.text;
  }
}

TEST_F(Reference, agrees_on_requests_at_every_split) {
  expect_verdicts<http::detail::h1::RequestParser>(test::reference_requests(), true);
}

TEST_F(Reference, agrees_on_responses_at_every_split) {
  expect_verdicts<test::StrictResponseParser>(test::reference_responses(), false);
}

}  // namespace
}  // namespace tambour::reference_test
