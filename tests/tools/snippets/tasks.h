// Names that docs/tasks.md does not declare.
// parameter: std::string text
struct Page {};
struct Job {};
struct ForeignClient {
  std::suspend_never unmovable_wait();
};
extern std::vector<std::string>& urls;
extern TaskEvent& shutting_down;
extern ForeignClient& client;
extern TaskMutex& mutex;
extern std::string head, body, name;
Task<Result<Page>> fetch(std::string url);
Task<> serve(TcpStream& peer);
Task<> run(Job& job);
Task<Result<Job>> next_job();
std::string hash(const std::string& text);
