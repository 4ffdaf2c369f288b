#include "http/arena.h"

#include <array>
#include <charconv>
#include <fstream>
#include <utility>

#include "http/http.h"

namespace bench {
namespace {

constexpr int items_count = 50;

struct Item {
  int id;
  std::string name;
  std::string_view category;
  int price;
  int quantity;
  bool active;
  int score;
  int count;
};

/// The programs in other languages compute the same values.
std::vector<Item> make_items() {
  constexpr std::array<std::string_view, 4> categories{"electronics", "tools", "books", "garden"};
  std::vector<Item> items;
  for (int id = 1; id <= items_count; ++id) {
    items.push_back({.id = id,
                     .name = "Item " + std::to_string(id),
                     .category = categories[std::size_t(id) % categories.size()],
                     .price = 10 + id * 37 % 500,
                     .quantity = 1 + id * 7 % 50,
                     .active = id % 3 != 0,
                     .score = id * 13 % 50,
                     .count = id * 29 % 1000});
  }
  return items;
}

void append(std::string& text, std::string_view name, long value) {
  std::array<char, 24> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  text.append(name).append(digits.data(), end);
}

int number_in(std::string_view text) {
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// The names and sizes are those of HttpArena's files without compressed variants.
constexpr std::array<std::pair<const char*, int>, 20> files{{
    {"reset.css", 8},      {"layout.css", 25},   {"theme.css", 30},   {"components.css", 200},
    {"utilities.css", 60}, {"analytics.js", 12}, {"helpers.js", 15},  {"app.js", 50},
    {"vendor.js", 300},    {"router.js", 20},    {"header.html", 55}, {"footer.html", 120},
    {"regular.woff2", 18}, {"bold.woff2", 22},   {"logo.svg", 15},    {"icon-sprite.svg", 70},
    {"hero.webp", 45},     {"thumb1.webp", 6},   {"thumb2.webp", 8},  {"manifest.json", 3},
}};

std::vector<HttpWork> sums() {
  const std::string target = std::string(sum_target) + "?a=13&b=42";
  const std::string type = "Content-Type: text/plain\r\n";
  return {{.target = target},
          {.method = "POST", .target = target, .fields = type, .body = "20"},
          {.method = "POST",
           .target = target,
           .fields = type + "Transfer-Encoding: chunked\r\n",
           .body = "2\r\n20\r\n0\r\n\r\n"}};
}

std::vector<HttpWork> items(std::string_view prefix, const std::string& fields,
                            std::initializer_list<std::pair<int, int>> requests) {
  std::vector<HttpWork> works;
  for (const auto& [count, multiplier] : requests)
    works.push_back(
        {.target = std::string(prefix) + std::to_string(count) + "?m=" + std::to_string(multiplier),
         .fields = fields});
  return works;
}

}  // namespace

ArenaLoad arena_load(ArenaProfile profile) {
  constexpr std::size_t upload_bytes = 500 * 1024;
  switch (profile) {
    case ArenaProfile::baseline:
      return {.works = sums()};
    case ArenaProfile::pipelined:
      return {.works = {{.target = ok_target}}, .pipelined = 16};
    case ArenaProfile::limited_conn:
      return {.works = sums(), .requests_per_connection = 10};
    case ArenaProfile::json:
      return {.works = items(items_target, "",
                             {{1, 3}, {5, 7}, {10, 2}, {15, 5}, {25, 4}, {40, 8}, {50, 6}})};
    case ArenaProfile::json_comp:
      return {.works = items(compressed_items_target, "Accept-Encoding: gzip\r\n",
                             {{25, 4}, {40, 8}, {50, 6}})};
    case ArenaProfile::upload:
      return {
          .works = {
              {.method = "POST", .target = upload_target, .body = std::string(upload_bytes, 'u')}}};
    case ArenaProfile::static_files:
      break;
  }
  ArenaLoad load;
  for (const auto& [name, kibibytes] : files)
    load.works.push_back(
        {.target = std::string(files_target) + name, .response_bytes = kibibytes * 1024});
  return load;
}

void write_arena_files(const std::string& folder) {
  for (const auto& [name, kibibytes] : files) {
    std::ofstream file(folder + "/files" + std::string(files_target) + name, std::ios::binary);
    if (!(file << std::string(std::size_t(kibibytes) * 1024, 's')).flush())
      fail(std::string("cannot write ") + name);
  }
}

long sum_of_query(std::string_view query) {
  long sum = 0;
  for (std::size_t at = query.find('='); at != std::string_view::npos; at = query.find('=', at + 1))
    sum += number_in(query.substr(at + 1));
  return sum;
}

std::string arena_json(int count, int multiplier) {
  static const std::vector<Item> items = make_items();
  std::string text = R"({"items":[)";
  for (int i = 0; i < count && i < items_count; ++i) {
    const Item& item = items[std::size_t(i)];
    append(text, i == 0 ? R"({"id":)" : R"(,{"id":)", item.id);
    text.append(R"(,"name":")").append(item.name);
    text.append(R"(","category":")").append(item.category);
    append(text, R"(","price":)", item.price);
    append(text, R"(,"quantity":)", item.quantity);
    text.append(item.active ? R"(,"active":true)" : R"(,"active":false)");
    append(text, R"(,"tags":["fast","new"],"rating":{"score":)", item.score);
    append(text, R"(,"count":)", item.count);
    append(text, R"(},"total":)", long{item.price} * item.quantity * multiplier);
    text += '}';
  }
  append(text, R"(],"count":)", count);
  return text += '}';
}

std::string arena_json(std::string_view count_and_query) {
  const std::size_t multiplier = count_and_query.find("m=");
  return arena_json(
      number_in(count_and_query),
      multiplier == std::string_view::npos ? 1 : number_in(count_and_query.substr(multiplier + 2)));
}

}  // namespace bench
