// Sec-WebSocket-Extensions, and the negotiation of permessage-deflate: RFC 7692, section 7.1.
#include "http_message/ws/extensions.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace tambour::extensions_test {
namespace {

using http::Fields;
using http::WebSocketError;
using http::detail::ws::AcceptedDeflate;
using http::detail::ws::DeflateAgreement;
using http::detail::ws::DeflateOptions;
using http::detail::ws::Extension;

/// One field for each value, which must outlive the extensions.
Fields fields_of(const std::vector<std::string>& values) {
  Fields fields;
  for (const std::string& value : values)
    or_throw(fields.add("sec-websocket-extensions", value), value);
  return fields;
}

/// The extensions in a plain form: "name;parameter=value;parameter".
std::optional<std::vector<std::string>> parsed(const std::vector<std::string>& values) {
  const Fields fields = fields_of(values);
  const auto extensions = http::detail::ws::parse_extensions(fields);
  if (!extensions) {
    EXPECT_EQ(extensions.error(), WebSocketError::bad_extensions);
    return std::nullopt;
  }
  std::vector<std::string> texts;
  for (const Extension& extension : *extensions) {
    std::string& text = texts.emplace_back(extension.name);
    for (const auto& [name, value] : extension.parameters)
      text.append(";").append(name).append(value ? "=" + *value : "");
  }
  return texts;
}

TEST(Extensions, are_parsed) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(parsed({}), Texts());
  EXPECT_EQ(parsed({"a"}), Texts{"a"});
  EXPECT_EQ(parsed({"a; b ;c=d", "e"}), (Texts{"a;b;c=d", "e"}));
  EXPECT_EQ(parsed({" , a\t,, b;c=\"d\\e\" ,"}), (Texts{"a", "b;c=de"}));
  EXPECT_EQ(parsed({"a;b = c"}), Texts{"a;b=c"});
}

TEST(Extensions, are_rejected_if_they_are_malformed) {
  for (const char* value : {";", "a;", "a;;b", "a b", "a;b=", "a;b=\"", "a;b=\"\"", "a;b=\"c d\"",
                            "a;b=\"c", "a;b=\"c\\", "a;=b", "=", "a;b=c=d", "a/b", "\"a\""})
    EXPECT_EQ(parsed({value}), std::nullopt) << value;
}

TEST(Extensions, have_a_limit) {
  std::string many = "a";
  for (int i = 1; i < 16; ++i) many += ",a";
  EXPECT_EQ(parsed({many})->size(), 16U);
  EXPECT_EQ(parsed({many, "a"}), std::nullopt);
  many = "a";
  for (int i = 0; i < 16; ++i) many += ";b";
  EXPECT_TRUE(parsed({many}));
  EXPECT_EQ(parsed({many + ";b"}), std::nullopt);
}

std::optional<AcceptedDeflate> accepted(const std::string& offer, const DeflateOptions& options) {
  const Fields fields = fields_of({offer});
  return http::detail::ws::accept_deflate(
      or_throw(http::detail::ws::parse_extensions(fields), offer), options);
}

void expect_answer(const std::string& offer, const DeflateOptions& options,
                   const std::string& answer, const DeflateAgreement& agreement) {
  const auto result = accepted(offer, options);
  ASSERT_TRUE(result) << offer;
  EXPECT_EQ(result->field, answer) << offer;
  EXPECT_EQ(result->agreement, agreement) << offer;
}

constexpr DeflateOptions large{.window_bits = 15, .peer_window_bits = 15};

TEST(DeflateNegotiation, servers_answer_with_what_the_client_allows) {
  expect_answer("permessage-deflate", large, "permessage-deflate", {});
  expect_answer("Permessage-Deflate; Server_Max_Window_Bits=15", large,
                "permessage-deflate; server_max_window_bits=15", {});
  expect_answer("permessage-deflate; client_max_window_bits", large, "permessage-deflate", {});
  expect_answer("permessage-deflate; client_max_window_bits=10; server_max_window_bits=\"8\"",
                large, "permessage-deflate; server_max_window_bits=8; client_max_window_bits=10",
                {.server_window_bits = 8, .client_window_bits = 10});
  expect_answer("permessage-deflate; server_no_context_takeover; client_no_context_takeover", {},
                "permessage-deflate; server_no_context_takeover; client_no_context_takeover; "
                "server_max_window_bits=12",
                {.server_window_bits = 12,
                 .has_server_context_takeover = false,
                 .has_client_context_takeover = false});
}

TEST(DeflateNegotiation, servers_ask_for_what_they_want) {
  // The window of the client can be limited only if it offers that.
  expect_answer("permessage-deflate", {}, "permessage-deflate; server_max_window_bits=12",
                {.server_window_bits = 12, .client_window_bits = 15});
  expect_answer("permessage-deflate; client_max_window_bits", {},
                "permessage-deflate; server_max_window_bits=12; client_max_window_bits=12",
                {.server_window_bits = 12, .client_window_bits = 12});
  expect_answer(
      "permessage-deflate",
      {.window_bits = 15, .has_context_takeover = false, .has_peer_context_takeover = false},
      "permessage-deflate; server_no_context_takeover; client_no_context_takeover",
      {.has_server_context_takeover = false, .has_client_context_takeover = false});
}

TEST(DeflateNegotiation, servers_decline_offers_that_are_invalid) {
  for (const char* offer :
       {"other", "permessage-deflate; unknown", "permessage-deflate; server_max_window_bits",
        "permessage-deflate; server_max_window_bits=7",
        "permessage-deflate; server_max_window_bits=16",
        "permessage-deflate; server_max_window_bits=010",
        "permessage-deflate; server_max_window_bits=1",
        "permessage-deflate; server_max_window_bits=20",
        "permessage-deflate; client_max_window_bits=0",
        "permessage-deflate; client_max_window_bits=1a",
        "permessage-deflate; server_no_context_takeover=1",
        "permessage-deflate; server_no_context_takeover; server_no_context_takeover",
        "permessage-deflate; client_max_window_bits; client_max_window_bits=9",
        "permessage-deflate; server_max_window_bits=9; server_max_window_bits=9"})
    EXPECT_FALSE(accepted(offer, {})) << offer;
  expect_answer("permessage-deflate; unknown, x, permessage-deflate; client_no_context_takeover",
                large, "permessage-deflate; client_no_context_takeover",
                {.has_client_context_takeover = false});
}

TEST(DeflateNegotiation, clients_offer_what_they_support) {
  EXPECT_EQ(http::detail::ws::offer_deflate(large), "permessage-deflate; client_max_window_bits");
  EXPECT_EQ(http::detail::ws::offer_deflate({}),
            "permessage-deflate; client_max_window_bits=12; server_max_window_bits=12, "
            "permessage-deflate; client_max_window_bits=12");
  EXPECT_EQ(http::detail::ws::offer_deflate({.window_bits = 15,
                                             .peer_window_bits = 15,
                                             .has_context_takeover = false,
                                             .has_peer_context_takeover = false}),
            "permessage-deflate; server_no_context_takeover; client_no_context_takeover; "
            "client_max_window_bits");
}

Result<std::optional<DeflateAgreement>> confirmed(const std::string& answer,
                                                  const DeflateOptions* options) {
  const Fields fields = fields_of({answer});
  return http::detail::ws::confirm_deflate(
      or_throw(http::detail::ws::parse_extensions(fields), answer), options);
}

TEST(DeflateNegotiation, clients_accept_valid_answers) {
  EXPECT_EQ(confirmed("", &large), std::nullopt);
  EXPECT_EQ(confirmed("", nullptr), std::nullopt);
  EXPECT_EQ(confirmed("permessage-deflate", &large), DeflateAgreement());
  const DeflateOptions small;
  EXPECT_EQ(confirmed("permessage-deflate; server_max_window_bits=10; client_max_window_bits=9; "
                      "server_no_context_takeover; client_no_context_takeover",
                      &small),
            (DeflateAgreement{.server_window_bits = 10,
                              .client_window_bits = 9,
                              .has_server_context_takeover = false,
                              .has_client_context_takeover = false}));
  EXPECT_EQ(confirmed("permessage-deflate", &small),
            (DeflateAgreement{.server_window_bits = 15, .client_window_bits = 12}));
}

TEST(DeflateNegotiation, clients_reject_what_they_have_not_offered) {
  const DeflateOptions without_context{.has_peer_context_takeover = false};
  EXPECT_EQ(confirmed("permessage-deflate", nullptr).error(), WebSocketError::unexpected_extension);
  EXPECT_EQ(confirmed("permessage-deflate", &without_context).error(),
            WebSocketError::unexpected_extension);
  for (const char* answer :
       {"other", "permessage-deflate, other", "permessage-deflate, permessage-deflate",
        "permessage-deflate; client_max_window_bits", "permessage-deflate; unknown",
        "permessage-deflate; server_max_window_bits=16"})
    EXPECT_EQ(confirmed(answer, &large).error(), WebSocketError::unexpected_extension) << answer;
}

/// Whatever both ends want, they agree on the same.
TEST(DeflateNegotiation, every_pair_of_options_leads_to_one_agreement) {
  std::vector<DeflateOptions> all;
  for (const int bits : {8, 12, 15}) {
    for (const int peer_bits : {8, 10, 15}) {
      for (const bool local : {false, true}) {
        for (const bool peer : {false, true}) all.push_back({bits, peer_bits, local, peer});
      }
    }
  }
  for (const DeflateOptions& client : all) {
    for (const DeflateOptions& server : all) {
      const auto answer = accepted(http::detail::ws::offer_deflate(client), server);
      ASSERT_TRUE(answer);
      auto agreement = confirmed(answer->field, &client);
      ASSERT_TRUE(agreement);
      // A client may use a smaller window than the server expects.
      ASSERT_LE((*agreement)->client_window_bits, answer->agreement.client_window_bits);
      (*agreement)->client_window_bits = answer->agreement.client_window_bits;
      EXPECT_EQ(*agreement, answer->agreement);
      EXPECT_LE(answer->agreement.server_window_bits,
                std::min(server.window_bits, client.peer_window_bits));
    }
  }
}

}  // namespace
}  // namespace tambour::extensions_test
