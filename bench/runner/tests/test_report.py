"""The page: complete, self-contained, and safe with the output of subjects."""

import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import pytest
from conftest import made_up
from runner import intervals, palette, report
from runner.charts import round_numbers
from runner.estimates import Estimate
from runner.figures import Figures
from runner.suites import load

VOID = {"meta", "br", "img", "hr", "link", "input"}


class Page(HTMLParser):
    """Checks nesting; collects ids and references."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open, self.ids, self.loads, self.tags = [], [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        self._look(dict(attrs))

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self._look(dict(attrs))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def _look(self, attrs):
        self.ids += [attrs["id"]] if "id" in attrs else []
        self.loads += [attrs[a] for a in ("href", "src", "xlink:href") if a in attrs]


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """One run of two suites, for all tests of this file."""
    from conftest import Build

    root = tmp_path_factory.mktemp("ran") / "build"
    root.mkdir()
    build = Build(root)
    build.behave(libev={"factor": 1.3}, asio={"fail": "<script>alert(1)</script>"})
    done = build.run("drum", "timers", "--pairs", "100,1000,100000000", "--active", "10,100",
                     "--timeouts", "no,yes", "--rounds", "2", "--subjects",
                     "tambour,floor,libev,asio,muduo", "--timers", "10,100")
    assert done.returncode == 0, done.stderr
    return build, done


def test_page_is_self_contained(ran):
    build, _ = ran
    page = Page(build.page())
    assert "script" not in page.tags and "link" not in page.tags and "img" not in page.tags
    assert all(where.startswith("#") for where in page.loads)
    assert not re.search(r"url\((?!#)|@import", build.page())


def test_ids_are_unique(ran):
    page = Page(ran[0].page())
    assert len(page.ids) == len(set(page.ids))
    assert {where[1:] for where in page.loads} <= set(page.ids)


def test_charts_follow_light_and_dark(ran):
    text = ran[0].page()
    titles = re.findall(r'aria-label="([^"]*)"', text)
    panels = [f"{n} active: {what}" for n in (10, 100)
              for what in ("whole iteration", "event processing")]
    assert titles[:8] == panels * 2
    assert titles[8:] == [f"{words}: one timer" for words in (
        "Arm", "Reset", "Cancel", "Expire", "Reset once (total)", "Cancel (total)", "Request")]
    assert "prefers-color-scheme:dark" in text
    for look in palette.looks():
        assert look.light not in text.split("</style>", 1)[1]


def test_charts_are_files_too(ran):
    where = ran[0].root / "bench-report"
    stems = {path.stem for path in where.glob("*.png")}
    assert stems == {path.stem for path in where.glob("*.svg")} and len(stems) == 15
    for path in where.glob("*.svg"):
        ElementTree.parse(path)


def test_page_has_ratios_reasons_and_the_command(ran):
    build, done = ran
    text = build.page()
    assert "bench/run drum timers --pairs 100,1000,100000000" in text
    assert "pairs 100,000,000 reduced to" in text
    assert "no muduo here" in text
    assert '<tr class="ours"><th>tambour</th>' in text
    assert re.search(r"<th>libev</th>.*?1\.30", text)
    assert str(build.root / "bench-report" / "index.html") in done.stdout


@pytest.fixture(scope="module")
def page_of_two_suites(tmp_path_factory):
    """The page of a document in which Tambour is faster in two suites."""
    values = {"tambour": [10.0] * 8, "tambour-aa": [10.0] * 8, "libev": [13.0] * 8}
    document = made_up(values, pairs=100, active=10)
    for metric in load()["timers"].metrics:
        document["results"] += [e for e in made_up(values, "timers", metric.name,
                                                   timers=10)["results"]
                                if e["metric"] == metric.name]
    path = report.write(document, load(), tmp_path_factory.mktemp("page"))
    return path.read_text()


def test_page_opens_with_the_verdict(page_of_two_suites):
    main = page_of_two_suites.split("<main>")[1]
    first, rest = main.split("<h2>", 1)
    assert "Tambour against the best peer in 2 suites: beats it in 2." in first
    assert first.count('class="row faster"') == 2 and "best peer: libev" in first
    assert first.index('class="lead"') < first.index('class="plot"')
    assert rest.startswith("How to read it</h2>")  # then the caveats, then the suites
    assert [name for name in re.findall(r'<h2 id="(\w+)">', rest)] == ["drum", "timers"]


def test_control_is_in_the_caveats_and_in_each_suite(page_of_two_suites):
    text = page_of_two_suites
    assert "The A/A controls of the suites differ by at most 0.0%." in text
    assert text.count('<div class="name">tambour-aa</div>') == 2
    assert "<th>tambour-aa</th>" not in text  # not a subject


def test_tables_have_few_columns(ran):
    for row in re.findall(r"<tr>.*?</tr>", ran[0].page().replace("<thead>", "")):
        assert row.count("<td") + row.count("<th") <= 4
    for suite in load().values():
        params = {p.name: p.default[0] for p in suite.parameters if not p.silent}
        document = made_up({"tambour": [1.0], "ev": [2.0]}, suite.name, suite.metrics[0].name,
                           **params)
        for _, head, rows in suite.tables(Figures(suite, document)):
            assert len(head) <= 4 and {len(row) for row in rows} <= {len(head)}


def test_output_of_subjects_is_escaped(ran):
    assert "<script>" not in ran[0].page()
    assert "&lt;script&gt;" in ran[0].page()


def test_page_can_be_written_again_from_the_results(ran, tmp_path):
    build, _ = ran
    figures = build.root / "bench-report" / "results.json"
    done = build.run("report", str(figures), "--out", str(tmp_path / "again"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "again" / "index.html").read_text() == build.page()


def test_sparse_documents(tmp_path):
    for document in (made_up({}, pairs=1), made_up({"who": [1.0]}, pairs=1, active=1),
                     made_up({"tambour": [0.0], "libev": [0.0]}, pairs=1, active=1)):
        Page(report.write(document, load(), tmp_path).read_text())


def test_undecided_has_its_reason(tmp_path):
    document = made_up({"tambour": [1.0] * 5, "tambour-aa": [1.0] * 5, "libev": [2.0] * 5},
                       pairs=1, active=1)
    text = report.write(document, load(), tmp_path).read_text()
    first = text.split("<main>")[1].split("<h2>")[0]
    assert 'class="row undecided"' in first and "fewer than 6 rounds" in first
    assert "1 suite: 1 undecided." in first


def test_interval_axis_contains_one_and_all_estimates():
    axis = intervals.Axis([Estimate(1.5, 1.4, 1.6, 9), Estimate(1.02, 1.01, 1.03, 9)])
    assert 0 < axis.position(1.0) < axis.position(1.02) < axis.position(1.6) < 1
    assert 1.0 in axis.ticks() and axis.ticks() == sorted(axis.ticks())
    assert not axis.exceeds(1.6)


def test_interval_axis_is_bounded():
    axis = intervals.Axis([Estimate(40.0, 30.0, 50.0, 9), Estimate(1.0, None, None, 2)])
    assert axis.exceeds(40.0) and axis.position(40.0) == 1.0
    assert axis.position(1.0) > 0.05 and axis.position(0.001) == 0.0


def test_tick_labels_do_not_overlap():
    for end in (1.01, 1.3, 2.0, 3.9, 100.0):
        axis = intervals.Axis([Estimate(end, end, end, 9), Estimate(1 / end, 1 / end, 1 / end, 9)])
        positions = [axis.position(tick) for tick in axis.ticks()]
        assert len(positions) >= 3
        assert all(b - a >= intervals.TICK_DISTANCE for a, b in zip(positions, positions[1:]))


def test_every_look_belongs_to_a_subject():
    known = {subject.name for suite in load().values() for subject in suite.subjects}
    assert set(palette._LOOKS) <= known


def test_charts_of_an_earlier_run_are_removed(build):
    out = build.root / "bench-report"
    out.mkdir()
    (out / "old.png").touch()
    build.run("drum", "--subjects", "libev", "--rounds", "1")
    assert not (out / "old.png").exists()
    (out / "mine.png").touch()
    build.run("drum", "--subjects", "libev", "--rounds", "1", "--out", str(out))
    assert (out / "mine.png").exists()  # only the default directory is cleared


@pytest.mark.parametrize("low, high", [(0.96, 2.6), (11, 13), (1, 2000), (1e-3, 1e5), (5.4, 5.5)])
def test_axes_have_ticks(low, high):
    ticks = round_numbers(low, high)
    assert 3 <= len(ticks) <= 12
    assert all(low <= tick <= high for tick in ticks) and ticks == sorted(ticks)
