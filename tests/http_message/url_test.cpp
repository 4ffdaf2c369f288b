// URLs: components, rejected text, resolution of references, normal forms, encoding.
#include <tambour/http/url.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace tambour::url_test {
namespace {

using http::Url;
using http::UrlComponent;
using namespace std::string_literals;
using namespace std::string_view_literals;

Url url_of(std::string_view text) { return or_throw(Url::parse(text), text); }

TEST(Url, has_the_components_of_its_text) {
  const Url url = url_of("https://user:pass@example.org:8443/a/b%20c;d?x=1&y=/?#frag?/");
  EXPECT_TRUE(url.is_absolute());
  EXPECT_EQ(url.scheme(), "https");
  EXPECT_TRUE(url.has_authority());
  EXPECT_EQ(url.authority(), "user:pass@example.org:8443");
  EXPECT_EQ(url.userinfo(), "user:pass");
  EXPECT_EQ(url.host(), "example.org");
  EXPECT_FALSE(url.has_ip_literal());
  EXPECT_EQ(url.port(), 8443);
  EXPECT_EQ(url.path(), "/a/b%20c;d");
  EXPECT_EQ(url.query(), "x=1&y=/?");
  EXPECT_EQ(url.fragment(), "frag?/");
  EXPECT_EQ(url.request_target(), "/a/b%20c;d?x=1&y=/?");
}

TEST(Url, tells_absent_components_from_empty_ones) {
  const Url none = url_of("a");
  EXPECT_FALSE(none.is_absolute() || none.has_authority());
  EXPECT_EQ(none.userinfo(), std::nullopt);
  EXPECT_EQ(none.port(), std::nullopt);
  EXPECT_EQ(none.query(), std::nullopt);
  EXPECT_EQ(none.fragment(), std::nullopt);
  const Url empty = url_of("s://@:?#");
  EXPECT_TRUE(empty.has_authority());
  EXPECT_EQ(empty.userinfo(), "");
  EXPECT_EQ(empty.host(), "");
  EXPECT_EQ(empty.port(), std::nullopt);
  EXPECT_EQ(empty.path(), "");
  EXPECT_EQ(empty.query(), "");
  EXPECT_EQ(empty.fragment(), "");
  EXPECT_EQ(Url(), url_of(""));
}

TEST(Url, reads_every_form_of_host) {
  struct Case {
    const char* text;
    const char* host;
    int port;
    bool in_brackets;
  };
  for (const Case& test_case :
       {Case{"http://[::1]:80/", "::1", 80, true},
        Case{"http://[2001:db8::7]/c=GB?one", "2001:db8::7", -1, true},
        Case{"http://u@[::ffff:192.0.2.1]", "::ffff:192.0.2.1", -1, true},
        Case{"http://[v1.fe80::a+en1]/", "v1.fe80::a+en1", -1, true},
        Case{"http://192.0.2.16:80/", "192.0.2.16", 80, false},
        Case{"http://a_b-c.d~e!$&'()*+,;=", "a_b-c.d~e!$&'()*+,;=", -1, false},
        Case{"http://%C3%A9.org:0", "%C3%A9.org", 0, false},
        Case{"//host:00080", "host", 80, false}, Case{"file:///etc/hosts", "", -1, false}}) {
    const auto url = Url::parse(test_case.text);
    ASSERT_TRUE(url) << test_case.text;
    EXPECT_EQ(url->host(), test_case.host);
    EXPECT_EQ(url->port() ? *url->port() : -1, test_case.port) << test_case.text;
    EXPECT_EQ(url->has_ip_literal(), test_case.in_brackets) << test_case.text;
  }
}

/// RFC 3986, section 1.1.2.
TEST(Url, reads_the_examples_of_the_standard) {
  for (const char* text :
       {"ftp://ftp.is.co.za/rfc/rfc1808.txt", "http://www.ietf.org/rfc/rfc2396.txt",
        "ldap://[2001:db8::7]/c=GB?objectClass?one", "mailto:John.Doe@example.com",
        "news:comp.infosystems.www.servers.unix", "tel:+1-816-555-1212", "telnet://192.0.2.16:80/",
        "urn:oasis:names:specification:docbook:dtd:xml:4.1.2"}) {
    const auto url = Url::parse(text);
    ASSERT_TRUE(url) << text;
    EXPECT_EQ(url->to_string(), text);
    const auto same = Url::compose(url->parts());
    ASSERT_TRUE(same) << text;
    EXPECT_EQ(*same, *url);
  }
  EXPECT_EQ(url_of("mailto:John.Doe@example.com").path(), "John.Doe@example.com");
}

TEST(Url, reports_why_it_rejects_text) {
  const std::vector<std::pair<std::string, http::ErrorCode>> rejected = {
      {"http://a/b c", http::ErrorCode::url_bad_character},
      {"http://a/\"", http::ErrorCode::url_bad_character},
      {"http://a/<b>", http::ErrorCode::url_bad_character},
      {"http://a/\\b", http::ErrorCode::url_bad_character},
      {"http://a/{b}", http::ErrorCode::url_bad_character},
      {"http://a/b|c", http::ErrorCode::url_bad_character},
      {"http://a/^", http::ErrorCode::url_bad_character},
      {"http://a/`", http::ErrorCode::url_bad_character},
      {"http://a/[b]", http::ErrorCode::url_bad_character},
      {"http://a/\xC3\xA9", http::ErrorCode::url_bad_character},
      {"http://a/\x7F", http::ErrorCode::url_bad_character},
      {"http://a/\0b"s, http::ErrorCode::url_bad_character},
      {"http://a/b\r\nX: y", http::ErrorCode::url_bad_character},
      {"http://a/?b[]=1", http::ErrorCode::url_bad_character},
      {"http://a/#b#c", http::ErrorCode::url_bad_character},
      {"http://u ser@a/", http::ErrorCode::url_bad_character},
      {" http://a/", http::ErrorCode::url_bad_scheme},
      {"a b", http::ErrorCode::url_bad_character},
      {"http://a/%", http::ErrorCode::url_bad_encoding},
      {"http://a/%4", http::ErrorCode::url_bad_encoding},
      {"http://a/%4g", http::ErrorCode::url_bad_encoding},
      {"http://a/%%41", http::ErrorCode::url_bad_encoding},
      {"http://a/?%zz", http::ErrorCode::url_bad_encoding},
      {"http://a/#%", http::ErrorCode::url_bad_encoding},
      {"http://u%@a/", http::ErrorCode::url_bad_encoding},
      {":a", http::ErrorCode::url_bad_scheme},
      {"1a:b", http::ErrorCode::url_bad_scheme},
      {"+a:b", http::ErrorCode::url_bad_scheme},
      {"a_b:c", http::ErrorCode::url_bad_scheme},
      {"a%41:b", http::ErrorCode::url_bad_scheme},
      {"http://a b/", http::ErrorCode::url_bad_host},
      {"http://a%/", http::ErrorCode::url_bad_host},
      {"http://\xC3\xA9/", http::ErrorCode::url_bad_host},
      {"http://a\0b/"s, http::ErrorCode::url_bad_host},
      {"http://[::1/", http::ErrorCode::url_bad_host},
      {"http://::1]/", http::ErrorCode::url_bad_port},
      {"http://a]/", http::ErrorCode::url_bad_host},
      {"http://[]/", http::ErrorCode::url_bad_host},
      {"http://[1.2.3.4]/", http::ErrorCode::url_bad_host},
      {"http://[::1]a/", http::ErrorCode::url_bad_host},
      {"http://[::1]]/", http::ErrorCode::url_bad_host},
      {"http://[[::1]]/", http::ErrorCode::url_bad_host},
      {"http://[12345::]/", http::ErrorCode::url_bad_host},
      {"http://[1:2:3:4:5:6:7]/", http::ErrorCode::url_bad_host},
      {"http://[::1%25lo]/", http::ErrorCode::url_bad_host},
      {"http://[::1\0]/"s, http::ErrorCode::url_bad_host},
      {"http://[v.a]/", http::ErrorCode::url_bad_host},
      {"http://[v1a]/", http::ErrorCode::url_bad_host},
      {"http://[v1.]/", http::ErrorCode::url_bad_host},
      {"http://[v1.a/b]/", http::ErrorCode::url_bad_host},
      {"http://[vg.a]/", http::ErrorCode::url_bad_host},
      {"http://a@b@c/", http::ErrorCode::url_bad_host},
      {"http://a:65536/", http::ErrorCode::url_bad_port},
      {"http://a:99999999999999999999/", http::ErrorCode::url_bad_port},
      {"http://a:-1/", http::ErrorCode::url_bad_port},
      {"http://a:+1/", http::ErrorCode::url_bad_port},
      {"http://a: 80/", http::ErrorCode::url_bad_port},
      {"http://a:80a/", http::ErrorCode::url_bad_port},
      {"http://a:80:80/", http::ErrorCode::url_bad_port},
      {"http://a/" + std::string(Url::size_max, 'b'), http::ErrorCode::url_too_long}};
  for (const auto& [text, error] : rejected) {
    const auto url = Url::parse(text);
    ASSERT_FALSE(url) << text;
    EXPECT_EQ(url.error(), error) << text << ": " << url.error().message();
  }
  EXPECT_TRUE(Url::parse("/" + std::string(Url::size_max - 1, 'b')));
}

TEST(Url, cannot_be_composed_of_parts_that_would_be_read_as_others) {
  const std::vector<std::pair<http::UrlParts, http::ErrorCode>> rejected = {
      {{.path = "//a"}, http::ErrorCode::url_ambiguous_path},
      {{.path = "//a:b"}, http::ErrorCode::url_ambiguous_path},
      {{.scheme = "a", .path = "//b"}, http::ErrorCode::url_ambiguous_path},
      {{.path = "a:b"}, http::ErrorCode::url_ambiguous_path},
      {{.path = "1:b"}, http::ErrorCode::url_bad_scheme},
      {{.authority = "a", .path = "b"}, http::ErrorCode::url_ambiguous_path},
      {{.authority = "a/b"}, http::ErrorCode::url_ambiguous_path},
      {{.path = "a?b"}, http::ErrorCode::url_ambiguous_path},
      {{.path = "a", .query = "b#c"}, http::ErrorCode::url_ambiguous_path},
      {{.scheme = "", .path = "a"}, http::ErrorCode::url_bad_scheme},
      {{.path = "a b"}, http::ErrorCode::url_bad_character}};
  for (const auto& [parts, error] : rejected) {
    const auto url = Url::compose(parts);
    ASSERT_FALSE(url) << url->to_string();
    EXPECT_EQ(url.error(), error) << parts.path << ": " << url.error().message();
  }
  EXPECT_EQ(Url::compose({.scheme = "http", .authority = "a", .path = "//b"})->path(), "//b");
}

/// RFC 3986, section 5.4.
TEST(Url, resolves_the_references_of_the_standard) {
  const Url base = url_of("http://a/b/c/d;p?q#ignored");
  const std::vector<std::pair<const char*, const char*>> references = {
      {"g:h", "g:h"},
      {"g", "http://a/b/c/g"},
      {"./g", "http://a/b/c/g"},
      {"g/", "http://a/b/c/g/"},
      {"/g", "http://a/g"},
      {"//g", "http://g"},
      {"?y", "http://a/b/c/d;p?y"},
      {"g?y", "http://a/b/c/g?y"},
      {"#s", "http://a/b/c/d;p?q#s"},
      {"g#s", "http://a/b/c/g#s"},
      {"g?y#s", "http://a/b/c/g?y#s"},
      {";x", "http://a/b/c/;x"},
      {"g;x", "http://a/b/c/g;x"},
      {"g;x?y#s", "http://a/b/c/g;x?y#s"},
      {"", "http://a/b/c/d;p?q"},
      {".", "http://a/b/c/"},
      {"./", "http://a/b/c/"},
      {"..", "http://a/b/"},
      {"../", "http://a/b/"},
      {"../g", "http://a/b/g"},
      {"../..", "http://a/"},
      {"../../", "http://a/"},
      {"../../g", "http://a/g"},
      {"../../../g", "http://a/g"},
      {"../../../../g", "http://a/g"},
      {"/./g", "http://a/g"},
      {"/../g", "http://a/g"},
      {"g.", "http://a/b/c/g."},
      {".g", "http://a/b/c/.g"},
      {"g..", "http://a/b/c/g.."},
      {"..g", "http://a/b/c/..g"},
      {"./../g", "http://a/b/g"},
      {"./g/.", "http://a/b/c/g/"},
      {"g/./h", "http://a/b/c/g/h"},
      {"g/../h", "http://a/b/c/h"},
      {"g;x=1/./y", "http://a/b/c/g;x=1/y"},
      {"g;x=1/../y", "http://a/b/c/y"},
      {"g?y/./x", "http://a/b/c/g?y/./x"},
      {"g?y/../x", "http://a/b/c/g?y/../x"},
      {"g#s/./x", "http://a/b/c/g#s/./x"},
      {"g#s/../x", "http://a/b/c/g#s/../x"},
      {"http:g", "http:g"}};
  for (const auto& [reference, target] : references)
    EXPECT_EQ(or_throw(base.resolve(url_of(reference)), reference).to_string(), target);
}

TEST(Url, resolves_references_at_the_edges) {
  EXPECT_EQ(url_of("http://a").resolve(url_of("b"))->to_string(), "http://a/b");
  EXPECT_EQ(url_of("http://a?q").resolve(url_of(""))->to_string(), "http://a?q");
  EXPECT_EQ(url_of("a:b/c").resolve(url_of("d"))->to_string(), "a:b/d");
  EXPECT_EQ(url_of("a:b").resolve(url_of("c"))->to_string(), "a:c");
  EXPECT_EQ(url_of("b").resolve(url_of("c")).error(), http::ErrorCode::url_not_absolute);
  EXPECT_EQ(url_of("a:/b/c").resolve(url_of("..//d")).error(), http::ErrorCode::url_ambiguous_path);
  const Url long_base = url_of("http://a/" + std::string(60000, 'b') + "/");
  EXPECT_EQ(long_base.resolve(url_of(std::string(6000, 'c'))).error(),
            http::ErrorCode::url_too_long);
}

TEST(Url, has_a_normal_form) {
  const std::vector<std::pair<const char*, const char*>> forms = {
      {"HTTP://Example.ORG:80", "http://example.org/"},
      {"https://a:443/%7euser/%2a%2f", "https://a/~user/%2A%2F"},
      {"https://a:80/", "https://a:80/"},
      {"http://a:/", "http://a/"},
      {"http://U%3aser@A/", "http://U%3Aser@a/"},
      {"http://a%C3%a9%41/", "http://a%C3%A9a/"},
      {"http://[2001:DB8::A]/", "http://[2001:db8::a]/"},
      {"http://a/b/./c/../d/%2e%2E/e", "http://a/b/e"},
      {"ftp://a", "ftp://a"},
      {"MAILTO:A@B", "mailto:A@B"},
      {"urn:a/../b", "urn:a/../b"},
      {"a:/..//b", "a:/..//b"},
      {"../a", "../a"},
      {"?%61", "?a"},
      {"#%61", "#a"},
      {"", ""}};
  for (const auto& [text, normal] : forms) {
    EXPECT_EQ(url_of(text).normalized().to_string(), normal);
    EXPECT_EQ(url_of(normal).normalized().to_string(), normal);
  }
}

TEST(Url, has_default_ports) {
  EXPECT_EQ(url_of("http://a").port_or_default(), 80);
  EXPECT_EQ(url_of("HTTPS://a").port_or_default(), 443);
  EXPECT_EQ(url_of("ws://a").port_or_default(), 80);
  EXPECT_EQ(url_of("wss://a").port_or_default(), 443);
  EXPECT_EQ(url_of("https://a:8080").port_or_default(), 8080);
  EXPECT_EQ(url_of("foo://a").port_or_default(), 0);
  EXPECT_EQ(url_of("//a").port_or_default(), 0);
  EXPECT_EQ(url_of("http://a?b").request_target(), "/?b");
}

TEST(PercentEncoding, encodes_what_a_component_must_not_contain) {
  const std::string_view text = "a/b:c@d?e&f=g#h i%\xC3\xA9~";
  EXPECT_EQ(http::percent_encode(text, UrlComponent::path), "a/b:c@d%3Fe&f=g%23h%20i%25%C3%A9~");
  EXPECT_EQ(http::percent_encode(text, UrlComponent::path_segment),
            "a%2Fb:c@d%3Fe&f=g%23h%20i%25%C3%A9~");
  EXPECT_EQ(http::percent_encode(text, UrlComponent::query), "a/b:c@d?e&f=g%23h%20i%25%C3%A9~");
  EXPECT_EQ(http::percent_encode(text, UrlComponent::fragment), "a/b:c@d?e&f=g%23h%20i%25%C3%A9~");
  EXPECT_EQ(http::percent_encode(text, UrlComponent::user),
            "a%2Fb%3Ac%40d%3Fe&f=g%23h%20i%25%C3%A9~");
  EXPECT_EQ(http::percent_encode(text, UrlComponent::unreserved),
            "a%2Fb%3Ac%40d%3Fe%26f%3Dg%23h%20i%25%C3%A9~");
  EXPECT_EQ(http::percent_encode("\0\n"sv, UrlComponent::path), "%00%0A");
}

TEST(PercentEncoding, decodes_every_byte_once) {
  EXPECT_EQ(http::percent_decode("%41%2f%00%ff+"), "A/\0\xFF+"s);
  EXPECT_EQ(http::percent_decode("%2541"), "%41");
  EXPECT_EQ(http::percent_decode("%4").error(), http::ErrorCode::url_bad_encoding);
  EXPECT_EQ(http::percent_decode("%").error(), http::ErrorCode::url_bad_encoding);
  EXPECT_EQ(http::percent_decode("%-1").error(), http::ErrorCode::url_bad_encoding);
}

TEST(QueryParameters, are_read_and_written) {
  using Pairs = http::QueryParameters;
  EXPECT_EQ(http::parse_query("a=1&b=x+y&&c&=d&a=%26%3d&e=f=g"),
            (Pairs{{"a", "1"}, {"b", "x y"}, {"c", ""}, {"", "d"}, {"a", "&="}, {"e", "f=g"}}));
  EXPECT_EQ(http::parse_query(""), Pairs());
  EXPECT_EQ(http::parse_query("&&"), Pairs());
  EXPECT_EQ(http::parse_query("a=100%&b=%zz"), (Pairs{{"a", "100%"}, {"b", "%zz"}}));
  EXPECT_EQ(http::parse_query("a&b&c", 3)->size(), 3);
  EXPECT_EQ(http::parse_query("a&b&c&d", 3).error(), system_error(EMSGSIZE));
  const Pairs pairs = {{"a b", "1+2"}, {"\xC3\xA9", "&="}, {"", ""}};
  EXPECT_EQ(http::format_query(pairs), "a+b=1%2B2&%C3%A9=%26%3D&=");
  EXPECT_EQ(http::parse_query(http::format_query(pairs)), pairs);
}

TEST(HttpErrorCode, says_what_is_wrong) {
  EXPECT_STREQ(http::error_category().name(), "tambour.http");
  EXPECT_EQ(make_error_code(http::ErrorCode::url_bad_port).message(),
            "The URL has a port that is not a number from 0 to 65535");
  EXPECT_EQ(http::error_category().message(0), "Unknown HTTP error");
}

}  // namespace
}  // namespace tambour::url_test
