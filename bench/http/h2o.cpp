// The server is h2o, as a process with one thread, which serves files from its cache of open files.
#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "http/http.h"

namespace {

class H2o {
 public:
  explicit H2o(const bench::ServerOptions& options) : folder_(options.folder) {
    std::ofstream(folder_ + "/files" + bench::http_target)
        << std::string(std::size_t(options.answer_bytes), 'b');
    std::ofstream configuration(folder_ + "/h2o.conf");
    configuration << "num-threads: 1\n"
                     "http1-request-timeout: 600\n"
                     "listen:\n"
                     "  host: 127.0.0.1\n"
                     "  port: "
                  << options.port << "\n";
    if (options.tls)
      configuration << "  ssl:\n"
                       "    certificate-file: server.pem\n"
                       "    key-file: server.pem\n";
    // Otherwise h2o changes to a user that cannot read the folder.
    if (geteuid() == 0) configuration << "user: root\n";
    configuration << "hosts:\n"
                     "  default:\n"
                     "    paths:\n"
                     "      \"/\":\n"
                     "        file.dir: files\n";
  }

  [[noreturn]] void run() const {
    if (chdir(folder_.c_str()) != 0) bench::fail_errno("chdir");
    dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);  // It writes notes there.
    execl(H2O, "h2o", "-c", "h2o.conf", nullptr);
    _exit(1);
  }

  static bench::SubjectInfo info() { return {"h2o", H2O_VERSION, "epoll"}; }

 private:
  std::string folder_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_http<H2o>(argc, argv); }
