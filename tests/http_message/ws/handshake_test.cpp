// The opening handshake: RFC 6455, section 4, and RFC 8441.
#include "http_message/ws/handshake.h"

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#ifdef TAMBOUR_HAS_OPENSSL
#include <openssl/evp.h>
#endif

#include "http_message/ws/sha1.h"

namespace tambour::handshake_test {
namespace {

using namespace http;
namespace ws = http::detail::ws;
using http::WebSocketError;
using ws::HandshakeOffer;
using ws::HandshakeRequest;
using namespace std::string_literals;

using Pairs = std::vector<std::pair<std::string, std::string>>;

constexpr const char* sample_key = "dGhlIHNhbXBsZSBub25jZQ==";

std::string hexadecimal(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    text += "0123456789abcdef"[std::to_integer<unsigned>(byte) >> 4U];
    text += "0123456789abcdef"[std::to_integer<unsigned>(byte) & 15U];
  }
  return text;
}

TEST(Sha1, agrees_with_known_digests) {
  EXPECT_EQ(hexadecimal(ws::sha1("")), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  EXPECT_EQ(hexadecimal(ws::sha1("abc")), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(hexadecimal(ws::sha1("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
  EXPECT_EQ(hexadecimal(ws::sha1(std::string(1000000, 'a'))),
            "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

TEST(Sha1, agrees_with_openssl_for_every_size) {
#ifdef TAMBOUR_HAS_OPENSSL
  std::string text;
  for (std::size_t size = 0; size < 300; ++size) {
    std::array<std::byte, 20> expected;
    ASSERT_EQ(
        EVP_Digest(text.data(), text.size(), reinterpret_cast<unsigned char*>(expected.data()),
                   nullptr, EVP_sha1(), nullptr),
        1);
    ASSERT_EQ(ws::sha1(text), expected) << size;
    text += static_cast<char>(size * 7);
  }
#else
  GTEST_SKIP() << "built without OpenSSL";
#endif
}

/// RFC 6455, section 1.3.
TEST(Handshake, computes_the_keys_of_the_rfc) {
  EXPECT_EQ(ws::accept_for(sample_key), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
  const std::string nonce = "the sample nonce";
  EXPECT_EQ(ws::make_key(std::as_bytes(std::span<const char, 16>(nonce.data(), 16))), sample_key);
}

Fields fields_of(const Pairs& pairs) {
  Fields fields;
  for (const auto& [name, value] : pairs) or_throw(fields.add(name, value), name);
  return fields;
}

const Pairs good_request = {{"Host", "example.org"},
                            {"Upgrade", "websocket"},
                            {"Connection", "keep-alive, Upgrade"},
                            {"Sec-WebSocket-Key", sample_key},
                            {"Sec-WebSocket-Version", "13"}};

/// The pairs with one value replaced, added, or, without a value, removed.
Pairs with(Pairs pairs, const std::string& name, const char* value) {
  std::erase_if(pairs, [&](const auto& pair) { return pair.first == name; });
  if (value != nullptr) pairs.emplace_back(name, value);
  return pairs;
}

RequestHead request_of(const Pairs& pairs) { return {.target = "/", .fields = fields_of(pairs)}; }

Error error_of(const auto& result) { return result ? Error() : result.error(); }

Error request_error(const Pairs& pairs) { return error_of(ws::read_request(request_of(pairs))); }

TEST(Handshake, reads_requests) {
  Pairs pairs = good_request;
  pairs.emplace_back("Origin", "https://example.org");
  pairs.emplace_back("Sec-WebSocket-Protocol", "chat, superchat");
  pairs.emplace_back("Sec-WebSocket-Protocol", "v2");
  pairs.emplace_back("Sec-WebSocket-Extensions", "permessage-deflate; client_max_window_bits");
  const RequestHead head = request_of(pairs);
  const auto request = ws::read_request(head);
  ASSERT_TRUE(request) << request.error().message();
  EXPECT_EQ(request->key, sample_key);
  EXPECT_EQ(request->subprotocols, (std::vector<std::string_view>{"chat", "superchat", "v2"}));
  EXPECT_EQ(request->origin, "https://example.org");
  ASSERT_EQ(request->extensions.size(), 1U);
  EXPECT_EQ(request->extensions[0].name, "permessage-deflate");
  EXPECT_EQ(request_error(with(good_request, "Content-Length", "0")), Error());
}

TEST(Handshake, rejects_requests_that_break_a_rule) {
  const auto expect = [](const std::string& name, const char* value, WebSocketError error,
                         Status status) {
    EXPECT_EQ(request_error(with(good_request, name, value)), error) << name;
    EXPECT_EQ(ws::handshake_status_for(error), status) << name;
  };
  for (const char* value : {static_cast<const char*>(nullptr), "h2c", "websockets"})
    expect("Upgrade", value, WebSocketError::not_an_upgrade, Status::upgrade_required);
  for (const char* value : {static_cast<const char*>(nullptr), "keep-alive"})
    expect("Connection", value, WebSocketError::not_an_upgrade, Status::upgrade_required);
  for (const char* value : {static_cast<const char*>(nullptr), "8", "13, 8", "013"})
    expect("Sec-WebSocket-Version", value, WebSocketError::unsupported_version,
           Status::upgrade_required);
  for (const char* value : {static_cast<const char*>(nullptr), "", "AAAA", "dGhlIHNhbXBsZSBub25jZQ",
                            "dGhlIHNhbXBsZSBub25jZR==", "dGhlIHNhbXBsZSBub25jZTE="})
    expect("Sec-WebSocket-Key", value, WebSocketError::bad_key, Status::bad_request);
  expect("Content-Length", "1", WebSocketError::request_with_body, Status::bad_request);
  expect("Transfer-Encoding", "chunked", WebSocketError::request_with_body, Status::bad_request);
  for (const char* value : {"a, a", "a b", "a;b"})
    expect("Sec-WebSocket-Protocol", value, WebSocketError::bad_subprotocols, Status::bad_request);
  expect("Sec-WebSocket-Extensions", "a;", WebSocketError::bad_extensions, Status::bad_request);
  for (const char* name : {"Sec-WebSocket-Key", "Sec-WebSocket-Version"}) {
    Pairs twice = good_request;
    twice.emplace_back(name, name == "Sec-WebSocket-Key"s ? sample_key : "13");
    EXPECT_TRUE(request_error(twice)) << name;
  }
}

TEST(Handshake, rejects_other_methods_and_versions) {
  RequestHead head = request_of(good_request);
  head.method = Method::post;
  EXPECT_EQ(error_of(ws::read_request(head)), WebSocketError::bad_method);
  EXPECT_EQ(ws::handshake_status_for(WebSocketError::bad_method), Status::method_not_allowed);
  head.method = Method::get;
  head.version = Version::http_1_0;
  EXPECT_EQ(error_of(ws::read_request(head)), WebSocketError::bad_http_version);
}

TEST(Handshake, limits_the_number_of_subprotocols) {
  std::string names = "p";
  for (int i = 1; i < 64; ++i) names += ",p" + std::to_string(i);
  EXPECT_EQ(request_error(with(good_request, "Sec-WebSocket-Protocol", names.c_str())), Error());
  names += ",x";
  EXPECT_EQ(request_error(with(good_request, "Sec-WebSocket-Protocol", names.c_str())),
            WebSocketError::bad_subprotocols);
}

TEST(Handshake, reads_extended_connect_requests) {
  RequestHead head{
      .method = Method::connect,
      .target = "/chat",
      .version = Version::http_2,
      .fields = fields_of({{"Sec-WebSocket-Version", "13"}, {"Sec-WebSocket-Protocol", "chat"}})};
  const auto request = ws::read_connect_request(head, "websocket");
  ASSERT_TRUE(request) << request.error().message();
  EXPECT_EQ(request->key, "");
  EXPECT_EQ(request->subprotocols, std::vector<std::string_view>{"chat"});
  Fields answer;
  EXPECT_TRUE(ws::add_response_fields(answer, *request, "chat", ""));
  EXPECT_EQ(answer, fields_of({{"Sec-WebSocket-Protocol", "chat"}}));
  EXPECT_EQ(error_of(ws::read_connect_request(head, "connect-udp")),
            WebSocketError::not_an_upgrade);
  head.method = Method::get;
  EXPECT_EQ(error_of(ws::read_connect_request(head, "websocket")), WebSocketError::bad_method);
}

TEST(Handshake, chooses_the_subprotocol_that_the_client_prefers) {
  HandshakeRequest request{.subprotocols = {"v3", "v2", "v1"}};
  const std::string_view supported[] = {"v1", "v2"};
  EXPECT_EQ(ws::choose_subprotocol(request, supported), "v2");
  request.subprotocols = {"V1"};
  EXPECT_EQ(ws::choose_subprotocol(request, supported), std::nullopt);
}

TEST(Handshake, checks_the_origin) {
  const auto is_allowed = [](std::optional<std::string_view> origin, std::string_view authority,
                             std::vector<std::string_view> allowed = {}) {
    return ws::check_origin({.origin = origin}, authority, allowed).has_value();
  };
  EXPECT_TRUE(is_allowed(std::nullopt, "example.org"));
  EXPECT_TRUE(is_allowed("https://example.org", "example.org"));
  EXPECT_TRUE(is_allowed("https://Example.org", "example.org:443"));
  EXPECT_TRUE(is_allowed("http://example.org:80", "example.org"));
  EXPECT_TRUE(is_allowed("http://example.org:8080", "example.org:8080"));
  EXPECT_TRUE(is_allowed("https://app.example.org", "example.org", {"https://app.example.org"}));
  EXPECT_TRUE(is_allowed("null", "example.org", {"null"}));
  EXPECT_FALSE(is_allowed("https://example.com", "example.org"));
  EXPECT_FALSE(is_allowed("https://example.org.example.com", "example.org"));
  EXPECT_FALSE(is_allowed("https://example.org:444", "example.org"));
  EXPECT_FALSE(is_allowed("http://example.org:443", "example.org"));
  EXPECT_FALSE(is_allowed("null", "example.org"));
  EXPECT_FALSE(is_allowed("null", ""));
  EXPECT_FALSE(is_allowed("https://", ""));
  EXPECT_FALSE(is_allowed("", ""));
}

TEST(Handshake, rejects_several_origins) {
  Pairs pairs = good_request;
  pairs.emplace_back("Origin", "https://example.org");
  pairs.emplace_back("Origin", "https://example.com");
  EXPECT_EQ(request_error(pairs), WebSocketError::origin_not_allowed);
  EXPECT_EQ(ws::handshake_status_for(WebSocketError::origin_not_allowed), Status::forbidden);
}

TEST(Handshake, a_rejection_has_the_fields_that_its_status_requires) {
  const auto rejection = [](WebSocketError error) {
    Fields fields;
    ws::add_rejection_fields(fields, error);
    return fields;
  };
  EXPECT_EQ(rejection(WebSocketError::unsupported_version),
            fields_of({{"Sec-WebSocket-Version", "13"}, {"Upgrade", "websocket"}}));
  EXPECT_EQ(rejection(WebSocketError::bad_method),
            fields_of({{"Sec-WebSocket-Version", "13"}, {"Allow", "GET"}}));
  EXPECT_EQ(rejection(WebSocketError::bad_key), fields_of({{"Sec-WebSocket-Version", "13"}}));
}

const HandshakeOffer sample_offer{
    .key = sample_key, .subprotocols = {"chat", "superchat"}, .deflate = ws::DeflateOptions{}};
const Pairs good_response = {{"Upgrade", "WebSocket"},
                             {"Connection", "Upgrade"},
                             {"Sec-WebSocket-Accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="}};

ResponseHead response_of(const Pairs& pairs, Status status = Status::switching_protocols) {
  return {.status = status, .fields = fields_of(pairs)};
}

TEST(Handshake, client_and_server_agree) {
  Fields fields;
  ASSERT_TRUE(ws::add_request_fields(fields, sample_offer));
  ASSERT_TRUE(fields.add("Connection", "Upgrade"));
  const RequestHead head{.target = "/", .fields = fields};
  const auto request = ws::read_request(head);
  ASSERT_TRUE(request) << request.error().message();
  const auto deflate = ws::accept_deflate(request->extensions, {});
  ASSERT_TRUE(deflate);
  ResponseHead response{.status = Status::switching_protocols};
  ASSERT_TRUE(ws::add_response_fields(response.fields, *request, "superchat", deflate->field));
  ASSERT_TRUE(response.fields.add("Connection", "Upgrade"));
  const auto read = ws::read_response(response, sample_offer);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->subprotocol, "superchat");
  EXPECT_EQ(read->deflate, deflate->agreement);
}

TEST(Handshake, reads_responses) {
  const auto read = ws::read_response(response_of(good_response), sample_offer);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->subprotocol, "");
  EXPECT_FALSE(read->deflate);
  // Over HTTP/2.
  const HandshakeOffer offer{.subprotocols = {"chat"}};
  EXPECT_TRUE(ws::read_response(response_of({}, Status::ok), offer));
  EXPECT_EQ(error_of(ws::read_response(response_of({}, Status::forbidden), offer)),
            WebSocketError::unexpected_status);
}

TEST(Handshake, rejects_responses_that_break_a_rule) {
  const auto expect = [](const std::string& name, const char* value, WebSocketError error) {
    EXPECT_EQ(
        error_of(ws::read_response(response_of(with(good_response, name, value)), sample_offer)),
        error)
        << name;
  };
  expect("Upgrade", nullptr, WebSocketError::bad_upgrade);
  expect("Upgrade", "websocket, h2c", WebSocketError::bad_upgrade);
  expect("Connection", "close", WebSocketError::bad_upgrade);
  expect("Sec-WebSocket-Accept", nullptr, WebSocketError::bad_accept);
  expect("Sec-WebSocket-Accept", sample_key, WebSocketError::bad_accept);
  expect("Sec-WebSocket-Protocol", "other", WebSocketError::unexpected_subprotocol);
  expect("Sec-WebSocket-Protocol", "chat, superchat", WebSocketError::unexpected_subprotocol);
  expect("Sec-WebSocket-Extensions", "other", WebSocketError::unexpected_extension);
  expect("Sec-WebSocket-Extensions", "=", WebSocketError::bad_extensions);
  EXPECT_EQ(error_of(ws::read_response(response_of(good_response, Status::ok), sample_offer)),
            WebSocketError::unexpected_status);
}

TEST(Handshake, rejects_bad_subprotocols_of_the_program) {
  for (const std::vector<std::string>& names :
       std::vector<std::vector<std::string>>{{""}, {"a b"}, {"a", "a"}, {"a,b"}, {"a\r\nX: y"}}) {
    Fields fields;
    EXPECT_EQ(error_of(ws::add_request_fields(fields, {.subprotocols = names})),
              WebSocketError::bad_subprotocols);
    EXPECT_TRUE(fields.empty());
  }
}

}  // namespace
}  // namespace tambour::handshake_test
