// The resolver and glibc's getaddrinfo(3) with the same files, servers and addresses, in namespaces
// of their own.
#include <fcntl.h>
#include <netdb.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "dns/name_server.h"
#include "support/network.h"
#include "support/scale.h"
#include "support/temporary_folder.h"

namespace tambour::getaddrinfo_test {
namespace {

struct Files {
  const char* description;
  std::string hosts;
  std::string resolv_conf;
  std::string nsswitch;
  const char* local_domain = nullptr;
  const char* options = nullptr;
};

const std::string hosts_file =
    "127.0.0.1 localhost\n::1 localhost ip6-localhost\n"
    "10.7.0.1 one.example.com one\n10.7.0.2 two # a comment\n10.7.0.3\ttwo  TWO.example.com\n"
    "2001:db8:7::2 two\nfe80::1%lo linklocal\n10.7.0.4 v4only\n2001:db8:7::5 v6only\n"
    "not-an-address bad\n10.7.0.6 # no name\n300.1.1.1 bad2\n10.7.0.8 trailing.\n"
    "10.7.0.9 www.example.org\n";
const std::string server = "nameserver 127.0.0.1\n";

std::vector<Files> all_files() {
  const std::string plain = "hosts: files dns\n";
  return {
      {"plain", hosts_file, server, plain},
      {"search", hosts_file, server + "search example.org example.net\n", plain},
      {"domain", hosts_file, server + "domain example.net\n", plain},
      {"ndots 2", hosts_file, server + "search example.org example.net\noptions ndots:2\n", plain},
      {"ndots 0", hosts_file, server + "search example.net\noptions ndots:0\n", plain},
      {"root in the list", hosts_file, server + "search example.net . example.org\n", plain},
      {"failing domain", hosts_file, server + "search fail.example example.org\n", plain},
      {"dns first", hosts_file, server + "search example.org\n", "hosts: dns files\n"},
      {"return", hosts_file, server, "hosts: files [NOTFOUND=return] dns\n"},
      {"not return", hosts_file, server, "hosts: files [!SUCCESS=return] dns\n"},
      {"continue", hosts_file, server, "hosts: files [SUCCESS=return NOTFOUND=continue] dns # x\n"},
      {"only files", hosts_file, server, "hosts: files\n"},
      {"only dns", hosts_file, server, "hosts: dns\n"},
      {"no files", "", server, ""},
      {"garbage", hosts_file,
       "\xff\xfe nameserver 9.9.9.9\n;nameserver 9.9.9.9\n#x\noptions ndots:x ndots: bogus "
       "timeout:99999999999\nsearch\tone.invalid\nnameserver\nnameserver 1.2.3\xff\n" +
           server + "search example.org # comment\n",
       "passwd: files\n hosts: files dns\ngarbage\n"},
      {"environment", hosts_file, server + "search example.net\n", plain, "example.org", "ndots:3"},
  };
}

constexpr const char* names[] = {
    "www",
    "www.example.org",
    "www.example.org.",
    "WWW.EXAMPLE.ORG",
    "one",
    "two",
    "TWO.example.com",
    "v4only",
    "v6only",
    "localhost",
    "alias",
    "alias.example.org",
    "nothing",
    "no.such.name",
    "text.example.org",
    "fail",
    "v6.example.org",
    "v4.example.org",
    "a.b",
    "linklocal",
    "bad",
    "trailing",
    "www.",
    "many.example.org",
    "sort.test",
    "10.1",
    "0xa.01",
    "10.0.0.1 ",
    "10.0.0.1 www.example.org",
    "10.1\twww.example.org",
    "10.0.0.1.",
};

/// Closes `ready` when the server can be asked.
void serve(int ready) {
  EventLoop loop;
  test::NameServer names_server(loop, Endpoint::loopback_v4(53));
  using test::a_record;
  using test::aaaa_record;
  for (const dns::Record& record :
       {a_record("www.example.org", {10, 8, 0, 1}), aaaa_record("www.example.org", "2001:db8:8::1"),
        a_record("www.example.net", {10, 8, 0, 2}), a_record("v4.example.org", {10, 8, 0, 3}),
        aaaa_record("v6.example.org", "2001:db8:8::4"), a_record("a.b.example.org", {10, 8, 0, 5}),
        a_record("many.example.org", {10, 8, 0, 6}), a_record("many.example.org", {10, 8, 0, 7}),
        aaaa_record("many.example.org", "2001:db8:8::6"),
        aaaa_record("many.example.org", "2001:db8:9::6"), a_record("sort.test", {192, 0, 2, 1}),
        a_record("sort.test", {127, 0, 0, 1}), aaaa_record("sort.test", "::1"),
        aaaa_record("sort.test", "2001:db8:8::1"), aaaa_record("sort.test", "2002::1"),
        aaaa_record("sort.test", "3000::1")})
    names_server.add(record);
  names_server.add(test::cname_record("alias.example.org", "www.example.org"));
  names_server.add({.name = test::dns_name("text.example.org"),
                    .type = dns::Type::txt,
                    .data = dns::Txt{{"text"}}});
  names_server.set_change([](const dns::Message& question, dns::Message& response, bool) {
    if (!question.questions[0].name.is_within(test::dns_name("fail.example"))) return true;
    response.rcode = dns::Rcode::server_failure;
    return true;
  });
  ::close(ready);
  loop.run();
}

/// Runs `body` in a child process, and returns what it returns.
std::string in_child(const std::function<std::string()>& body) {
  int pipe[2];
  EXPECT_EQ(::pipe(pipe), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string text = body();
    static_cast<void>(!::write(pipe[1], text.data(), text.size()));
    ::_exit(0);
  }
  ::close(pipe[1]);
  std::string text;
  char bytes[4096];
  for (ssize_t got; (got = ::read(pipe[0], bytes, sizeof bytes)) > 0;)
    text.append(bytes, static_cast<std::size_t>(got));
  ::close(pipe[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return status == 0 ? text : "the process has ended with status " + std::to_string(status);
}

std::string with_getaddrinfo(const char* name, int family) {
  addrinfo hints{};
  hints.ai_family = family;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  if (const int error = ::getaddrinfo(name, nullptr, &hints, &first)) return ::gai_strerror(error);
  std::string text;
  for (const addrinfo* entry = first; entry != nullptr; entry = entry->ai_next)
    text += Endpoint::from(entry->ai_addr, entry->ai_addrlen)->address() + ' ';
  ::freeaddrinfo(first);
  return text;
}

std::string with_resolver(const char* name, int family) {
  EventLoop loop;
  const AddressFamily wanted = family == AF_INET    ? AddressFamily::v4
                               : family == AF_INET6 ? AddressFamily::v6
                                                    : AddressFamily::any;
  std::string text;
  spawn(loop,
        [](EventLoop& place, std::string host, AddressFamily address_family,
           std::string& into) -> Task<> {
          const auto found = co_await dns::Resolver::of(place).resolve(host, 0, address_family);
          if (!found) into = found.error().message();
          if (!found) co_return;
          for (const Endpoint& endpoint : *found) into += endpoint.address() + ' ';
        }(loop, name, wanted, text));
  loop.run();
  return text;
}

void write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::trunc) << text;
}

/// Mounts files of a folder over those of /etc. Returns false if that is not permitted.
bool mount_files(const std::string& folder) {
  if (::unshare(CLONE_NEWNS) != 0) return false;
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  for (const char* const file : {"hosts", "resolv.conf", "nsswitch.conf"}) {
    write(folder + '/' + file, "");
    const std::string at = std::filesystem::canonical(std::string("/etc/") + file);
    if (::mount((folder + '/' + file).c_str(), at.c_str(), nullptr, MS_BIND, nullptr) != 0)
      return false;
  }
  return true;
}

/// Runs `body` in namespaces with the server.
void with_server(const std::function<void(const std::string& folder)>& body) {
  test::in_own_network([&] {
    const test::TemporaryFolder folder;
    if (!mount_files(folder.path())) {
      std::puts("mounting is not permitted: not compared");
      return;
    }
    test::command("ip address add 10.1.0.1/8 dev lo");
    test::add_ipv6_address("2001:db8::1", 32);
    test::add_ipv6_address("fd00::1", 64);
    test::command("ip address add 192.0.2.99/24 dev lo");
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const pid_t server_process = ::fork();
    if (server_process == 0) {
      ::close(ready[0]);
      serve(ready[1]);
      ::_exit(0);
    }
    ::close(ready[1]);
    char byte;
    static_cast<void>(!::read(ready[0], &byte, 1));
    ::close(ready[0]);
    body(folder.path());
    ::kill(server_process, SIGKILL);
    ::waitpid(server_process, nullptr, 0);
  });
}

void use(const Files& files, const std::string& folder) {
  write(folder + "/hosts", files.hosts);
  write(folder + "/resolv.conf", files.resolv_conf);
  write(folder + "/nsswitch.conf", files.nsswitch);
  ::unsetenv("LOCALDOMAIN");
  ::unsetenv("RES_OPTIONS");
  if (files.local_domain != nullptr) ::setenv("LOCALDOMAIN", files.local_domain, 1);
  if (files.options != nullptr) ::setenv("RES_OPTIONS", files.options, 1);
}

/// The reason why the results differ, or null.
const char* listed(std::string_view ours, std::string_view theirs) {
  if (ours == "127.0.0.1 " && theirs == "127.0.0.1 127.0.0.1 ")
    return "glibc reads the IPv6 address of localhost as a second 127.0.0.1";
  if (ours.contains("127.0.0.1") || ours.contains("::1"))
    return "localhost needs no hosts file: RFC 6761";
  if (theirs == "System error")
    return "glibc fails if a name is not found and NOTFOUND is given an explicit action";
  if (ours == "Temporary failure in name resolution" && theirs == "Name or service not known")
    return "for IPv4 alone, glibc forgets that a domain of the search list could not be asked";
  return nullptr;
}

TEST(GetAddrInfo, agrees_with_the_resolver) {
  with_server([](const std::string& folder) {
    int compared = 0;
    std::map<std::string, int> differences;
    std::vector<Files> every = all_files();
    if (test::sanitized) every.resize(4);  // The processes are slow.
    for (const Files& files : every) {
      use(files, folder);
      for (const char* const name : names) {
        for (const int family : {AF_UNSPEC, AF_INET, AF_INET6}) {
          const std::string theirs = in_child([&] { return with_getaddrinfo(name, family); });
          const std::string ours = in_child([&] { return with_resolver(name, family); });
          ++compared;
          if (ours == theirs) continue;
          const char* const reason = listed(ours, theirs);
          ++differences[reason != nullptr ? reason : ""];
          if (reason != nullptr) continue;
          ADD_FAILURE() << files.description << ", " << name << ", family " << family << ": "
                        << ours << "instead of " << theirs;
        }
      }
    }
    EXPECT_GE(compared, 200);
    std::printf("%d cases\n", compared);
    for (const auto& [reason, count] : differences)
      std::printf("  %d differ: %s\n", count, reason.c_str());
    std::fflush(stdout);
  });
}

}  // namespace
}  // namespace tambour::getaddrinfo_test
