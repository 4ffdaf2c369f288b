// Forms that curl sends: the reader finds the same names, file names, types and contents.
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "http/support/curl.h"
#include "support/network.h"
#include "support/temporary_folder.h"

namespace tambour::curl_forms_test {
namespace {

using http::FormField;
using http::Request;
using http::Response;

class CurlForms : public testing::Test {
 protected:
  /// What the server gets when curl is called with each of the arguments.
  std::vector<std::vector<FormField>> forms_of(const std::vector<std::string>& arguments) {
    std::vector<std::vector<FormField>> forms;
    EventLoop loop;
    auto server = or_throw(http::Server::listen(
        loop, Endpoint::loopback_v4(0), [&forms](Request& request, Response& response) -> Task<> {
          auto form = co_await http::read_form(request, 10'000'000);
          if (!form) co_return;
          forms.push_back(std::move(form->fields));
          response.send("ok");
        }));
    const std::string url = " http://" + server.endpoint().to_string();
    std::vector<std::string> answers;
    std::thread client([&] {
      for (const std::string& argument : arguments) answers.push_back(test::curl(argument + url));
      loop.post([&] { loop.stop(); });
    });
    loop.run();
    client.join();
    EXPECT_EQ(answers, std::vector<std::string>(arguments.size(), "ok"));
    return forms;
  }
  std::string file_with(const std::string& name, const std::string& contents) {
    const std::string path = folder_.path() + "/" + name;
    std::ofstream(path, std::ios::binary) << contents;
    return path;
  }

 private:
  test::TemporaryFolder folder_;
};

TEST_F(CurlForms, arrive_as_they_were_sent) {
  if (!test::has_program("curl")) GTEST_SKIP() << "curl is not installed";
  // Contents that look like the framing of parts.
  std::string hostile = "\r\n--\r\n\r\n----------------\r\n--------------------------0123456789";
  for (int i = 0; i < 256; ++i) hostile += static_cast<char>(i);
  const std::string small = file_with("small.html", hostile);
  const std::string large = file_with("large", std::string(3'000'000, '-'));
  const std::string empty = file_with("empty", "");
  std::string many;
  for (int i = 0; i < 100; ++i) many += " -F n=" + std::to_string(i);
  const auto forms = forms_of({
      "-F a=one -F 'b=two words'",
      "-F 'f=@" + small + ";type=text/x-test'",
      "-F 'f=@" + small + ";filename=\"we\\\"ird;na,me=.txt\"'",
      "-F 'f=@" + large + "' -F 'f=@" + empty + "'",
      "-F 'f=<" + small + "'",
      "-F 'na\"me=x'",
      "--form-escape -F 'na\"me=x' -F 'f=@" + empty + ";filename=\"a\\\"b\"'",
      many,
      "-H 'Transfer-Encoding: chunked' -F a=one -F 'f=@" + large + "'",
      "--data-urlencode 'a=b&c=d+e%f' --data-urlencode 'x=' -d y",
      "-H 'Expect: 100-continue' -F a=one",
  });
  ASSERT_EQ(forms.size(), 11U);
  ASSERT_EQ(forms[0].size(), 2U);
  EXPECT_EQ(forms[0][0].name + "=" + forms[0][0].value, "a=one");
  EXPECT_EQ(forms[0][1].name + "=" + forms[0][1].value, "b=two words");
  EXPECT_FALSE(forms[0][0].file_name);
  ASSERT_EQ(forms[1].size(), 1U);
  EXPECT_EQ(forms[1][0].value, hostile);
  EXPECT_EQ(forms[1][0].file_name, "small.html");
  EXPECT_EQ(forms[1][0].content_type, "text/x-test");
  ASSERT_EQ(forms[2].size(), 1U);
  EXPECT_EQ(forms[2][0].file_name, "we\"ird;na,me=.txt");
  EXPECT_EQ(forms[2][0].content_type, "text/plain");
  ASSERT_EQ(forms[3].size(), 2U);
  EXPECT_EQ(forms[3][0].value.size(), 3'000'000U);
  EXPECT_EQ(forms[3][0].content_type, "application/octet-stream");
  EXPECT_EQ(forms[3][1].value, "");
  ASSERT_EQ(forms[4].size(), 1U);
  EXPECT_EQ(forms[4][0].value, hostile);
  EXPECT_FALSE(forms[4][0].file_name);
  ASSERT_EQ(forms[5].size(), 1U);
  EXPECT_EQ(forms[5][0].name, "na\"me");
  ASSERT_EQ(forms[6].size(), 2U);
  EXPECT_EQ(forms[6][0].name, "na\"me");
  EXPECT_EQ(forms[6][1].file_name, "a\"b");
  ASSERT_EQ(forms[7].size(), 100U);
  EXPECT_EQ(forms[7][99].value, "99");
  ASSERT_EQ(forms[8].size(), 2U);
  EXPECT_EQ(forms[8][1].value.size(), 3'000'000U);
  ASSERT_EQ(forms[9].size(), 3U);
  EXPECT_EQ(forms[9][0].value, "b&c=d+e%f");
  EXPECT_EQ(forms[9][2].name, "y");
  ASSERT_EQ(forms[10].size(), 1U);
  EXPECT_EQ(forms[10][0].value, "one");
}

}  // namespace
}  // namespace tambour::curl_forms_test
