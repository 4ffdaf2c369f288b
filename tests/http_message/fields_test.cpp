// Fields, methods and statuses.
#include <tambour/http/fields.h>

#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/http/method.h>
#include <tambour/http/status.h>

namespace tambour::fields_test {
namespace {

using http::Field;
using http::Fields;
using http::Method;
using http::Status;
using namespace std::string_literals;
using namespace std::string_view_literals;

using Pairs = std::vector<std::pair<std::string, std::string>>;

Pairs pairs_of(const Fields& fields) {
  Pairs pairs;
  for (const Field field : fields) pairs.emplace_back(field.name, field.value);
  return pairs;
}

Fields fields_of(const Pairs& pairs) {
  Fields fields;
  for (const auto& [name, value] : pairs) or_throw(fields.add(name, value), name);
  return fields;
}

TEST(Fields, keep_order_and_spelling) {
  const Pairs pairs = {{"Host", "example.org"}, {"X-A", "1"}, {"host", ""}, {"x-a", "2"}};
  const Fields fields = fields_of(pairs);
  EXPECT_EQ(pairs_of(fields), pairs);
  EXPECT_EQ(fields.size(), 4);
  EXPECT_EQ(fields.bytes(), 27);
  EXPECT_EQ(fields[1], (Field{"X-A", "1"}));
}

TEST(Fields, are_found_without_regard_to_case) {
  const Fields fields = fields_of({{"Content-Type", "text/plain"},
                                   {"ETag", "x"},
                                   {"a", "1"},
                                   {"If-Match", "y"},
                                   {"CONTENT-TYPE", "text/html"}});
  EXPECT_EQ(fields.get("content-type"), "text/plain");
  EXPECT_EQ(fields.get("etag"), "x");
  EXPECT_EQ(fields.get("A"), "1");
  EXPECT_EQ(fields.get("IF-MATCH"), "y");
  EXPECT_EQ(fields.get("if-matcH"), "y");
  EXPECT_EQ(fields.get("if-none-match"), std::nullopt);
  EXPECT_EQ(fields.get(""), std::nullopt);
  EXPECT_TRUE(fields.contains("ETAG"));
  EXPECT_FALSE(fields.contains("ETAg2"));
  EXPECT_EQ(fields.count("Content-type"), 2);
  EXPECT_EQ(fields.count("b"), 0);
  EXPECT_EQ(fields.find("content-type", 1), 4);
  EXPECT_EQ(fields.find("content-type", 5), 5);
  EXPECT_EQ(fields.find("content-type", 99), 5);
}

/// These pairs differ in the bit that distinguishes the cases of letters.
TEST(Fields, do_not_confuse_other_characters_with_letters) {
  const Fields fields = fields_of({{"a^b", "1"}, {"a~b", "2"}, {"x@1"s.replace(1, 1, "`"), "3"}});
  EXPECT_EQ(fields.get("a^b"), "1");
  EXPECT_EQ(fields.get("a~b"), "2");
  EXPECT_EQ(fields.get("x@1"), std::nullopt);
}

TEST(Fields, form_lists) {
  const Fields fields =
      fields_of({{"Accept", "a, b"}, {"X", "y"}, {"accept", ""}, {"ACCEPT", "c"}});
  EXPECT_EQ(fields.joined("Accept"), "a, b, , c");
  EXPECT_EQ(fields.joined("x"), "y");
  EXPECT_EQ(fields.joined("none"), "");
}

TEST(Fields, find_tokens_in_lists) {
  const Fields fields = fields_of(
      {{"Connection", " keep-alive,\t Upgrade ,,x;q=1"}, {"Other", "close"}, {"connection", "TE"}});
  for (const std::string_view token : {"keep-alive", "UPGRADE", "x;q=1", "te", ""})
    EXPECT_TRUE(fields.has_token("Connection", token)) << token;
  for (const std::string_view token : {"close", "keep", "alive", "x", "keep-alive,"})
    EXPECT_FALSE(fields.has_token("Connection", token)) << token;
  EXPECT_FALSE(fields.has_token("none", ""));
}

TEST(Fields, store_values_without_surrounding_space) {
  const Fields fields = fields_of({{"A", " \t b \t c\t "}, {"B", " "}});
  EXPECT_EQ(fields.get("a"), "b \t c");
  EXPECT_EQ(fields.get("b"), "");
}

TEST(Fields, refuse_what_would_inject_a_field) {
  Fields fields = fields_of({{"A", "b"}});
  for (const std::string_view name : {""sv, "a b"sv, "a:"sv, "a\r\nb"sv, " a"sv, "a\0"sv, "\xC3"sv,
                                      "a,b"sv, "(a)"sv, "a\x7F"sv, "\""sv, "a/b"sv})
    for (const bool sets : {false, true})
      EXPECT_EQ((sets ? fields.set(name, "c") : fields.add(name, "c")).error(),
                http::ErrorCode::bad_field_name)
          << name;
  for (const std::string_view value :
       {"a\r\nX: y"sv, "a\nb"sv, "\n"sv, "a\r"sv, "a\0b"sv, "\x01"sv, "\x1F"sv, "a\x7F"sv})
    for (const bool sets : {false, true})
      EXPECT_EQ((sets ? fields.set("A", value) : fields.add("A", value)).error(),
                http::ErrorCode::bad_field_value)
          << value;
  EXPECT_EQ(pairs_of(fields), (Pairs{{"A", "b"}}));
  EXPECT_TRUE(fields.add("!#$%&'*+-.^_`|~09azAZ", "\xC3\xA9 \t!~\xFF"));
}

TEST(Fields, check_each_byte_wherever_it_is) {
  // RFC 9110, sections 5.6.2 and 5.5.
  const auto is_in_token = [](unsigned c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           (c != 0 && c < 128 && "!#$%&'*+-.^_`|~"sv.contains(static_cast<char>(c)));
  };
  const auto is_in_value = [](unsigned c) { return c == '\t' || (c >= ' ' && c != 127); };
  for (const std::size_t size : {1, 3, 7, 8, 9, 15, 16, 17, 23, 40}) {
    for (std::size_t at = 0; at < size; ++at) {
      for (unsigned c = 0; c < 256; ++c) {
        std::string text(size, 'a');
        text[at] = static_cast<char>(c);
        Fields fields;
        EXPECT_EQ(fields.add(text, "v").has_value(), is_in_token(c)) << c << " at " << at;
        EXPECT_EQ(fields.add("n", text).has_value(), is_in_value(c)) << c << " at " << at;
      }
    }
  }
}

TEST(Fields, have_a_maximum_size) {
  Fields fields;
  EXPECT_EQ(fields.add(std::string(65536, 'a'), "").error(), http::ErrorCode::fields_too_large);
  EXPECT_TRUE(fields.add(std::string(65535, 'a'), ""));
  const std::string value(Fields::bytes_max - 65535 - 1, 'v');
  EXPECT_TRUE(fields.add("b", value));
  EXPECT_EQ(fields.bytes(), Fields::bytes_max);
  EXPECT_EQ(fields.add("c", "").error(), http::ErrorCode::fields_too_large);
  fields.remove("b");
  EXPECT_TRUE(fields.add("c", value));
}

TEST(Fields, are_replaced_at_the_position_of_the_first) {
  Fields fields = fields_of({{"A", "1"}, {"B", "2"}, {"b", "3"}, {"C", "4"}, {"B", "5"}});
  EXPECT_TRUE(fields.set("b", " new "));
  EXPECT_EQ(pairs_of(fields), (Pairs{{"A", "1"}, {"b", "new"}, {"C", "4"}}));
  EXPECT_TRUE(fields.set("D", "6"));
  EXPECT_TRUE(fields.set("C", "7"));
  EXPECT_EQ(pairs_of(fields), (Pairs{{"A", "1"}, {"b", "new"}, {"C", "7"}, {"D", "6"}}));
  EXPECT_EQ(fields.bytes(), 10);
}

TEST(Fields, are_removed) {
  Fields fields = fields_of({{"A", "1"}, {"B", "2"}, {"a", "3"}});
  EXPECT_EQ(fields.remove("a"), 2);
  EXPECT_EQ(fields.remove("a"), 0);
  EXPECT_EQ(pairs_of(fields), (Pairs{{"B", "2"}}));
  fields.clear();
  EXPECT_TRUE(fields.empty());
  EXPECT_EQ(fields.bytes(), 0);
}

TEST(Fields, accept_views_into_themselves) {
  Fields fields = fields_of({{"A", "value"}});
  for (int i = 0; i < 12; ++i) {
    for (const Field field : Fields(fields)) ASSERT_TRUE(fields.add(field.name, field.value));
    const Field last = fields[fields.size() - 1];
    ASSERT_TRUE(fields.add(last.name, last.value));
    ASSERT_EQ(fields[fields.size() - 1], (Field{"A", "value"}));
  }
  for (int i = 0; i < 1000; ++i) {
    const Field first = fields[0];
    ASSERT_TRUE(fields.set(first.name, first.value));
    ASSERT_EQ(pairs_of(fields), (Pairs{{"A", "value"}}));
  }
}

TEST(Fields, are_copied_moved_and_compared) {
  Fields fields = fields_of({{"A", "1"}, {"B", "2"}});
  const Fields copy = fields;
  EXPECT_EQ(copy, fields);
  const Fields moved = std::move(fields);
  EXPECT_EQ(moved, copy);
  EXPECT_TRUE(fields.empty());  // NOLINT(bugprone-use-after-move): it is empty then.
  EXPECT_EQ(fields.bytes(), 0);
  EXPECT_TRUE(fields.add("b", "2"));
  EXPECT_NE(fields, copy);
  fields = fields_of({{"a", "1"}, {"b", "2"}});
  EXPECT_EQ(fields, copy);
  EXPECT_NE(fields_of({{"a", "1"}, {"b", "3"}}), copy);
  EXPECT_NE(fields_of({{"b", "2"}, {"a", "1"}}), copy);
}

/// Random calls, compared with a vector of pairs.
TEST(Fields, behave_like_a_list_of_pairs) {
  std::mt19937 random(1);
  Fields fields;
  Pairs model;
  const auto lower = [](std::string text) {
    for (char& c : text) c = static_cast<char>(std::tolower(c));
    return text;
  };
  for (int i = 0; i < 20000; ++i) {
    std::string name(1 + random() % 9, static_cast<char>('a' + random() % 3));
    if (random() % 2 == 0) name[0] = static_cast<char>(std::toupper(name[0]));
    const std::string value(random() % 40, static_cast<char>('0' + random() % 10));
    const auto same = [&](const auto& pair) { return lower(pair.first) == lower(name); };
    switch (model.size() > 30 ? 5 : random() % 6) {
      case 0:
      case 1:
        ASSERT_TRUE(fields.add(name, value));
        model.emplace_back(name, value);
        break;
      case 2:
      case 3: {
        ASSERT_TRUE(fields.set(name, value));
        const auto first = std::ranges::find_if(model, same);
        if (first == model.end()) {
          model.emplace_back(name, value);
        } else {
          model.erase(std::remove_if(first + 1, model.end(), same), model.end());
          *std::ranges::find_if(model, same) = {name, value};
        }
        break;
      }
      case 4: {
        const auto found = std::ranges::find_if(model, same);
        ASSERT_EQ(fields.get(name), found == model.end()
                                        ? std::nullopt
                                        : std::optional<std::string_view>(found->second));
        break;
      }
      default:
        ASSERT_EQ(fields.remove(name), std::erase_if(model, same));
    }
    ASSERT_EQ(pairs_of(fields), model);
    std::size_t bytes = 0;
    for (const auto& [n, v] : model) bytes += n.size() + v.size();
    ASSERT_EQ(fields.bytes(), bytes);
  }
}

TEST(Method, has_constants_and_other_tokens) {
  EXPECT_EQ(Method(), Method::get);
  EXPECT_EQ(Method::delete_.name(), "DELETE");
  EXPECT_EQ(Method::parse("PATCH"), Method::patch);
  EXPECT_NE(Method::parse("patch"), Method::patch);
  EXPECT_EQ(Method::parse("UPDATEREDIRECTREF")->name(), "UPDATEREDIRECTREF");
  EXPECT_EQ(Method::parse(std::string(31, 'X'))->name(), std::string(31, 'X'));
  for (const std::string_view name :
       {""sv, "GE T"sv, "GET\r"sv, "G\0"sv, "G@T"sv, "XXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX"sv})
    EXPECT_EQ(Method::parse(name).error(), http::ErrorCode::bad_method_name) << name;
}

TEST(Method, knows_which_requests_may_be_repeated) {
  for (const Method& method : {Method::get, Method::head, Method::options, Method::trace}) {
    EXPECT_TRUE(method.is_safe()) << method.name();
    EXPECT_TRUE(method.is_idempotent()) << method.name();
  }
  for (const Method& method : {Method::put, Method::delete_}) {
    EXPECT_FALSE(method.is_safe()) << method.name();
    EXPECT_TRUE(method.is_idempotent()) << method.name();
  }
  for (const Method& method :
       {Method::post, Method::patch, Method::connect, Method::parse("PROPFIND").value()})
    EXPECT_FALSE(method.is_safe() || method.is_idempotent()) << method.name();
}

TEST(Status, has_classes_and_phrases) {
  EXPECT_EQ(http::code_of(Status::not_found), 404);
  EXPECT_EQ(http::class_of(Status::not_found), 4);
  EXPECT_TRUE(http::is_interim(Status::continue_));
  EXPECT_FALSE(http::is_interim(Status::switching_protocols));
  EXPECT_TRUE(http::is_success(Status(299)));
  EXPECT_TRUE(http::is_redirect(Status::permanent_redirect));
  EXPECT_FALSE(http::is_redirect(Status::not_modified));
  EXPECT_TRUE(http::has_no_body(Status::no_content));
  EXPECT_TRUE(http::has_no_body(Status::switching_protocols));
  EXPECT_FALSE(http::has_no_body(Status::reset_content));
  EXPECT_EQ(http::reason_phrase(Status::continue_), "Continue");
  EXPECT_EQ(http::reason_phrase(Status::im_used), "IM Used");
  EXPECT_EQ(http::reason_phrase(Status::network_authentication_required),
            "Network Authentication Required");
  EXPECT_EQ(http::reason_phrase(Status(299)), "");
  EXPECT_EQ(http::reason_phrase(Status(999)), "");
}

}  // namespace
}  // namespace tambour::fields_test
