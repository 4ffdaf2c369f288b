// Names that docs/channels.md does not declare.
struct Config {};
struct Job {};
struct News {
  std::string text;
};
struct Request {};
struct Server {
  void reload();
  Task<> shut_down(Duration grace);
};
extern ConcurrentChannel<Job>& jobs;
extern TaskSemaphore& queries;
extern SignalSet& signals;
extern Interval& every_minute;
std::optional<Job> read_job();
void spawn_workers(EventLoop& loop, ConcurrentChannel<Job>& jobs);
Task<> send_snapshot(TcpStream& peer);
std::shared_ptr<const Config> load();
void apply(const std::shared_ptr<const Config>& config);
Task<> run_query(const Request& request);
void run(const Job& job);
void report();
