#include "dns/network.h"

#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>

#include "common/program.h"
#include "common/temporary_folder.h"

namespace bench {
namespace {

void write(const std::string& path, const std::string& text) {
  if (!(std::ofstream(path) << text).flush()) fail("cannot write " + path);
}

/// Without root, in a user namespace.
void unshare_network() {
  const uid_t user = geteuid();
  const gid_t group = getegid();
  const int own_user = user == 0 ? 0 : CLONE_NEWUSER;
  if (unshare(CLONE_NEWNET | CLONE_NEWNS | own_user) != 0)
    fail_errno("a network namespace is needed: unshare");
  if (own_user == 0) return;
  write("/proc/self/setgroups", "deny");
  write("/proc/self/uid_map", "0 " + std::to_string(user) + " 1");
  write("/proc/self/gid_map", "0 " + std::to_string(group) + " 1");
}

void start_loopback() {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) != 0) fail_errno("loopback device");
  close(fd);
}

void replace(const std::string& folder, const std::string& name, const std::string& text) {
  const std::string path = "/etc/" + name;
  // What does not exist has the default, which is the same.
  if (access(path.c_str(), F_OK) != 0) return;
  write(folder + "/" + name, text);
  if (mount((folder + "/" + name).c_str(), path.c_str(), nullptr, MS_BIND, nullptr) != 0)
    fail_errno("mount on " + path);
}

}  // namespace

void enter_own_network() {
  unshare_network();
  start_loopback();
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) fail_errno("mount");
  // The mounts keep the files.
  const TemporaryFolder folder;
  replace(folder.path(), "resolv.conf", "nameserver 127.0.0.1\n");
  replace(folder.path(), "hosts", "127.0.0.1 localhost\n");
  replace(folder.path(), "nsswitch.conf", "hosts: files dns\n");
}

}  // namespace bench
