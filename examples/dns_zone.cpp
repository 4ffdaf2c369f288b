// An authoritative DNS server for the names of a file:
//
//   build/examples/dns_zone 127.0.0.1:5353 FILE
//
// Each line of the file is a name, a time to live, a type and its data: "www.test. 60 A 192.0.2.1".
// The types are A, CNAME, MX and TXT. Without arguments, asks itself for a name.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>

#include <tambour/tambour.h>

using namespace tambour;

using Zone = std::multimap<dns::Name, dns::Record>;

dns::Name name_of(const std::string& text) { return or_throw(dns::Name::parse(text), text); }

dns::Data parse_data(dns::Type type, std::istream& in) {
  std::string word;
  if (type == dns::Type::mx) {
    dns::Mx mx;
    in >> mx.preference >> word;
    mx.exchange = name_of(word);
    return mx;
  }
  in >> std::ws;
  std::getline(in, word);
  if (type == dns::Type::cname) return dns::Cname{name_of(word)};
  if (type == dns::Type::txt) return dns::Txt{{word}};
  dns::A a;
  unsigned bytes[4]{};
  std::sscanf(word.c_str(), "%u.%u.%u.%u", &bytes[0], &bytes[1], &bytes[2], &bytes[3]);
  for (std::size_t i = 0; i < 4; ++i) a.address[i] = static_cast<std::uint8_t>(bytes[i]);
  return a;
}

Zone parse_zone(std::istream& file) {
  Zone zone;
  for (std::string line; std::getline(file, line);) {
    std::istringstream in(line);
    std::string name;
    std::string type;
    dns::Record record;
    if (!(in >> name >> record.ttl >> type) || name.starts_with(';')) continue;
    record.name = name_of(name);
    record.type = or_throw(dns::parse_type(type), type);
    record.data = parse_data(record.type, in);
    zone.emplace(record.name, record);
  }
  return zone;
}

void answer(const Zone& zone, const dns::Request& request, dns::Message& response) {
  const dns::Question& question = request.question();
  response.authoritative = true;
  const auto [begin, end] = zone.equal_range(question.name);
  if (begin == end) response.rcode = dns::Rcode::no_such_name;
  for (auto entry = begin; entry != end; ++entry) {
    const dns::Type type = entry->second.type;
    if (type == question.type || type == dns::Type::cname || question.type == dns::Type::any)
      response.answers.push_back(entry->second);
  }
}

int main(int argc, char** argv) {
  std::istringstream sample("www.test. 60 A 192.0.2.1\ntest. 60 MX 10 www.test.\n");
  std::ifstream file(argc > 2 ? argv[2] : "");
  const Zone zone = parse_zone(argc > 2 ? static_cast<std::istream&>(file) : sample);
  EventLoop loop;
  const Endpoint at =
      argc > 1 ? or_throw(Endpoint::parse(argv[1]), argv[1]) : Endpoint::loopback_v4(0);
  auto handler = [&zone](const dns::Request& request, dns::Message& response) {
    answer(zone, request, response);
  };
  dns::Server server =
      or_throw(dns::Server::listen(loop, at, handler), "listen on " + at.to_string());
  std::printf("%zu records on %s\n", zone.size(), server.endpoint().to_string().c_str());
  int status = argc > 1 ? 0 : 1;
  dns::Resolver client(loop, {.servers = {server.endpoint()}});
  if (argc == 1) {
    spawn(loop, [](EventLoop& event_loop, dns::Resolver& from, int& outcome) -> Task<> {
      const auto found = co_await from.query("test", dns::Type::mx);
      if (found) std::printf("%s\n", found->answers[0].to_string().c_str());
      outcome = found ? 0 : 1;
      event_loop.stop();
    }(loop, client, status));
  }
  loop.run();
  return status;
}
