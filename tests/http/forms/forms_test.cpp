// Forms: multipart/form-data in pieces and in memory, encoded forms, limits, and names of files.
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "http/forms/multipart_parser.h"
#include "http/forms/parameters.h"
#include "http/support/serving.h"

namespace tambour::forms_test {
namespace {

using http::FormLimits;
using http::FormReader;
using http::Request;
using http::Response;
using http::safe_file_name;

std::string post(const std::string& type, const std::string& body) {
  return "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: " + type +
         "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}
std::string multipart(const std::string& body) {
  return post("multipart/form-data; boundary=b", body);
}
std::string part(const std::string& parameters, const std::string& contents,
                 const std::string& more_fields = "") {
  return "--b\r\nContent-Disposition: form-data; " + parameters + "\r\n" + more_fields + "\r\n" +
         contents + "\r\n";
}

/// Sends back the parts, as the reader sees them.
Task<> describe(Request& request, Response& response, FormLimits limits, std::size_t piece_bytes) {
  auto form = FormReader::open(request, limits);
  if (!form) co_return;
  std::string text;
  while (true) {
    const auto more = co_await form->next();
    if (!more) co_return;
    if (!*more) break;
    text += form->part().name + "|" + form->part().file_name.value_or("none") + "|" +
            form->part().content_type + "|";
    while (true) {
      const auto piece = co_await form->read(piece_bytes);
      if (!piece) co_return;
      if (piece->empty()) break;
      text += piece->to_string();
    }
    text += ";";
  }
  response.send(text);
}

class HttpForms : public test::Serving {
 public:
  void serve_description(FormLimits limits = {}, std::size_t piece_bytes = 1000) {
    server_.reset();
    serve([limits, piece_bytes](Request& request, Response& response) {
      return describe(request, response, limits, piece_bytes);
    });
  }
  /// The status and the body of the response.
  std::string answer(const std::string& request) {
    const std::string response = ask(request);
    return response.substr(9, 3) + " " + response.substr(response.find("\r\n\r\n") + 4);
  }
};

TEST_F(HttpForms, consist_of_parts) {
  const std::string body =
      part("name=\"a\"", "one") +
      part("name=\"f\"; filename=\"x.txt\"", "two\r\n--\r\nthree", "Content-Type: text/html\r\n") +
      part("name=\"a\"", "") + "--b--\r\n";
  const std::string expected =
      "200 a|none|text/plain|one;f|x.txt|text/html|two\r\n--\r\nthree;a|none|text/plain|;";
  for (const std::size_t piece_bytes : {1U, 2U, 7U, 1000U}) {
    serve_description({}, piece_bytes);
    EXPECT_EQ(answer(multipart(body)), expected);
    // Whatever way the bytes arrive.
    const std::string whole = multipart(body);
    for (std::size_t at = whole.find("\r\n\r\n"); at < whole.size(); at += 3) {
      const std::string response = ask_in_pieces({whole.substr(0, at), whole.substr(at)});
      EXPECT_TRUE(response.ends_with(expected.substr(4))) << at;
    }
  }
  EXPECT_EQ(answer(multipart("--b--")), "200 ");
}

TEST_F(HttpForms, are_refused_if_they_are_malformed) {
  serve_description();
  const std::string good = part("name=\"a\"", "one");
  for (const std::string& body :
       {std::string("x") + good.substr(0, good.size() - 2),
        good + "--b--x\r\n",
        good + "--b-- x",
        good + "--b -- \r\n",
        good + "--b x\r\n" + good + "--b--\r\n",
        good + "--b--\r",
        good + "--b-- \rx",
        "preamble\r\n--bx\r\n" + good + "--b--\r\n",
        good + "--b--\n",
        good + "--b-",
        good,
        std::string(),
        good + "--bx\r\n\r\n",
        std::string("--b\r\n\r\none\r\n--b--\r\n"),
        std::string("--b\nContent-Disposition: form-data; name=a\n\none\n--b--\n"),
        part("filename=\"a\"", "x") + "--b--",
        part("name=a; name=b", "x") + "--b--",
        part("name=\"a", "x") + "--b--",
        part("name", "x") + "--b--",
        part("=a", "x") + "--b--",
        part("name=a", "x", "Content-Disposition: form-data; name=b\r\n") + "--b--",
        part("name=a", "x", "Bad Field: x\r\n") + "--b--",
        part("name=a", "x", " folded\r\n") + "--b--",
        std::string("--b\r\nContent-Disposition: attachment; name=a\r\n\r\none\r\n--b--\r\n")}) {
    EXPECT_TRUE(answer(multipart(body)).starts_with("400 ")) << body;
  }
  EXPECT_TRUE(answer(post("text/plain", good)).starts_with("415 "));
  for (const char* type :
       {"multipart/form-data", "multipart/form-data; boundary=\"\"",
        "multipart/form-data; boundary=\"a \"", "multipart/form-data; boundary=\"a@\"",
        "multipart/form-data; boundary="
        "12345678901234567890123456789012345678901234567890123456789012345678901"}) {
    const std::string response = answer(post(type, good));
    EXPECT_TRUE(response.starts_with("400 ")) << type << response;
  }
}

/// RFC 2046, section 5.1.1.
TEST_F(HttpForms, ignore_what_is_around_the_parts) {
  serve_description();
  const std::string good = part("name=\"a\"", "one");
  const std::string padded = "--b \t \r\n" + good.substr(5);
  for (const std::string& body :
       {"This is a message with several parts.\r\n" + good + "--b--\r\n",
        "\r\n" + good + "--b--\r\n", "--\r\n--a\r\n" + good + "--b--", padded + "--b--\r\n",
        good + "--b-- \t ", good + "--b--\t\r\n", good + "--b--\r\nepilogue",
        good + "--b--\r\n" + good + "--b--\r\n",
        "preamble --b\r\n\r\n" + padded + "--b-- \r\nepilogue\r\n--b\r\n"}) {
    EXPECT_EQ(answer(multipart(body)), "200 a|none|text/plain|one;") << body;
    const std::string whole = multipart(body);
    for (std::size_t at = whole.find("\r\n\r\n") + 4; at < whole.size(); ++at) {
      const std::string response = ask_in_pieces({whole.substr(0, at), whole.substr(at)});
      EXPECT_TRUE(response.ends_with("\r\n\r\na|none|text/plain|one;")) << at;
    }
  }
  const std::string long_text(60'000, ' ');
  EXPECT_TRUE(answer(multipart(long_text + "\r\n" + good + "--b--")).starts_with("200 "));
  EXPECT_TRUE(
      answer(multipart(long_text + "\r\n" + good + "--b--" + long_text)).starts_with("413 "));
  for (const std::string& body :
       {long_text + long_text, "--b" + long_text + long_text, "--b--" + long_text + long_text,
        "--b--\r\n" + long_text + long_text})
    EXPECT_TRUE(answer(multipart(body)).starts_with("413 ")) << body.substr(0, 10);
}

TEST_F(HttpForms, have_boundaries_without_quotes) {
  serve_description();
  for (const std::string boundary : {"----=_Part_1_2.3", "=", "a:b/c?(d)=", "==x=="}) {
    const std::string body = "--" + boundary +
                             "\r\nContent-Disposition: form-data; name=a\r\n\r\none\r\n--" +
                             boundary + "--\r\n";
    EXPECT_EQ(answer(post("multipart/form-data; boundary=" + boundary + "; x=y", body)),
              "200 a|none|text/plain|one;");
  }
}

TEST_F(HttpForms, have_limits) {
  const auto many = [](int count) {
    std::string body;
    for (int i = 0; i < count; ++i) body += part("name=a", "x");
    return body + "--b--\r\n";
  };
  serve_description({.parts_max = 3});
  EXPECT_TRUE(answer(multipart(many(3))).starts_with("200 "));
  EXPECT_TRUE(answer(multipart(many(4))).starts_with("413 "));
  serve_description({.part_bytes_max = 5});
  EXPECT_TRUE(answer(multipart(part("name=a", "12345") + "--b--")).starts_with("200 "));
  EXPECT_TRUE(answer(multipart(part("name=a", "123456") + "--b--")).starts_with("413 "));
  serve_description({.head_bytes_max = 100});
  const std::string field = "X: " + std::string(60, 'x') + "\r\n";
  EXPECT_TRUE(answer(multipart(part("name=a", "x", "X: y\r\n") + "--b--")).starts_with("200 "));
  EXPECT_TRUE(answer(multipart(part("name=a", "x", field) + "--b--")).starts_with("431 "));
  std::string fields;
  for (int i = 0; i < 32; ++i) fields += "X:\r\n";
  EXPECT_TRUE(answer(multipart(part("name=a", "x", fields) + "--b--")).starts_with("431 "));
}

TEST_F(HttpForms, decode_the_names_that_browsers_send) {
  serve_description();
  const auto names = [this](const std::string& parameters) {
    const std::string text = answer(multipart(part(parameters, "") + "--b--"));
    return text.substr(0, text.rfind("|text/plain|;"));
  };
  EXPECT_EQ(names("name=a"), "200 a|none");
  EXPECT_EQ(names("NAME=\"a b\";filename=\"\""), "200 a b|");
  EXPECT_EQ(names("name=\"a%22b%0D%0Ac%41\""), "200 a\"b\r\nc%41|none");
  EXPECT_EQ(names(R"(name="a\"b\\c"; filename="C:\dir\x.txt")"), "200 a\"b\\c|C:\\dir\\x.txt");
  EXPECT_EQ(names("name=a; filename*=UTF-8''x; filename=\"\xC3\xA9;=.txt\""),
            "200 a|\xC3\xA9;=.txt");
}

Task<> add_up(Request& request, Response& response) {
  const auto form = co_await http::read_form(request, 1000);
  if (!form) co_return;
  std::string text(form->value("missing"));
  for (const http::FormField& field : form->fields)
    text += field.name + "=" + field.value + "(" + field.file_name.value_or("") + ")";
  response.send(text + std::string(form->value("a")));
}

TEST_F(HttpForms, are_read_into_memory) {
  serve(add_up);
  EXPECT_EQ(answer(multipart(part("name=a", "1") + part("name=b; filename=f", "2") + "--b--\r\n")),
            "200 a=1()b=2(f)1");
  EXPECT_EQ(answer(post("application/x-www-form-urlencoded", "a=1%262+3&b=&c")),
            "200 a=1&2 3()b=()c=()1&2 3");
  EXPECT_EQ(answer(post("Application/X-WWW-Form-URLencoded; charset=UTF-8", "")), "200 ");
  EXPECT_TRUE(answer(post("application/json", "{}")).starts_with("415 "));
  EXPECT_TRUE(answer(post("application/x-www-form-urlencoded", "a=" + std::string(999, 'x')))
                  .starts_with("413 "));
  EXPECT_TRUE(
      answer(multipart(part("name=a", std::string(600, 'x')) + "--b--")).starts_with("200 "));
  for (const std::string& body :
       {part("name=a", std::string(1000, 'x')),
        part("name=a", std::string(300, 'x')) + part("name=a", std::string(700, 'x'))})
    EXPECT_TRUE(answer(multipart(body + "--b--")).starts_with("413 "));
  // Limits hold without a length too.
  std::string chunked =
      "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: "
      "multipart/form-data; boundary=b\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::string large = part("name=a", std::string(2000, 'x')) + "--b--\r\n";
  std::array<char, 16> size{};
  std::snprintf(size.data(), size.size(), "%zx\r\n", large.size());
  EXPECT_TRUE(answer(chunked + size.data() + large + "\r\n0\r\n\r\n").starts_with("413 "));
}

TEST_F(HttpForms, skip_the_contents_that_a_handler_does_not_read) {
  serve([](Request& request, Response& response) -> Task<> {
    auto form = FormReader::open(request);
    if (!form) co_return;
    std::string text;
    while (true) {
      const auto more = co_await form->next();
      if (!more) co_return;
      if (!*more) break;
      if (form->part().name != "b") continue;
      const auto contents = co_await form->read_all(10);
      if (!contents) co_return;
      text += contents->to_string();
    }
    // The end is the end.
    const auto again = co_await form->next();
    EXPECT_TRUE(again && !*again);
    response.send(text);
  });
  const std::string large(200'000, 'x');
  EXPECT_EQ(answer(multipart(part("name=a", large) + part("name=b", "two") + part("name=c", large) +
                             "--b--\r\n")),
            "200 two");
  EXPECT_TRUE(answer(multipart(part("name=b", "12345678901") + "--b--")).starts_with("413 "));
}

TEST(HttpFileNames, become_safe) {
  using namespace std::string_view_literals;
  EXPECT_EQ(safe_file_name("photo.jpg"), "photo.jpg");
  EXPECT_EQ(safe_file_name("../../etc/passwd"), "passwd");
  EXPECT_EQ(safe_file_name("C:\\dir\\x.txt"), "x.txt");
  EXPECT_EQ(safe_file_name("a/"), "");
  EXPECT_EQ(safe_file_name(".."), "");
  EXPECT_EQ(safe_file_name("."), "");
  EXPECT_EQ(safe_file_name(".htaccess"), "htaccess");
  EXPECT_EQ(safe_file_name(" . .x. . "), "x");
  EXPECT_EQ(safe_file_name("a\0b\nc\x7F.txt"sv), "abc.txt");
  EXPECT_EQ(safe_file_name("\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"),
            "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
  EXPECT_EQ(safe_file_name("\xC2\x85x\xFF\xC0\xAF\xED\xA0\x80\xC3"), "x_______");
  EXPECT_EQ(safe_file_name(std::string(300, 'x')), std::string(255, 'x'));
  std::string long_name(254, 'x');
  EXPECT_EQ(safe_file_name(long_name + "\xC3\xA9"), long_name);
}

TEST(HttpFieldParameters, are_parsed) {
  using http::detail::forms::parse_parameters;
  const auto parsed = parse_parameters("a/b ; C=d;e=\"f \\\" \\g\" ;; h=\"\"; ");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->value, "a/b");
  ASSERT_EQ(parsed->parameters.size(), 3U);
  EXPECT_EQ(*parsed->find("c"), "d");
  EXPECT_EQ(*parsed->find("e"), "f \" \\g");
  EXPECT_EQ(*parsed->find("H"), "");
  EXPECT_EQ(parsed->find("x"), nullptr);
  for (const char* bad : {"", ";", "a b", "a; b", "a; b=", "a; =b", "a; b=\"c", "a; b=c d",
                          "a; b=c; B=d", "a/", "/a", "a; b =c", "a; b= c", "a; b=\"c\"d"})
    EXPECT_FALSE(parse_parameters(bad)) << bad;
  std::string many = "a/b";
  for (int i = 0; i < 64; ++i) many += ";p" + std::to_string(i) + "=x";
  EXPECT_TRUE(parse_parameters(many));
  EXPECT_FALSE(parse_parameters(many + ";q=x"));
}

}  // namespace
}  // namespace tambour::forms_test
