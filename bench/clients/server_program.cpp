// Starts the servers with as little configuration as they need.
#include "clients/server_program.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string_view>

#include "common/network.h"
#include "common/processor.h"
#include "common/program.h"

namespace bench {
namespace {

constexpr int timeout_ms = 20'000;

void pause_ms() {
  const timespec pause{0, 1'000'000};
  nanosleep(&pause, nullptr);
}

pid_t start(std::vector<std::string> words, const std::string& log, bool is_root_refused = false) {
  if (is_root_refused && geteuid() == 0)
    words.insert(words.begin(), {"setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t process = fork();
  if (process < 0) fail_errno("fork");
  if (process > 0) return process;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  if (const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644); file >= 0) {
    dup2(file, STDOUT_FILENO);
    dup2(file, STDERR_FILENO);
  }
  execvp(arguments[0], arguments.data());
  fail_errno(arguments[0]);
}

std::string content_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Without allocations that grow, which would leave holes in the heap of the client: whether blocks
/// of libpq fit into one decides what malloc(3) costs.
bool has_logged(std::string_view text, const std::string& log) {
  std::array<char, 16'384> begin;
  const int file = open(log.c_str(), O_RDONLY | O_CLOEXEC);
  const auto size = read(file, begin.data(), begin.size());
  close(file);
  return size > 0 && std::string_view(begin.data(), std::size_t(size)).contains(text);
}

/// Waits until `is_ready` returns true.
template <class IsReady>
void wait_for(pid_t process, const std::string& log, IsReady is_ready) {
  for (int waited = 0; !is_ready(); ++waited) {
    if (waitpid(process, nullptr, WNOHANG) != 0) fail("the server has ended: " + content_of(log));
    if (waited == timeout_ms) fail("the server does not listen: " + content_of(log));
    pause_ms();
  }
}

bool can_connect_unix(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool is_connected =
      connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  close(fd);
  return is_connected;
}

/// A server that may not be in the PATH of users.
std::string system_program(const std::string& name) {
  const std::string path = "/usr/sbin/" + name;
  return access(path.c_str(), X_OK) == 0 ? path : name;
}

/// A program of PostgreSQL, which is not in PATH.
std::string postgres_program(const std::string& name) {
  for (const char* version : {"17", "16", "15", "14"}) {
    const std::string path = std::string("/usr/lib/postgresql/") + version + "/bin/" + name;
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return name;
}

}  // namespace

ServerProgram::ServerProgram(Client client) {
  // PostgreSQL runs as another user.
  chmod(folder_.path().c_str(), 0777);
  move_to_another_processor();  // The server inherits it.
  if (client == Client::redis) start_redis();
  if (client == Client::postgresql) start_postgres();
  if (client == Client::mariadb) start_mariadbd();
  if (client == Client::mosquitto) start_mosquitto();
  if (client == Client::curl) start_nginx();
  move_to_pinned_processor();
}

ServerProgram::~ServerProgram() {
  // Quickly, with all of its children.
  kill(process_, SIGQUIT);
  waitpid(process_, nullptr, 0);
}

void ServerProgram::start_redis() {
  address_ = folder_.path() + "/socket";
  process_ = start({"redis-server", "--port", "0", "--unixsocket", address_, "--save", "", "--dir",
                    folder_.path()},
                   log());
  wait_for(process_, log(), [&] { return can_connect_unix(address_); });
}

void ServerProgram::start_postgres() {
  const std::string data = folder_.path() + "/data";
  const pid_t initdb = start({postgres_program("initdb"), "-D", data, "-A", "trust", "-U", "test",
                              "--no-sync", "-E", "UTF8", "--locale=C"},
                             log(), true);
  int status = 0;
  if (waitpid(initdb, &status, 0) < 0 || status != 0) fail("initdb: " + content_of(log()));
  address_ = "host=" + folder_.path() + " user=test dbname=postgres";
  process_ = start({postgres_program("postgres"), "-D", data, "-k", folder_.path(), "-c",
                    "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=150"},
                   log(), true);
  wait_for(process_, log(), [&] { return has_logged("ready to accept connections", log()); });
}

/// Without the tables of mysql_install_db, which takes seconds; --skip-grant-tables allows that.
/// The default of --back-log is 80: the connect(2) of a client that opens more at a time could fail
/// with EAGAIN, which libmariadb reports as a connection that was lost in the handshake.
void ServerProgram::start_mariadbd() {
  const std::string data = folder_.path() + "/data";
  mkdir(data.c_str(), 0777);
  chmod(data.c_str(), 0777);
  address_ = folder_.path() + "/socket";
  process_ = start(
      {system_program("mariadbd"), "--no-defaults", "--datadir=" + data, "--socket=" + address_,
       "--skip-networking", "--skip-grant-tables", "--max-connections=150", "--back-log=150",
       "--innodb-buffer-pool-size=8M", "--innodb-log-file-size=4M",
       "--pid-file=" + folder_.path() + "/pid", "--tmpdir=" + folder_.path()},
      log(), true);
  wait_for(process_, log(), [&] { return can_connect_unix(address_); });
}

void ServerProgram::start_mosquitto() {
  address_ = folder_.path() + "/socket";
  const std::string configuration = folder_.path() + "/mosquitto.conf";
  std::ofstream(configuration) << "listener 0 " << address_ << "\nallow_anonymous true\n"
                               << (geteuid() == 0 ? "user root\n" : "");
  process_ = start({system_program("mosquitto"), "-c", configuration}, log());
  wait_for(process_, log(), [&] { return can_connect_unix(address_); });
}

void ServerProgram::start_nginx() {
  const auto port = free_port();
  address_ = "http://127.0.0.1:" + std::to_string(port) + "/";
  const std::string configuration = folder_.path() + "/nginx.conf";
  std::ofstream(configuration)
      << "daemon off;\nmaster_process off;\nworker_processes 1;\nerror_log stderr;\npid "
      << folder_.path() << "/pid;\nevents { worker_connections 1000; }\nhttp {\naccess_log off;\n"
      << "client_body_temp_path " << folder_.path() << "/body;\nproxy_temp_path " << folder_.path()
      << "/proxy;\nfastcgi_temp_path " << folder_.path() << "/fastcgi;\nuwsgi_temp_path "
      << folder_.path() << "/uwsgi;\nscgi_temp_path " << folder_.path()
      << "/scgi;\nkeepalive_requests 100000000;\nserver { listen 127.0.0.1:" << port
      << "; location / { return 200 '" << std::string(value_bytes, 'x') << "'; } }\n}\n";
  process_ = start(
      {system_program("nginx"), "-e", "stderr", "-p", folder_.path(), "-c", configuration}, log());
  wait_for(process_, log(), [&] { return can_connect_to(port); });
}

}  // namespace bench
