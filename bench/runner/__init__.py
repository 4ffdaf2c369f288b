"""The benchmark runner behind bench/run.

A suite (runner/suites/) says what is measured; the plan lists its cells; the session spawns the
subjects, interleaved round by round; the results are one JSON document; the report
is a function of that document and of nothing else. README.md one level up is the guide.
"""
