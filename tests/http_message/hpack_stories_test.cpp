// Field blocks of 14 encoders: each decodes to the fields that were encoded.
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "http_message/support/hpack.h"

namespace tambour::hpack_stories_test {
namespace {

/// What the decoders of a story have in common.
class Story {
 public:
  void begin_message() { fields_.clear(); }
  void add_field(const std::string& name, const std::string& value) {
    fields_.emplace_back(name, value);
  }
  /// The rest of a line after "block".
  void expect_block(std::istringstream& line) {
    std::string encoder;
    std::string size;
    std::string hex;
    line >> encoder >> size >> hex;
    auto& decoder = decoders_[encoder];
    if (!decoder) decoder = std::make_unique<http::detail::h2::HpackDecoder>();
    if (hex.empty()) {
      hex = size;
    } else {
      decoder->set_table_size_max(static_cast<std::uint32_t>(std::stoul(size)));
    }
    const auto decoded = test::decode(*decoder, test::from_hex(hex));
    ASSERT_TRUE(decoded) << encoder << ' ' << hex << ": " << text_of(decoded.error());
    EXPECT_EQ(*decoded, fields_) << encoder << ' ' << hex;
  }
  /// The encoder and the decoder of the library.
  void expect_round_trip() {
    EXPECT_EQ(test::decode(decoder_, test::encode(encoder_, fields_)), fields_);
  }
  [[nodiscard]] std::size_t encoders() const { return decoders_.size(); }

 private:
  test::FieldList fields_;
  std::map<std::string, std::unique_ptr<http::detail::h2::HpackDecoder>> decoders_;
  http::detail::h2::HpackEncoder encoder_;
  http::detail::h2::HpackDecoder decoder_;
};

TEST(HpackStories, decode_to_the_same_fields) {
  std::ifstream file(TAMBOUR_HPACK_STORIES);
  ASSERT_TRUE(file) << TAMBOUR_HPACK_STORIES;
  std::unique_ptr<Story> story;
  std::size_t blocks = 0;
  std::size_t encoders = 0;
  bool is_first_block = false;
  for (std::string text; std::getline(file, text);) {
    std::istringstream line(text);
    std::string kind;
    line >> kind;
    if (kind == "story") story = std::make_unique<Story>();
    if (kind == "message") story->begin_message();
    if (kind == "field") {
      std::string name;
      line >> name;
      line.get();
      std::string value;
      std::getline(line, value);
      story->add_field(name, value);
      is_first_block = true;
    }
    if (kind != "block") continue;
    if (is_first_block) story->expect_round_trip();
    is_first_block = false;
    story->expect_block(line);
    ++blocks;
    encoders = std::max(encoders, story->encoders());
  }
  EXPECT_GT(blocks, 600U);
  EXPECT_EQ(encoders, 14U);
}

}  // namespace
}  // namespace tambour::hpack_stories_test
