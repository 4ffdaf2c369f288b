// The cache of answers, compared with a map.
#include "dns/resolver/cache.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>

#include <gtest/gtest.h>

namespace tambour::cache_test {
namespace {

using dns::detail::Answer;
using dns::detail::AnswerPointer;
using dns::detail::Cache;

std::string key_of(unsigned number) { return "name" + std::to_string(number); }

AnswerPointer answer() { return std::make_shared<const Answer>(); }

TEST(DnsCache, finds_what_a_map_would_find) {
  struct Known {
    AnswerPointer answer;
    std::int64_t since_ns;
    std::int64_t until_ns;
  };
  std::mt19937 random(1);
  Cache cache(std::size_t{1} << 30, {});
  std::map<std::string, Known> model;
  std::int64_t now_ns = 0;
  for (int step = 0; step < 100'000 && !HasFailure(); ++step) {
    now_ns += random() % 3;
    const std::string key = key_of(random() % 3000);
    if (random() % 2 == 0) {
      const std::int64_t lifetime_ns = std::int64_t(random() % 20'000) - 1000;
      const AnswerPointer added = answer();
      cache.put(key, added, now_ns, lifetime_ns);
      model.erase(key);
      if (lifetime_ns > 0) model[key] = {added, now_ns, now_ns + lifetime_ns};
    } else {
      const auto known = model.find(key);
      const bool is_known = known != model.end() && now_ns < known->second.until_ns;
      const Cache::Hit hit = cache.find(key, now_ns);
      ASSERT_EQ(hit.answer, is_known ? known->second.answer : nullptr);
      EXPECT_EQ(hit.age_ns, is_known ? now_ns - known->second.since_ns : 0);
    }
    if (step % 30'000 == 29'999) {
      cache.clear();
      model.clear();
      EXPECT_EQ(cache.bytes(), 0U);
    }
  }
}

TEST(DnsCache, removes_the_least_recently_used) {
  Cache empty(std::size_t{1} << 20, {});
  empty.put(key_of(1000), answer(), 0, 1);
  const std::size_t bytes = empty.bytes();
  constexpr unsigned count = 100;
  Cache cache(count * bytes, {});
  for (unsigned i = 1000; i < 1000 + count; ++i) cache.put(key_of(i), answer(), 0, 1);
  EXPECT_EQ(cache.bytes(), count * bytes);
  EXPECT_NE(cache.find(key_of(1000), 0).answer, nullptr);
  // Replaces another one, and itself.
  for (int i = 0; i < 2; ++i) cache.put(key_of(2000), answer(), 0, 1);
  EXPECT_EQ(cache.bytes(), count * bytes);
  EXPECT_NE(cache.find(key_of(1000), 0).answer, nullptr);
  EXPECT_EQ(cache.find(key_of(1001), 0).answer, nullptr);
  for (unsigned i = 1002; i < 1000 + count; ++i)
    EXPECT_NE(cache.find(key_of(i), 0).answer, nullptr) << i;
}

TEST(DnsCache, keeps_nothing_that_is_too_large) {
  Cache cache(1000, {});
  cache.put("small", answer(), 0, 1);
  EXPECT_NE(cache.find("small", 0).answer, nullptr);
  cache.put("small", std::make_shared<const Answer>(Answer{.message = std::string(1000, 'x')}), 0,
            1);
  EXPECT_EQ(cache.find("small", 0).answer, nullptr);
  EXPECT_EQ(cache.bytes(), 0U);
}

}  // namespace
}  // namespace tambour::cache_test
