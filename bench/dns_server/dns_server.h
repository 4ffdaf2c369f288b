// An authoritative DNS server, which is the subject, and dnsperf as its client.
//
// The zone has names_in_zone() names, each with one IPv4 address. Server and dnsperf are processes
// on different processors.
#pragma once

#include <string>

#include "server/server.h"

namespace bench {

int names_in_zone();
/// "h00000042.bench.example." and its address.
std::string name_of_host(int number);
std::string address_of_host(int number);

int run_dns_server(int argc, char** argv, Serve serve);

/// The main function of a subject. ServerOptions::folder is an empty directory.
template <ServerSubject Subject>
int run_dns_server(int argc, char** argv) {
  return run_dns_server(argc, argv,
                        [](const ServerOptions& options, const OnListening& on_listening) {
                          Subject subject(options);
                          on_listening(subject.info());
                          subject.run();
                        });
}

/// Writes a file, for servers with a configuration.
void write_file(const std::string& path, const std::string& text);
/// The version in the output of a command: what follows `word` in it, up to a space or line feed.
std::string version_in_output(const std::string& command, const std::string& word);

}  // namespace bench
