"""The benchmark runner behind bench/run.

A suite (runner/suites/) defines what is measured; the plan lists its cells; the session runs the
subjects in interleaved rounds; the results are one JSON document; the report is computed from that
document alone. The guide is README.md, one level up.
"""
