// Network namespaces, in which tests may change addresses, routes and queues.
#include "support/network.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "support/process.h"

namespace tambour::test {
namespace {

constexpr int skipped = 77;

bool enter_own_network() {
  const uid_t user = ::getuid();
  const gid_t group = ::getgid();
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return false;
  std::ofstream("/proc/self/setgroups") << "deny";
  std::ofstream("/proc/self/uid_map") << "0 " << user << " 1";
  std::ofstream("/proc/self/gid_map") << "0 " << group << " 1";
  return std::system("PATH=$PATH:/usr/sbin:/sbin ip link set lo up 2>/dev/null") == 0;
}

}  // namespace

std::uint64_t packets_dropped() {
  // One line for each processor, in hexadecimal; the second number is the dropped packets.
  std::ifstream processors("/proc/net/softnet_stat");
  std::uint64_t all = 0;
  for (std::string line; std::getline(processors, line);) {
    std::istringstream numbers(line);
    std::uint64_t processed = 0;
    std::uint64_t dropped = 0;
    numbers >> std::hex >> processed >> dropped;
    all += dropped;
  }
  return all;
}

bool has_program(const std::string& name) {
  return std::system(("PATH=$PATH:/usr/sbin:/sbin command -v " + name + " >/dev/null").c_str()) ==
         0;
}

void command(const std::string& line) {
  EXPECT_EQ(std::system(("PATH=$PATH:/usr/sbin:/sbin; " + line).c_str()), 0) << line;
}

void add_ipv6_address(const std::string& address, int prefix) {
  command("ip -6 address add " + address + "/" + std::to_string(prefix) + " dev lo nodad");
  // A thread of the kernel adds the route.
  command("timeout 60 sh -c 'until ip -6 route show table local dev lo | grep -q \"^local " +
          address + " \"; do sleep 0.01; done'");
}

void in_own_network(const std::function<void()>& body) {
  const int status = in_child([&body] {
    if (!enter_own_network()) return skipped;
    body();
    return testing::Test::HasFailure() ? 1 : 0;
  });
  if (status == skipped) GTEST_SKIP() << "cannot create a network namespace";
  EXPECT_EQ(status, 0) << "the child process failed, see its output";
}

}  // namespace tambour::test
