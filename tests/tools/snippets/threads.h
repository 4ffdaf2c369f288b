// Names that docs/threads.md does not declare.
struct User {};
extern TcpServerGroup& server;
extern std::string name;
void prepare();
Task<> send_file(TcpStream peer);
