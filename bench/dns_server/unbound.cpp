// unbound with local data, one thread.
#include <unistd.h>

#include <string>

#include "dns_server/dns_server.h"

namespace {

class Unbound {
 public:
  explicit Unbound(const bench::ServerOptions& options) : folder_(options.folder) {
    std::string text =
        "server:\n"
        "  interface: 127.0.0.1\n"
        "  port: " +
        std::to_string(options.port) +
        "\n"
        "  access-control: 127.0.0.0/8 allow\n"
        "  num-threads: 1\n"
        "  do-daemonize: no\n"
        "  username: \"\"\n"
        "  chroot: \"\"\n"
        "  directory: \"\"\n"
        "  pidfile: \"\"\n"
        "  use-syslog: no\n"
        "  logfile: /dev/null\n"
        "  module-config: \"iterator\"\n"
        "  incoming-num-tcp: 100\n"
        "  local-zone: \"bench.example.\" static\n";
    for (int i = 0; i < bench::names_in_zone(); ++i)
      text += "  local-data: \"" + bench::name_of_host(i) + " 3600 A " + bench::address_of_host(i) +
              "\"\n";
    text += "remote-control:\n  control-enable: no\n";
    bench::write_file(folder_ + "/unbound.conf", text);
  }

  void run() const {
    execl(UNBOUND, "unbound", "-c", (folder_ + "/unbound.conf").c_str(), nullptr);
    bench::fail_errno("unbound");
  }
  static bench::SubjectInfo info() {
    return {"unbound", bench::version_in_output(UNBOUND " -V", "Version "), ""};
  }

 private:
  std::string folder_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_dns_server<Unbound>(argc, argv); }
